//! Rules for cases that are valid but probably wrong, in eval files and drafts.
//!
//! `karat check` and the check of drafts use the same [`lint`]. Findings never stop a run.

mod contradiction;
mod injections;
mod names;
mod prompt;
mod regression;
mod required_keys;
mod routing;
mod rule;
mod schema;
mod values;
mod volatile;

use std::collections::{BTreeSet, HashSet};

use serde_json::{Map, Value};

use self::names::RegistryIndex;
pub use self::names::{PLACEHOLDER_RESULT, named_tools, unknown_tool};
use self::prompt::Prompts;
pub use self::rule::Rule;
pub use self::volatile::is_volatile;
use karat_cases::registry::{Registry, same_name};
use karat_cases::token::TokenSources;
use karat_cases::{Case, EvalFile, Expectation, INPUT_POINTER, SimulatedUser, contains_row_token, safety_pointer};
pub use karat_json::Severity;

/// A rule that a case breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lint {
    pub rule: Rule,
    pub case_id: String,
    /// Index in the file's list of cases; `None` if the case was removed.
    pub case_index: Option<usize>,
    /// Location in the case, or in the file if there is no case, as a JSON pointer.
    pub pointer: String,
    /// A lower-case fragment.
    pub message: String,
}

impl Lint {
    /// Returns the JSON pointer in the file, given the pointer to its list of cases.
    pub fn pointer_in_file(&self, cases: &str) -> String {
        match self.case_index {
            Some(index) => format!("{cases}/{index}{}", self.pointer),
            None => self.pointer.clone(),
        }
    }
}

/// Information from outside the file.
#[derive(Debug, Clone, Copy, Default)]
pub struct LintContext<'c> {
    pub registry: Option<&'c Registry>,
    /// The values of tokens, or `None` if unknown. If its `seed` is `None`, there is no seed manifest.
    pub tokens: Option<&'c TokenSources>,
    /// Whether cases without stubs only check routing, so that there is no final response.
    pub routing_only: bool,
    /// The cases as raw JSON, to detect edits of regression cases.
    pub raw_cases: Option<&'c [Value]>,
    /// The ids of the cases in the file's archive; `None` if it could not be read.
    pub archived: Option<&'c BTreeSet<String>>,
    /// For a draft, the tool's other cases; `None` for an eval file.
    pub other_cases: Option<&'c [&'c Case]>,
}

/// Finds probable mistakes, in the order of the cases.
pub fn lint(file: &EvalFile, context: LintContext<'_>) -> Vec<Lint> {
    let mut lints = regression::find_removed(file, context.archived);
    let mut registry_index = RegistryIndex::new(context.registry);
    let mut prompts = Prompts::new(context.other_cases);
    let has_unknown_tool = has_unknown_tool(file, context.registry);
    for case in &file.cases {
        let total = case.total_expectation();
        let own_stubs = case.stubs.as_ref();
        let part = Part::Case;
        let mut linter =
            Linter { file, case, part, own_stubs, total: &total, context, has_unknown_tool, lints: &mut lints };
        linter.id_form();
        linter.prompt(case, &mut prompts);
        linter.expectations(&mut registry_index);
        linter.cannot_fail();
        linter.regression();
        linter.injections(&mut registry_index);
        linter.forbidden_task();
        if let Some(case) = case.safety_case() {
            let (part, total) = (Part::Safety, &case.expect);
            let mut linter = Linter {
                file,
                case: &case,
                part,
                own_stubs: None,
                total,
                context,
                has_unknown_tool,
                lints: &mut lints,
            };
            linter.safety(&mut registry_index);
        }
        for (number, turn) in case.turns().iter().enumerate() {
            let Some(case) = case.of_turn(number) else { continue };
            let (part, own_stubs, total) = (Part::Turn(number), turn.stubs.as_ref(), &case.expect);
            let mut linter =
                Linter { file, case: &case, part, own_stubs, total, context, has_unknown_tool, lints: &mut lints };
            linter.expectations(&mut registry_index);
        }
    }
    // Reports a finding once per table, not for each row.
    let tables: HashSet<usize> =
        file.cases.iter().filter(|case| case.location.row.is_some()).map(|case| case.location.index).collect();
    let mut seen = HashSet::new();
    lints.retain(|lint| {
        let table = lint.case_index.filter(|index| tables.contains(index));
        table.is_none_or(|index| seen.insert((index, lint.rule, lint.pointer.clone())))
    });
    lints
}

/// Whether the file names no tool, and the registry has none with the file's name.
pub fn has_unknown_tool(file: &EvalFile, registry: Option<&Registry>) -> bool {
    let is_named = file.metadata.as_ref().is_some_and(|metadata| metadata.tool_name.is_some());
    // A gap may hide the tool.
    let is_unknown = |registry: &Registry| {
        !registry.tools().is_empty() && registry.gaps().is_empty() && registry.find(&file.tool_name).is_none()
    };
    !is_named && registry.is_some_and(is_unknown)
}

