//! The role of a span.

use serde_json::{Map, Value};

use crate::parts::{Role, Span};
use karat_chat::lenient::{first_text, is_blank, parse_nested};

/// Returns the role of a span: the one that its source assigns, else the one in its attributes, else the one that its
/// content suggests.
pub(crate) fn role(span: &Span) -> Role {
    match span.role {
        Some(role @ (Role::Model | Role::Tool | Role::Agent)) => role,
        Some(Role::Other) => explicit_role(span).unwrap_or(Role::Other),
        None => explicit_role(span).or_else(|| inferred_role(span)).unwrap_or(Role::Other),
    }
}

/// Returns the role that the attributes name.
fn explicit_role(span: &Span) -> Option<Role> {
    let attributes = &span.attributes;
    let text = |name: &str| attributes.get(name).and_then(Value::as_str);
    if let Some(id) = text("ai.operationId") {
        return Some(vercel_role(id));
    }
    let openinference = text("openinference.span.kind").and_then(|kind| match kind.to_ascii_uppercase().as_str() {
        "LLM" => Some(Role::Model),
        "TOOL" => Some(Role::Tool),
        "AGENT" => Some(Role::Agent),
        _ => None,
    });
    if openinference.is_some() {
        return openinference;
    }
    if let Some(operation) = text("gen_ai.operation.name") {
        let known = match operation {
            "chat" | "generate_content" | "text_completion" | "completion" | "responses" | "message" => {
                Some(Role::Model)
            }
            "execute_tool" | "tool" => Some(Role::Tool),
            "invoke_agent" | "invoke_workflow" => Some(Role::Agent),
            "embeddings" | "embedding" | "retrieval" | "create_agent" | "rerank" | "chain" => Some(Role::Other),
            _ => None,
        };
        if known.is_some() {
            return known;
        }
    }
    if text("openinference.span.kind").is_some() {
        return Some(Role::Other);
    }
    let kinds = ["traceloop.span.kind", "langsmith.span.kind", "langfuse.observation.type", "mlflow.spanType"];
    for kind in kinds.iter().filter_map(|name| text(name)) {
        match kind.trim_matches('"').to_ascii_lowercase().as_str() {
            "llm" | "generation" | "chat_model" => return Some(Role::Model),
            "tool" => return Some(Role::Tool),
            "agent" | "workflow" => return Some(Role::Agent),
            "embedding" | "retriever" | "reranker" | "parser" | "guardrail" | "evaluator" => return Some(Role::Other),
            _ => {}
        }
    }
    match text("llm.request.type") {
        Some("chat" | "completion") => Some(Role::Model),
        Some("embedding" | "rerank") => Some(Role::Other),
        _ => None,
    }
}

fn vercel_role(id: &str) -> Role {
    if id.starts_with("ai.toolCall") {
        Role::Tool
    } else if id.contains("embed") {
        Role::Other
    } else if id.ends_with(".doGenerate") || id.ends_with(".doStream") {
        Role::Model
    } else {
        Role::Agent
    }
}

/// Infers the role from the attributes that are present.
fn inferred_role(span: &Span) -> Option<Role> {
    let attributes = &span.attributes;
    let has = |name: &str| attributes.get(name).is_some_and(|value| !is_blank(value) && !is_empty_json(value));
    if has("gen_ai.tool.name") || has("gen_ai.tool.call.id") || has("ai.toolCall.name") || has("tool_arguments") {
        return Some(Role::Tool);
    }
    if has("pydantic_ai.all_messages") || has("all_messages_events") || has("agent_name") {
        return Some(Role::Agent);
    }
    let content_attributes = [
        "gen_ai.input.messages",
        "gen_ai.output.messages",
        "gen_ai.prompt",
        "gen_ai.completion",
        "gcp.vertex.agent.llm_request",
        "gcp.vertex.agent.llm_response",
        "gen_ai.prompt.0.role",
        "gen_ai.prompt.0.content",
        "gen_ai.completion.0.role",
        "gen_ai.completion.0.content",
        "llm.input_messages.0.message.role",
        "llm.output_messages.0.message.role",
        "llm.model_name",
    ];
    let is_embedding = has("embedding.model_name") || span.name.to_ascii_lowercase().contains("embedding");
    if is_embedding && !content_attributes.iter().any(|name| has(name)) {
        return Some(Role::Other);
    }
    let is_request = has("gen_ai.request.model")
        && (has("gen_ai.system") || has("gen_ai.provider.name") || has_response(attributes));
    if is_request || content_attributes.iter().any(|name| has(name)) {
        return Some(Role::Model);
    }
    if first_text(attributes, &["gen_ai.agent.name", "gen_ai.agent.id"]).is_some()
        && span.name.starts_with("invoke_agent")
    {
        return Some(Role::Agent);
    }
    span.name.starts_with("execute_tool ").then_some(Role::Tool)
}

fn has_response(attributes: &Map<String, Value>) -> bool {
    ["gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "gen_ai.response.id"]
        .iter()
        .any(|name| attributes.contains_key(*name))
}

fn is_empty_json(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.len() <= 4 && parse_nested(text).is_some_and(|inner| is_blank(&inner)))
}
