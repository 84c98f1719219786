//! Measures the store for `scripts/bench store`: fills an empty store, runs queries, and prints the figures as JSON.
//!
//!     store_bench LOCATION TRACES EVALS
//!
//! The location is a new file or the URL of an empty PostgreSQL database. Each eval judges every trace. One author
//! rates all traces, half of them before the evals run, and another author every second one. The content is
//! deterministic.

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Instant;

use jiff::{SignedDuration, Timestamp};
use karat_core::document::TraceDocument;
use karat_core::judgement::EvalOptions;
use karat_core::port::TraceStore;
use karat_core::rating::Rating;
use karat_core::stored::{ExpectedState, NewTrace, TraceFilter, TraceHead};
use karat_evals::contradiction::ContradictionFilter;
use karat_evals::feedback::Feedback;
use karat_evals::port::{ComparisonStore, EvalStore, FeedbackStore};
use karat_evals::version::{NewVersion, StoredExecution};
use karat_store::{Location, Store};
use serde_json::{Value, json};

/// The allocator of karat itself.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type BenchResult<T> = Result<T, Box<dyn Error>>;

const BATCH_TRACES: usize = 500;
const BATCH_ROWS: usize = 5_000;
/// Number of runs of each query.
const QUERY_RUNS: usize = 31;
/// The days over which traces are spread.
const DAYS: usize = 90;
/// An eval that is wrong for three traces only; the others contradict a tenth of the ratings.
const ACCURATE_EVAL: &str = "eval_nearly_always_right";

#[tokio::main]
async fn main() -> BenchResult<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [location, traces, evals] = arguments.as_slice() else {
        return Err("usage: store_bench LOCATION TRACES EVALS".into());
    };
    let location =
        if location.contains("://") { Location::Postgres(location.clone()) } else { Location::File(location.into()) };
    let (traces, evals): (usize, usize) = (traces.parse()?, evals.parse()?);
    let store = Store::open(&location).await?;
    let mut figures = fill(&store, traces, evals).await?;
    figures.insert("questions", run_queries(&store, traces).await?);
    store.close().await;
    if let Location::File(path) = &location {
        figures.insert("bytes", json!(std::fs::metadata(path)?.len()));
    }
    print(&figures)
}

#[expect(clippy::print_stdout, reason = "the script reads it")]
fn print(figures: &BTreeMap<&str, Value>) -> BenchResult<()> {
    println!("{}", serde_json::to_string(figures)?);
    Ok(())
}

fn start() -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24 * 20_000)
}

/// Returns an unordered id like those of OpenTelemetry.
fn trace_id(number: usize) -> String {
    karat_json::hash::long_hash(&number.to_le_bytes())
}

fn trace(number: usize) -> NewTrace {
    let id = trace_id(number);
    let started_at = start() + SignedDuration::from_secs(i64::try_from(number % DAYS).unwrap_or_default() * 86_400);
    let text = |seed: usize, words: usize| {
        let chosen = (0..words).map(|index| WORDS[(seed * 31 + index * 7 + index * index) % WORDS.len()]);
        chosen.collect::<Vec<_>>().join(" ")
    };
    let step = |index: usize| {
        json!({
            "input": { "message": text(number + index, 20) },
            "output": { "response": text(number * 3 + index, 40) },
            "tool_calls": [{ "name": "search", "arguments": { "q": text(index, 4) }, "result": text(number, 30), "error": null }],
            "error": null
        })
    };
    let document =
        json!({ "trace_id": id, "started_at": started_at.to_string(), "steps": [step(1), step(2), step(3), step(4)] });
    let document_text = document.to_string();
    NewTrace {
        head: TraceHead::from_document(&id, &TraceDocument::parse(document_text.as_str()).expect("a trace")),
        source: "otlp".to_owned(),
        raw: Some(format!("{{\"resourceSpans\":{document_text}}}").into_bytes()),
        document: document_text,
        expected: ExpectedState::Any,
    }
}

const WORDS: [&str; 16] = [
    "the",
    "customer",
    "asked",
    "for",
    "help",
    "with",
    "an",
    "order",
    "and",
    "we",
    "understand",
    "please",
    "thank",
    "you",
    "recommend",
    "shipping",
];

/// Six of ten ratings are positive.
fn rating(number: usize) -> Rating {
    if number * 7 % 10 < 6 { Rating::Positive } else { Rating::Negative }
}

fn feedback(number: usize) -> Vec<Feedback> {
    let feedback = Feedback {
        trace_id: trace_id(number),
        author: "ann".to_owned(),
        rating: Some(rating(number)),
        note: Some("looked at it".to_owned()),
        source: "import".to_owned(),
        created_at: start(),
    };
    if !number.is_multiple_of(2) {
        return vec![feedback];
    }
    // A neutral rating does not change the consensus.
    let rating = if number.is_multiple_of(14) { Some(Rating::Neutral) } else { feedback.rating };
    vec![Feedback { author: "bob".to_owned(), rating, ..feedback.clone() }, feedback]
}

fn eval_id(eval: usize) -> String {
    if eval == 0 { ACCURATE_EVAL.to_owned() } else { format!("eval_number_{eval}") }
}

