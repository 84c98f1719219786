//! Which traces a model is told of.

use karat_core::document::TraceDocument;
use karat_json::hash::long_hash;
use serde_json::Value;

/// How many hex digits of a hash decide.
const DIGITS: usize = 8;

/// How long a message must be to say what is asked for: `Hello` begins conversations about anything.
const LEAST_TELLING: usize = 20;

/// Returns what traces have in common that are not independent of each other, and so must be on one side: the session,
/// the task or the case of which each is one trial, else the words that they begin with. A trace that has nothing of
/// these stands for itself.
pub fn group_of(trace_id: &str, document: &TraceDocument) -> String {
    let text = |value: &Value| match value {
        Value::String(text) => words(text),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let metadata = |key: &str| document.metadata(key).and_then(text);
    let message = || {
        let first = document.steps().find_map(|step| words(step.message()?))?;
        (first.chars().count() >= LEAST_TELLING).then_some(first)
    };
    let named = |kind: &str, value: Option<String>| value.map(|value| format!("{kind}: {value}"));
    named("session", document.session_id().and_then(text))
        .or_else(|| named("task", metadata("task_id").or_else(|| metadata("case_id"))))
        .or_else(|| named("message", message()))
        .unwrap_or_else(|| trace_id.to_owned())
}

/// Returns a text with single spaces, unless it is blank.
fn words(text: &str) -> Option<String> {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    (!words.is_empty()).then_some(words)
}

/// Tells whether a group of traces is kept from the model, given the share that is. This depends on the eval and the
/// group alone, not on ratings nor on which other traces there are: with the same share, a trace that is held out today is
/// held out tomorrow, and no model was told of it in the meantime. Every rating is parted by the same share for the same
/// reason. A larger share holds out more, and models may have been told of what it adds.
pub fn is_held_out(eval_id: &str, group: &str, share: f64) -> bool {
    let hash = long_hash([eval_id, group].join("\0").as_bytes());
    let number = hash.get(..DIGITS).and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or_default();
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
    fn what_belongs_together_is_on_one_side(#[case] document: Value, #[case] group: &str) {
        let document = TraceDocument::read(document.to_string()).expect("a trace");
        assert_eq!(group_of("t-1", &document), group);
    }

    fn held_out(eval: &str, traces: std::ops::Range<u32>, share: f64) -> usize {
        traces.filter(|trace| is_held_out(eval, &format!("trace-{trace}"), share)).count()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn every_part_of_the_traces_is_parted_alike(start in 0_u32..1_000_000, eval in "eval_[a-z]{1,9}") {
            // Five standard deviations around the share.
            let count = held_out(&eval, start..start + 2000, 0.4);
            prop_assert!((690..=910).contains(&count), "{count} of 2000");
        }

        #[test]
        fn more_is_held_out_with_a_larger_share(trace in ".{0,20}", low in 0.0..1.0, high in 0.0..1.0) {
            let (low, high) = if low < high { (low, high) } else { (high, low) };
            prop_assert!(!is_held_out("eval_x", &trace, low) || is_held_out("eval_x", &trace, high));
            prop_assert!(is_held_out("eval_x", &trace, 1.0) && !is_held_out("eval_x", &trace, 0.0));
        }
    }

    #[test]
    fn the_side_is_the_same_for_ever() {
        let sides: String =
            (0..24).map(|trace| if is_held_out("eval_tone", &trace.to_string(), 0.4) { 'h' } else { 't' }).collect();
        insta::assert_snapshot!(sides, @"tttttthtthtttththhhhhtht");
    }
}
