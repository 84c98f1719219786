//! Prepares a run: loads the files, tools, agents, the judge, the snapshot and the baseline.

use std::sync::Arc;

use karat_agents::Throttle;
use karat_core::assertion::Strictness;
use karat_core::case::EvalFile;
use karat_core::port::{Agent, EvalFunctions};
use karat_core::registry::Registry;
use karat_core::staleness::CurrentTool;
use karat_core::token::TokenSources;
use karat_project::{EarlierResults, EvalPath, LoadedRubric, LoadedSuite, discover, load_all, read_json_setting};
use karat_runner::{Baseline, Plan, RubricPlan, Rubrics, SuitePlan};

use super::Request;
use super::selection::Selection;
use crate::context::Context;
use crate::context::agents::make_agents;
use crate::context::chat_models::make_judge;
use crate::context::models::Models;
use crate::context::snapshot::capture;
use crate::context::tools::read_tools;
use crate::error::Error;
use crate::functions::start_functions;

/// The files of a run, with only the selected cases.
pub(super) struct LoadedSuites {
    suites: Vec<LoadedSuite>,
    rubrics: Vec<LoadedRubric>,
    baseline: Option<EarlierResults>,
    functions: Option<Arc<dyn EvalFunctions>>,
}

/// A run that is ready to start.
pub(super) struct Prepared {
    pub(super) plan: Plan,
    pub(super) agents: Vec<Arc<dyn Agent>>,
    /// The throttles of the providers, by name.
    pub(super) throttles: Vec<(String, Arc<Throttle>)>,
}

/// Reads the files and applies the selection.
pub(super) fn load(request: &Request, context: &Context<'_>) -> Result<LoadedSuites, Error> {
    let settings = &context.settings;
    let selection = Selection::new(&request.selection)?;
    let mut paths = discover(&request.paths, &settings.layout, &settings.layout.current_dir)?;
    selection.drop_other_tiers(&mut paths)?;
    let (mut suites, mut rubrics) = load_all(paths)?;
    selection.apply(&mut suites, &mut rubrics)?;
    let baseline = EarlierResults::load_baseline(settings.baseline.as_ref(), &settings.layout)?;
    if request.selection.only_failed {
        if !rubrics.is_empty() {
            context.notices.warn("--only-failed skips rubric files: a score neither passes nor fails");
            rubrics.clear();
        }
        match &baseline {
            Some(results) => results.retain_failed(&mut suites)?,
            None => EarlierResults::load_all(&settings.layout)?.retain_failed(&mut suites)?,
        }
    }
    let functions = start_functions(&suites, settings, context.process_env)?;
    Ok(LoadedSuites { suites, rubrics, baseline, functions })
}

/// Prepares the tools, agents and models of the run.
pub(super) async fn prepare(loaded: LoadedSuites, context: &Context<'_>) -> Result<Prepared, Error> {
    let Context { settings, notices, .. } = context;
    let tools = read_tools(settings, *notices).await?;
    tools.warn_about_gaps(*notices);
    // Shared, since rate limits and the budget apply to the whole run.
    let mut models = Models::new(settings, settings.recording.is_offline());
    let agents = make_agents(&mut models, settings, &tools, *notices)?;
    let judge = if loaded.rubrics.is_empty() { None } else { make_judge(&mut models, settings, *notices)? };
    let seed = read_json_setting(&settings.seed_manifest, "the seed manifest")?;
    let snapshot = match &settings.snapshot {
        Some(source) => Some(capture(source, settings.timeout, &settings.variables, &settings.redactor).await?),
        None => None,
    };
    let LoadedSuites { suites, rubrics, baseline, functions } = loaded;
    let registry = tools.registry;
    let rubrics = Rubrics { suites: rubric_plans(&rubrics, agents.len(), registry.as_ref()), judge };
    let suites = suite_plans(suites, &agents, registry.as_ref(), baseline.as_ref(), context);
    let plan = Plan {
        run_id: context.ids.run_id(),
        suites,
        rubrics,
        concurrency: settings.concurrency,
        timeout: settings.timeout,
        trials: settings.trials,
        strictness: Strictness { all_failures: settings.all_failures, fail_vacuous: settings.strict },
        fail_fast: settings.fail_fast,
        gates: settings.gates.clone(),
        tokens: TokenSources { seed, snapshot },
        registry,
        tokenizer: settings.tokenizer,
        redactor: settings.redactor.clone(),
        functions,
    };
    Ok(Prepared { plan, agents, throttles: models.throttles() })
}

/// Plans every eval file for every agent.
fn suite_plans(
    mut suites: Vec<LoadedSuite>,
    agents: &[Arc<dyn Agent>],
    registry: Option<&Registry>,
    baseline: Option<&EarlierResults>,
    context: &Context<'_>,
) -> Vec<SuitePlan> {
    let mut plans = Vec::with_capacity(suites.len() * agents.len());
    for (index, agent) in agents.iter().enumerate() {
        let identity = agent.identity();
        let identity = context.settings.redactor.text(&identity);
        // Avoid a clone for the last agent.
        let files = if index + 1 == agents.len() { std::mem::take(&mut suites) } else { suites.clone() };
        plans.extend(files.into_iter().map(|LoadedSuite { path, file }| {
            let current = CurrentTool::find(&file, registry);
            let baseline = baseline.and_then(|results| suite_baseline(results, &path, &file, &identity, context));
            SuitePlan { path: path.display_path, project_path: path.in_project, agent: index, file, current, baseline }
        }));
    }
    plans
}

fn suite_baseline(
    results: &EarlierResults,
    path: &EvalPath,
    file: &EvalFile,
    agent: &str,
    context: &Context<'_>,
) -> Option<Baseline> {
    let Some(result) = results.find(path, file, agent) else {
        context.notices.warn(&format!("the baseline has no result for {}: nothing to compare", path.display_path));
        return None;
    };
    Some(Baseline { run_id: result.run_id.clone(), cases: result.cases.clone() })
}

/// Plans every rubric file for every agent.
fn rubric_plans(rubrics: &[LoadedRubric], agents: usize, registry: Option<&Registry>) -> Vec<RubricPlan> {
    let plan = |agent: usize, LoadedRubric { path, file }: &LoadedRubric| RubricPlan {
        path: path.display_path.clone(),
        project_path: path.in_project.clone(),
        agent,
        file: file.clone(),
        current: CurrentTool::find(&file.without_rubrics(), registry),
    };
    (0..agents).flat_map(|agent| rubrics.iter().map(move |rubric| plan(agent, rubric))).collect()
}
