//! Prepares a run: loads the files, tools, agents, the judge, the snapshot and the baseline.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use karat_agents::Throttle;
use karat_cases::registry::Registry;
use karat_cases::token::TokenSources;
use karat_cases::{Case, EvalFile};
use karat_core::assertion::Strictness;
use karat_core::port::{Agent, EvalFunctions, Telemetry};
use karat_core::result::{EarlierResult, SkippedCase};
use karat_core::shard::Shard;
use karat_core::staleness::CurrentTool;
use karat_project::{
    DiscoveredFiles, EarlierResults, EvalPath, LoadedRubric, LoadedSuite, SuiteName, archived_ids, discover_all,
    load_all, read_json_setting,
};
use karat_runner::{Baseline, Plan, RubricPlan, Rubrics, SuitePlan};

use super::Request;
use super::selection::Selection;
use super::tool_errors::note_unchecked_tool_errors;
use super::unknown_tools::report_unknown_tools;
use crate::baseline_missing::{cases_of_missing_suites, removed_cases};
use crate::context::Context;
use crate::context::agents::make_agents;
use crate::context::chat_models::{make_judge, make_simulated_users};
use crate::context::models::Models;
use crate::context::snapshot::capture;
use crate::context::tools::read_tools;
use crate::error::Error;
use crate::functions::start_functions;
use crate::run_name::{find_run, load_baseline, no_baseline_warning};
use crate::settings::Settings;
use crate::state::{check_sources, prepare_state};

/// The files of a run, with only the selected cases.
pub(super) struct LoadedSuites {
    suites: Vec<SelectedSuite>,
    rubrics: Vec<SelectedRubric>,
    shard: Option<Shard>,
    baseline: Option<LoadedBaseline>,
    functions: Option<Arc<dyn EvalFunctions>>,
}

/// The selected cases of an eval file.
#[derive(Clone)]
pub(super) struct SelectedSuite {
    /// Contains only the cases to run.
    pub(super) loaded: LoadedSuite,
    pub(super) skipped: Vec<SkippedCase>,
    /// The ids and lines of the selected cases of all shards; empty without shards.
    all_selected: Vec<(String, usize)>,
}

/// The selected cases of a rubric file.
pub(super) struct SelectedRubric {
    /// Contains only the cases to run.
    pub(super) loaded: LoadedRubric,
    pub(super) skipped: Vec<SkippedCase>,
}

/// A run that is ready to start.
pub(super) struct PreparedRun {
    pub(super) plan: Plan,
    pub(super) agents: Vec<Arc<dyn Agent>>,
    /// The throttles of the providers, by name.
    pub(super) throttles: Vec<(String, Arc<Throttle>)>,
}

/// The selected cases of a run, and its baseline.
pub(super) struct SelectedCases {
    pub(super) suites: Vec<SelectedSuite>,
    pub(super) rubrics: Vec<SelectedRubric>,
    baseline: Option<LoadedBaseline>,
}

/// The results that a run is compared with.
struct LoadedBaseline {
    results: EarlierResults,
    /// The ids of all cases of each eval file in the project, selected or not.
    case_ids: HashMap<String, BTreeSet<String>>,
}

/// Reads the files and applies the selection.
pub(super) fn select(request: &Request, context: &Context<'_>) -> Result<SelectedCases, Error> {
    let settings = &context.settings;
    let selection = Selection::new(&request.selection)?;
    let DiscoveredFiles { mut files, ignored } =
        discover_all(&request.paths, &settings.layout, &settings.layout.current_dir)?;
    for file in &ignored {
        context.notices.warn(&file.to_string());
    }
    selection.drop_other_tiers(&mut files)?;
    let (mut suites, mut rubrics) = load_all(files)?;
    // A file whose cases were all archived is as karat left it.
    let has_archive = |suite: &&LoadedSuite| archived_ids(&suite.path.path).is_some_and(|ids| !ids.is_empty());
    for empty in suites.iter().filter(|suite| suite.file.cases.is_empty() && !has_archive(suite)) {
        context.notices.warn(&format!("{} has no cases", empty.path.display_path));
    }
    for tag in selection.unused_skip_tags(&suites, &rubrics) {
        context.notices.warn(&format!("no case has the tag '{tag}' of --skip-tag"));
    }
    let case_ids = match &settings.baseline {
        Some(_) => suites.iter().map(|suite| case_ids(suite, settings)).collect(),
        None => HashMap::new(),
    };
    selection.apply(&mut suites, &mut rubrics)?;
    let baseline = settings.baseline.as_ref().map(|baseline| load_baseline(baseline, context)).transpose()?;
    let baseline = baseline.map(|results| LoadedBaseline { results, case_ids });
    if request.selection.only_failed {
        if !rubrics.is_empty() {
            context.notices.warn("--only-failed skips rubric files: a score neither passes nor fails");
            rubrics.clear();
        }
        match (&request.selection.failed_in, &baseline) {
            (Some(name), _) => {
                let run = find_run(name, &settings.layout)?;
                let results = run.results()?;
                if let Some(incomplete) = run.incomplete(&results) {
                    let message = format!("run {} of --only-failed is incomplete: {incomplete}", run.run_id);
                    context.notices.warn(&message);
                }
                EarlierResults { suites: results }.retain_failed(&mut suites)?;
            }
            (None, Some(baseline)) => baseline.results.retain_failed(&mut suites)?,
            (None, None) => EarlierResults::load_all(&settings.layout)?.retain_failed(&mut suites)?,
        }
    }
    let shard = request.selection.shard;
    if shard.is_some() && !rubrics.is_empty() {
        if suites.is_empty() {
            return Err(
                Error::nothing_selected("rubric files cannot be run in shards").hint("run them without --shard")
            );
        }
        context.notices.warn("--shard leaves out rubric files: run them with --tier rubric");
        rubrics.clear();
    }
    let suites = suites.into_iter().map(|loaded| SelectedSuite::new(loaded, shard)).collect();
    let rubrics = rubrics.into_iter().map(SelectedRubric::new).collect();
    Ok(SelectedCases { suites, rubrics, baseline })
}

