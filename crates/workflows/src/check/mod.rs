//! What is invalid or likely wrong in tools, eval files, eval functions, archives and the overlap map, without asking the
//! agent.

mod archives;
mod eval_files;
mod issue;
mod overlaps;
mod source_text;
mod tools;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use karat_core::lint::{Rule, Severity};
use karat_core::registry::Registry;
use karat_core::token::TokenSources;
use karat_project::{EvalPath, discover, read_json_setting, read_overlap_map};
use karat_tools::contract::Silencer;
use karat_tools::overlap::{OverlapMap, Uncovered};
use schemars::JsonSchema;
use serde::Serialize;

use self::eval_files::EvalFiles;
pub use self::issue::{CheckIssue, INVALID};
use self::source_text::Sources;
use crate::context::Context;
use crate::context::models::is_model;
use crate::context::tools::{is_empty, list_tools};
use crate::error::Error;
use crate::functions::{ProjectFunctions, find_functions};
use crate::settings::{Settings, ToolExecutor};

/// What `karat check --format json` prints.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "karat check report")]
pub struct CheckReport {
    /// How many eval files were read.
    pub files: usize,
    /// How many cases the valid ones have.
    pub cases: usize,
    /// How many tools are known; null without a registry.
    pub tools: Option<usize>,
    /// How many findings about tools the configuration silences.
    pub silenced: usize,
    /// The rules that could not be judged, since not all eval files were checked or valid.
    pub not_judged: Vec<String>,
    /// What was found, in the order of tools, eval files and overlap map.
    pub issues: Vec<CheckIssue>,
}

impl CheckReport {
    pub fn is_invalid(&self) -> bool {
        self.issues.iter().any(|issue| issue.rule == INVALID)
    }

    /// Tells whether anything is wrong; where warnings count, also what is likely wrong.
    pub fn has_failed(&self, strict: bool) -> bool {
        self.issues.iter().any(|issue| strict || issue.severity == Severity::Error)
    }
}

/// Checks these eval files, folders or globs, and everything that belongs to them; without any, the whole project.
pub async fn check(paths: &[PathBuf], context: &Context<'_>) -> Result<CheckReport, Error> {
    let settings = &context.settings;
    let found = discover(paths, &settings.layout, &settings.layout.here);
    // Paths that are given are eval files. Of a project without any, the tools can be checked.
    let found = if paths.is_empty() { found } else { Ok(found?) };
    let registry = list_tools(settings, context.notices).await?;
    let eval_paths = eval_paths(found, registry.as_ref(), context)?;
    let overlaps = read_overlap_map(&settings.overlap_map)?;
    let mut report = CheckReport::default();
    let mut silencer = Silencer::new(&settings.silence.silence);
    if let Some(registry) = &registry {
        if is_empty(registry) {
            context.notices.warn("the tool registry has no tools, so nothing is said about them");
        }
        report.tools = Some(registry.tools().len());
        let mut sources = Sources::new(settings);
        report.issues.extend(tools::check(registry, overlaps.as_ref(), &mut silencer, &mut sources));
    }
    let functions = find_functions(settings)?;
    let is_whole = is_whole_project(paths, settings);
    let tokens =
        TokenSources { seed: read_json_setting(&settings.seed_manifest, "the seed manifest")?, snapshot: None };
    let mut files = EvalFiles {
        tokens: &tokens,
        functions: &functions,
        named: BTreeSet::new(),
        registry: registry.as_ref(),
        overlaps: overlaps.as_ref(),
        routing_only: routes_only(settings),
        uncovered: overlaps.as_ref().map(Uncovered::of),
        are_all_valid: true,
    };
    for path in &eval_paths {
        let (issues, cases) = files.check(path, &mut silencer)?;
        report.files += 1;
        report.cases += cases;
        report.issues.extend(issues);
    }
    report.issues.extend(check_functions(&functions, (!is_whole).then_some(&files.named)));
    report.issues.extend(archives::check(&eval_paths, paths, settings)?);
    if let Some(map) = &overlaps {
        check_map(map, &files, is_whole, &mut silencer, &mut report, context)?;
    }
    if let Some(registry) = registry.as_ref().filter(|_| is_whole && files.are_all_valid) {
        report.issues.extend(tools::unused_silences(&silencer, registry, settings));
    }
    report.silenced = silencer.count();
    Ok(report)
}

/// Returns the eval files; none where the project has none yet, but tools to check.
fn eval_paths(
    found: Result<Vec<EvalPath>, karat_project::Error>,
    registry: Option<&Registry>,
    context: &Context<'_>,
) -> Result<Vec<EvalPath>, Error> {
    match (found, registry) {
        (Err(error), Some(_)) => {
            context.notices.warn(&format!("only the tools are checked: {error}"));
            Ok(Vec::new())
        }
        (found, _) => Ok(found?),
    }
}

/// Tells whether the paths hold all eval files of the project, so that something can be missing in them.
fn is_whole_project(paths: &[PathBuf], settings: &Settings) -> bool {
    let layout = &settings.layout;
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let evals = real(&layout.root.join("evals"));
    paths.is_empty() || paths.iter().any(|path| evals.starts_with(real(&layout.here.join(path))))
}

/// Tells whether agents end with their first tool calls: models do, unless tools really run.
fn routes_only(settings: &Settings) -> bool {
    let is_model = settings.agent_endpoints.iter().any(|endpoint| is_model(&endpoint.value, settings));
    is_model && settings.live.executor != ToolExecutor::Mcp
}

/// Returns what is wrong with the eval functions: with all of the project, or with those that are named.
fn check_functions(functions: &ProjectFunctions, named: Option<&BTreeSet<String>>) -> Vec<CheckIssue> {
    let is_named = |path: &Path| {
        named.is_none_or(|names| names.iter().any(|name| functions.broken(name).any(|one| one.path == path)))
    };
    let files = functions.files.iter().filter(|file| is_named(&file.path));
    files.flat_map(|file| CheckIssue::invalid(&file.shown, &file.text, file.findings())).collect()
}

/// Checks the overlap map, and whether cases cover it where that can be judged.
fn check_map(
    map: &OverlapMap,
    files: &EvalFiles<'_>,
    is_whole: bool,
    silencer: &mut Silencer<'_>,
    report: &mut CheckReport,
    context: &Context<'_>,
) -> Result<(), Error> {
    let unjudged = if !is_whole {
        Some("only a part of the eval files was checked")
    } else if !files.are_all_valid {
        Some("an eval file is invalid")
    } else {
        None
    };
    let uncovered = files.uncovered.as_ref().filter(|_| unjudged.is_none());
    let checked = overlaps::check(map, files.registry, uncovered, silencer, &context.settings)?;
    report.issues.extend(checked.issues);
    let unjudged = unjudged.or(checked.is_hidden.then_some("a tool may stand where the registry could not be read"));
    if let Some(why) = unjudged.filter(|_| map.pairs().next().is_some()) {
        let rule = Rule::UntestedOverlap.name();
        context.notices.note(&format!("{rule} was not judged: {why}"));
        report.not_judged.push(rule.to_owned());
    }
    Ok(())
}
