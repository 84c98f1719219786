//! Eval files: cases and their expectations, tokens, and the tools that cases name.
//!
//! This crate reads eval files and reports their problems; it never judges an answer. It does not use files, the
//! network, the clock, the environment or an async runtime.

mod approval;
mod calls;
pub mod csv;
mod eval_entry;
mod expectation;
mod expected_text;
mod file;
mod id;
mod injection;
pub mod json_schema;
mod predicate;
mod read;
mod read_expectation;
mod read_predicate;
mod read_response;
mod read_rubric;
mod read_turns;
pub mod registry;
pub mod regression;
mod response;
mod rubric;
mod shape;
pub mod similarity;
mod simulated_user;
mod state;
mod table;
mod tier;
pub mod token;
mod turn;

pub use approval::Approval;
pub use calls::{CallsMatch, ExpectedCall, ExpectedCalls, ParamsMatch};
pub use eval_entry::EvalEntry;
pub use expectation::{CallSelector, Expectation, NO_TOOL, ParamAssertion, ParamCheck, TextMatch, ToolsCalledMatch};
pub use expected_text::{ExpectedText, TextKind};
pub use file::INPUT_POINTER;
pub use file::{Case, CaseLocation, Difficulty, EvalFile, EvalFileSchema, Input, Metadata};
pub use id::{next_ids, slug};
pub use injection::{Injection, safety_pointer};
pub use predicate::JsonPredicate;
pub use read::{InvalidEvalFile, Origin};
pub use response::{JsonFrom, SimilarResponse, SimilarTo};
pub use rubric::{Dimension, RubricCase, RubricFile, RubricFileSchema, SuiteFile};
pub use simulated_user::{Facts, SimulatedUser};
pub use state::{StatePredicate, UnchangedState};
pub use table::{TableFiles, TableRow, contains_row_token};
pub use tier::Tier;
pub use turn::{OnTurnFailure, Turn};
