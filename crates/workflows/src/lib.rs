//! The use cases of karat, one module each: each takes a typed request and a context, emits typed events and returns a
//! typed result or error.
//!
//! The command line, the server and workers share this implementation. It does not depend on an argument parser, a
//! terminal or an HTTP framework, and never prints.

pub mod adopt_eval;
pub mod agent;
pub mod agreement;
pub mod baseline_missing;
mod batch_writer;
mod cancel;
mod case_problems;
pub mod check;
pub mod check_functions;
pub mod compare_runs;
mod confusion;
pub mod context;
pub mod contradictions;
pub mod coverage;
pub mod doctor;
mod error;
mod eval_file_ids;
pub mod evals;
mod event;
pub mod feedback;
pub mod forge;
pub mod functions;
mod hint;
pub mod import_traces;
mod ingest;
pub mod init;
pub mod judge_stored;
pub mod judge_stream;
pub mod merge_runs;
mod notice;
pub mod overlaps;
pub mod receive_traces;
pub mod refine;
pub mod regress;
pub mod review;
mod run_name;
pub mod run_suites;
pub mod runs;
pub mod schema;
pub mod security_cases;
pub mod settings;
pub mod show_run;
mod state;
pub mod stored_eval;
pub mod telemetry;
pub mod test_evals;
pub mod tools;
pub mod trace_filter;
pub mod trace_id;
pub mod traces;
pub mod watch;

pub use batch_writer::BatchWriter;
pub use context::Context;
pub use error::{Error, ErrorKind};
pub use event::EventSink;
pub use hint::Hint;
pub use notice::Notices;
pub use run_name::relative_run_id;
pub use tokio_util::sync::CancellationToken;
