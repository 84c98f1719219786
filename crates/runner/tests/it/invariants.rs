//! Properties that hold for every plan.

use std::time::Duration;

use karat_core::redact::Redactor;
use karat_core::result::{EarlierCase, Outcome};
use karat_runner::{Baseline, Plan};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::Value;

use crate::support::{Act, FakeAgent, FinishedRun, case, plan, run_plan, run_with, suite};

/// All times of a plan are even, so that cancellation at an odd time never coincides with another event.
const TIMEOUT: u64 = 50;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Passes,
    Fails,
    Errors,
    Panics,
    PanicsImmediately,
}

#[derive(Debug, Clone, Copy)]
struct FakeCase {
    kind: Kind,
    delay: u64,
}

impl FakeCase {
    fn act(self) -> Act {
        match self.kind {
            Kind::Passes => Act::reply("ok"),
            Kind::Fails => Act::reply("no"),
            Kind::Errors => Act::Fail("broken".to_owned(), Duration::from_millis(self.delay)),
            Kind::Panics => Act::Panic("broken".to_owned()),
            Kind::PanicsImmediately => Act::PanicImmediately("broken".to_owned()),
        }
    }

    fn duration(self) -> u64 {
        if self.kind == Kind::PanicsImmediately { 0 } else { self.delay.min(TIMEOUT) }
    }

    fn expected(self) -> (Outcome, Option<&'static str>) {
        match self.kind {
            Kind::PanicsImmediately => (Outcome::Errored, Some("internal error, please report it: broken")),
            _ if self.delay > TIMEOUT => (Outcome::Failed, Some("timeout")),
            Kind::Passes => (Outcome::Passed, None),
            Kind::Fails => (Outcome::Failed, Some("responseContains: expected 'ok' in response but not found")),
            Kind::Errors => (Outcome::Errored, Some("broken")),
            Kind::Panics => (Outcome::Errored, Some("internal error, please report it: broken")),
        }
    }
}

#[derive(Debug, Clone)]
struct FakeRun {
    suites: Vec<Vec<FakeCase>>,
    concurrency: usize,
    fail_fast: bool,
    cancel_after: Option<u64>,
}

fn fake_runs() -> impl Strategy<Value = FakeRun> {
    let kind = prop_oneof![
        6 => Just(Kind::Passes),
        1 => Just(Kind::Fails),
        1 => Just(Kind::Errors),
        1 => Just(Kind::Panics),
        1 => Just(Kind::PanicsImmediately),
    ];
    // Delays are multiples of four and the timeout is not, so no case ends exactly at the timeout.
    let fake_case = (kind, 0_u64..18).prop_map(|(kind, quarter)| FakeCase { kind, delay: 4 * quarter });
    let suites = prop::collection::vec(prop::collection::vec(fake_case, 0..9), 0..5);
    let cancel_after = prop::option::of((0_u64..150).prop_map(|half| 2 * half + 1));
    (suites, 0_usize..10, prop::bool::weighted(0.3), cancel_after).prop_map(
        |(suites, concurrency, fail_fast, cancel_after)| FakeRun { suites, concurrency, fail_fast, cancel_after },
    )
}

impl FakeRun {
    fn cases(&self) -> Vec<(String, FakeCase)> {
        let numbered = |(suite, cases): (usize, &Vec<FakeCase>)| {
            cases.iter().enumerate().map(move |(index, fake)| (format!("{suite}-{index}"), *fake)).collect::<Vec<_>>()
        };
        self.suites.iter().enumerate().flat_map(numbered).collect()
    }

