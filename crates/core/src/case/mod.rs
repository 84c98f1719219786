//! Eval files: cases and their expectations.

mod approval;
mod calls;
mod eval_entry;
mod expectation;
mod expected_text;
mod file;
mod id;
mod predicate;
mod read;
mod read_expectation;
mod read_predicate;
mod read_response;
mod read_rubric;
mod read_turns;
mod response;
mod rubric;
mod shape;
mod table;
mod tier;
mod turn;

pub use approval::Approval;
pub use calls::{CallsMatch, ExpectedCall, ExpectedCalls, ParamsMatch};
pub use eval_entry::EvalEntry;
pub use expectation::{CallSelector, Expectation, NO_TOOL, ParamAssertion, ParamCheck, TextMatch, ToolsCalledMatch};
pub(crate) use expected_text::{ExpectedText, TextKind};
pub(crate) use file::INPUT_POINTER;
pub use file::{Case, CaseLocation, Difficulty, EvalFile, EvalFileSchema, Input, Metadata};
pub use id::{next_ids, slug};
pub use predicate::JsonPredicate;
pub use read::{InvalidEvalFile, Origin};
pub use response::{JsonFrom, SimilarResponse, SimilarTo};
pub use rubric::{Dimension, RubricCase, RubricFile, RubricFileSchema, SuiteFile};
pub use table::{TableFiles, TableRow, contains_row_token};
pub use tier::Tier;
pub use turn::{OnTurnFailure, Turn};
