//! The verdict of a conversation, combined from those of its turns and of the case's own expectations.

use super::tally::NoVerdict;
use super::{Strictness, Verdict};
use crate::outcome::Cause;
use karat_cases::INPUT_POINTER;

/// A verdict to which the parts of a conversation are added in order. The first failure or error decides.
#[derive(Debug)]
pub struct ConversationVerdict {
    strictness: Strictness,
    verdict: Verdict,
}

impl ConversationVerdict {
    pub fn new(strictness: Strictness) -> Self {
        Self { strictness, verdict: Verdict::default() }
    }

    /// Adds the verdict of a turn, counted from 0.
    pub fn add_turn(&mut self, turn: usize, verdict: Verdict) {
        self.verdict.append(in_turn(turn, verdict));
    }

    /// Adds a turn without an answer. The message of a timeout is always the same text.
    pub fn add_unanswered(&mut self, turn: usize, cause: Cause, message: &str) {
        let message = if cause == Cause::Timeout { message.to_owned() } else { turn_message(turn, message) };
        self.verdict.append(Verdict { error: Some(NoVerdict { message, cause }), ..Verdict::default() });
    }

    /// Adds the verdict of the case's own expectations.
    pub fn add_case(&mut self, mut verdict: Verdict) {
        self.verdict.assertions = std::mem::take(&mut verdict.assertions);
        self.verdict.calls = verdict.calls.take();
        self.verdict.state_changes = std::mem::take(&mut verdict.state_changes);
        self.verdict.append(verdict);
    }

    pub fn finish(self) -> Verdict {
        self.verdict.with_vacuity(self.strictness, "/turns")
    }

    /// Returns the verdict of the turns and of `expect`, to which that of `safety` is added.
    pub fn finish_part(self) -> Verdict {
        self.verdict
    }
}

impl Verdict {
    /// Adds the verdict of another part of the case.
    pub(crate) fn append(&mut self, part: Verdict) {
        let verdict = self;
        if let Some(error) = part.error {
            if verdict.passed() {
                verdict.error = Some(error);
            } else {
                verdict.warnings.push(error.message);
            }
        }
        verdict.failures.extend(part.failures);
        verdict.assertions_run += part.assertions_run;
        verdict.assertions_skipped += part.assertions_skipped;
        extend_distinct(&mut verdict.skipped_tokens, part.skipped_tokens);
        extend_distinct(&mut verdict.warnings, part.warnings);
        verdict.near_misses.extend(part.near_misses);
        verdict.evals.extend(part.evals);
    }
}

/// Prefixes a message with the number of its turn. Turns are counted from 0, but from 1 in messages.
fn turn_message(turn: usize, message: &str) -> String {
    format!("turn {}: {message}", turn + 1)
}

/// Adds the turn to messages and pointers. The verdicts of single assertions and the alignment of calls stay with the
/// turn.
fn in_turn(turn: usize, mut verdict: Verdict) -> Verdict {
    let pointer = |pointer: &str| {
        let below = if pointer == INPUT_POINTER { "/message" } else { pointer };
        format!("/turns/{turn}{below}")
    };
    for failure in &mut verdict.failures {
        failure.message = turn_message(turn, &failure.message);
        failure.pointer = pointer(&failure.pointer);
    }
    for near_miss in &mut verdict.near_misses {
        near_miss.pointer = pointer(&near_miss.pointer);
    }
    if let Some(error) = &mut verdict.error {
        error.message = turn_message(turn, &error.message);
    }
    Verdict { assertions: Vec::new(), calls: None, ..verdict }
}

fn extend_distinct(list: &mut Vec<String>, others: Vec<String>) {
    for other in others {
        if !list.contains(&other) {
            list.push(other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assertion::Failure;

    fn failing(pointer: &str) -> Verdict {
        let failure = Failure {
            assertion: "maxLength".to_owned(),
            message: "maxLength: too long".to_owned(),
            pointer: pointer.to_owned(),
        };
        Verdict { failures: vec![failure], assertions_run: 2, assertions_skipped: 1, ..Verdict::default() }
    }

    #[test]
    fn failures_name_their_turn() {
        let mut conversation = ConversationVerdict::new(Strictness::default());
        conversation.add_turn(0, failing(INPUT_POINTER));
        conversation.add_turn(2, failing("/expect/maxLength"));
        conversation.add_case(failing("/expect/maxLength"));
        let verdict = conversation.finish();
        let failures: Vec<(&str, &str)> =
            verdict.failures.iter().map(|failure| (failure.message.as_str(), failure.pointer.as_str())).collect();
        let expected = [
            ("turn 1: maxLength: too long", "/turns/0/message"),
            ("turn 3: maxLength: too long", "/turns/2/expect/maxLength"),
            ("maxLength: too long", "/expect/maxLength"),
        ];
        assert_eq!(failures, expected);
        assert_eq!((verdict.assertions_run, verdict.assertions_skipped), (6, 3));
    }

    #[test]
    fn the_first_failure_or_error_decides() {
        let mut conversation = ConversationVerdict::new(Strictness::default());
        conversation.add_turn(0, failing("/expect/maxLength"));
        conversation.add_unanswered(1, Cause::Agent, "HTTP 500");
        let verdict = conversation.finish();
        assert_eq!((verdict.error, verdict.warnings), (None, vec!["turn 2: HTTP 500".to_owned()]));

        let mut conversation = ConversationVerdict::new(Strictness::default());
        conversation.add_unanswered(0, Cause::Agent, "HTTP 500");
        let error = conversation.finish().error.expect("no verdict");
        assert_eq!((error.message.as_str(), error.cause), ("turn 1: HTTP 500", Cause::Agent));
    }

    #[test]
    fn a_timeout_has_the_same_message_in_every_turn() {
        let mut conversation = ConversationVerdict::new(Strictness::default());
        conversation.add_unanswered(3, Cause::Timeout, Cause::TIMEOUT_TEXT);
        assert_eq!(conversation.finish().error.map(|error| error.message).as_deref(), Some(Cause::TIMEOUT_TEXT));
    }

    #[test]
    fn a_conversation_is_vacuous_if_no_part_asserts_anything() {
        let strict = Strictness { strict: true, ..Strictness::default() };
        let mut conversation = ConversationVerdict::new(strict);
        conversation.add_turn(0, Verdict::default());
        conversation.add_case(Verdict::default());
        let verdict = conversation.finish();
        assert_eq!((verdict.vacuous, verdict.failures.len()), (true, 1));
        let mut conversation = ConversationVerdict::new(strict);
        conversation.add_turn(0, Verdict { assertions_run: 1, ..Verdict::default() });
        assert!(conversation.finish().passed());
    }
}
