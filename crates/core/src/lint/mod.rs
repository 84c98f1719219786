//! Rules for cases: what is valid in an eval file or a draft and still likely wrong.
//!
//! `karat check` and the examination of drafts call the same [`lint`]. A finding never stops a run.

mod contradiction;
mod names;
mod prompt;
mod regression;
mod routing;
mod rule;
mod schema;
mod values;
mod volatile;

use std::collections::BTreeSet;

use serde_json::Value;

use self::names::RegistryIndex;
pub use self::names::named_tools;
use self::prompt::Prompts;
pub use self::rule::Rule;
pub use self::volatile::is_volatile;
use crate::case::{Case, EvalFile};
use crate::registry::{Registry, same_name};
use crate::token::TokenSources;
pub use karat_json::Severity;

/// A rule that a case breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lint {
    pub rule: Rule,
    pub case_id: String,
    /// The case's place in the file's list of cases; none where the case is not there any more.
    pub case_index: Option<usize>,
    /// Where in the case, or else in the file, as a JSON pointer.
    pub pointer: String,
    /// A lower-case fragment.
    pub message: String,
}

impl Lint {
    /// Returns the JSON pointer in the file, whose list of cases is at `cases`.
    pub fn pointer_in_file(&self, cases: &str) -> String {
        match self.case_index {
            Some(index) => format!("{cases}/{index}{}", self.pointer),
            None => self.pointer.clone(),
        }
    }
}

/// What is known beside the file.
#[derive(Debug, Clone, Copy, Default)]
pub struct LintContext<'c> {
    pub registry: Option<&'c Registry>,
    /// The values of seed tokens. None where nothing is known of them; with a `seed` of none there is no manifest.
    pub tokens: Option<&'c TokenSources>,
    /// Cases without stubs are only routed, so that there is no response to judge.
    pub routing_only: bool,
    /// The cases as they stand in the file, to find edits of regression cases.
    pub raw_cases: Option<&'c [Value]>,
    /// The ids of the cases in the file's archive; none where it could not be read.
    pub archived: Option<&'c BTreeSet<String>>,
    /// For a draft, the tool's other cases; none for an eval file.
    pub other_cases: Option<&'c [&'c Case]>,
}

/// Finds what is likely wrong, in the order of the cases.
pub fn lint(file: &EvalFile, context: LintContext<'_>) -> Vec<Lint> {
    let mut lints = regression::removed(file, context.archived);
    let mut index = RegistryIndex::new(context.registry);
    let mut prompts = Prompts::new(context.other_cases);
    for (place, case) in file.cases.iter().enumerate() {
        let mut linter = Linter { file, case, place, context, lints: &mut lints };
        linter.id_form();
        linter.prompt(&mut prompts);
        linter.routing();
        linter.values();
        linter.contradictions();
        linter.names(&mut index);
        linter.regression();
    }
    lints
}

/// One case on its way through the rules.
struct Linter<'l, 'o> {
    file: &'l EvalFile,
    case: &'l Case,
    place: usize,
    context: LintContext<'l>,
    lints: &'o mut Vec<Lint>,
}

impl Linter<'_, '_> {
    fn add(&mut self, rule: Rule, pointer: impl Into<String>, message: impl Into<String>) {
        self.lints.push(Lint {
            rule,
            case_id: self.case.id.clone(),
            case_index: Some(self.place),
            pointer: pointer.into(),
            message: message.into(),
        });
    }

    fn is_draft(&self) -> bool {
        self.context.other_cases.is_some()
    }

    fn is_own_tool(&self, name: &str) -> bool {
        same_name(name, &self.file.tool_name)
    }

    fn id_form(&mut self) {
        let Some(prefix) = self.file.tier.id_prefix() else {
            return;
        };
        let has_form =
            self.case.id.strip_prefix(prefix).and_then(|rest| rest.rsplit_once('-')).is_some_and(|(tool, number)| {
                number.len() >= 3 && number.bytes().all(|byte| byte.is_ascii_digit()) && self.is_own_tool(tool)
            });
        if !has_form {
            let tool = self.file.tool_name.replace('_', "-");
            self.add(Rule::IdForm, "/id", format!("ids of {} cases look like '{prefix}{tool}-001'", self.file.tier));
        }
    }
}
