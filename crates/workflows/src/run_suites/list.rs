//! Lists the cases that a run would run.

use karat_core::case::{Case, Tier};
use karat_core::result::SkippedCase;
use schemars::JsonSchema;
use serde::Serialize;

use super::Request;
use super::plan::{SelectedCases, SelectedRubric, SelectedSuite, select};
use crate::context::Context;
use crate::error::Error;

/// The output of `karat run --list --format json`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "karat case list")]
pub struct CaseList {
    /// Number of cases to run, without skipped ones.
    pub cases: usize,
    pub skipped: usize,
    pub suites: Vec<ListedSuite>,
}

/// The selected cases of an eval file.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListedSuite {
    /// The eval file, relative to the project's folder.
    pub eval_file: String,
    pub tool_name: String,
    pub tier: Tier,
    /// In file order.
    pub cases: Vec<ListedCase>,
    /// Cases that are not run because of their `skip`.
    pub skipped: Vec<SkippedCase>,
}

/// A case that would run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListedCase {
    pub id: String,
    pub description: String,
    pub tags: Vec<String>,
    /// The line in the eval file.
    pub line: usize,
}

/// Lists the selected cases without calling the agent.
pub fn list_cases(request: &Request, context: &Context<'_>) -> Result<CaseList, Error> {
    let SelectedCases { suites, rubrics, .. } = select(request, context)?;
    let suites = suites.into_iter().map(|SelectedSuite { loaded, skipped, .. }| ListedSuite {
        eval_file: loaded.path.in_project,
        tool_name: loaded.file.tool_name,
        tier: loaded.file.tier,
        cases: loaded.file.cases.into_iter().map(listed).collect(),
        skipped,
    });
    let rubrics = rubrics.into_iter().map(|SelectedRubric { loaded, skipped }| ListedSuite {
        eval_file: loaded.path.in_project,
        tool_name: loaded.file.tool_name,
        tier: Tier::Rubric,
        cases: loaded.file.cases.into_iter().map(|case| listed(case.case)).collect(),
        skipped,
    });
    let suites: Vec<ListedSuite> = suites.chain(rubrics).collect();
    let cases = suites.iter().map(|suite| suite.cases.len()).sum();
    let skipped = suites.iter().map(|suite| suite.skipped.len()).sum();
    Ok(CaseList { cases, skipped, suites })
}

fn listed(case: Case) -> ListedCase {
    ListedCase { id: case.id, description: case.description, tags: case.tags, line: case.place.line }
}
