//! Many traces, some of them hostile, through one process.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;
use std::ops::ControlFlow;

use karat_core::judgement::Conclusion;
use karat_sandbox::{Isolation, Task, read_lines};

use crate::support::{
    Judged, Source, is_alone, judge_each, outcome, resident_memory, sandbox, sources, task, with_time,
};

const TRACES: usize = 20_000;

/// One trace of so many is hostile.
const HOSTILE: usize = 20;

/// One hostile trace of so many takes all the time that it may, which adds up.
const SLOW: usize = 40;

const QUICK: [&str; 8] = ["large", "raise", "exit", "recursion", "growing", "nothing", "flood", "wrong"];

/// How much more memory may be in use than after the first traces: each thread has Pythons of up to 64 MB.
const MOST_MORE: usize = 320 << 20;

/// Returns what a trace asks the functions to do.
fn kind(number: usize) -> &'static str {
    let (hostile, rest) = (number / HOSTILE, number % HOSTILE);
    match (rest == 7, hostile % SLOW, hostile / SLOW % 2) {
        (false, ..) => "fine",
        (true, 0, 0) => "loop",
        (true, 0, _) => "regex",
        (true, ..) => QUICK[hostile % QUICK.len()],
    }
}

/// Returns what must come of it with each of the two functions.
fn expected(kind: &str) -> [&'static str; 2] {
    match kind {
        "loop" | "regex" => ["timeout"; 2],
        "large" | "growing" => ["memory"; 2],
        "raise" | "recursion" => ["exception"; 2],
        // One raises, the other calls for the end of the process.
        "exit" => ["exception", "internal"],
        "nothing" => ["return"; 2],
        // One says so, the other has changed what that means: in its own Python, for itself.
        "wrong" => ["fail", "pass"],
        _ => ["pass"; 2],
    }
}

/// Holds what came of one trace against what must.
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
fn twenty_thousand_traces_are_judged_exactly() {
    if !is_alone("soak::twenty_thousand_traces_are_judged_exactly") {
        return;
    }
    let sandbox = sandbox();
    let mut lines = String::new();
    for number in 0..TRACES {
        writeln!(lines, r#"{{"trace_id": "t{number}", "kind": "{}", "steps": []}}"#, kind(number)).unwrap();
    }
    let functions: Vec<_> = sources("soak").iter().map(Source::function).collect();
    // One keeps its Python between traces, the other does not.
    assert_eq!(functions.iter().map(|function| function.leaves_no_trace).collect::<Vec<_>>(), [true, false]);
    let task = Task { jobs: 2, ..with_time(task(&functions, Isolation::Namespace), 1500) };

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
            assert!(more < MOST_MORE, "{} MB more after {} traces", more >> 20, judged.key.number);
        }
        ControlFlow::Continue(())
    };
    judge_each(sandbox, &task, read_lines(io::Cursor::new(lines.into_bytes())), listener).unwrap();

    let mut must = [BTreeMap::new(), BTreeMap::new()];
    for number in 0..TRACES {
        for (must, outcome) in must.iter_mut().zip(expected(kind(number))) {
            *must.entry(outcome).or_insert(0) += 1;
        }
    }
    assert_eq!(counts, must);
    let hostile = (0..TRACES).filter(|number| kind(*number) != "fine").count();
    assert_eq!((hostile, counts[0]["timeout"]), (TRACES / 20, TRACES / HOSTILE / SLOW));
}
