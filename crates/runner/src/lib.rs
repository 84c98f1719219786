//! Runs the suites of a plan: schedules cases, applies timeouts and cancellation, and emits ordered events.
//!
//! Workers call agents and judge answers; one dispatcher orders their results. This crate never prints or writes files.

mod case;
mod conversation;
mod dialog;
mod dispatch;
mod exclusion;
mod judging;
mod plan;
mod reachability;
mod reporters;
mod rubric;
mod safety;
mod sample;
mod shared;
mod simulated_user;
mod sink;
mod stopwatch;
mod stubs;
mod surroundings;
mod timeout;
mod worker;

pub use dispatch::run;
pub use plan::{Baseline, Plan, RubricPlan, Rubrics, SuitePlan};
pub use reporters::Reporters;
pub use sink::RunSink;