    /// Runs the plan in paused time.
    fn run(&self) -> FinishedRun {
        let mut agent = FakeAgent::default();
        for (name, fake) in self.cases() {
            agent = agent.on(&name, fake.delay, fake.act());
        }
        let suites = self.suites.iter().enumerate().map(|(number, fakes)| {
            let cases = (0..fakes.len()).map(|index| format!("{number}-{index}")).map(|name| case(&name, &name));
            suite(&number.to_string(), cases.collect())
        });
        let plan = Plan {
            concurrency: self.concurrency,
            timeout: Duration::from_millis(TIMEOUT),
            fail_fast: self.fail_fast,
            ..plan(suites.collect())
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let cancel_after = self.cancel_after.map(Duration::from_millis);
        runtime.block_on(run_with(plan, agent, cancel_after, Vec::new()))
    }

    /// Computes the start and end of each case if the first free worker takes the next one.
    fn schedule(&self) -> Vec<(String, u64, u64)> {
        let mut free = vec![0; self.concurrency.max(1)];
        let assign = |(name, fake): (String, FakeCase)| {
            let worker = free.iter_mut().min().unwrap();
            let begin = *worker;
            *worker += fake.duration();
            (name, begin, *worker)
        };
        self.cases().into_iter().map(assign).collect()
    }
}

/// Sorts names, to compare them as sets.
fn sorted<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> Vec<String> {
    let mut names: Vec<String> = names.into_iter().map(|name| name.as_ref().to_owned()).collect();
    names.sort();
    names
}

proptest! {
    // A fixed seed makes failures reproducible.
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    })]

    /// `run_with` checks the invariants of the event stream.
    #[test]
    fn every_case_has_the_expected_result(fake_run in fake_runs()) {
        let run = fake_run.run();
        let cases = fake_run.cases();
        for suite in run.suites() {
            for result in &suite.cases {
                let (_, fake) = cases.iter().find(|(name, _)| *name == result.id).unwrap();
                let (outcome, error) = fake.expected();
                prop_assert_eq!(result.outcome, outcome);
                prop_assert_eq!(result.passed, outcome == Outcome::Passed);
                prop_assert_eq!(result.error.as_deref(), error);
                prop_assert_eq!(result.duration_ms, fake.duration());
            }
        }
        prop_assert!(run.log.peak <= fake_run.concurrency.max(1));
        prop_assert!(run.log.started.len() <= cases.len());
        prop_assert_eq!(run.totals.cases + run.totals.not_run, cases.len());
    }

    #[test]
    fn free_workers_take_the_next_case_until_cancellation(fake_run in fake_runs()) {
        let fake_run = FakeRun { fail_fast: false, ..fake_run };
        let run = fake_run.run();
        let schedule = fake_run.schedule();
        let stop = fake_run.cancel_after.unwrap_or(u64::MAX);
        let finished = sorted(schedule.iter().filter(|(_, _, end)| *end < stop).map(|(name, _, _)| name));
        prop_assert_eq!(sorted(run.completed()), finished);
        let started = sorted(schedule.iter().filter(|(_, begin, _)| *begin < stop).map(|(name, _, _)| name));
        prop_assert_eq!(sorted(run.started()), started);
        let last = schedule.iter().map(|(_, _, end)| *end).max().unwrap_or(0);
        if last > stop {
            prop_assert!(run.totals.interrupted);
        } else if last + 5 < stop {
            prop_assert!(!run.totals.interrupted);
        }
        if fake_run.cancel_after.is_none() {
            prop_assert_eq!(run.totals.not_run, 0);
            for (number, suite) in run.suites().into_iter().enumerate() {
                let prefix = format!("{number}-");
                let suite_schedule = schedule.iter().filter(|(name, _, _)| name.starts_with(&prefix));
                let begin = suite_schedule.clone().map(|(_, begin, _)| *begin).min().unwrap_or(0);
                let end = suite_schedule.map(|(_, _, end)| *end).max().unwrap_or(0);
                prop_assert_eq!(suite.wall_clock_ms, end - begin);
            }
        }
    }

    #[test]
    fn fail_fast_starts_no_case_after_a_failure(fake_run in fake_runs()) {
        let fake_run = FakeRun { fail_fast: true, cancel_after: None, ..fake_run };
        let run = fake_run.run();
        let failing: Vec<String> =
            fake_run.cases().into_iter().filter(|(_, fake)| fake.expected().0 != Outcome::Passed).map(|(name, _)| name).collect();
        let schedule = fake_run.schedule();
        let first_failure = schedule.iter().filter(|(name, _, _)| failing.contains(name)).map(|(_, _, end)| *end).min();
        let first_failure = first_failure.unwrap_or(u64::MAX);
        // At the time of the failure itself, either order is possible.
        let must = sorted(schedule.iter().filter(|(_, begin, _)| *begin < first_failure).map(|(name, _, _)| name));
        let may = sorted(schedule.iter().filter(|(_, begin, _)| *begin <= first_failure).map(|(name, _, _)| name));
        let started = sorted(run.started());
        prop_assert!(must.iter().all(|name| started.contains(name)), "{:?} of {:?}", started, must);
        prop_assert!(started.iter().all(|name| may.contains(name)), "{:?} beyond {:?}", started, may);
        prop_assert_eq!(sorted(run.completed()), started, "cases in flight finish");
        prop_assert!(!run.totals.interrupted);
        if fake_run.concurrency <= 1 {
            prop_assert!(run.totals.failed <= 1);
        }
    }
}

