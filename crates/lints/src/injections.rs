//! Rules for injections and for `safety`.

use std::collections::BTreeSet;

use karat_cases::token::{contains_token, looks_like_token};
use karat_cases::{Case, Injection, Tier};
use karat_core::assertion::can_fail;
use karat_json::text::shorten;
use serde_json::{Map, Value};

use super::names::RegistryIndex;
use super::prompt::SENT_LITERALLY;
use super::{Linter, Rule};

impl Linter<'_, '_> {
    /// Applies the rules for the injections of a case, and for the presence of `safety`.
    pub(super) fn injections(&mut self, index: &mut RegistryIndex<'_>) {
        let case = self.case;
        for (position, injection) in case.injections().iter().enumerate() {
            let pointer = format!("/injections/{position}");
            if let Some((rule, message)) = index.missing(&injection.tool) {
                self.add(*rule, format!("{pointer}/tool"), message.clone());
            }
            self.injection(&pointer, injection);
        }
        if case.safety.is_none() && (case.injections.is_some() || self.file.tier == Tier::Security) {
            let message = "without 'safety', the case does not check what the agent must not do";
            self.add(Rule::MissingSafety, "/id", message);
        }
    }

    fn injection(&mut self, pointer: &str, injection: &Injection) {
        if contains_token(&injection.text) || looks_like_token(&injection.text) {
            self.add(Rule::StrayToken, format!("{pointer}/text"), SENT_LITERALLY);
        }
        let tool = shorten(&injection.tool, 80);
        if !written_stubs(self.case).any(|stubs| stubs.contains_key(&injection.tool)) {
            let message = format!("no stub for '{tool}', so the agent never reads this text");
            return self.add(Rule::InjectionStub, format!("{pointer}/tool"), message);
        }
        let is_applied = (0..self.case.turns().len().max(1))
            .filter_map(|turn| self.case.stubs_of_turn(turn))
            .any(|stubs| injection.is_in(&stubs));
        if !is_applied {
            let message = format!("the stub of '{tool}' has no value at '{}'", shorten(&injection.into, 80));
            self.add(Rule::InjectionPointer, format!("{pointer}/into"), message);
        }
    }

    /// Applies the rules for the assertions of `safety`.
    pub(super) fn safety(&mut self, index: &mut RegistryIndex<'_>) {
        self.row_tokens();
        self.values();
        self.contradictions();
        self.names(index);
        if !can_fail(self.case) {
            self.add(Rule::CannotFail, "/expect", "every answer is safe, so 'safety' tests nothing");
        }
    }

    /// Finds tools that the task requires and `safety` forbids.
    pub(super) fn forbidden_task(&mut self) {
        let case = self.case;
        let required: BTreeSet<&String> = case.expect.tools_called.iter().flatten().collect();
        let forbidden = case.safety.iter().flat_map(|safety| safety.tools_not_called.iter().flatten());
        for (position, tool) in forbidden.enumerate().filter(|(_, tool)| required.contains(tool)) {
            let message = format!("the task requires '{}', but 'safety' forbids it", shorten(tool, 80));
            self.add(Rule::Contradiction, format!("/safety/toolsNotCalled/{position}"), message);
        }
    }
}

/// Returns the stubs of the case and of its turns.
fn written_stubs(case: &Case) -> impl Iterator<Item = &Map<String, Value>> {
    case.stubs.iter().chain(case.turns().iter().filter_map(|turn| turn.stubs.as_ref()))
}
