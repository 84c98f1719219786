//! The hooks and captured states around the messages of a trial.

use std::collections::{BTreeMap, BTreeSet};

use karat_cases::Case;
use karat_core::port::{AgentError, Hook, HookError, Hooks, StateSources, WaitGuard, WaitObserver};
use karat_core::state::CapturedStates;
use serde_json::{Map, Value};

use crate::dialog::Dialog;
use crate::plan::Plan;

/// What happens before and after the messages of a trial. None of it counts as latency or towards the timeout.
pub(crate) struct Surroundings<'a> {
    case: &'a Case,
    sources: Option<&'a dyn StateSources>,
    hooks: Option<&'a dyn Hooks>,
    watch: &'a dyn WaitObserver,
    /// The sources to capture before the messages.
    sources_before: BTreeSet<&'a str>,
    sources_after: BTreeSet<&'a str>,
    /// How each source is captured.
    definitions: Map<String, Value>,
    before: BTreeMap<String, Value>,
    /// Whether recorded answers are replayed, so that nothing happens that hooks or captures could see.
    is_replayed: bool,
    has_started: bool,
    errors: Vec<String>,
}

impl<'a> Surroundings<'a> {
    pub(crate) fn new(plan: &'a Plan, case: &'a Case, dialog: &mut Dialog<'_>, watch: &'a dyn WaitObserver) -> Self {
        let (sources, hooks) = (plan.state_sources.as_deref(), plan.hooks.as_deref());
        let unchanged = case.final_expectations().flat_map(|expect| expect.state_unchanged.iter().flatten());
        let sources_before: BTreeSet<&str> = unchanged.map(|entry| entry.source.as_str()).collect();
        let sources_after: BTreeSet<&str> = case.state_sources().collect();
        let definition = |name: &&str| {
            let mut definition = sources.map(|sources| sources.definition(name)).unwrap_or_default();
            if let Some(members) = definition.as_object_mut() {
                members.insert("before".to_owned(), sources_before.contains(name).into());
            }
            ((*name).to_owned(), definition)
        };
        let definitions: Map<String, Value> = sources_after.iter().map(definition).collect();
        let is_observed = hooks.is_some() || !definitions.is_empty();
        let is_replayed = is_observed && dialog.replays(&definitions);
        Self {
            case,
            sources,
            hooks,
            watch,
            sources_before,
            sources_after,
            definitions,
            before: BTreeMap::new(),
            is_replayed,
            has_started: false,
            errors: Vec::new(),
        }
    }

    /// Runs `beforeCase` and captures the states before the messages.
    pub(crate) async fn prepare(&mut self) -> Result<(), String> {
        if self.is_replayed {
            return Ok(());
        }
        self.has_started = true;
        let _wait = WaitGuard::begin(self.watch);
        let prepared = async {
            self.run_hook(Hook::BeforeCase).await?;
            capture(self.sources, &self.sources_before, self.case).await
        };
        self.before = prepared.await.map_err(|HookError(message)| message)?;
        Ok(())
    }

    /// Captures the states after the messages, or returns the recorded ones. An error is kept for the result.
    pub(crate) async fn capture(&mut self, dialog: &mut Dialog<'_>) -> Option<CapturedStates> {
        if self.sources_after.is_empty() {
            return None;
        }
        let _wait = WaitGuard::begin(self.watch);
        let before = std::mem::take(&mut self.before);
        let capturing = Box::pin(async {
            let after = capture(self.sources, &self.sources_after, self.case).await;
            let after = after.map_err(|HookError(message)| AgentError::new(message, std::time::Duration::ZERO))?;
            Ok(CapturedStates { before, after })
        });
        let captured = dialog.states(&self.definitions, capturing).await;
        captured.map_err(|error| self.errors.push(error.message)).ok()
    }

    /// Runs `afterCase`, if the trial was prepared. Returns all errors since then.
    pub(crate) async fn finish(mut self) -> Vec<String> {
        if self.has_started
            && let Err(HookError(message)) = self.run_hook(Hook::AfterCase).await
        {
            self.errors.push(message);
        }
        self.errors
    }

    async fn run_hook(&self, hook: Hook) -> Result<(), HookError> {
        match self.hooks {
            Some(hooks) => hooks.run(hook, Some(&self.case.id)).await,
            None => Ok(()),
        }
    }
}

/// Captures sources one after the other.
async fn capture(
    sources: Option<&dyn StateSources>,
    names: &BTreeSet<&str>,
    case: &Case,
) -> Result<BTreeMap<String, Value>, HookError> {
    let mut states = BTreeMap::new();
    for name in names {
        let Some(sources) = sources else {
            return Err(HookError(format!("this run has no state source '{name}'")));
        };
        states.insert((*name).to_owned(), sources.capture(name, &case.id).await?);
    }
    Ok(states)
}
