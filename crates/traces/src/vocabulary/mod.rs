//! The attribute names that instrumentations use for models, tools and agents.
//!
//! Covers the OpenTelemetry `gen_ai` conventions (current and older, on spans, events and log records), Traceloop,
//! `OpenInference`, the Vercel AI SDK, pydantic-ai, `MLflow`, Google ADK, Langfuse and `LangSmith`. Spans may mix them.

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
pub(crate) use failure::{failure, result_failure};
pub(crate) use role::role;
pub(crate) use span::{agent_name, model, response_id, session, stop_reason, tags, trace_name, usage, user};
pub(crate) use tool::{Execution, execution, tool_message};
