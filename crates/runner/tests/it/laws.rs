//! What holds for every plan, whatever ends when.

use std::time::Duration;

use karat_core::redact::Redactor;
use karat_core::result::{EarlierCase, Outcome};
use karat_runner::{Baseline, Plan};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::Value;

use crate::support::{Act, FakeAgent, Ran, case, plan, play, play_with, suite};

/// Every time of a plan is even, so that what happens at an odd one happens at no other's time.
const TIMEOUT: u64 = 50;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Passes,
    Fails,
    Breaks,
    Panics,
    PanicsAtOnce,
}

#[derive(Debug, Clone, Copy)]
struct Unit {
    kind: Kind,
    delay: u64,
}

impl Unit {
    fn act(self) -> Act {
        match self.kind {
            Kind::Passes => Act::say("ok"),
            Kind::Fails => Act::say("no"),
            Kind::Breaks => Act::Break("broken".to_owned(), Duration::from_millis(self.delay)),
            Kind::Panics => Act::Panic("broken".to_owned()),
            Kind::PanicsAtOnce => Act::PanicAtOnce("broken".to_owned()),
        }
    }

    fn duration(self) -> u64 {
        if self.kind == Kind::PanicsAtOnce { 0 } else { self.delay.min(TIMEOUT) }
    }

    fn end(self) -> (Outcome, Option<&'static str>) {
        match self.kind {
            Kind::PanicsAtOnce => (Outcome::Errored, Some("internal error, please report it: broken")),
            _ if self.delay > TIMEOUT => (Outcome::Failed, Some("timeout")),
            Kind::Passes => (Outcome::Passed, None),
            Kind::Fails => (Outcome::Failed, Some("responseContains: expected 'ok' in response but not found")),
            Kind::Breaks => (Outcome::Errored, Some("broken")),
            Kind::Panics => (Outcome::Errored, Some("internal error, please report it: broken")),
        }
    }
}

#[derive(Debug, Clone)]
struct Shape {
    suites: Vec<Vec<Unit>>,
    concurrency: usize,
    fail_fast: bool,
    cancel_after: Option<u64>,
}

fn shapes() -> impl Strategy<Value = Shape> {
    let kind = prop_oneof![
        6 => Just(Kind::Passes),
        1 => Just(Kind::Fails),
        1 => Just(Kind::Breaks),
        1 => Just(Kind::Panics),
        1 => Just(Kind::PanicsAtOnce),
    ];
    // Multiples of four, of which the timeout is none: nobody ends just when the time is up.
    let unit = (kind, 0_u64..18).prop_map(|(kind, quarter)| Unit { kind, delay: 4 * quarter });
    let suites = prop::collection::vec(prop::collection::vec(unit, 0..9), 0..5);
    let cancel_after = prop::option::of((0_u64..150).prop_map(|half| 2 * half + 1));
    (suites, 0_usize..10, prop::bool::weighted(0.3), cancel_after).prop_map(
        |(suites, concurrency, fail_fast, cancel_after)| Shape { suites, concurrency, fail_fast, cancel_after },
    )
}

impl Shape {
    fn units(&self) -> Vec<(String, Unit)> {
        let numbered = |(suite, units): (usize, &Vec<Unit>)| {
            units.iter().enumerate().map(move |(index, unit)| (format!("{suite}-{index}"), *unit)).collect::<Vec<_>>()
        };
        self.suites.iter().enumerate().flat_map(numbered).collect()
    }

