use std::io;
use std::ops::ControlFlow;
use std::sync::mpsc;
use std::time::Duration;

use karat_core::judgement::Limits;
use karat_sandbox::{Input, Isolation, Position, Unit};
use karat_workflows::CancellationToken;
use karat_workflows::context::sandbox::SandboxOptions;
use karat_workflows::judge_stream::{
    Evaluators, FilesEvent, FilesRequest, FilterEvent, FilterRequest, StreamEnd, filter_traces, judge_files,
};

use crate::project::TestProject;

/// Enough to hit a lost wakeup of the consumer.
const TRACES: u64 = 300;

fn project() -> TestProject {
    TestProject::new().file("f.py", "def eval_short(trace):\n    return len(trace) < 3, 'long'\n")
}

fn evaluators() -> Evaluators {
    let options = SandboxOptions { limits: Limits::default(), isolation: Isolation::default(), jobs: 2 };
    Evaluators { functions: vec!["f.py".to_owned()], options }
}

/// Sends each trace only after the verdict on the previous one was flushed, like an interactive pipe.
#[tokio::test(flavor = "multi_thread")]
async fn flushes_every_verdict_before_waiting_for_more() {
    let (shown, seen) = mpsc::channel::<()>();
    let traces = (0..TRACES).map(move |number| {
        if number > 0 && seen.recv_timeout(Duration::from_secs(30)).is_err() {
            return Err(io::Error::other(format!("the verdict on trace {number} was not shown")));
        }
        Ok(vec![Input { key: Position { unit: Unit::Line, number: number + 1 }, text: Ok(b"{}".to_vec()) }])
    });
    let project = project();
    let (mut judged, mut buffered) = (0, 0);
    let mut events = |event| {
        match event {
            FilterEvent::Judged(_) => {
                judged += 1;
                buffered += 1;
            }
            FilterEvent::Idle => {
                (0..std::mem::take(&mut buffered)).for_each(|_| shown.send(()).unwrap_or_default());
            }
        }
        ControlFlow::Continue(())
    };
    let request = FilterRequest { evaluators: evaluators(), traces };
    let ended = filter_traces(request, &project.context(), &mut events, &CancellationToken::new()).await;
    assert_eq!(ended.unwrap(), StreamEnd::Finished);
    assert_eq!((judged, buffered), (TRACES, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn judges_files_in_order_and_counts() {
    let lines = "{\"trace_id\": \"a\", \"steps\": []}\n{\"trace_id\": \"b\", \"steps\": [], \"n\": 1}\nnonsense\n";
    let project = project().file("t.jsonl", lines);
    let request =
        FilesRequest { evaluators: evaluators(), traces: vec!["t.jsonl".into()], stdin: Box::new(io::empty()) };
    let mut rows = Vec::new();
    let mut events = |event| {
        if let FilesEvent::Judged(executions) = event {
            rows.extend(executions.into_iter().map(|row| (row.trace_id, row.result)));
        }
        ControlFlow::Continue(())
    };
    let outcome = judge_files(request, &project.context(), &mut events, &CancellationToken::new()).await.unwrap();
    assert_eq!(rows, [(Some("a".to_owned()), Some(true)), (Some("b".to_owned()), Some(false)), (None, None)]);
    assert_eq!(outcome.tally.counts(), (1, 1, 1));
    assert!(outcome.error.is_none());
}
