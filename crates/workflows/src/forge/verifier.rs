//! Runs drafts against the agent before a person approves them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use karat_cases::{Case, EvalFile, Tier};
use karat_core::assertion::Strictness;
use karat_core::event::{ReportError, Reporter, RunEvent};
use karat_core::port::Agent;
use karat_core::result::{CaseResult, MissingCases};
use karat_core::staleness::CurrentTool;
use karat_forge::session::Session;
use karat_forge::{Evidence, Purpose, Slot, assess_run, check_draft, leak_markers, proof_values};
use karat_runner::{Plan, Reporters, Rubrics, SuitePlan};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::inputs::ForgeInputs;
use crate::context::Context;
use crate::context::agents::make_agents;
use crate::context::models::Models;
use crate::context::tools::{Tools, read_tools};
use crate::error::Error;

/// The evidence from running drafts, by draft id.
pub type EvidenceMap = BTreeMap<String, Evidence>;

/// The agent that drafts are run against.
pub(super) struct Verifier {
    agent: Arc<dyn Agent>,
    /// Keeps the tool servers of the agent running.
    _tools: Tools,
    /// Whether the note on missing results was printed.
    has_noted_missing_results: AtomicBool,
}

impl Verifier {
    /// Prepares the agent as a run would.
    pub(super) async fn new(context: &Context<'_>) -> Result<Self, Error> {
        let settings = &context.settings;
        let tools = read_tools(settings, context.notices).await?;
        let mut models = Models::new(settings, false);
        let agents = make_agents(&mut models, settings, &tools, None, context.notices)?;
        let [agent] = agents.as_slice() else {
            return Err(Error::invalid("verifying drafts requires one agent, but 'matrix' has several")
                .hint("pass --agent-endpoint to choose one"));
        };
        Ok(Self { agent: Arc::clone(agent), _tools: tools, has_noted_missing_results: AtomicBool::new(false) })
    }

    pub(super) fn agent_identity(&self) -> String {
        self.agent.identity()
    }

    /// Runs drafts. A golden draft that passes without `responseContains` gets values from the agent's response, and a
    /// draft against leaks gets the names of the fields that the tool returned.
    pub(super) async fn verify(
        &self,
        drafts: Vec<(Slot, Case)>,
        session: &mut Session,
        inputs: &ForgeInputs,
        evidence_map: &mut EvidenceMap,
        context: &Context<'_>,
    ) {
        let cases: Vec<Case> = drafts.iter().map(|(_, case)| case.clone()).collect();
        let mut results = self.run(inputs, cases, context).await;
        let mut completed = Vec::new();
        for (index, (slot, case)) in drafts.iter().enumerate() {
            let evidence = match results.remove(&index) {
                Some(result) => {
                    let evidence = assess_run(&inputs.brief.tool.name, slot, case, &result);
                    if evidence == Evidence::Passed {
                        match complete(session, inputs, slot, case, &result) {
                            Proof::Missing => self.note_missing_results(&result, context),
                            Proof::FromAnswer => completed.push(slot.id.as_str()),
                            Proof::NotNeeded => {}
                        }
                    }
                    evidence
                }
                None => Evidence::Errored { reason: "the draft was not run".to_owned() },
            };
            evidence_map.insert(slot.id.clone(), evidence);
        }
        if !completed.is_empty() {
            context.notices.note(&format!(
                "'responseContains' has values of the agent's own answer in {}: approve them only if they are right",
                completed.join(", ")
            ));
        }
    }

    /// Emits a note, once, that proof values cannot be found because the agent reports no tool results.
    fn note_missing_results(&self, result: &CaseResult, context: &Context<'_>) {
        let has_result = result.details.tool_calls.iter().any(|call| call.result.is_some());
        if !has_result && !self.has_noted_missing_results.swap(true, Ordering::Relaxed) {
            context.notices.note(
                "the agent reports its calls without results, so --verify finds no values for 'responseContains'; \
                 report each call's 'result'",
            );
        }
    }

