//! After any sequence of actions, the comparison equals a recomputation from the history.

use std::collections::BTreeMap;

use jiff::civil::Date;
use karat_core::port::TraceStore;
use karat_core::rating::Rating;
use karat_evals::agreement::AgreementCounts;
use karat_evals::contradiction::{ContradictionFilter, Resolution, ResolutionKind, contradicts};
use karat_evals::feedback::{Feedback, consensus};
use karat_evals::port::{ComparisonStore, EvalStore, FeedbackStore};
use karat_evals::version::AddedVersion;
use karat_store::Store;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::support::{Kind, TestDatabase, at, document, execution, feedback_by, trace_of, version};

const TRACES: usize = 4;
const EVALS: usize = 2;

#[derive(Debug, Clone)]
enum Action {
    /// Imports the trace with this message on this day.
    Import {
        trace: usize,
        message: u8,
        day: i64,
    },
    AddVersion {
        eval: usize,
        code: u8,
    },
    /// Judges with the version this many before the newest.
    Judge {
        eval: usize,
        back: u64,
        trace: usize,
        result: Option<bool>,
    },
    Rate {
        trace: usize,
        author: usize,
        /// `None` retracts the rating.
        rating: Option<Rating>,
        seconds: i64,
    },
    Resolve {
        eval: usize,
        trace: usize,
    },
}

fn action() -> impl Strategy<Value = Action> {
    let rating = prop::option::of(prop::sample::select(Rating::ALL.to_vec()));
    prop_oneof![
        1 => (0..TRACES, 0..3_u8, 0..3_i64).prop_map(|(trace, message, day)| Action::Import { trace, message, day }),
        1 => (0..EVALS, 0..3_u8).prop_map(|(eval, code)| Action::AddVersion { eval, code }),
        4 => (0..EVALS, 0..3_u64, 0..TRACES, any::<Option<bool>>())
            .prop_map(|(eval, back, trace, result)| Action::Judge { eval, back, trace, result }),
        4 => (0..TRACES, 0..3_usize, rating, 0..4_i64)
            .prop_map(|(trace, author, rating, seconds)| Action::Rate { trace, author, rating, seconds }),
        2 => (0..EVALS, 0..TRACES).prop_map(|(eval, trace)| Action::Resolve { eval, trace }),
    ]
}

/// The message and day of a trace.
type Content = (u8, i64);

/// The history of all actions.
#[derive(Default)]
struct Model {
    /// The current content of each trace.
    traces: BTreeMap<usize, Content>,
    newest: BTreeMap<usize, (u64, u8)>,
    /// Each verdict, with the content of the trace when it was judged.
    verdicts: BTreeMap<(usize, u64, usize), (Option<bool>, Content)>,
    feedback: Vec<(usize, Feedback)>,
    resolved: Vec<(usize, usize, Content, bool, Rating)>,
}

impl Model {
    /// Returns the current rating of each author of a trace.
    fn ratings(&self, trace: usize) -> BTreeMap<String, Rating> {
        let mut newest: BTreeMap<&str, &Feedback> = BTreeMap::new();
        for (_, feedback) in self.feedback.iter().filter(|(rated_trace, _)| *rated_trace == trace) {
            let before = newest.entry(&feedback.author).or_insert(feedback);
            if feedback.created_at >= before.created_at {
                *before = feedback;
            }
        }
        newest.into_iter().filter_map(|(author, feedback)| Some((author.to_owned(), feedback.rating?))).collect()
    }

    fn rating(&self, trace: usize) -> Option<Rating> {
        consensus(self.ratings(trace).into_values())
    }

    /// Counts the traces for each combination of several authors and ratings.
    fn patterns(&self) -> BTreeMap<Vec<(String, Rating)>, u64> {
        let mut counts = BTreeMap::new();
        for ratings in self.traces.keys().map(|trace| self.ratings(*trace)).filter(|ratings| ratings.len() > 1) {
            *counts.entry(ratings.into_iter().collect()).or_default() += 1;
        }
        counts
    }

