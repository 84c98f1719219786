//! Renders runs and other results as text, Markdown, HTML, JSON and `JUnit`.
//!
//! This crate never changes results, and treats all text from models as hostile.

mod agent;
mod agreement;
mod call_alignment;
mod call_text;
mod case_list;
mod check;
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
mod init;
mod json;
mod json_escapes;
pub mod junit;
pub mod markdown;
mod matrix;
mod message;
mod overlaps;
mod record;
mod regress;
mod reports;
mod rerun;
mod review;
mod runs;
mod security;
mod simulated_user;
mod source_problem;
mod style;
mod table;
mod terminal_text;
mod tools;
mod traces;
mod transcript;
mod trials;
mod workflow_commands;

pub use agent::{agent_trial_text, detection_text, preset_config_text, preset_list_text};
pub use agreement::{
    adopted_notes, agreement_notes, agreement_text, contradiction_notes, contradictions_text, refinement_text,
    resolution_note, resolution_text, suggestion_note, unchanged_file_note, version_comparison_text,
};
pub use case_list::case_list_text;
pub use check::{check_text, checked_file_text, checked_functions_text, rules_text};
pub use code_diff::code_diff_text;
pub use console::{ConsoleReporter, ConsoleSettings, Output, Verbosity};
pub use coverage::{coverage_page, coverage_text};
pub use duration::duration_text;
pub use evals::{
    ArrowSink, ExecutionRows, RowLayout, RowSink, adopted_text, eval_details_text, eval_history_text, eval_list_text,
    eval_run_text, eval_test_text, evals_added_text, guarantee_text, guarantees_text, guest_text, limits_text,
    stored_eval_run_text,
};
pub use feedback::{feedback_change_text, feedback_csv, feedback_import_text, feedback_list_notes, feedback_list_text};
pub use init::{EXAMPLE_MESSAGE, init_help, init_summary, security_cases_summary};
pub use json::{JsonLinesReporter, JsonReporter};
pub use json_escapes::escape_json;
pub use matrix::matrix_of;
pub use message::{quoted_lines, wrap_message};
pub use overlaps::{overlap_edit_text, overlap_list_text, suggestions_text};
pub use record::{CaseRecord, RunRecord, SuiteRecord};
pub use regress::{archived_text, sealed_text};
pub use reports::{Report, not_stored_warnings, parse_report};
pub use rerun::{FailedIds, rerun_command, with_run_ids};
pub use review::{
    ReviewLine, ReviewPage, ReviewView, help_height, review_height, review_lines, review_message, review_screen,
    review_summary,
};
pub use runs::{run_comparison_text, run_list_text, saved_run_text};
pub use source_problem::SourceProblem;
pub use style::{Palette, Symbols};
pub use terminal_text::{printable, truncate, width, wrap};
pub use tools::{changes_text, counted, tool_list_text, tools_diff_text};
pub use traces::{Length, import_text, receive_counts, receive_summary, trace_list_text, trace_text};
pub use workflow_commands::break_commands;
