//! Judges many traces, some of them hostile, in one process.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;
use std::ops::ControlFlow;

use karat_core::judgement::Conclusion;
use karat_sandbox::{Isolation, Task, read_lines};

use crate::support::{
    Judged, Source, is_own_process, judge_each, outcome, resident_memory, sandbox, sources, task, with_time,
};

const TRACES: usize = 20_000;

/// One in this many traces is hostile.
const HOSTILE: usize = 20;

/// One in this many hostile traces reaches the time limit; more would take too long.
const SLOW: usize = 40;

const QUICK: [&str; 8] = ["large", "raise", "exit", "recursion", "growing", "nothing", "flood", "wrong"];

/// Maximum memory growth after the first traces: each thread has Python instances of up to 64 MB.
const MAX_MEMORY_GROWTH: usize = 320 << 20;

/// Returns the behaviour of the functions for a trace.
fn kind(number: usize) -> &'static str {
    let (hostile, rest) = (number / HOSTILE, number % HOSTILE);
    match (rest == 7, hostile % SLOW, hostile / SLOW % 2) {
        (false, ..) => "fine",
        (true, 0, 0) => "loop",
        (true, 0, _) => "regex",
        (true, ..) => QUICK[hostile % QUICK.len()],
    }
}

/// Returns the expected outcome of each of the two functions.
fn expected(kind: &str) -> [&'static str; 2] {
    match kind {
        "loop" | "regex" => ["timeout"; 2],
        "large" | "growing" => ["memory"; 2],
        "raise" | "recursion" => ["exception"; 2],
        // One raises, the other exits the process.
        "exit" => ["exception", "internal"],
        "nothing" => ["return"; 2],
        // One returns False, the other has tampered with its own Python so that False counts as passed.
        "wrong" => ["fail", "pass"],
        _ => ["pass"; 2],
    }
}

/// Compares the result of a trace with the expected one.
fn check(judged: &Judged) {
    let number = usize::try_from(judged.key.number).unwrap() - 1;
    let kind = kind(number);
    let id = format!("t{number}");
    assert_eq!(judged.trace_id.as_ref(), Some(&id));
    for (judgement, expected) in judged.judgements.iter().zip(expected(kind)) {
        assert_eq!(outcome(judgement), expected, "{id} {kind}: {:?}", judgement.conclusion);
        if kind == "fine" {
            let reason = format!("{id} 1 2");
            assert_eq!(judgement.conclusion, Conclusion::Verdict { passed: true, reason });
            assert_eq!(judgement.stdout, "");
        }
    }
}

#[test]
#[ignore = "slow"]
fn judges_twenty_thousand_traces_correctly() {
    if !is_own_process("soak::judges_twenty_thousand_traces_correctly") {
        return;
    }
    let sandbox = sandbox();
    let mut lines = String::new();
    for number in 0..TRACES {
        writeln!(lines, r#"{{"trace_id": "t{number}", "kind": "{}", "steps": []}}"#, kind(number)).unwrap();
    }
    let functions: Vec<_> = sources("soak").iter().map(Source::function).collect();
    let task = Task { jobs: 2, ..with_time(task(&functions, Isolation::Fresh), 1500) };

    let mut next = 1;
    let mut counts = [BTreeMap::new(), BTreeMap::new()];
    let mut memory = None;
    let listener = |judged: Judged| {
        assert_eq!(judged.key.number, next);
        next += 1;
        check(&judged);
        for (counts, judgement) in counts.iter_mut().zip(&judged.judgements) {
            *counts.entry(outcome(judgement)).or_insert(0_usize) += 1;
        }
        if judged.key.number == 2000 {
            memory = resident_memory();
        } else if let Some(before) = memory
            && judged.key.number.is_multiple_of(1000)
        {
            let more = resident_memory().unwrap_or_default().saturating_sub(before);
            assert!(more < MAX_MEMORY_GROWTH, "{} MB more after {} traces", more >> 20, judged.key.number);
        }
        ControlFlow::Continue(())
    };
    judge_each(sandbox, &task, read_lines(io::Cursor::new(lines.into_bytes())), listener).unwrap();

    let mut expected_counts = [BTreeMap::new(), BTreeMap::new()];
    for number in 0..TRACES {
        for (counts, outcome) in expected_counts.iter_mut().zip(expected(kind(number))) {
            *counts.entry(outcome).or_insert(0) += 1;
        }
    }
    assert_eq!(counts, expected_counts);
    let hostile = (0..TRACES).filter(|number| kind(*number) != "fine").count();
    assert_eq!((hostile, counts[0]["timeout"]), (TRACES / 20, TRACES / HOSTILE / SLOW));
}