    /// Returns the verdicts of a version on the current content of traces.
    fn current(&self, eval: usize, version: u64) -> impl Iterator<Item = (usize, Option<bool>)> {
        let of_version = self.verdicts.iter().filter(move |((e, v, _), _)| (*e, *v) == (eval, version));
        let current = of_version.filter(move |((_, _, trace), (_, judged))| self.traces[trace] == *judged);
        current.map(|((_, _, trace), (result, _))| (*trace, *result))
    }

    fn counts(&self, eval: usize, version: u64) -> BTreeMap<i64, AgreementCounts> {
        let mut days: BTreeMap<i64, AgreementCounts> = BTreeMap::new();
        for (trace, result) in self.current(eval, version) {
            let counts = days.entry(self.traces[&trace].1).or_default();
            match (result, self.rating(trace)) {
                (None, _) => counts.errored += 1,
                (Some(_), None) => counts.unrated += 1,
                (Some(_), Some(Rating::Neutral)) => counts.neutral += 1,
                (Some(true), Some(Rating::Positive)) => counts.passed_positive += 1,
                (Some(true), Some(Rating::Negative)) => counts.passed_negative += 1,
                (Some(false), Some(Rating::Positive)) => counts.failed_positive += 1,
                (Some(false), Some(Rating::Negative)) => counts.failed_negative += 1,
            }
        }
        days
    }

    /// Returns the contradictions of the newest versions, and whether they are resolved.
    fn contradictions(&self) -> Vec<(String, String, bool)> {
        let mut contradictions = Vec::new();
        for (eval, (version, _)) in &self.newest {
            for (trace, result) in self.current(*eval, *version) {
                if let (Some(passed), Some(rating)) = (result, self.rating(trace))
                    && contradicts(rating, passed)
                {
                    let key = (*eval, trace, self.traces[&trace], passed, rating);
                    let resolved = self.resolved.contains(&key);
                    contradictions.push((eval_id(*eval), trace_id(trace), resolved));
                }
            }
        }
        contradictions.sort();
        contradictions
    }
}

fn trace_id(trace: usize) -> String {
    format!("t-{trace}")
}

fn eval_id(eval: usize) -> String {
    format!("eval_{eval}")
}

async fn perform(store: &Store, model: &mut Model, action: Action) {
    match action {
        Action::Import { trace, message, day } => {
            let id = trace_id(trace);
            let new = trace_of(&id, &document(&id, &message.to_string(), day * 86_400));
            store.put_traces(&[new], at(0)).await.expect("stored");
            model.traces.insert(trace, (message, day));
        }
        Action::AddVersion { eval, code } => {
            let added = store.add_version(&version(&eval_id(eval), &code.to_string())).await.expect("added");
            let expected = match model.newest.get(&eval) {
                Some((newest, before)) if *before == code => AddedVersion::Unchanged(*newest),
                Some((newest, _)) => AddedVersion::Added(newest + 1),
                None => AddedVersion::Added(1),
            };
            assert_eq!(added, expected);
            if let AddedVersion::Added(version) = added {
                model.newest.insert(eval, (version, code));
            }
        }
        Action::Judge { eval, back, trace, result } => {
            let Some((newest, _)) = model.newest.get(&eval) else { return };
            let version = newest.saturating_sub(back).max(1);
            let id = trace_id(trace);
            let (message, day) = model.traces.get(&trace).copied().unwrap_or_default();
            let judged = trace_of(&id, &document(&id, &message.to_string(), day * 86_400));
            let put = store.put_executions(&[execution(&eval_id(eval), version, &judged, result)]).await;
            assert_eq!(put.is_ok(), model.traces.contains_key(&trace));
            if put.is_ok() {
                model.verdicts.insert((eval, version, trace), (result, (message, day)));
            }
        }
        Action::Rate { trace, author, rating, seconds } => {
            let feedback = feedback_by(
                ["ann", "bob", "eve"][author],
                &trace_id(trace),
                rating.unwrap_or(Rating::Neutral),
                seconds,
            );
            let feedback = Feedback { rating, ..feedback };
            let put = store.add_feedback(std::slice::from_ref(&feedback)).await;
            assert_eq!(put.is_ok(), model.traces.contains_key(&trace));
            if let Ok(is_new) = put {
                assert_eq!(is_new[0], !model.feedback.contains(&(trace, feedback.clone())));
                if is_new[0] {
                    model.feedback.push((trace, feedback));
                }
            }
        }
        Action::Resolve { eval, trace } => {
            let (eval_name, trace_name) = (eval_id(eval), trace_id(trace));
            let exists =
                model.contradictions().into_iter().any(|(e, t, _)| (e, t) == (eval_name.clone(), trace_name.clone()));
            let kind = ResolutionKind::Dismissed;
            let resolution = Resolution { kind, note: None, author: "ann".to_owned(), resolved_at: at(5) };
            assert_eq!(store.resolve(&eval_name, &trace_name, &resolution).await.expect("a result"), exists);
            if exists {
                let version = model.newest[&eval].0;
                let passed = model.verdicts[&(eval, version, trace)].0.expect("a verdict");
                let rating = model.rating(trace).expect("a rating");
                model.resolved.push((eval, trace, model.traces[&trace], passed, rating));
            }
        }
    }
}