/// Reads the files and functions of the run, with only the selected cases.
pub(super) fn load(request: &Request, context: &Context<'_>) -> Result<LoadedSuites, Error> {
    let SelectedCases { suites, rubrics, baseline } = select(request, context)?;
    let files: Vec<&LoadedSuite> = suites.iter().map(|suite| &suite.loaded).collect();
    check_sources(&files, &context.settings)?;
    let functions = start_functions(&files, &context.settings, context.process_env)?;
    Ok(LoadedSuites { suites, rubrics, shard: request.selection.shard, baseline, functions })
}

/// Returns the path and the ids of an eval file, as in results.
fn case_ids(suite: &LoadedSuite, settings: &Settings) -> (String, BTreeSet<String>) {
    let ids = suite.file.cases.iter().map(|case| settings.redactor.text(&case.id).into_owned());
    (suite.path.in_project.clone(), ids.collect())
}

impl SelectedSuite {
    fn new(mut loaded: LoadedSuite, shard: Option<Shard>) -> Self {
        let cases = &mut loaded.file.cases;
        let all_selected = match shard {
            Some(_) => cases.iter().map(|case| (case.id.clone(), case.location.line)).collect(),
            None => Vec::new(),
        };
        cases.retain(|case| shard.is_none_or(|shard| shard.contains(&case.id)));
        let skipped = cases.extract_if(.., |case| case.skip.is_some()).filter_map(skipped_case).collect();
        Self { loaded, skipped, all_selected }
    }
}

impl SelectedRubric {
    fn new(mut loaded: LoadedRubric) -> Self {
        let skipped = loaded.file.cases.extract_if(.., |case| case.case.skip.is_some());
        let skipped = skipped.filter_map(|case| skipped_case(case.case)).collect();
        Self { loaded, skipped }
    }
}

fn skipped_case(case: Case) -> Option<SkippedCase> {
    Some(SkippedCase { id: case.id, description: case.description, reason: case.skip? })
}

