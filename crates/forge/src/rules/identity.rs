//! Who a case is: its id and its difficulty, and what its message must not be.

use karat_core::case::Case;
use karat_core::token;

use super::wording::is_technical;
use super::{DraftRule, Examination};
use crate::Purpose;

impl Examination<'_> {
    pub(super) fn identity(&mut self, others: &[Case]) {
        let id = &self.case.id;
        if *id != self.slot.id {
            self.error(DraftRule::Id, "/id", format!("the id is '{id}', but this is the place of '{}'", self.slot.id));
        }
        if self.brief.existing().chain(others).any(|other| other.id == *id) {
            self.error(DraftRule::Id, "/id", format!("another case has the id '{id}' already"));
        }
        self.difficulty();
        self.message();
    }

    fn difficulty(&mut self) {
        let message = match (self.case.difficulty, self.difficulty) {
            (found, wanted) if found == wanted => return,
            (Some(_), None) => "a golden case has no difficulty: take it out".to_owned(),
            (None, Some(wanted)) => format!("the difficulty is missing: write '{}'", wanted.name()),
            (Some(found), Some(wanted)) => {
                format!(
                    "the difficulty is '{}', but this is the place of one that is '{}'",
                    found.name(),
                    wanted.name()
                )
            }
            (None, None) => return,
        };
        self.error(DraftRule::Difficulty, "/difficulty", message);
    }

    fn message(&mut self) {
        let message = &self.case.input.message;
        if !message.chars().any(char::is_alphanumeric) {
            self.error(DraftRule::Message, "/input/message", "the message says nothing");
        }
        if token::holds_token(message) {
            let what = "tokens have no value in the message: it is sent letter by letter";
            self.error(DraftRule::StrayToken, "/input/message", what);
        }
        // Who attacks may well know the tools.
        let may_name = matches!(self.slot.purpose, Purpose::Edge(_));
        let tools = self.brief.registry.tools().iter().map(|tool| tool.name.as_str());
        let named = tools.filter(|name| is_technical(name)).find(|name| message.contains(name));
        if let Some(name) = named.filter(|_| !may_name) {
            let what = format!("the message names '{name}', so that it does not show whether the tool would be found");
            self.warning(DraftRule::Message, "/input/message", what);
        }
    }
}
