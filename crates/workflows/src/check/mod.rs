//! Checks tools, eval files, eval functions, archives and the overlap map without calling the agent.

mod archives;
mod eval_files;
mod issue;
mod overlaps;
mod rules;
mod source_text;
mod tools;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use karat_cases::registry::{Registry, same_name};
use karat_cases::token::TokenSources;
use karat_lints::{Rule, Severity};
use karat_project::{EvalPath, discover_all, read_json_setting, read_overlap_map};
use karat_tools::contract::Silencer;
use karat_tools::overlap::{OverlapMap, UncoveredOverlaps};
use schemars::JsonSchema;
use serde::Serialize;

use self::eval_files::EvalFiles;
pub use self::issue::{CheckIssue, INVALID};
pub use self::rules::{RuleEntry, RuleList};
use self::source_text::Sources;
use crate::context::Context;
use crate::context::models::{check_agent_form, is_model};
use crate::context::tools::{is_empty, list_tools};
use crate::error::Error;
use crate::functions::{ProjectFunctions, find_functions};
use crate::settings::{Settings, ToolExecutor};

/// The output of `karat check --format json`.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "karat check report")]
pub struct CheckReport {
    /// Number of eval files.
    pub files: usize,
    /// Number of cases in valid eval files.
    pub cases: usize,
    /// Number of known tools; null without a registry.
    pub tools: Option<usize>,
    /// Number of findings that the configuration silences.
    pub silenced: usize,
    /// The rules that were not checked because some eval files were not checked or are invalid.
    pub not_judged: Vec<String>,
    /// The issues, in the order of tools, eval files and overlap map.
    pub issues: Vec<CheckIssue>,
}

impl CheckReport {
    pub fn is_invalid(&self) -> bool {
        self.issues.iter().any(|issue| issue.rule == INVALID)
    }

    /// Whether there are errors; with `strict`, also warnings.
    pub fn has_failed(&self, strict: bool) -> bool {
        self.issues.iter().any(|issue| strict || issue.severity == Severity::Error)
    }
}

/// Checks eval files, folders or globs, and everything that belongs to them; the whole project without paths.
pub async fn check(paths: &[PathBuf], context: &Context<'_>) -> Result<CheckReport, Error> {
    let settings = &context.settings;
    for endpoint in &settings.agent_endpoints {
        check_agent_form(&endpoint.value, &settings.model.providers)?;
    }
    let discovered = discover_all(paths, &settings.layout, &settings.layout.current_dir).map(|discovered| {
        discovered.ignored.iter().for_each(|file| context.notices.warn(&file.to_string()));
        discovered.files
    });
    // Given paths must have eval files. Without paths, a project without eval files can still have tools to check.
    let discovered = if paths.is_empty() { discovered } else { Ok(discovered?) };
    let registry = list_tools(settings, context.notices).await?;
    let eval_paths = eval_paths(discovered, registry.as_ref(), context)?;
    let overlaps = read_overlap_map(&settings.overlap_map)?;
    let mut report = CheckReport::default();
    let mut silencer = Silencer::new(&settings.silence.silence);
    let mut tool_issues = Vec::new();
    if let Some(registry) = &registry {
        if is_empty(registry) {
            context.notices.warn("the tool registry has no tools to check");
        }
        report.tools = Some(registry.tools().len());
        let mut sources = Sources::new(settings);
        tool_issues = tools::check(registry, overlaps.as_ref(), &mut silencer, &mut sources);
    }
    let functions = find_functions(settings)?;
    let is_whole = is_whole_project(paths, settings);
    let tokens =
        TokenSources { seed: read_json_setting(&settings.seed_manifest, "the seed manifest")?, snapshot: None };
    let mut files = EvalFiles {
        tokens: &tokens,
        functions: &functions,
        state_sources: &settings.state.sources.value,
        function_names: BTreeSet::new(),
        registry: registry.as_ref(),
        overlaps: overlaps.as_ref(),
        routing_only: is_routing_only(settings),
        uncovered: overlaps.as_ref().map(UncoveredOverlaps::of),
        tool_names: BTreeSet::new(),
        are_all_valid: true,
    };
    for path in &eval_paths {
        let (issues, cases) = files.check(path, &mut silencer)?;
        report.files += 1;
        report.cases += cases;
        report.issues.extend(issues);
    }
    if !is_whole {
        // Problems of other tools are left to a check of the whole project.
        let is_named = |tool: &String| files.tool_names.iter().any(|name| same_name(name, tool));
        tool_issues.retain(|issue| issue.tool.as_ref().is_none_or(is_named));
    }
    report.issues.splice(0..0, tool_issues);
    report.issues.extend(check_functions(&functions, (!is_whole).then_some(&files.function_names)));
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

/// Returns the eval files; none if the project has only tools to check.
fn eval_paths(
    discovered: Result<Vec<EvalPath>, karat_project::Error>,
    registry: Option<&Registry>,
    context: &Context<'_>,
) -> Result<Vec<EvalPath>, Error> {
    match (discovered, registry) {
        (Err(error), Some(_)) => {
            context.notices.warn(&format!("checking only the tools: {error}"));
            Ok(Vec::new())
        }
        (discovered, _) => Ok(discovered?),
    }
}

/// Whether the paths include all eval files of the project, so that missing coverage can be detected.
fn is_whole_project(paths: &[PathBuf], settings: &Settings) -> bool {
    let layout = &settings.layout;
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let evals = real(&layout.root.join("evals"));
    paths.is_empty() || paths.iter().any(|path| evals.starts_with(real(&layout.current_dir.join(path))))
}

/// Whether agents stop at their first tool calls: models do, unless tools are executed.
fn is_routing_only(settings: &Settings) -> bool {
    let is_model = settings.agent_endpoints.iter().any(|endpoint| is_model(&endpoint.value, settings));
    is_model && settings.live.executor != ToolExecutor::Mcp
}

/// Returns the issues of eval functions: of those with these names, or of all functions of the project.
fn check_functions(functions: &ProjectFunctions, names: Option<&BTreeSet<String>>) -> Vec<CheckIssue> {
    let is_selected = |path: &Path| {
        names.is_none_or(|names| names.iter().any(|name| functions.broken(name).any(|file| file.path == path)))
    };
    let files = functions.files.iter().filter(|file| is_selected(&file.path));
    files.flat_map(|file| CheckIssue::invalid(&file.display_path, &file.text, file.findings())).collect()
}

/// Checks the overlap map, and its coverage if all eval files are valid.
fn check_map(
    map: &OverlapMap,
    files: &EvalFiles<'_>,
    is_whole: bool,
    silencer: &mut Silencer<'_>,
    report: &mut CheckReport,
    context: &Context<'_>,
) -> Result<(), Error> {
    let unjudged = if !is_whole {
        Some("not all eval files were checked")
    } else if !files.are_all_valid {
        Some("an eval file is invalid")
    } else {
        None
    };
    let uncovered = files.uncovered.as_ref().filter(|_| unjudged.is_none());
    let checked = overlaps::check(map, files.registry, uncovered, silencer, &context.settings)?;
    report.issues.extend(checked.issues);
    let unjudged =
        unjudged.or(checked.is_hidden.then_some("a tool may be in a part of the registry that could not be read"));
    if let Some(reason) = unjudged.filter(|_| map.pairs().next().is_some()) {
        let rule = Rule::UntestedOverlap.name();
        context.notices.note(&format!("{rule} was not checked: {reason}"));
        report.not_judged.push(rule.to_owned());
    }
    Ok(())
}