/// Prepares the tools, agents and models of the run.
pub(super) async fn prepare(
    loaded: LoadedSuites,
    telemetry: Option<&Arc<dyn Telemetry>>,
    context: &Context<'_>,
) -> Result<PreparedRun, Error> {
    let Context { settings, notices, .. } = context;
    let tools = read_tools(settings, *notices).await?;
    tools.warn_about_gaps(*notices);
    // Shared, since rate limits and the budget apply to the whole run.
    let mut models = Models::new(settings, settings.recording.is_offline());
    let agents = make_agents(&mut models, settings, &tools, telemetry, *notices)?;
    let judge = if loaded.rubrics.is_empty() { None } else { make_judge(&mut models, settings, *notices)? };
    let cases = loaded.suites.iter().flat_map(|suite| &suite.loaded.file.cases);
    let simulated_users = make_simulated_users(cases, &mut models, settings, *notices)?;
    let seed = read_json_setting(&settings.seed_manifest, "the seed manifest")?;
    let snapshot = match &settings.snapshot {
        Some(source) => Some(capture(source, settings.timeout, &settings.variables, &settings.redactor).await?),
        None => None,
    };
    let LoadedSuites { suites, rubrics, shard, baseline, functions } = loaded;
    let services = prepare_state(suites.iter().map(|suite| &suite.loaded), &tools, settings, *notices).await?;
    let registry = tools.registry;
    if let Some(registry) = &registry {
        report_unknown_tools(suites.iter().map(|suite| &suite.loaded), registry, context)?;
    }
    let rubrics = Rubrics { suites: rubric_plans(&rubrics, agents.len(), registry.as_ref()), judge };
    let mut compared = Vec::new();
    let suites = suite_plans(suites, &agents, registry.as_ref(), shard, baseline.as_ref(), &mut compared, context);
    note_unchecked_tool_errors(&suites, &agents, *notices);
    let missing_suites =
        baseline.as_ref().map(|baseline| cases_of_missing_suites(&baseline.results, &compared, shard, settings));
    let plan = Plan {
        run_id: context.ids.run_id(),
        suites,
        rubrics,
        simulated_users,
        shard,
        concurrency: settings.concurrency,
        timeout: settings.timeout,
        trials: settings.trials,
        strictness: Strictness { all_failures: settings.all_failures, strict: settings.strict },
        fail_fast: settings.fail_fast,
        gates: settings.gates.clone(),
        baseline_missing: missing_suites.unwrap_or_default(),
        tokens: TokenSources { seed, snapshot },
        registry,
        tokenizer: settings.tokenizer,
        redactor: settings.redactor.clone(),
        functions,
        state_sources: services.sources,
        hooks: services.hooks,
    };
    Ok(PreparedRun { plan, agents, throttles: models.throttles() })
}

/// Plans every eval file for every agent. Adds the results of the baseline that are compared to `compared`.
fn suite_plans<'b>(
    mut suites: Vec<SelectedSuite>,
    agents: &[Arc<dyn Agent>],
    registry: Option<&Registry>,
    shard: Option<Shard>,
    baseline: Option<&'b LoadedBaseline>,
    compared: &mut Vec<&'b EarlierResult>,
    context: &Context<'_>,
) -> Vec<SuitePlan> {
    let mut plans = Vec::with_capacity(suites.len() * agents.len());
    for (index, agent) in agents.iter().enumerate() {
        let identity = agent.identity();
        let identity = context.settings.redactor.text(&identity);
        // Avoid a clone for the last agent.
        let files = if index + 1 == agents.len() { std::mem::take(&mut suites) } else { suites.clone() };
        plans.extend(files.into_iter().map(|SelectedSuite { loaded, skipped, all_selected }| {
            let LoadedSuite { path, file } = loaded;
            let current = CurrentTool::find(&file, registry);
            let earlier =
                baseline.and_then(|baseline| find_baseline(&baseline.results, &path, &file, &identity, context));
            compared.extend(earlier);
            let baseline = baseline.zip(earlier).map(|(baseline, result)| baseline.of_suite(result, &path, shard));
            let EvalPath { display_path: path, in_project: project_path, .. } = path;
            SuitePlan { path, project_path, agent: index, file, skipped, all_selected, current, baseline }
        }));
    }
    plans
}

fn find_baseline<'b>(
    results: &'b EarlierResults,
    path: &EvalPath,
    file: &EvalFile,
    agent: &str,
    context: &Context<'_>,
) -> Option<&'b EarlierResult> {
    let suite = SuiteName { tool_name: &file.tool_name, tier: file.tier, eval_file: &path.in_project };
    let earlier = results.find(suite, agent);
    if earlier.is_none() {
        context.notices.warn(&no_baseline_warning(&path.display_path));
    }
    earlier
}

impl LoadedBaseline {
    /// Returns the baseline of a suite; with a shard, only its cases.
    fn of_suite(&self, result: &EarlierResult, path: &EvalPath, shard: Option<Shard>) -> Baseline {
        let is_in_shard = |id: &str| shard.is_none_or(|shard| shard.contains(id));
        let removed = self.case_ids.get(&path.in_project).map(|ids| removed_cases(result, ids));
        Baseline {
            run_id: result.run_id.clone(),
            cases: result.cases.iter().filter(|case| is_in_shard(&case.id)).cloned().collect(),
            removed: removed.unwrap_or_default(),
        }
    }
}

/// Plans every rubric file for every agent.
fn rubric_plans(rubrics: &[SelectedRubric], agents: usize, registry: Option<&Registry>) -> Vec<RubricPlan> {
    let plan = |agent: usize, SelectedRubric { loaded, skipped }: &SelectedRubric| RubricPlan {
        path: loaded.path.display_path.clone(),
        project_path: loaded.path.in_project.clone(),
        agent,
        file: loaded.file.clone(),
        skipped: skipped.clone(),
        current: CurrentTool::find(&loaded.file.without_rubrics(), registry),
    };
    (0..agents).flat_map(|agent| rubrics.iter().map(move |rubric| plan(agent, rubric))).collect()
}
