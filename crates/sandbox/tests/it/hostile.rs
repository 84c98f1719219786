//! Hostile functions: each ends with its kind, within its limits, and the next trace is judged as if it had not been.

use std::sync::Arc;
use std::time::{Duration, Instant};

use karat_core::judgement::{Conclusion, Judgement};
use karat_sandbox::{Isolation, Sandbox};

use crate::support::{Source, is_alone, judge, outcome, resident_memory, sandbox, sources, task};

/// Each function is hostile to the trace of that name alone, where it can be.
const TRACES: &str = r#"{"trace_id": "before", "steps": []}
{"trace_id": "hostile", "steps": []}
{"trace_id": "after", "steps": []}
"#;

const HONEST: &str = r#"
import json
import re
from typing import NamedTuple


class Pair(NamedTuple):
    name: str
    count: int


def eval_honest(trace):
    pair = Pair(trace["trace_id"], len(re.findall(r"\w", json.dumps(trace))))
    print("looked at", pair.name)
    return pair.count > 10, f"{pair} {sorted({3, 1, 2})}"
"#;

/// For functions that run until they are stopped.
const LIMIT: Duration = Duration::from_millis(500);

/// For functions that end otherwise: a busy machine must not turn their end into a timeout.
const UNHURRIED: Duration = Duration::from_mins(1);

/// How late a limit may be noticed on a machine that has much else to do.
const PATIENCE: Duration = Duration::from_secs(2);

/// Instances' memory that is kept for the next, and what else a program keeps.
const MOST_KEPT: usize = 320 << 20;

/// What a file's first lines say of it.
struct Expected<'a> {
    outcomes: Vec<&'a str>,
    /// It is hostile to every trace, since it has not seen any yet.
    always: bool,
}

impl<'a> Expected<'a> {
    fn of(source: &'a Source) -> Self {
        let mut lines = source.text.lines();
        let outcomes = lines.next().and_then(|line| line.strip_prefix("# expect: ")).unwrap();
        Self { outcomes: outcomes.split(", ").collect(), always: lines.next() == Some("# always") }
    }
}

/// Returns what is wrong, one line each.
fn problems_of(sandbox: &Sandbox, source: &Source, isolation: Isolation) -> Vec<String> {
    let expected = Expected::of(source);
    let honest = Source { name: "honest".to_owned(), path: "honest.py".into(), text: HONEST.to_owned() }.function();
    let mut task = task(&[source.function(), Arc::clone(&honest)], isolation);
    task.limits.time = if expected.outcomes.contains(&"timeout") { LIMIT } else { UNHURRIED };
    let judged = judge(sandbox, &task, TRACES);
    let mut problems = Vec::new();
    let mut check = |holds: bool, what: &str, judgement: &Judgement| {
        if !holds {
            problems.push(format!("{} ({isolation:?}): {what}: {}", source.name, shown(judgement)));
        }
    };
    let [before, hostile, after] = judged.iter().map(|judged| &judged.judgements[0]).collect::<Vec<_>>()[..] else {
        return vec![format!("{}: {} traces", source.name, judged.len())];
    };
    check(expected.outcomes.contains(&outcome(hostile)), &format!("not {:?}", expected.outcomes), hostile);
    if expected.always {
        check(expected.outcomes.contains(&outcome(before)), "at first", before);
        check(expected.outcomes.contains(&outcome(after)), "at last", after);
    } else {
        check(outcome(before) == "pass", "before it", before);
        check(said(after) == said(before), &format!("after it, and not {}", shown(before)), after);
    }
    for judgement in [before, hostile, after] {
        check(judgement.elapsed < task.limits.time + PATIENCE, "too late", judgement);
        let text = match &judgement.conclusion {
            Conclusion::Verdict { reason, .. } => reason,
            Conclusion::Error(error) => &error.message,
        };
        let most = 64 * 1024 + 64;
        check(text.len() <= most, "too much text", judgement);
        check(judgement.stdout.len() <= most && judgement.stderr.len() <= most, "too much output", judgement);
    }
    for (judged, name) in judged.iter().zip(["before", "hostile", "after"]) {
        let honest = &judged.judgements[1];
        let count = 13 + name.len();
        let expected = format!("Pair(name='{name}', count={count}) [1, 2, 3]");
        let is_right =
            matches!(&honest.conclusion, Conclusion::Verdict { passed: true, reason } if *reason == expected);
        check(is_right && honest.stdout == format!("looked at {name}\n"), "an honest function beside it", honest);
    }
    problems
}

/// Returns all that may not depend on what ran before.
fn said(judgement: &Judgement) -> (&Conclusion, &str, &str) {
    (&judgement.conclusion, &judgement.stdout, &judgement.stderr)
}

fn shown(judgement: &Judgement) -> String {
    let text = format!("{} {:?} {:?}", outcome(judgement), judgement.elapsed, said(judgement));
    text.chars().take(400).collect()
}

#[test]
fn hostile_functions_end_with_their_kind_and_leave_nothing() {
    if !is_alone("hostile::hostile_functions_end_with_their_kind_and_leave_nothing") {
        return;
    }
    let sandbox = sandbox();
    let all = sources("hostile");
    assert!(all.len() >= 40);
    let memory = resident_memory();
    let start = Instant::now();
    let problems_in =
        |isolation| -> Vec<String> { all.iter().flat_map(|source| problems_of(sandbox, source, isolation)).collect() };
    let problems = std::thread::scope(|scope| {
        let strict = scope.spawn(|| problems_in(Isolation::Strict));
        let mut problems = problems_in(Isolation::Namespace);
        problems.extend(strict.join().unwrap());
        problems
    });
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));

    let most = Duration::from_secs(2) * u32::try_from(all.len()).unwrap();
    assert!(start.elapsed() < most, "{:?}", start.elapsed());
    if let (Some(before), Some(after)) = (memory, resident_memory()) {
        assert!(after.saturating_sub(before) < MOST_KEPT, "{} MB more", (after - before) >> 20);
    }
}