/// Returns the next number of a deterministic random sequence.
fn next_number(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// Sets all durations to zero.
fn zero_durations(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (key, member) in map {
                if matches!(key.as_str(), "wallClockMs" | "durationMs" | "totalDurationMs") {
                    *member = Value::from(0);
                }
                zero_durations(member);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(zero_durations),
        _ => {}
    }
}

#[tokio::test(start_paused = true)]
async fn results_do_not_depend_on_the_order_of_completion() {
    let mut orders = Vec::new();
    let mut texts = Vec::new();
    for seed in 0..20 {
        let mut state = seed;
        let mut agent = FakeAgent::default().with_identity("http://host/?key=hunter22");
        let mut suites = Vec::new();
        for number in 0..4 {
            let mut members = Vec::new();
            for index in 0..15 {
                let name = format!("{number}-{index}");
                let act = match (number + index) % 5 {
                    0 => Act::reply("no"),
                    1 => Act::Fail(format!("refused hunter22 at {index}"), Duration::ZERO),
                    2 => Act::Panic("broken".to_owned()),
                    _ => Act::reply("ok hunter22"),
                };
                agent = agent.on(&name, next_number(&mut state) % 90 + 1, act);
                let mut member = case(&name, &name);
                member.stubs = (index % 3 == 0).then(serde_json::Map::new);
                member.expect.response_contains.as_mut().unwrap().push(format!("{{{{seed:t{}}}}}", index % 4));
                members.push(member);
            }
            suites.push(suite(&number.to_string(), members));
        }
        let earlier = run_plan(plan(vec![suite("1", suites[1].file.cases.clone())]), FakeAgent::default()).await;
        let cases = earlier.suite().cases.iter().map(|case| EarlierCase::from(case.as_ref())).collect();
        suites[1].baseline = Some(Baseline { run_id: "run-0".to_owned(), cases, ..Baseline::default() });
        let redactor = Redactor::default();
        redactor.add("hunter22");
        let concurrency = 2 + usize::try_from(seed).unwrap() % 7;
        let run = run_plan(Plan { concurrency, redactor, ..plan(suites) }, agent).await;
        assert_eq!(run.totals.cases, 60);
        orders.push(run.completed().join(" "));
        let mut results: Vec<Value> = run.suites().iter().map(|suite| serde_json::to_value(suite).unwrap()).collect();
        results.iter_mut().for_each(zero_durations);
        texts.push(serde_json::to_string(&results).unwrap());
    }
    assert!(texts.iter().all(|text| *text == texts[0]), "{texts:#?}");
    orders.sort();
    orders.dedup();
    assert_eq!(orders.len(), 20, "every run completes in a different order");
}
