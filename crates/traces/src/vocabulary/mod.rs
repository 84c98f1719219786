//! The names under which instrumentations write what a model, a tool or an agent did.
//!
//! OpenTelemetry's `gen_ai` names (current and older, on spans, events and log records), Traceloop's, `OpenInference`'s, the
//! Vercel AI SDK's, pydantic-ai's, `MLflow`'s, Google ADK's, Langfuse's and `LangSmith`'s. One span may carry several of them.

mod annotation;
mod content;
mod event;
mod failure;
mod indexed;
mod role;
mod span;
mod tool;

pub(crate) use annotation::annotations;
pub(crate) use content::{Content, content, conversation};
pub(crate) use failure::{failure, failure_of_result};
pub(crate) use role::role;
pub(crate) use span::{agent_name, model, response_id, session, stop_reason, tags, trace_name, usage, user};
pub(crate) use tool::{Execution, execution};
