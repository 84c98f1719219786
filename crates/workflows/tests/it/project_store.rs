//! The store of a test project.

use jiff::Timestamp;
use karat_core::document::TraceDocument;
use karat_core::judgement::EvalOptions;
use karat_core::port::TraceStore;
use karat_core::rating::Rating;
use karat_core::stored::{ExpectedState, NewTrace, TraceHead};
use karat_evals::feedback::Feedback;
use karat_evals::port::{EvalStore, FeedbackStore};
use karat_evals::version::{AddedVersion, NewVersion, StoredExecution};
use karat_store::Store;
use karat_workflows::Context;
use serde_json::json;

/// Fills the store of a test project.
pub(crate) struct ProjectStore(Store);

impl ProjectStore {
    pub(crate) async fn open(context: &Context<'_>) -> Self {
        Self(context.open_store().await.unwrap())
    }

    pub(crate) async fn close(self) {
        self.0.close().await;
    }

    pub(crate) async fn add_trace(&self, id: &str, message: &str) {
        let document = json!({
            "trace_id": id,
            "started_at": "2026-01-01T09:00:00Z",
            "steps": [{ "input": { "message": message }, "output": { "response": "Done." }, "tool_calls": [] }],
        });
        self.add_text(id, &document.to_string()).await;
    }

    /// Adds a trace with any text as its document.
    pub(crate) async fn add_text(&self, id: &str, text: &str) {
        let head = match TraceDocument::parse(text) {
            Ok(document) => TraceHead::from_document(id, &document),
            Err(_) => TraceHead { trace_id: id.to_owned(), hash: id.to_owned(), ..TraceHead::default() },
        };
        let trace = NewTrace {
            head,
            source: "karat".to_owned(),
            raw: None,
            document: text.to_owned(),
            expected: ExpectedState::Any,
        };
        self.0.put_traces(&[trace], Timestamp::UNIX_EPOCH).await.unwrap();
    }

    /// Adds a version of an eval and returns its number.
    pub(crate) async fn add_version(&self, eval_id: &str, code: &str) -> u64 {
        let version = NewVersion {
            eval_id: eval_id.to_owned(),
            code: code.to_owned(),
            options: EvalOptions::default(),
            code_hash: code.to_owned(),
            guest_hash: "guest".to_owned(),
            note: None,
            created_at: Timestamp::UNIX_EPOCH,
            after: None,
        };
        match self.0.add_version(&version).await.unwrap() {
            AddedVersion::Added(number) => number,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn add_verdict(&self, eval_id: &str, version: u64, trace_id: &str, passed: bool) {
        let trace = self.0.trace(trace_id).await.unwrap().expect("trace exists");
        let execution = StoredExecution {
            id: format!("{eval_id}/{version}/{trace_id}"),
            eval_id: eval_id.to_owned(),
            eval_version: version,
            trace_id: trace_id.to_owned(),
            trace_hash: trace.head.hash,
            result: Some(passed),
            reason: Some("because".to_owned()),
            execution_time_ms: 1,
            error: None,
            error_kind: None,
            stdout: String::new(),
            stderr: String::new(),
            code_hash: "code".to_owned(),
            guest_hash: None,
            executed_at: Timestamp::UNIX_EPOCH,
            applicable: true,
            score: None,
        };
        self.0.put_executions(&[execution]).await.unwrap();
    }

    pub(crate) async fn add_rating(&self, author: &str, trace_id: &str, rating: Rating) {
        let feedback = Feedback {
            trace_id: trace_id.to_owned(),
            author: author.to_owned(),
            rating: Some(rating),
            note: None,
            source: "cli".to_owned(),
            created_at: Timestamp::UNIX_EPOCH,
        };
        self.0.add_feedback(&[feedback]).await.unwrap();
    }
}
