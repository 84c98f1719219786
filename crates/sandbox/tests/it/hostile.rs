//! Hostile functions end with the expected outcome within their limits and do not affect the next trace.

use std::sync::Arc;
use std::time::{Duration, Instant};

use karat_core::judgement::{Conclusion, Judgement};
use karat_sandbox::{Isolation, Sandbox};

use crate::support::{Source, is_own_process, judge, outcome, resident_memory, sandbox, sources, task};

/// Each function is hostile only for the trace `hostile`, if possible.
const TRACES: &str = r#"{"trace_id": "before", "steps": []}
{"trace_id": "hostile", "steps": []}
{"trace_id": "after", "steps": []}
"#;

const WELL_BEHAVED: &str = r#"
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

/// Time limit of functions that run until they are stopped.
const SHORT_TIMEOUT: Duration = Duration::from_millis(500);

/// Time limit of other functions, which must not time out on a busy machine.
const LONG_TIMEOUT: Duration = Duration::from_mins(1);

/// Maximum delay of a timeout on a busy machine.
const MAX_TIMEOUT_DELAY: Duration = Duration::from_secs(2);

/// Maximum growth of the process: memory of instances kept for reuse, and other caches.
const MAX_MEMORY_GROWTH: usize = 320 << 20;

/// The expectations in a file's first lines.
struct Expected<'a> {
    outcomes: Vec<&'a str>,
    /// Whether the function is hostile for every trace, since it fails before it sees one.
    always: bool,
}

impl<'a> Expected<'a> {
    fn of(source: &'a Source) -> Self {
        let mut lines = source.text.lines();
        let outcomes = lines.next().and_then(|line| line.strip_prefix("# expect: ")).unwrap();
        Self { outcomes: outcomes.split(", ").collect(), always: lines.next() == Some("# always") }
    }
}

/// Returns the problems, one line each.
fn problems_of(sandbox: &Sandbox, source: &Source, isolation: Isolation) -> Vec<String> {
    let expected = Expected::of(source);
    let well_behaved =
        Source { name: "honest".to_owned(), path: "honest.py".into(), text: WELL_BEHAVED.to_owned() }.function();
    let mut task = task(&[source.function(), Arc::clone(&well_behaved)], isolation);
    task.limits.time = if expected.outcomes.contains(&"timeout") { SHORT_TIMEOUT } else { LONG_TIMEOUT };
    let judged = judge(sandbox, &task, TRACES);
    let mut problems = Vec::new();
    let mut check = |holds: bool, description: &str, judgement: &Judgement| {
        if !holds {
            problems.push(format!("{} ({isolation:?}): {description}: {}", source.name, describe(judgement)));
        }
    };
    let [before, hostile, after] = judged.iter().map(|judged| &judged.judgements[0]).collect::<Vec<_>>()[..] else {
        return vec![format!("{}: {} traces", source.name, judged.len())];
    };
    check(expected.outcomes.contains(&outcome(hostile)), &format!("expected one of {:?}", expected.outcomes), hostile);
    if expected.always {
        check(expected.outcomes.contains(&outcome(before)), "first trace", before);
        check(expected.outcomes.contains(&outcome(after)), "last trace", after);
    } else {
        check(outcome(before) == "pass", "trace before", before);
        // With shared isolation, a function can change its own Python.
        let is_same = result(after) == result(before) || isolation == Isolation::Shared;
        check(is_same, &format!("trace after, expected {}", describe(before)), after);
    }
    for judgement in [before, hostile, after] {
        check(judgement.elapsed < task.limits.time + MAX_TIMEOUT_DELAY, "too late", judgement);
        let text = match &judgement.conclusion {
            Conclusion::Verdict { reason, .. } | Conclusion::NotApplicable { reason } => reason,
            Conclusion::Error(error) => &error.message,
        };
        let max_bytes = 64 * 1024 + 64;
        check(text.len() <= max_bytes, "too much text", judgement);
        check(judgement.stdout.len() <= max_bytes && judgement.stderr.len() <= max_bytes, "too much output", judgement);
    }
    for (judged, name) in judged.iter().zip(["before", "hostile", "after"]) {
        let well_behaved = &judged.judgements[1];
        let count = 13 + name.len();
        let expected = format!("Pair(name='{name}', count={count}) [1, 2, 3]");
        let is_right =
            matches!(&well_behaved.conclusion, Conclusion::Verdict { passed: true, reason } if *reason == expected);
        check(
            is_right && well_behaved.stdout == format!("looked at {name}\n"),
            "well-behaved function on the same thread",
            well_behaved,
        );
    }
    problems
}

/// Returns the parts that must not depend on earlier runs.
fn result(judgement: &Judgement) -> (&Conclusion, &str, &str) {
    (&judgement.conclusion, &judgement.stdout, &judgement.stderr)
}

fn describe(judgement: &Judgement) -> String {
    let text = format!("{} {:?} {:?}", outcome(judgement), judgement.elapsed, result(judgement));
    text.chars().take(400).collect()
}

#[test]
fn hostile_functions_end_as_expected_and_leave_no_state() {
    if !is_own_process("hostile::hostile_functions_end_as_expected_and_leave_no_state") {
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
        let shared = scope.spawn(|| problems_in(Isolation::Shared));
        let mut problems = problems_in(Isolation::Fresh);
        problems.extend(shared.join().unwrap());
        problems
    });
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));

    let max_elapsed = Duration::from_secs(2) * u32::try_from(all.len()).unwrap();
    assert!(start.elapsed() < max_elapsed, "{:?}", start.elapsed());
    if let (Some(before), Some(after)) = (memory, resident_memory()) {
        assert!(after.saturating_sub(before) < MAX_MEMORY_GROWTH, "{} MB more", (after - before) >> 20);
    }
}
