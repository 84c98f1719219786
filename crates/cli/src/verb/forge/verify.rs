//! Drafts run against the agent before anybody approves them.

use std::cell::RefCell;
use std::sync::Arc;

use karat_core::assertion::Strictness;
use karat_core::case::{Case, EvalFile, Tier};
use karat_core::event::RunEvent;
use karat_core::event::{ReportError, Reporter};
use karat_core::port::{Agent, Ids as _};
use karat_core::result::CaseResult;
use karat_core::staleness::CurrentTool;
use karat_forge::session::Session;
use karat_forge::{Evidence, Slot, examine, proof_of_run, weigh};
use karat_runner::{Plan, Reporters, Rubrics, SuitePlan};
use serde_json::json;
use tokio::sync::watch;

use super::Forge;
use super::drafting::Spinner;
use super::material::Material;
use super::view::Evidences;
use crate::failure::Failure;
use crate::printer::Printer;
use karat_workflows::context::agents::make_agents;
use karat_workflows::context::clock::{SystemClock, TimeOrderedIds};
use karat_workflows::context::models::Models;
use karat_workflows::context::tools::{Tools, read_tools};
use karat_workflows::settings::Settings;

/// The agent that drafts are run against.
pub(super) struct Verifier {
    agent: Arc<dyn Agent>,
    /// Servers that run the agent's tools end with this.
    _tools: Tools,
}

impl Verifier {
    /// Prepares the agent as a run would.
    pub(super) async fn new(settings: &Settings, printer: &Printer) -> Result<Self, Failure> {
        let tools = read_tools(settings, printer).await?;
        let mut models = Models::new(settings, false);
        let agents = make_agents(&mut models, settings, &tools, printer)?;
        let [agent] = agents.as_slice() else {
            return Err(Failure::invalid("drafts are verified with one agent, and 'matrix' names several")
                .hint("name one with --agent-endpoint"));
        };
        Ok(Self { agent: Arc::clone(agent), _tools: tools })
    }

    /// Runs the drafts of the current batch that were not run yet. A golden draft that passes and lacks proof gets
    /// values from what the agent answered.
    pub(super) fn verify(
        &self,
        forge: &Forge<'_>,
        session: &mut Session,
        material: &Material,
        evidences: &mut Evidences,
    ) -> Result<(), Failure> {
        let entries = session.batch().map(|batch| batch.entries.as_slice()).unwrap_or_default();
        let is_new = |id: &str| !evidences.contains_key(id);
        let open = entries.iter().filter(|entry| entry.is_undecided() && is_new(&entry.slot.id));
        let drafts: Vec<(Slot, Case)> =
            open.filter_map(|entry| Some((entry.slot.clone(), entry.draft.as_ref()?.read()?))).collect();
        if drafts.is_empty() {
            return Ok(());
        }
        let cases: Vec<Case> = drafts.iter().map(|(_, case)| case.clone()).collect();
        let spinner = Spinner::shown(forge, format!("{} answers {} drafts", self.agent.identity(), cases.len()));
        let results = self.run(forge, material, cases);
        spinner.end(forge.printer);
        for (index, result) in results? {
            if let Some((slot, case)) = drafts.get(index) {
                let evidence = weigh(&material.brief.tool.name, slot, case, &result);
                if evidence == Evidence::Passed {
                    add_proof(session, material, slot, case, &result);
                }
                evidences.insert(slot.id.clone(), evidence);
            }
        }
        Ok(())
    }

    fn run(&self, forge: &Forge<'_>, material: &Material, cases: Vec<Case>) -> Result<Vec<Numbered>, Failure> {
        let settings = &forge.settings;
        let tool_name = material.brief.tool.name.clone();
        let file = EvalFile { metadata: None, tier: Tier::Unknown, tool_name, hash: String::new(), cases };
        let current = CurrentTool::of(&file, Some(&material.brief.registry));
        let path = "drafts".to_owned();
        let suite = SuitePlan { project_path: path.clone(), path, agent: 0, file, current, baseline: None };
        let plan = Plan {
            run_id: TimeOrderedIds.run_id(),
            suites: vec![suite],
            rubrics: Rubrics::default(),
            concurrency: settings.concurrency,
            timeout: settings.timeout,
            trials: settings.trials,
            strictness: Strictness { all_failures: true, fail_vacuous: false },
            fail_fast: false,
            gates: None,
            tokens: material.brief.sources.clone(),
            registry: Some(material.brief.registry.clone()),
            tokenizer: settings.tokenizer,
            redactor: settings.redactor.clone(),
            functions: None,
        };
        let collected = Collected::default();
        let mut reporters = Reporters::default();
        reporters.add(Box::new(collected.clone()));
        let (_cancel, cancelled) = watch::channel(false);
        let agents = vec![Arc::clone(&self.agent)];
        let running = async {
            karat_runner::run(plan, agents, &SystemClock, cancelled, &mut reporters).await;
            Ok(())
        };
        forge.runtime.block_on(forge.interrupts.unless_asked(running))?;
        Ok(collected.0.take())
    }
}

/// Gives a draft that the agent passed proof values from the agent's answer, where it has too few.
fn add_proof(session: &mut Session, material: &Material, slot: &Slot, case: &Case, result: &CaseResult) {
    let expect = &case.expect;
    let is_golden =
        slot.purpose.tier() == Tier::Golden && expect.tools_called.as_ref().is_some_and(|tools| !tools.is_empty());
    if !is_golden || expect.response_contains.is_some() {
        return;
    }
    let details = &result.details;
    let proof = proof_of_run(&material.brief, &case.input.message, &details.tool_calls, &details.response);
    let others = session.others(&material.brief, std::slice::from_ref(slot));
    session.amend(&slot.id, |case| {
        if !proof.is_empty() {
            case["expect"]["responseContains"] = json!(proof);
        }
        examine(&material.brief, slot, case, &others)
    });
}

/// Keeps each case's result.
#[derive(Clone, Default)]
struct Collected(Arc<RefCell<Vec<Numbered>>>);

/// A case's place among the drafts, and its result.
type Numbered = (usize, Arc<CaseResult>);

impl Reporter for Collected {
    fn on_event(&mut self, event: &RunEvent) -> Result<(), ReportError> {
        if let RunEvent::CaseFinished { index, result, .. } = event {
            self.0.borrow_mut().push((*index, Arc::clone(result)));
        }
        Ok(())
    }
}