    /// Runs the cases as one suite. Returns the results by case index.
    async fn run(
        &self,
        inputs: &ForgeInputs,
        cases: Vec<Case>,
        context: &Context<'_>,
    ) -> BTreeMap<usize, Arc<CaseResult>> {
        let settings = &context.settings;
        let tool_name = inputs.brief.tool.name.clone();
        let file = EvalFile { metadata: None, tier: Tier::Unknown, tool_name, hash: String::new(), cases };
        let current = CurrentTool::find(&file, Some(&inputs.brief.registry));
        let path = "drafts".to_owned();
        let (project_path, skipped, all_selected) = (path.clone(), Vec::new(), Vec::new());
        let suite = SuitePlan { path, project_path, agent: 0, file, skipped, all_selected, current, baseline: None };
        let plan = Plan {
            run_id: context.ids.run_id(),
            suites: vec![suite],
            rubrics: Rubrics::default(),
            simulated_users: BTreeMap::new(),
            shard: None,
            concurrency: settings.concurrency,
            timeout: settings.timeout,
            trials: settings.trials,
            strictness: Strictness { all_failures: true, strict: false },
            fail_fast: false,
            gates: None,
            baseline_missing: MissingCases::default(),
            tokens: inputs.brief.sources.clone(),
            registry: Some(inputs.brief.registry.clone()),
            tokenizer: settings.tokenizer,
            redactor: settings.redactor.clone(),
            functions: None,
            state_sources: None,
            hooks: None,
        };
        let collector = ResultCollector::default();
        let mut reporters = Reporters::default();
        reporters.add(Box::new(collector.clone()));
        let (agents, cancel) = (vec![Arc::clone(&self.agent)], CancellationToken::new());
        Box::pin(karat_runner::run(plan, agents, context.clock, &cancel, &mut reporters)).await;
        std::mem::take(&mut *collector.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Whether a draft requires a call but has no value that proves it.
fn needs_proof(slot: &Slot, case: &Case) -> bool {
    let expect = &*case.total_expectation();
    let is_golden =
        slot.purpose.tier() == Tier::Golden && expect.tools_called.as_ref().is_some_and(|tools| !tools.is_empty());
    is_golden && expect.response_contains.is_none()
}

/// The values that prove the call in a draft.
enum Proof {
    /// The draft has its own, or requires no call.
    NotNeeded,
    /// They were taken from the agent's answer.
    FromAnswer,
    Missing,
}

/// Completes a draft with proof values and field names from the agent's answer.
fn complete(session: &mut Session, inputs: &ForgeInputs, slot: &Slot, case: &Case, result: &CaseResult) -> Proof {
    let details = &result.details;
    let needs_proof = needs_proof(slot, case);
    let proof = if needs_proof {
        proof_values(&inputs.brief, &case.message_text(), &details.tool_calls, &details.response)
    } else {
        Vec::new()
    };
    let expect = case.total_expectation();
    let forbidden = expect.response_not_contains.as_deref().unwrap_or_default();
    let mut markers = match slot.purpose {
        Purpose::NoLeak => leak_markers(&details.tool_calls, &details.response),
        _ => Vec::new(),
    };
    // A person may have removed some of them.
    if markers.iter().any(|marker| forbidden.contains(marker)) {
        markers.clear();
    }
    let others = session.others(&inputs.brief, std::slice::from_ref(slot));
    session.update_draft(&slot.id, |case| {
        if !proof.is_empty() {
            case["expect"]["responseContains"] = json!(proof);
        }
        if !markers.is_empty() {
            case["expect"]["responseNotContains"] = json!([forbidden, &markers].concat());
        }
        check_draft(&inputs.brief, slot, case, &others)
    });
    match (needs_proof, proof.is_empty()) {
        (false, _) => Proof::NotNeeded,
        (true, false) => Proof::FromAnswer,
        (true, true) => Proof::Missing,
    }
}

#[derive(Clone, Default)]
struct ResultCollector(Arc<Mutex<BTreeMap<usize, Arc<CaseResult>>>>);

impl Reporter for ResultCollector {
    fn on_event(&mut self, event: &RunEvent) -> Result<(), ReportError> {
        if let RunEvent::CaseFinished { index, result, .. } = event {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(*index, Arc::clone(result));
        }
        Ok(())
    }
}
