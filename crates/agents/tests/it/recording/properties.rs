//! Properties of arbitrary answers.

use std::time::Duration;

use karat_agents::RecordingMode;
use karat_core::port::{AgentError, AgentErrorCause, UnusableReply};
use karat_core::trace::{ToolCall, Trace, Usage};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::{FakeAgent, Outcome, ask, model_parts, only_file, open, replay, trace};
use crate::support::case;

/// Texts with line endings, control characters and non-ASCII characters.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-zA-Z \"\\\\/{}\\[\\]:,]{0,8}",
        Just("\n".to_owned()),
        Just("\r\n".to_owned()),
        Just("\r".to_owned()),
        Just("\u{2028}\u{0}\u{1b}[31m\u{7f}".to_owned()),
        any::<char>().prop_map(String::from),
    ];
    proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop_oneof![Just(1.0), Just(-0.0), Just(1e300), Just(5e-324), Just(1e16), Just(0.1 + 0.2)]
            .prop_map(Value::from),
        Just(json!(9_007_199_254_740_993_u64)),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf =
        prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), number(), text().prop_map(Value::from)];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((text(), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn members() -> impl Strategy<Value = Map<String, Value>> {
    proptest::collection::vec((text(), value()), 0..4).prop_map(|members| members.into_iter().collect())
}

fn maybe<T: std::fmt::Debug + Clone>(some: impl Strategy<Value = T>) -> impl Strategy<Value = Option<T>> {
    proptest::option::of(some)
}

fn finite() -> impl Strategy<Value = f64> {
    prop_oneof![0.0..1e6, any::<f64>().prop_filter("finite", |number| number.is_finite())]
}

fn tool_call() -> impl Strategy<Value = ToolCall> {
    let texts = (text(), maybe(text()), maybe(text()));
    let all = (texts, maybe(any::<bool>()), maybe(finite()), members(), maybe(value()), maybe(any::<u64>()));
    all.prop_map(|((name, raw_params, error), success, duration_ms, params, result, step)| ToolCall {
        name,
        success,
        duration_ms,
        params,
        raw_params,
        result,
        error,
        step,
    })
}

fn usage() -> impl Strategy<Value = Usage> {
    let count = || maybe(any::<u64>());
    (count(), count(), count(), maybe(finite())).prop_map(
        |(input_tokens, output_tokens, cached_input_tokens, cost_usd)| Usage {
            input_tokens,
            output_tokens,
            cached_input_tokens,
            cost_usd,
        },
    )
}

fn any_trace() -> impl Strategy<Value = Trace> {
    let calls = proptest::collection::vec(tool_call(), 0..3);
    let warnings = proptest::collection::vec(text(), 0..2);
    let texts = (text(), maybe(text()), maybe(text()), maybe(text()));
    let calls = (calls, maybe(any::<u64>()));
    let all = (texts, calls, maybe(usage()), finite(), maybe(finite()), any::<bool>(), warnings);
    all.prop_map(|(texts, (tool_calls, steps), usage, latency_ms, first_token_ms, calls_unreported, warnings)| {
        let (response, model, stop_reason, stderr) = texts;
        Trace {
            response,
            tool_calls,
            steps,
            usage,
            model,
            stop_reason,
            latency_ms,
            first_token_ms,
            calls_unreported,
            stderr,
            warnings,
        }
    })
}

fn any_outcome() -> impl Strategy<Value = Outcome> {
    let unusable = (text(), maybe(usage())).prop_map(|(text, usage)| Box::new(UnusableReply { text, usage }));
    let cause = prop_oneof![
        Just(AgentErrorCause::NoAnswer),
        Just(AgentErrorCause::Timeout),
        unusable.prop_map(AgentErrorCause::Unusable),
    ];
    let error = (text(), 0..1_u64 << 51, cause).prop_map(|(message, nanos, cause)| AgentError {
        cause,
        ..AgentError::new(message, Duration::from_nanos(nanos))
    });
    prop_oneof![4 => any_trace().prop_map(Ok), 1 => error.prop_map(Err)]
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn replays_are_identical_to_the_recorded_outcome(outcome in any_outcome(), parts in members(), message in text()) {
        let folder = TempDir::new().unwrap();
        let parts = Value::Object(parts);
        let case = case(&message);
        let inner = FakeAgent::new(parts.clone(), [outcome.clone()]);
        let recorded = open(folder.path(), RecordingMode::Record);
        let returned = run(ask(&inner, &recorded, &case, 3));
        prop_assert_eq!(recorded.failures(), Vec::<String>::new());
        prop_assert_eq!(&returned, &outcome);
        let replayed = run(replay(parts, folder.path(), &case, 3));
        prop_assert_eq!(&replayed, &outcome);
        // Also distinguishes -0.0 from 0.0 and the order of keys.
        prop_assert_eq!(format!("{replayed:?}"), format!("{outcome:?}"));
    }

    #[test]
    fn an_edited_request_is_not_replayed(index in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let folder = TempDir::new().unwrap();
        let inner = FakeAgent::new(model_parts(), [Ok(trace("hello"))]);
        run(ask(&inner, &open(folder.path(), RecordingMode::Record), &case("hi"), 0)).unwrap();
        let file = only_file(folder.path());
        let good = std::fs::read(&file).unwrap();
        let end = good.windows(8).position(|bytes| bytes == b"\"answer\"").unwrap();
        let mut bytes = good.clone();
        let index = index.index(end);
        bytes[index] = byte;
        let before: Option<Value> = serde_json::from_slice(&good).ok();
        let after: Option<Value> = serde_json::from_slice(&bytes).ok();
        std::fs::write(&file, &bytes).unwrap();
        let replayed = run(replay(model_parts(), folder.path(), &case("hi"), 0));
        prop_assert_eq!(replayed.is_ok(), before == after, "byte {} is {}", index, byte);
    }
}
