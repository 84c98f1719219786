//! Splits traces into a training part and a held-out part.

use karat_core::document::TraceDocument;
use karat_json::hash::long_hash;
use serde_json::Value;

/// Number of hex digits of the hash that decide.
const HASH_DIGITS: usize = 8;

/// Minimum length of a message that identifies a task; `Hello` does not.
const MIN_MESSAGE_CHARS: usize = 20;

/// Returns the group of a trace. Traces of a group are not independent and must be in the same part. The group is the
/// session, else the task or case of the trials, else the first message, else the trace itself.
pub fn trace_group(trace_id: &str, document: &TraceDocument) -> String {
    let text = |value: &Value| match value {
        Value::String(text) => normalize_whitespace(text),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let metadata = |key: &str| document.metadata(key).and_then(text);
    let message = || {
        let first = document.steps().find_map(|step| normalize_whitespace(step.message()?))?;
        (first.chars().count() >= MIN_MESSAGE_CHARS).then_some(first)
    };
    let named = |kind: &str, value: Option<String>| value.map(|value| format!("{kind}: {value}"));
    named("session", document.session_id().and_then(text))
        .or_else(|| named("task", metadata("task_id").or_else(|| metadata("case_id"))))
        .or_else(|| named("message", message()))
        .unwrap_or_else(|| trace_id.to_owned())
}

/// Collapses whitespace. Returns `None` if the text is blank.
fn normalize_whitespace(text: &str) -> Option<String> {
    let collapsed = text.split_whitespace().collect::<Vec<_>>().join(" ");
    (!collapsed.is_empty()).then_some(collapsed)
}

/// Whether a group of traces is held out from the model, given the share to hold out. This depends only on the eval and
/// the group, not on ratings or other traces: with the same share, a held-out trace stays held out, so no model has
/// seen it. A larger share also holds out traces that a model may have seen.
pub fn is_held_out(eval_id: &str, group: &str, share: f64) -> bool {
    let hash = long_hash([eval_id, group].join("\0").as_bytes());
    let number = hash.get(..HASH_DIGITS).and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or_default();
    f64::from(number) < share * (f64::from(u32::MAX) + 1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::session(json!({"steps": [], "session_id": " s-1 ", "metadata": {"task_id": 7}}), "session: s-1")]
    #[case::task(json!({"steps": [], "metadata": {"task_id": 7, "trial": 2}}), "task: 7")]
    #[case::case(json!({"steps": [], "metadata": {"case_id": "refund", "trial": 2}}), "task: refund")]
    #[case::message(
        json!({"steps": [{"input": {"message": null}}, {"input": {"message": "I want  my\nmoney back today"}}]}),
        "message: I want my money back today"
    )]
    #[case::plain(json!({"steps": [{"input": "I want my money back today"}]}), "message: I want my money back today")]
    #[case::greeting(json!({"steps": [{"input": {"message": "Hello!"}}]}), "t-1")]
    #[case::empty(json!({"session_id": "", "steps": [{}]}), "t-1")]
    #[case::nothing(json!({"steps": []}), "t-1")]
    fn groups_dependent_traces(#[case] document: Value, #[case] group: &str) {
        let document = TraceDocument::parse(document.to_string()).expect("a trace");
        assert_eq!(trace_group("t-1", &document), group);
    }

    fn held_out(eval: &str, traces: std::ops::Range<u32>, share: f64) -> usize {
        traces.filter(|trace| is_held_out(eval, &format!("trace-{trace}"), share)).count()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn holds_out_the_share_of_any_range_of_traces(start in 0_u32..1_000_000, eval in "eval_[a-z]{1,9}") {
            // Five standard deviations around the share.
            let count = held_out(&eval, start..start + 2000, 0.4);
            prop_assert!((690..=910).contains(&count), "{count} of 2000");
        }

        #[test]
        fn a_larger_share_holds_out_more(trace in ".{0,20}", low in 0.0..1.0, high in 0.0..1.0) {
            let (low, high) = if low < high { (low, high) } else { (high, low) };
            prop_assert!(!is_held_out("eval_x", &trace, low) || is_held_out("eval_x", &trace, high));
            prop_assert!(is_held_out("eval_x", &trace, 1.0) && !is_held_out("eval_x", &trace, 0.0));
        }
    }

    #[test]
    fn the_split_is_stable() {
        let sides: String =
            (0..24).map(|trace| if is_held_out("eval_tone", &trace.to_string(), 0.4) { 'h' } else { 't' }).collect();
        insta::assert_snapshot!(sides, @"tttttthtthtttththhhhhtht");
    }
}