    /// Runs the shape in a time of its own.
    fn play(&self) -> Ran {
        let mut agent = FakeAgent::default();
        for (name, unit) in self.units() {
            agent = agent.on(&name, unit.delay, unit.act());
        }
        let suites = self.suites.iter().enumerate().map(|(number, units)| {
            let cases = (0..units.len()).map(|index| format!("{number}-{index}")).map(|name| case(&name, &name));
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
        runtime.block_on(play_with(plan, agent, cancel_after, Vec::new()))
    }

    /// Works out when each case begins and ends if whoever is free takes the next one.
    fn schedule(&self) -> Vec<(String, u64, u64)> {
        let mut free = vec![0; self.concurrency.max(1)];
        let book = |(name, unit): (String, Unit)| {
            let worker = free.iter_mut().min().unwrap();
            let begin = *worker;
            *worker += unit.duration();
            (name, begin, *worker)
        };
        self.units().into_iter().map(book).collect()
    }
}

/// Returns the names in order, to compare sets of them.
fn sorted<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> Vec<String> {
    let mut names: Vec<String> = names.into_iter().map(|name| name.as_ref().to_owned()).collect();
    names.sort();
    names
}

proptest! {
    // The same plans every time: a test that fails does so for everybody.
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    })]

    /// The laws of every event stream are held by `play_with` itself.
    #[test]
    fn every_case_ends_as_its_agent_made_it_end(shape in shapes()) {
        let ran = shape.play();
        let units = shape.units();
        for suite in ran.suites() {
            for result in &suite.cases {
                let (_, unit) = units.iter().find(|(name, _)| *name == result.id).unwrap();
                let (outcome, error) = unit.end();
                prop_assert_eq!(result.outcome, outcome);
                prop_assert_eq!(result.passed, outcome == Outcome::Passed);
                prop_assert_eq!(result.error.as_deref(), error);
                prop_assert_eq!(result.duration_ms, unit.duration());
            }
        }
        prop_assert!(ran.log.peak <= shape.concurrency.max(1));
        prop_assert!(ran.log.begun.len() <= units.len());
        prop_assert_eq!(ran.totals.cases + ran.totals.not_run, units.len());
    }

    #[test]
    fn whoever_is_free_takes_the_next_case_until_it_is_cancelled(shape in shapes()) {
        let shape = Shape { fail_fast: false, ..shape };
        let ran = shape.play();
        let schedule = shape.schedule();
        let stop = shape.cancel_after.unwrap_or(u64::MAX);
        let ended = sorted(schedule.iter().filter(|(_, _, end)| *end < stop).map(|(name, _, _)| name));
        prop_assert_eq!(sorted(ran.completed()), ended);
        let begun = sorted(schedule.iter().filter(|(_, begin, _)| *begin < stop).map(|(name, _, _)| name));
        prop_assert_eq!(sorted(ran.begun()), begun);
        let last = schedule.iter().map(|(_, _, end)| *end).max().unwrap_or(0);
        if last > stop {
            prop_assert!(ran.totals.interrupted);
        } else if last + 5 < stop {
            prop_assert!(!ran.totals.interrupted);
        }
        if shape.cancel_after.is_none() {
            prop_assert_eq!(ran.totals.not_run, 0);
            for (number, suite) in ran.suites().into_iter().enumerate() {
                let prefix = format!("{number}-");
                let own = schedule.iter().filter(|(name, _, _)| name.starts_with(&prefix));
                let begin = own.clone().map(|(_, begin, _)| *begin).min().unwrap_or(0);
                let end = own.map(|(_, _, end)| *end).max().unwrap_or(0);
                prop_assert_eq!(suite.wall_clock_ms, end - begin);
            }
        }
    }

    #[test]
    fn after_a_failure_nothing_begins_when_it_must_not(shape in shapes()) {
        let shape = Shape { fail_fast: true, cancel_after: None, ..shape };
        let ran = shape.play();
        let bad: Vec<String> =
            shape.units().into_iter().filter(|(_, unit)| unit.end().0 != Outcome::Passed).map(|(name, _)| name).collect();
        let schedule = shape.schedule();
        let first = schedule.iter().filter(|(name, _, _)| bad.contains(name)).map(|(_, _, end)| *end).min();
        let first = first.unwrap_or(u64::MAX);
        // At the very moment it depends on who is quicker.
        let must = sorted(schedule.iter().filter(|(_, begin, _)| *begin < first).map(|(name, _, _)| name));
        let may = sorted(schedule.iter().filter(|(_, begin, _)| *begin <= first).map(|(name, _, _)| name));
        let begun = sorted(ran.begun());
        prop_assert!(must.iter().all(|name| begun.contains(name)), "{:?} of {:?}", begun, must);
        prop_assert!(begun.iter().all(|name| may.contains(name)), "{:?} beyond {:?}", begun, may);
        prop_assert_eq!(sorted(ran.completed()), begun, "those under way end");
        prop_assert!(!ran.totals.interrupted);
        if shape.concurrency <= 1 {
            prop_assert!(ran.totals.failed <= 1);
        }
    }
}

/// Takes the next of a row of numbers that look like chance and are the same every time.
fn next_number(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// Sets to zero what time alone decides.
fn without_times(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (key, member) in map {
                if matches!(key.as_str(), "wallClockMs" | "durationMs" | "totalDurationMs") {
                    *member = Value::from(0);
                }
                without_times(member);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(without_times),
        _ => {}
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_ends_first_the_results_are_the_same_bytes() {
    let mut orders = Vec::new();
    let mut texts = Vec::new();
    for seed in 0..20 {
        let mut state = seed;
        let mut agent = FakeAgent::default().called("http://host/?key=hunter22");
        let mut suites = Vec::new();
        for number in 0..4 {
            let mut members = Vec::new();
            for index in 0..15 {
                let name = format!("{number}-{index}");
                let act = match (number + index) % 5 {
                    0 => Act::say("no"),
                    1 => Act::Break(format!("refused hunter22 at {index}"), Duration::ZERO),
                    2 => Act::Panic("broken".to_owned()),
                    _ => Act::say("ok hunter22"),
                };
                agent = agent.on(&name, next_number(&mut state) % 90 + 1, act);
                let mut member = case(&name, &name);
                member.stubs = (index % 3 == 0).then(serde_json::Map::new);
                member.expect.response_contains.as_mut().unwrap().push(format!("{{{{seed:t{}}}}}", index % 4));
                members.push(member);
            }
            suites.push(suite(&number.to_string(), members));
        }
        let earlier = play(plan(vec![suite("1", suites[1].file.cases.clone())]), FakeAgent::default()).await;
        let cases = earlier.suite().cases.iter().map(|case| EarlierCase::from(case.as_ref())).collect();
        suites[1].baseline = Some(Baseline { run_id: "run-0".to_owned(), cases });
        let redactor = Redactor::default();
        redactor.add("hunter22");
        let concurrency = 2 + usize::try_from(seed).unwrap() % 7;
        let ran = play(Plan { concurrency, redactor, ..plan(suites) }, agent).await;
        assert_eq!(ran.totals.cases, 60);
        orders.push(ran.completed().join(" "));
        let mut results: Vec<Value> = ran.suites().iter().map(|suite| serde_json::to_value(suite).unwrap()).collect();
        results.iter_mut().for_each(without_times);
        texts.push(serde_json::to_string(&results).unwrap());
    }
    assert!(texts.iter().all(|text| *text == texts[0]), "{texts:#?}");
    orders.sort();
    orders.dedup();
    assert_eq!(orders.len(), 20, "the order of completion was another each time");
}
