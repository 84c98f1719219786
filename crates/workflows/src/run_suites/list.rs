//! Lists the cases that a run would run.

use karat_cases::{Case, Tier};
use karat_core::case_list::{CaseEntry, CaseList, SuiteCases};

use super::Request;
use super::plan::{SelectedCases, SelectedRubric, SelectedSuite, select};
use crate::context::Context;
use crate::error::Error;

/// Lists the selected cases without calling the agent.
pub fn list_cases(request: &Request, context: &Context<'_>) -> Result<CaseList, Error> {
    let SelectedCases { suites, rubrics, .. } = select(request, context)?;
    let suites = suites.into_iter().map(|SelectedSuite { loaded, skipped, .. }| SuiteCases {
        eval_file: loaded.path.in_project,
        tool_name: loaded.file.tool_name,
        tier: loaded.file.tier,
        cases: loaded.file.cases.into_iter().map(case_entry).collect(),
        skipped,
    });
    let rubrics = rubrics.into_iter().map(|SelectedRubric { loaded, skipped }| SuiteCases {
        eval_file: loaded.path.in_project,
        tool_name: loaded.file.tool_name,
        tier: Tier::Rubric,
        cases: loaded.file.cases.into_iter().map(|case| case_entry(case.case)).collect(),
        skipped,
    });
    // A shard may have no case of a file.
    let has_cases = |suite: &SuiteCases| !suite.cases.is_empty() || !suite.skipped.is_empty();
    let suites: Vec<SuiteCases> = suites.chain(rubrics).filter(has_cases).collect();
    let cases = suites.iter().map(|suite| suite.cases.len()).sum();
    let skipped = suites.iter().map(|suite| suite.skipped.len()).sum();
    Ok(CaseList { cases, skipped, suites })
}

fn case_entry(case: Case) -> CaseEntry {
    CaseEntry { id: case.id, description: case.description, tags: case.tags, line: case.location.line }
}