fn execution(eval: usize, number: usize, hash: &str, at: Timestamp) -> StoredExecution {
    let wrong = if eval == 0 { number < 3 } else { (number + eval).is_multiple_of(10) };
    StoredExecution {
        id: format!("{eval:04x}-{number:012x}-7000-8000-000000000000"),
        eval_id: eval_id(eval),
        eval_version: 1,
        trace_id: trace_id(number),
        trace_hash: hash.to_owned(),
        result: Some((rating(number) == Rating::Positive) != wrong),
        reason: Some("Response meets quality criteria".to_owned()),
        execution_time_ms: 1,
        error: None,
        error_kind: None,
        stdout: String::new(),
        stderr: String::new(),
        code_hash: "0123456789ab".to_owned(),
        guest_hash: Some("0123456789ab".to_owned()),
        executed_at: at,
        applicable: true,
        score: None,
    }
}

/// Returns the rate per second.
#[expect(clippy::cast_precision_loss, reason = "counts are small")]
fn rate(count: usize, seconds: f64) -> Value {
    json!((count as f64 / seconds).round())
}

async fn fill(store: &Store, traces: usize, evals: usize) -> BenchResult<BTreeMap<&'static str, Value>> {
    let mut figures = BTreeMap::new();
    let numbers: Vec<usize> = (0..traces).collect();
    let (mut hashes, mut seconds) = (Vec::with_capacity(traces), 0.0);
    for some in numbers.chunks(BATCH_TRACES) {
        let batch: Vec<NewTrace> = some.iter().map(|number| trace(*number)).collect();
        hashes.extend(batch.iter().map(|trace| trace.head.hash.clone()));
        let clock = Instant::now();
        store.put_traces(&batch, start()).await?;
        seconds += clock.elapsed().as_secs_f64();
    }
    figures.insert("traces_per_second", rate(traces, seconds));

    let (before, after) = numbers.split_at(traces / 2);
    figures.insert("feedback_per_second", rate_all(store, before).await?);
    let mut seconds = 0.0;
    let mut at = start();
    // Traces are judged in the order of their ids.
    let mut order: Vec<usize> = numbers.clone();
    order.sort_by_cached_key(|number| trace_id(*number));
    for eval in 0..evals {
        store
            .add_version(&NewVersion {
                eval_id: eval_id(eval),
                code: "…".to_owned(),
                options: EvalOptions::default(),
                code_hash: "0123456789ab".to_owned(),
                guest_hash: "0123456789ab".to_owned(),
                note: None,
                created_at: start(),
                after: None,
            })
            .await?;
        for some in order.chunks(BATCH_ROWS) {
            let batch: Vec<StoredExecution> = some
                .iter()
                .map(|number| {
                    at += SignedDuration::from_millis(1);
                    execution(eval, *number, &hashes[*number], at)
                })
                .collect();
            let clock = Instant::now();
            store.put_executions(&batch).await?;
            seconds += clock.elapsed().as_secs_f64();
        }
    }
    figures.insert("executions_per_second", rate(traces * evals, seconds));
    figures.insert("feedback_on_judged_per_second", rate_all(store, after).await?);
    Ok(figures)
}

async fn rate_all(store: &Store, numbers: &[usize]) -> BenchResult<Value> {
    let (mut seconds, mut count) = (0.0, 0);
    for some in numbers.chunks(BATCH_ROWS) {
        let feedback: Vec<Feedback> = some.iter().flat_map(|number| feedback(*number)).collect();
        let clock = Instant::now();
        store.add_feedback(&feedback).await?;
        seconds += clock.elapsed().as_secs_f64();
        count += feedback.len();
    }
    Ok(rate(count, seconds))
}

/// Runs a query several times and records the median and longest time in milliseconds.
macro_rules! measure {
    ($figures:ident, $name:literal, $query:expr) => {{
        let mut times = Vec::with_capacity(QUERY_RUNS);
        for run in 0..QUERY_RUNS {
            let _ = run;
            let clock = Instant::now();
            $query;
            times.push(clock.elapsed().as_secs_f64() * 1000.0);
        }
        times.sort_by(f64::total_cmp);
        $figures.insert($name.to_owned(), json!({ "median": times[QUERY_RUNS / 2], "longest": times[QUERY_RUNS - 1] }));
    }};
}

async fn run_queries(store: &Store, traces: usize) -> BenchResult<Value> {
    let mut figures = serde_json::Map::new();
    let newest = |eval: Option<&str>| ContradictionFilter {
        eval_id: eval.map(str::to_owned),
        limit: Some(50),
        ..ContradictionFilter::default()
    };
    let (all, few) = (newest(None), newest(Some(ACCURATE_EVAL)));
    if store.contradictions(&few).await?.len() != 3 || store.contradictions(&all).await?.len() != 50 {
        return Err("unexpected number of contradictions in the store".into());
    }
    measure!(figures, "contradictions, the newest 50", store.contradictions(&all).await?);
    measure!(figures, "contradictions of an eval that has three", store.contradictions(&few).await?);
    measure!(figures, "contradictions, how many", store.count_contradictions(&ContradictionFilter::default()).await?);
    measure!(figures, "agreement of an eval", store.agreement("eval_number_1", 1).await?);
    measure!(figures, "agreement of an eval by day", store.agreement_by_day("eval_number_1", 1).await?);
    measure!(figures, "what several people say of the same traces", store.rating_patterns().await?);
    measure!(figures, "evals with their counts", store.evals().await?);
    let mut number = 0;
    measure!(figures, "a trace by its id", {
        number = (number + 7919) % traces;
        store.trace(&trace_id(number)).await?.ok_or("a trace is missing")?
    });
    let page = TraceFilter { limit: Some(50), ..TraceFilter::default() };
    measure!(figures, "traces, the newest 50", store.list_traces(&page).await?);
    Ok(Value::Object(figures))
}