async fn compare(store: &Store, database: &TestDatabase, model: &Model) {
    let patterns = store.rating_patterns().await.expect("patterns").into_iter();
    let patterns: BTreeMap<_, u64> =
        patterns.map(|pattern| (pattern.ratings.into_iter().collect(), pattern.traces)).collect();
    assert_eq!(patterns, model.patterns());
    let first: Date = "2026-09-21".parse().expect("a day");
    for (eval, (newest, _)) in &model.newest {
        for version in 1..=*newest {
            let expected = model.counts(*eval, version);
            let days = store.agreement_by_day(&eval_id(*eval), version).await.expect("days");
            let seen: BTreeMap<i64, AgreementCounts> = days
                .iter()
                .map(|row| (i64::from(row.day.since(first).expect("days").get_days()), row.counts))
                .collect();
            assert_eq!(seen, expected);
        }
    }
    let expected = model.contradictions();
    let all = ContradictionFilter { resolved: true, ..ContradictionFilter::default() };
    let mut seen: Vec<_> = store
        .contradictions(&all)
        .await
        .expect("contradictions")
        .into_iter()
        .map(|row| (row.eval_id, row.trace_id, row.resolution.is_some()))
        .collect();
    seen.sort();
    assert_eq!(seen, expected);
    assert_eq!(store.count_contradictions(&all).await.expect("a number"), expected.len() as u64);
    let open = store.count_contradictions(&ContradictionFilter::default()).await.expect("a number");
    assert_eq!(open, expected.iter().filter(|(_, _, resolved)| !resolved).count() as u64);
    let listed = store.contradictions(&ContradictionFilter::default()).await.expect("contradictions");
    assert_eq!(listed.len() as u64, open);
    let view =
        database.rows("select eval_id, trace_id from eval_comparison where is_contradiction = 1 order by 1, 2").await;
    let view: Vec<Vec<String>> =
        view.into_iter().map(|row| row.into_iter().map(Option::unwrap_or_default).collect()).collect();
    let expected: Vec<Vec<String>> = expected.into_iter().map(|(eval, trace, _)| vec![eval, trace]).collect();
    assert_eq!(view, expected);
}

fn check_comparison(kind: Kind, cases: u32) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let result = TestRunner::new(config).run(&prop::collection::vec(action(), 1..40), |actions| {
        runtime.block_on(async {
            let database = TestDatabase::new(kind).await;
            let store = database.open().await;
            let mut model = Model::default();
            for action in actions {
                perform(&store, &mut model, action).await;
            }
            compare(&store, &database, &model).await;
            database.remove(store).await;
        });
        Ok(())
    });
    result.expect("the comparison matches the model");
}

#[test]
fn comparison_matches_the_model_in_sqlite() {
    check_comparison(Kind::Sqlite, 24);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn comparison_matches_the_model_in_postgres() {
    check_comparison(Kind::Postgres, 24);
}
