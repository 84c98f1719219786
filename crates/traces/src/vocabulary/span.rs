//! Attributes of a span and its trace: model, usage, agent, session, user.

use karat_core::document::StepUsage;
use serde_json::{Map, Value};

use crate::parts::Span;
use karat_chat::lenient::{first, first_count, first_number, first_text, unpack};

/// Returns the model that responded, else the one that was requested.
pub(crate) fn model(attributes: &Map<String, Value>) -> Option<&str> {
    first_text(
        attributes,
        &[
            "gen_ai.response.model",
            "ai.response.model",
            "gen_ai.request.model",
            "llm.model_name",
            "ai.model.id",
            "llm.response.model",
            "llm.request.model",
            "langfuse.observation.model.name",
            "model_name",
            "langsmith.metadata.ls_model_name",
            "mlflow.llm.model",
        ],
    )
    // MLflow writes attributes as JSON strings.
    .map(|model| model.trim_matches('"'))
}

/// Returns the usage of a span. The caller must ignore totals of a whole agent run.
pub(crate) fn usage(attributes: &Map<String, Value>) -> StepUsage {
    if let Some(usage) = attributes.get("mlflow.chat.tokenUsage").map(unpack)
        && let Value::Object(usage) = usage.as_ref()
    {
        return StepUsage {
            input_tokens: first_count(usage, &["input_tokens"]),
            output_tokens: first_count(usage, &["output_tokens"]),
            cached_input_tokens: first_count(usage, &["cache_read_input_tokens"]),
            cost_usd: None,
        };
    }
    StepUsage {
        input_tokens: first_count(
            attributes,
            &[
                "gen_ai.usage.input_tokens",
                "gen_ai.usage.prompt_tokens",
                "llm.token_count.prompt",
                "ai.usage.inputTokens",
                "ai.usage.promptTokens",
                "llm.usage.prompt_tokens",
            ],
        ),
        output_tokens: first_count(
            attributes,
            &[
                "gen_ai.usage.output_tokens",
                "gen_ai.usage.completion_tokens",
                "llm.token_count.completion",
                "ai.usage.outputTokens",
                "ai.usage.completionTokens",
                "llm.usage.completion_tokens",
            ],
        ),
        cached_input_tokens: first_count(
            attributes,
            &[
                "gen_ai.usage.cache_read.input_tokens",
                "gen_ai.usage.cache_read_input_tokens",
                "llm.token_count.prompt_details.cache_read",
                "ai.usage.cachedInputTokens",
                "gen_ai.usage.details.cache_read_tokens",
                "gen_ai.usage.input_tokens.cached",
            ],
        ),
        cost_usd: first_number(
            attributes,
            &["operation.cost", "gen_ai.usage.cost", "gen_ai.usage.total_cost", "llm.cost.total"],
        ),
    }
}

pub(crate) fn response_id(attributes: &Map<String, Value>) -> Option<&str> {
    first_text(attributes, &["gen_ai.response.id", "ai.response.id", "llm.response.id"])
}

/// Returns why the model stopped: the first reason if there are several choices.
pub(crate) fn stop_reason(attributes: &Map<String, Value>) -> Option<String> {
    if let Some(reasons) = attributes.get("gen_ai.response.finish_reasons") {
        match unpack(reasons).as_ref() {
            Value::Array(reasons) => return reasons.iter().find_map(Value::as_str).map(str::to_owned),
            Value::String(reason) if !reason.is_empty() => return Some(reason.clone()),
            _ => {}
        }
    }
    first_text(attributes, &["ai.response.finishReason", "gen_ai.response.finish_reason", "llm.finish_reason"])
        .map(str::to_owned)
}

pub(crate) fn agent_name(span: &Span) -> Option<&str> {
    first_text(&span.attributes, &["gen_ai.agent.name", "agent.name", "agent_name", "ai.telemetry.functionId"])
}

pub(crate) fn session(attributes: &Map<String, Value>) -> Option<&str> {
    first_text(
        attributes,
        &[
            "session.id",
            "langfuse.session.id",
            "gen_ai.conversation.id",
            "gcp.vertex.agent.session_id",
            "traceloop.association.properties.session_id",
            "traceloop.association.properties.thread_id",
            "ai.telemetry.metadata.sessionId",
            "langsmith.trace.session_id",
            "langsmith.metadata.session_id",
            "langsmith.metadata.thread_id",
            "mlflow.trace.session",
        ],
    )
}

pub(crate) fn user(attributes: &Map<String, Value>) -> Option<&str> {
    first_text(
        attributes,
        &[
            "user.id",
            "enduser.id",
            "langfuse.user.id",
            "traceloop.association.properties.user_id",
            "ai.telemetry.metadata.userId",
            "mlflow.trace.user",
        ],
    )
}

pub(crate) fn trace_name(attributes: &Map<String, Value>) -> Option<&str> {
    first_text(attributes, &["langfuse.trace.name"])
}

pub(crate) fn tags(attributes: &Map<String, Value>) -> Vec<String> {
    let Some(tags) = first(attributes, &["tag.tags", "langfuse.trace.tags", "ai.telemetry.metadata.tags"]) else {
        return Vec::new();
    };
    match unpack(tags).as_ref() {
        Value::Array(items) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}
