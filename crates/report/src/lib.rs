//! Renders runs and other results as text, Markdown, HTML, JSON and `JUnit`.
//!
//! This crate never changes results, and treats all text from models as hostile.

mod agreement;
mod case_list;
mod code_diff;
mod console;
mod coverage;
pub mod destination;
mod duration;
mod evals;
mod excerpt;
mod feedback;
pub mod forge;
pub mod github;
mod json;
mod json_escapes;
pub mod junit;
pub mod markdown;
mod matrix;
mod record;
mod review;
mod runs;
mod source_problem;
mod style;
mod terminal_text;
mod tools;
mod traces;
mod trials;
mod workflow_commands;

pub use agreement::{agreement_text, contradictions_text, refinement_text, version_comparison_text};
pub use case_list::case_list_text;
pub use code_diff::code_diff_text;
pub use console::{ConsoleReporter, ConsoleSettings, Output, Verbosity};
pub use coverage::{coverage_page, coverage_text};
pub use duration::duration_text;
pub use evals::{
    eval_details_text, eval_history_text, eval_list_text, eval_run_text, eval_test_text, evals_added_text,
    stored_eval_run_text,
};
pub use feedback::feedback_list_text;
pub use json::{JsonLinesReporter, JsonReporter};
pub use json_escapes::escape_json;
pub use matrix::{AgentFigures, Matrix, MatrixCell, MatrixRow, dollars};
pub use record::{CaseRecord, RunRecord, SuiteRecord, escape_invisible};
pub use review::{
    ReviewLine, ReviewPage, ReviewView, help_height, review_height, review_screen, review_summary, verdict_lines,
};
pub use runs::{kept_run_text, run_list_text};
pub use source_problem::SourceProblem;
pub use style::{Palette, Symbols};
pub use terminal_text::{mask_control_chars, pad, printable, truncate, truncate_middle, width, wrap};
pub use tools::{changes_text, counted, tool_list_text, tools_diff_text};
pub use traces::{Length, conversation_text, import_text, trace_list_text, trace_text};
pub use workflow_commands::break_commands;
