//! Streams of traces are judged in order on any number of threads.

use std::io::{self, Read};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use karat_core::judgement::{Conclusion, ErrorKind};
use karat_sandbox::{Function, Input, Isolation, Position, StreamError, Task, Unit, read_lines, validate};

use crate::support::{Judged, judge, judge_each, outcome, sandbox, task};

/// Passes, fails or errors depending on the trace. The reason reveals any influence of earlier traces.
const MIXED: &str = r#"
SEEN = []


class Item:
    pass


def eval_mixed(trace):
    number = trace["number"]
    SEEN.append(bytearray(number * 10))
    print("number", number)
    if number % 7 == 3:
        raise ValueError(f"{number} {Item()}")
    if number % 11 == 5:
        return number
    order = {Item(): index for index in range(5)}
    places = [order[item] for item in set(order)]
    return number % 2 == 0, f"{number} {len(SEEN)} {places}"
"#;

fn mixed() -> Arc<Function> {
    Arc::new(validate(MIXED.as_bytes()).unwrap())
}

fn line(number: u64) -> Position {
    Position { unit: Unit::Line, number }
}

fn traces(count: usize) -> String {
    let lines: Vec<_> =
        (0..count).map(|number| format!("{{\"trace_id\": \"t{number}\", \"number\": {number}}}\n")).collect();
    lines.concat()
}

/// Returns its text and then blocks forever.
struct BlockingReader {
    text: io::Cursor<Vec<u8>>,
    never: Receiver<()>,
}

impl Read for BlockingReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.text.read(buffer)?;
        if count == 0 {
            let _ = self.never.recv();
        }
        Ok(count)
    }
}

#[test]
fn returns_results_while_the_next_read_blocks() {
    let sandbox = sandbox();
    let (sender, never) = channel();
    let reader = BlockingReader { text: io::Cursor::new(traces(3).into_bytes()), never };
    let mut judged = Vec::new();
    let receive = |row: Judged| {
        judged.push(row);
        if judged.len() == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let task = Task { jobs: 2, ..task(&[mixed()], Isolation::Fresh) };
    judge_each(sandbox, &task, read_lines(reader), receive).unwrap();
    assert_eq!(judged.iter().map(|judged| judged.key.number).collect::<Vec<_>>(), [1, 2, 3]);
    drop(sender);
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let sandbox = sandbox();
    let rows = |jobs, isolation| {
        let task = Task { jobs, ..task(&[mixed(), mixed()], isolation) };
        let row = |judged: Judged| {
            let results: Vec<_> = judged
                .judgements
                .into_iter()
                .map(|judgement| (judgement.conclusion, judgement.stdout, judgement.stderr))
                .collect();
            (judged.key.number, judged.trace_id, judged.trace_hash, results)
        };
        judge(sandbox, &task, traces(150)).into_iter().map(row).collect::<Vec<_>>()
    };
    let expected = rows(1, Isolation::Fresh);
    assert_eq!(expected.len(), 150);
    assert!(expected.iter().enumerate().all(|(index, row)| row.0 == index as u64 + 1));
    assert_eq!(expected, rows(8, Isolation::Fresh));
    assert_eq!(expected, rows(3, Isolation::Fresh));
}

#[test]
fn reports_invalid_lines_and_judges_the_others() {
    let sandbox = sandbox();
    let lines = "{\"trace_id\": \"a\", \"number\": 0}\n\n{\"trace_id\": \n[1]\n\"\\ud800\"\n{\"number\": 2}";
    let judged = judge(sandbox, &task(&[mixed()], Isolation::Fresh), lines);
    let outcomes: Vec<_> = judged.iter().map(|judged| (judged.key.number, outcome(&judged.judgements[0]))).collect();
    assert_eq!(outcomes[0], (1, "pass"));
    assert_eq!(outcomes[1], (3, "validation"));
    assert_eq!(*outcomes.last().unwrap(), (6, "pass"));
    let Conclusion::Error(error) = &judged[1].judgements[0].conclusion else { panic!("{:?}", judged[1]) };
    assert_eq!(error.kind, ErrorKind::Validation);
    assert!(judged[1].is_unreadable && !judged[0].is_unreadable);
    assert_eq!(judged[1].key.to_string(), "line 3");
}

#[test]
fn judges_the_traces_before_a_read_error() {
    let sandbox = sandbox();
    let batches = (1..=3).map(|number| match number {
        3 => Err(io::Error::other("read failed")),
        _ => Ok(vec![Input { key: line(number), text: Ok(traces(1).into_bytes()) }]),
    });
    let mut numbers = Vec::new();
    let listener = |judged: Judged| {
        numbers.push(judged.key.number);
        ControlFlow::Continue(())
    };
    let result = judge_each(sandbox, &task(&[mixed()], Isolation::Fresh), batches, listener);
    assert!(matches!(result, Err(StreamError::Source(_))));
    assert_eq!(numbers, [1, 2]);
}

#[test]
fn a_dropped_stream_stops() {
    let sandbox = sandbox();
    let endless = (1..).map(|number| Ok(vec![Input { key: line(number), text: Ok(traces(1).into_bytes()) }]));
    let mut count = 0;
    let listener = |_: Judged| {
        count += 1;
        if count == 5 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    judge_each(sandbox, &task(&[mixed()], Isolation::Fresh), endless, listener).unwrap();
    assert_eq!(count, 5);
}

#[test]
fn a_slow_trace_does_not_delay_those_before_it() {
    let sandbox = sandbox();
    let source = "def eval_x(trace):\n    while trace['n'] >= 5: pass\n    return True, ''\n";
    let function = Arc::new(karat_sandbox::validate(source.as_bytes()).expect("valid"));
    let mut task = task(&[function], Isolation::Fresh);
    task.jobs = 1;
    let lines = (0..20).map(|number| format!("{{\"n\": {number}}}")).collect::<Vec<_>>().join("\n");
    let started = std::time::Instant::now();
    let mut count = 0;
    let listener = |_: Judged| {
        count += 1;
        if count == 5 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    judge_each(sandbox, &task, read_lines(io::Cursor::new(lines)), listener).expect("judged");
    assert_eq!(count, 5);
    assert!(started.elapsed() < task.limits.time, "{:?}", started.elapsed());
}
