//! Writes test data directly to the store of a project.

use jiff::Timestamp;
use karat_core::document::TraceDocument;
use karat_core::judgement::{ErrorKind, EvalOptions};
use karat_core::port::TraceStore;
use karat_core::rating::Rating;
use karat_core::stored::{ExpectedState, NewTrace, TraceHead};
use karat_evals::feedback::Feedback;
use karat_evals::port::{EvalStore, FeedbackStore};
use karat_evals::version::{AddedVersion, NewVersion, StoredExecution};
use karat_store::{Location, Store};
use karat_testkit::project::TempProject;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// The open store of a project.
pub(crate) struct ProjectStore {
    runtime: Runtime,
    store: Store,
}

/// Whether the trace passed; `None` if the eval errored.
pub(crate) type Verdict = Option<bool>;

impl ProjectStore {
    pub(crate) fn open(project: &TempProject) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let location = Location::File(project.path().join(".karat/karat.db"));
        let store = runtime.block_on(Store::open(&location)).unwrap();
        Self { runtime, store }
    }

    /// Adds a trace that started on this day.
    pub(crate) fn add_trace(&self, id: &str, message: &str, day: &str) {
        self.add_document(&json!({
            "trace_id": id,
            "started_at": format!("{day}T09:00:00Z"),
            "steps": [{ "input": { "message": message }, "output": { "response": "Done." }, "tool_calls": [], "error": null }],
        }));
    }

    /// Adds a trace.
    pub(crate) fn add_document(&self, document: &Value) {
        let id = document["trace_id"].as_str().expect("a trace id");
        self.add_text(id, &document.to_string());
    }

    /// Adds a trace with any text as its document.
    pub(crate) fn add_text(&self, id: &str, text: &str) {
        self.runtime.block_on(self.store.put_traces(&[new_trace(id, "karat", text)], at(0))).unwrap();
    }

    /// Adds a trace of a test run.
    pub(crate) fn add_run_trace(&self, id: &str, message: &str) {
        let text = json!({"trace_id": id, "steps": [{"input": {"message": message}, "output": {"response": "Done."}}]});
        let trace = new_trace(id, "run", &text.to_string());
        self.runtime.block_on(self.store.put_traces(&[trace], at(0))).unwrap();
    }

    /// Adds a version of an eval and returns its number.
    pub(crate) fn add_version(&self, eval_id: &str, code: &str) -> u64 {
        let version = NewVersion {
            eval_id: eval_id.to_owned(),
            code: code.to_owned(),
            options: EvalOptions::default(),
            code_hash: karat_json::hash::short_hash(code.as_bytes()),
            guest_hash: "guest".to_owned(),
            note: None,
            created_at: at(0),
            after: None,
        };
        match self.runtime.block_on(self.store.add_version(&version)).unwrap() {
            AddedVersion::Added(number) | AddedVersion::Unchanged(number) => number,
            AddedVersion::Conflict(newest) => panic!("unexpected conflict with version {newest:?}"),
        }
    }

    pub(crate) fn add_verdict(&self, eval_id: &str, version: u64, trace_id: &str, verdict: Verdict, reason: &str) {
        let trace = self.runtime.block_on(self.store.trace(trace_id)).unwrap().expect("the trace is stored");
        let execution = StoredExecution {
            id: format!("{eval_id}/{version}/{trace_id}"),
            eval_id: eval_id.to_owned(),
            eval_version: version,
            trace_id: trace_id.to_owned(),
            trace_hash: trace.head.hash,
            result: verdict,
            reason: verdict.map(|_| reason.to_owned()),
            execution_time_ms: 1,
            error: verdict.is_none().then(|| reason.to_owned()),
            error_kind: verdict.is_none().then_some(ErrorKind::Exception),
            stdout: String::new(),
            stderr: String::new(),
            code_hash: "code".to_owned(),
            guest_hash: None,
            executed_at: at(60),
            applicable: true,
            score: None,
        };
        self.runtime.block_on(self.store.put_executions(&[execution])).unwrap();
    }

    pub(crate) fn add_feedback(&self, author: &str, trace_id: &str, rating: Rating, note: Option<&str>) {
        let feedback = Feedback {
            trace_id: trace_id.to_owned(),
            author: author.to_owned(),
            rating: Some(rating),
            note: note.map(str::to_owned),
            source: "cli".to_owned(),
            created_at: at(30),
        };
        self.runtime.block_on(self.store.add_feedback(&[feedback])).unwrap();
    }
}

/// Returns a trace with any text as its document.
pub(crate) fn new_trace(id: &str, source: &str, text: &str) -> NewTrace {
    let head = match TraceDocument::parse(text) {
        Ok(document) => TraceHead::from_document(id, &document),
        Err(_) => TraceHead { trace_id: id.to_owned(), hash: id.to_owned(), ..TraceHead::default() },
    };
    NewTrace { head, source: source.to_owned(), document: text.to_owned(), raw: None, expected: ExpectedState::Any }
}

/// Returns a fixed time plus some seconds.
fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_763_294_400 + seconds).unwrap()
}