/// What the rules are applied to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Case,
    /// A turn of the conversation, as a case of its own.
    Turn(usize),
    /// The assertions of `safety`, as those of a case of its own.
    Safety,
}

/// Applies the rules to one case, or to a part of it as a case of its own.
struct Linter<'l, 'o> {
    file: &'l EvalFile,
    case: &'l Case,
    part: Part,
    /// The stubs of the case or turn itself. When a turn is judged, those of the case apply too.
    own_stubs: Option<&'l Map<String, Value>>,
    /// The expectations of the case and all its turns.
    total: &'l Expectation,
    context: LintContext<'l>,
    /// Whether the file's own tool is unknown, so that no rule can refer to it.
    has_unknown_tool: bool,
    lints: &'o mut Vec<Lint>,
}

impl Linter<'_, '_> {
    fn add(&mut self, rule: Rule, pointer: impl Into<String>, message: impl Into<String>) {
        let pointer = pointer.into();
        let pointer = match self.part {
            Part::Turn(turn) if pointer == INPUT_POINTER => format!("/turns/{turn}/message"),
            Part::Turn(turn) => format!("/turns/{turn}{pointer}"),
            Part::Safety => safety_pointer(&pointer),
            Part::Case => pointer,
        };
        self.lints.push(Lint {
            rule,
            case_id: self.case.id.clone(),
            case_index: Some(self.case.location.index),
            pointer,
            message: message.into(),
        });
    }

    /// Reports a finding about the expectations of the case and its turns together.
    fn add_for_total(&mut self, rule: Rule, pointer: &str, message: impl Into<String>) {
        // The expectations of a conversation have no common location.
        let pointer = if self.case.turns.is_some() && pointer.starts_with("/expect") { "/turns" } else { pointer };
        self.add(rule, pointer, message);
    }

    /// Applies the rules for a message, its expectations and its stubs.
    fn expectations(&mut self, registry_index: &mut RegistryIndex<'_>) {
        self.row_tokens();
        self.message();
        self.routing();
        if self.part == Part::Case {
            self.tier();
        }
        self.fixed_order();
        if self.part == Part::Case {
            self.required_keys();
        }
        self.proof_values();
        self.values();
        self.contradictions();
        self.names(registry_index);
    }

    /// Finds `{{row:…}}` in a case without rows, where it is not replaced.
    fn row_tokens(&mut self) {
        let case = self.case;
        if case.location.row.is_some() {
            return;
        }
        let is_token = |text: &str| contains_row_token(text);
        let in_expect = || serde_json::to_string(&case.expect).is_ok_and(|text| is_token(&text));
        let in_stubs = || serde_json::to_string(&self.own_stubs).is_ok_and(|text| is_token(&text));
        let input = case.input.as_ref().filter(|_| self.part != Part::Safety);
        let in_message = input.is_some_and(|input| is_token(&input.message));
        let in_part = |part: Value| self.part == Part::Case && is_token(&part.to_string());
        let in_user = in_part(case.user.as_ref().map_or(Value::Null, SimulatedUser::to_value));
        let in_injections = in_part(serde_json::to_value(&case.injections).unwrap_or_default());
        let locations = [
            (INPUT_POINTER, in_message),
            ("/user", in_user),
            ("/stubs", in_stubs()),
            ("/injections", in_injections),
            ("/expect", in_expect()),
        ];
        for (pointer, _) in locations.into_iter().filter(|(_, is_found)| *is_found) {
            self.add(Rule::RowToken, pointer, "{{row:…}} is plain text in a case without 'each'");
        }
    }

    fn is_turn(&self) -> bool {
        matches!(self.part, Part::Turn(_))
    }

    fn is_draft(&self) -> bool {
        self.context.other_cases.is_some()
    }

    fn is_own_tool(&self, name: &str) -> bool {
        same_name(name, &self.file.tool_name)
    }

    fn id_form(&mut self) {
        let Some(prefix) = self.file.tier.id_prefix().filter(|_| !self.has_unknown_tool) else {
            return;
        };
        let has_form = self.case.written_id().strip_prefix(prefix).and_then(|rest| rest.rsplit_once('-')).is_some_and(
            |(tool, number)| {
                number.len() >= 3 && number.bytes().all(|byte| byte.is_ascii_digit()) && self.is_own_tool(tool)
            },
        );
        if !has_form {
            let tool = self.file.tool_name.replace('_', "-");
            self.add(Rule::IdForm, "/id", format!("ids of {} cases look like '{prefix}{tool}-001'", self.file.tier));
        }
    }
}
