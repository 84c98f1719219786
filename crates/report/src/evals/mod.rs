//! Results of eval functions, as text.

mod adopted;
mod batch;
mod doctor;
mod rows;
mod run;
mod stored;
mod stored_run;
mod test;

pub use adopted::adopted_text;
pub use batch::{ArrowSink, RowSink};
pub use doctor::{guarantee_text, guarantees_text, guest_text, limits_text};
pub use rows::{ExecutionRows, RowLayout};
pub use run::eval_run_text;
pub use stored::{eval_details_text, eval_history_text, eval_list_text, evals_added_text};
pub use stored_run::stored_eval_run_text;
pub use test::eval_test_text;
