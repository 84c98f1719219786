//! Plans, schedules, times out and cancels, and linearises everything into run events.
//!
//! Owns concurrency: workers ask and judge, one dispatcher orders what they say. It must never print or write.

mod case;
mod dispatch;
mod plan;
mod reporters;
mod rubric;
mod sample;
mod sink;
mod stopwatch;
mod stubs;
mod worker;

pub use dispatch::run;
pub use plan::{Baseline, Plan, RubricPlan, Rubrics, SuitePlan};
pub use reporters::Reporters;
pub use sink::RunSink;
