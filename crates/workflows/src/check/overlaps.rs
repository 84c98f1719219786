//! Checks the overlap map: by itself, against the registry and against the cases.

use std::collections::HashMap;
use std::sync::Arc;

use karat_cases::registry::Registry;
use karat_lints::Rule;
use karat_project::read_text;
use karat_tools::contract::{SilencedRule, Silencer};
use karat_tools::overlap::{OverlapMap, UncoveredOverlaps, check_overlaps};

use super::issue::{CheckIssue, RuleProblem, locate, problem};
use crate::error::Error;
use crate::settings::Settings;

/// The result of checking the map.
pub(super) struct OverlapCheck {
    pub(super) issues: Vec<CheckIssue>,
    /// A tool of an uncovered overlap may be in a part of the registry that could not be read.
    pub(super) is_hidden: bool,
}

pub(super) fn check(
    map: &OverlapMap,
    registry: Option<&Registry>,
    uncovered: Option<&UncoveredOverlaps<'_>>,
    silencer: &mut Silencer<'_>,
    settings: &Settings,
) -> Result<OverlapCheck, Error> {
    let is_hidden = uncovered.is_some_and(|uncovered| {
        let mut names = uncovered.pairs().flat_map(|(left, right)| [left, right]);
        registry.is_some_and(|registry| !registry.gaps().is_empty() && names.any(|name| registry.tool(name).is_none()))
    });
    let findings = check_overlaps(map, registry)
        .into_iter()
        .map(|finding| (problem(finding.pointer, finding.message, finding.help), (finding.rule, finding.severity)));
    let untested = uncovered.map(|uncovered| untested(map, registry, uncovered, silencer)).unwrap_or_default();
    let problems: Vec<RuleProblem> = findings.chain(untested).collect();
    if problems.is_empty() {
        return Ok(OverlapCheck { issues: Vec::new(), is_hidden });
    }
    let path = &settings.overlap_map.path;
    let text: Arc<str> = Arc::from(read_text(path, "the overlap map")?);
    Ok(OverlapCheck { issues: locate(&settings.display_path(path), &text, problems), is_hidden })
}

/// Returns problems for declared overlaps without a case, at their first declaration.
fn untested(
    map: &OverlapMap,
    registry: Option<&Registry>,
    uncovered: &UncoveredOverlaps<'_>,
    silencer: &mut Silencer<'_>,
) -> Vec<RuleProblem> {
    let rule = Rule::UntestedOverlap;
    let mut pointers: HashMap<(&str, &str), String> = HashMap::new();
    for (entry_index, entry) in map.entries.iter().enumerate() {
        for (index, other) in entry.overlaps.iter().enumerate() {
            let pair = (entry.tool.as_str().min(&other.tool), entry.tool.as_str().max(&other.tool));
            pointers.entry(pair).or_insert_with(|| map.overlap_pointer(entry_index, index));
        }
    }
    // Unknown tools are already reported, and cannot have a case.
    let is_known = |name: &str| registry.is_none_or(|registry| registry.tool(name).is_some());
    let pairs = uncovered.pairs().filter(|(left, right)| is_known(left) && is_known(right));
    let pairs = pairs.filter(|(left, right)| !silencer.silences([*left, *right], SilencedRule::Case(rule)));
    let marked = pairs.filter_map(|(left, right)| {
        let message = format!("no ambiguous case covers the overlap of '{left}' and '{right}'");
        let help = format!(
            "add a case with \"difficulty\": \"ambiguous\" and both tools in 'toolsAcceptable', e.g. [[\"{left}\"], \
             [\"{right}\"]]"
        );
        let pointer = pointers.remove(&(left, right))?;
        Some((problem(pointer, message, Some(help)), (rule.name(), rule.severity())))
    });
    marked.collect()
}
