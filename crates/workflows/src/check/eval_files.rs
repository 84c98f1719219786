//! Checks eval files.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use karat_cases::registry::Registry;
use karat_cases::token::TokenSources;
use karat_cases::{EvalFile, SuiteFile};
use karat_core::staleness::{CurrentTool, Staleness, check_overlap_version, check_staleness};
use karat_json::{Problem, without_bom};
use karat_lints::{Lint, LintContext, Rule, Severity, has_unknown_tool, lint, named_tools};
use karat_project::{EvalPath, archived_ids, parse_suite_file, read_bytes};
use karat_state::SourceConfig;
use karat_tools::contract::{SilencedRule, Silencer};
use karat_tools::overlap::{OverlapMap, UncoveredOverlaps};
use serde_json::Value;

use super::issue::{CheckIssue, INVALID, RuleProblem, locate, problem};
use crate::case_problems::cases_pointer;
use crate::error::Error;
use crate::functions::{ProjectFunctions, eval_names};
use crate::state::unknown_in;

/// The rule of stale files.
const STALE: &str = "stale";

/// Checks eval files one by one.
pub(super) struct EvalFiles<'c> {
    pub(super) registry: Option<&'c Registry>,
    pub(super) overlaps: Option<&'c OverlapMap>,
    /// The values of seed tokens.
    pub(super) tokens: &'c TokenSources,
    pub(super) functions: &'c ProjectFunctions,
    pub(super) state_sources: &'c BTreeMap<String, SourceConfig>,
    /// The eval functions of all cases so far.
    pub(super) function_names: BTreeSet<String>,
    /// The tools of all files so far, and those that their cases name.
    pub(super) tool_names: BTreeSet<String>,
    /// Whether agents stop at their first tool calls.
    pub(super) routing_only: bool,
    /// The overlaps that no case so far covers.
    pub(super) uncovered: Option<UncoveredOverlaps<'c>>,
    pub(super) are_all_valid: bool,
}

impl EvalFiles<'_> {
    /// Returns the issues of a file and its number of cases.
    pub(super) fn check(
        &mut self,
        path: &EvalPath,
        silencer: &mut Silencer<'_>,
    ) -> Result<(Vec<CheckIssue>, usize), Error> {
        let bytes = read_bytes(path)?;
        let text: Arc<str> = Arc::from(String::from_utf8_lossy(without_bom(&bytes)));
        let file = match parse_suite_file(path, &bytes) {
            Ok(SuiteFile::Eval(file)) => file,
            // Messages, stubs and tools follow the same rules in rubric files.
            Ok(SuiteFile::Rubric(file)) => file.without_rubrics(),
            Err(findings) => {
                self.are_all_valid = false;
                return Ok((CheckIssue::invalid(&path.display_path, &text, findings), 0));
            }
        };
        self.function_names.extend(file.cases.iter().flat_map(eval_names).map(str::to_owned));
        self.tool_names.insert(file.tool_name.clone());
        let named = file.cases.iter().flat_map(|case| named_tools(&case.expect));
        self.tool_names.extend(named.map(|(_, tool)| tool.to_owned()));
        if let Some(uncovered) = &mut self.uncovered {
            file.cases.iter().for_each(|case| uncovered.remove_covered_pairs(case));
        }
        Ok((locate(&path.display_path, &text, self.problems(path, &file, &text, silencer)), file.cases.len()))
    }

    fn problems(&self, path: &EvalPath, file: &EvalFile, text: &str, silencer: &mut Silencer<'_>) -> Vec<RuleProblem> {
        let prefix = cases_pointer(text);
        // The raw JSON is needed only to verify hashes.
        let is_hashed = file.metadata.as_ref().is_some_and(|metadata| metadata.case_hashes.is_some());
        let tree: Value = if is_hashed { serde_json::from_str(text).unwrap_or_default() } else { Value::Null };
        let raw_cases = tree.pointer(prefix).and_then(Value::as_array).map(Vec::as_slice);
        let archived = archived_ids(&path.path);
        let context = LintContext {
            registry: self.registry,
            tokens: Some(self.tokens),
            routing_only: self.routing_only,
            raw_cases,
            archived: archived.as_ref(),
            other_cases: None,
        };
        let stale = check_staleness(file, &CurrentTool::find(file, self.registry));
        let stale = stale.iter().filter(|stale| stale.is_stale() || self.registry.is_some());
        let stale = stale.map(|stale| from_staleness("/metadata", stale));
        let changed = self.overlaps.and_then(|map| check_overlap_version(file, &map.version));
        let changed = changed.iter().map(|stale| from_staleness("/metadata/overlapMapVersion", stale));
        let mut lints = lint(file, context);
        lints.retain(|lint| !silencer.silences([file.tool_name.as_str()], SilencedRule::Case(lint.rule)));
        let lints = lints.into_iter().map(|lint| from_lint(prefix, lint));
        let unknown = self.functions.unknown_in(file, prefix, |_| true).into_iter();
        let unknown = unknown.chain(unknown_in(file, prefix, &|_| true, self.state_sources));
        let unknown = unknown.map(|problem| (problem, (INVALID, Severity::Error)));
        let unknown_tool = self.unknown_tool(file, silencer);
        unknown_tool.into_iter().chain(stale).chain(changed).chain(lints).chain(unknown).collect()
    }

    /// Returns a problem if neither the metadata nor the file name is a tool of the registry.
    fn unknown_tool(&self, file: &EvalFile, silencer: &mut Silencer<'_>) -> Option<RuleProblem> {
        let rule = Rule::FileTool;
        if !has_unknown_tool(file, self.registry)
            || silencer.silences([file.tool_name.as_str()], SilencedRule::Case(rule))
        {
            return None;
        }
        let message =
            format!("'{}' is not in the tool registry: rules about the file's own tool do not apply", file.tool_name);
        let help = "set metadata.toolName to the tool of the file: {\"metadata\": {\"toolName\": …}, \"cases\": […]}";
        Some((problem(String::new(), message, Some(help.to_owned())), (rule.name(), rule.severity())))
    }
}

fn from_staleness(pointer: &str, staleness: &Staleness) -> RuleProblem {
    (problem(pointer.to_owned(), staleness.warning(), staleness.update_hint()), (STALE, Severity::Warning))
}

fn from_lint(prefix: &str, lint: Lint) -> RuleProblem {
    let pointer = lint.pointer_in_file(prefix);
    let problem = Problem { case_id: Some(lint.case_id), ..problem(pointer, lint.message, None) };
    (problem, (lint.rule.name(), lint.rule.severity()))
}
