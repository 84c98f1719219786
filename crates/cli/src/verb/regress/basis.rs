//! What a regression case begins with, where it is not made of flags alone.

use karat_core::case::Case;
use serde_json::{Map, Value};

/// What is taken from a case that failed, or from a trace.
pub(super) struct Basis {
    pub(super) tool: String,
    pub(super) message: String,
    pub(super) expect: Map<String, Value>,
    pub(super) stubs: Option<Value>,
    pub(super) max_turns: Option<Value>,
    /// Why it failed, or what it tests where it passed.
    pub(super) said: Option<String>,
    /// The trace and the place in it, as they are noted in the case.
    pub(super) trace: Option<String>,
}

impl Basis {
    /// Returns what the case refers to: the bug, the trace, or both.
    pub(super) fn bug_ref(bug: Option<&str>, trace: Option<&str>) -> String {
        match (bug, trace) {
            (Some(bug), Some(trace)) => format!("{bug} ({trace})"),
            (Some(one), None) | (None, Some(one)) => one.to_owned(),
            (None, None) => String::new(),
        }
    }
}

/// Tells whether a case was made of this trace.
pub(super) fn is_made_of(case: &Case, trace: &str) -> bool {
    let said = case.bug_ref.as_deref().unwrap_or_default();
    said == trace
        || said.strip_suffix(')').and_then(|said| said.strip_suffix(trace)).is_some_and(|said| said.ends_with(" ("))
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
    fn a_case_says_which_trace_it_was_made_of(
        #[case] bug: Option<&str>,
        #[case] trace: Option<&str>,
        #[case] same: bool,
    ) {
        let case = json!({"id": "x", "bugRef": Basis::bug_ref(bug, trace), "input": {"message": "m"}, "expect": {}});
        let case = Case::read_one(&case).expect("a case");
        assert_eq!(is_made_of(&case, "trace a-1"), same);
    }
}
