//! The template of a regression case, from a failed case or a trace.

use karat_cases::Case;
use serde_json::{Map, Value};

#[derive(Default)]
pub(super) struct Template {
    pub(super) tool: String,
    pub(super) message: String,
    /// The turns of a conversation, in place of the message.
    pub(super) turns: Option<Value>,
    pub(super) on_turn_failure: Option<Value>,
    pub(super) expect: Map<String, Value>,
    /// The simulated user of a conversation, in place of the message.
    pub(super) user: Option<Value>,
    pub(super) stubs: Option<Value>,
    pub(super) injections: Option<Value>,
    pub(super) safety: Option<Value>,
    pub(super) max_turns: Option<Value>,
    /// Why the case failed, or what it tests.
    pub(super) description: Option<String>,
    /// The reference to the trace and the step in it.
    pub(super) trace_ref: Option<String>,
}

/// Returns the `bugRef` of a case: the bug, the trace, or both.
pub(super) fn bug_ref(bug: Option<&str>, trace_ref: Option<&str>) -> String {
    match (bug, trace_ref) {
        (Some(bug), Some(trace)) => format!("{bug} ({trace})"),
        (Some(reference), None) | (None, Some(reference)) => reference.to_owned(),
        (None, None) => String::new(),
    }
}

/// Whether a case was created from this trace.
pub(super) fn refers_to_trace(case: &Case, trace_ref: &str) -> bool {
    let bug_ref = case.bug_ref.as_deref().unwrap_or_default();
    let before = bug_ref.strip_suffix(')').and_then(|text| text.strip_suffix(trace_ref));
    bug_ref == trace_ref || before.is_some_and(|bug| bug.ends_with(" ("))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(Some("#7"), Some("trace a-1"), true)]
    #[case(None, Some("trace a-1"), true)]
    #[case(Some("#7 (trace a-1)"), None, true)]
    #[case(Some("#7"), Some("trace a-12"), false)]
    #[case(Some("#7"), Some("trace a-1 step 3"), false)]
    #[case(Some("trace a"), None, false)]
    #[case(Some("about trace a-1"), None, false)]
    fn finds_the_trace_in_the_bug_reference(
        #[case] bug: Option<&str>,
        #[case] trace: Option<&str>,
        #[case] same: bool,
    ) {
        let case = json!({"id": "x", "bugRef": bug_ref(bug, trace), "input": {"message": "m"}, "expect": {}});
        let case = Case::read_one(&case).expect("valid case");
        assert_eq!(refers_to_trace(&case, "trace a-1"), same);
    }
}
