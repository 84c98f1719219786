//! Tests of receiving traces.

use std::ops::ControlFlow;

use karat_core::stored::Change;
use karat_traces::{Span, TraceFormat, TraceParts};
use karat_workflows::receive_traces::{Event, RefusedRequest, Request, TraceReceiver, receive_traces};
use karat_workflows::{CancellationToken, ErrorKind};
use tokio::task::JoinSet;

use crate::project::TestProject;

fn span(trace: &str, id: &str) -> TraceParts {
    let mut parts = TraceParts::new(TraceFormat::Otlp, trace);
    parts.spans.insert(id.to_owned(), Span { id: id.to_owned(), ..Span::default() });
    parts
}

/// The names of the reported events.
#[derive(Default)]
struct ReportedEvents(Vec<&'static str>);

impl ReportedEvents {
    fn count(&self, name: &str) -> usize {
        self.0.iter().filter(|event| **event == name).count()
    }
}

impl karat_workflows::EventSink<Event> for ReportedEvents {
    fn emit(&mut self, event: Event) -> ControlFlow<()> {
        self.0.push(match event {
            Event::Ready => "ready",
            Event::Stored { change: Change::Added, .. } => "added",
            Event::Stored { .. } => "stored",
            Event::Refused(_) => "refused",
            Event::Progress(_) => "progress",
            Event::Stopping => "stopping",
        });
        ControlFlow::Continue(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stores_requests_in_batches_and_answers_each() {
    let project = TestProject::new();
    let (context, mut reported) = (project.context(), ReportedEvents::default());
    let serve = |receiver: TraceReceiver, _: CancellationToken| async move {
        let mut sending = JoinSet::new();
        for client in 0..200 {
            let receiver = receiver.clone();
            sending.spawn(async move {
                let parts = vec![span(&format!("t-{}", client % 10), &client.to_string()), span("", "no id")];
                let refused = receiver.store(parts).await.expect("stored");
                assert_eq!(refused.len(), 1, "only its own: {refused:?}");
            });
        }
        sending.join_all().await;
        receiver.refuse(&RefusedRequest { status: 400, rejected: 0, message: "nonsense".to_owned() });
        receiver.refuse(&RefusedRequest { status: 200, rejected: 3, message: "in part".to_owned() });
        "served"
    };
    let request = Request { feedback: false };
    let received = receive_traces(request, &context, &mut reported, CancellationToken::new(), serve);
    let (totals, served) = received.await.unwrap();
    assert_eq!(served, "served");
    assert_eq!((totals.traces, totals.added, totals.changed, totals.spans), (10, 10, 0, 200));
    assert_eq!((totals.refused_requests, totals.rejected), (1, 3));
    assert_eq!((reported.0[0], reported.count("added"), reported.count("refused")), ("ready", 10, 2));
    assert!(reported.count("progress") < 150, "200 requests in {} batches", reported.count("progress"));
}

#[tokio::test]
async fn stops_serving_when_cancelled() {
    let project = TestProject::new();
    let (context, mut reported, cancel) = (project.context(), ReportedEvents::default(), CancellationToken::new());
    let serve = |receiver: TraceReceiver, stop: CancellationToken| {
        cancel.cancel();
        async move {
            stop.cancelled().await;
            // A pending request is still stored.
            receiver.store(vec![span("t", "1")]).await
        }
    };
    let request = Request { feedback: false };
    let (totals, served) = receive_traces(request, &context, &mut reported, cancel.clone(), serve).await.unwrap();
    assert_eq!((served, totals.added), (Ok(Vec::new()), 1));
    assert_eq!(reported.0, ["ready", "stopping", "added", "progress"]);
    let request = Request { feedback: false };
    let never = |_: TraceReceiver, _: CancellationToken| std::future::pending::<()>();
    let cancelled = receive_traces(request, &context, &mut reported, cancel, never).await;
    assert!(cancelled.is_err_and(|error| error.kind == ErrorKind::Cancelled));
}
