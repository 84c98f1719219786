//! Assembles the spans of a trace into a document.
//!
//! There is one step per model call, ordered by start time. If both the agent framework and the model client are
//! instrumented, a call has several nested spans, which become one step. Tool spans are joined with the calls that
//! requested them. Without model spans, the agent spans or the root span become the steps.

mod calls;
mod new_messages;
mod open_calls;
mod outer_spans;
mod restored_spans;
mod step;
mod tool_results;
mod tree;

use karat_core::document::{StepUsage, TraceContent};
use serde_json::{Map, Value};

use crate::parts::{Role, TraceParts};
use crate::piece::SourceFeedback;
use crate::vocabulary;

use new_messages::SeenMessages;
use step::StepBuilder;
use tree::Tree;

/// The metadata key of entries of `tool_calls` without a tool name.
pub const UNREAD_CALLS_KEY: &str = "unread_tool_calls";

/// A document, and the feedback in the source.
#[derive(Debug, Clone, PartialEq)]
pub struct AssembledTrace {
    pub document: TraceContent,
    /// Whether some span is a call of a model, a tool or an agent.
    pub has_agent_spans: bool,
    pub feedback: Vec<SourceFeedback>,
}

/// Assembles a document. The result does not depend on the order in which the parts were merged.
pub fn assemble(parts: &TraceParts) -> AssembledTrace {
    let tree = Tree::new(parts);
    let mut builders = step::from_models(&tree);
    let has_models = !builders.is_empty();
    if !has_models {
        builders = step::from_agents(&tree);
    }
    if has_models {
        calls::merge_duplicates(&mut builders);
        calls::fill_missing_outputs(&mut builders);
        outer_spans::fill_content(&tree, &mut builders);
        outer_spans::fill_system_prompt(&tree, &mut builders);
    }
    for builder in &mut builders {
        builder.output_hashes = new_messages::output_hashes(&builder.response, &builder.calls);
    }
    calls::join_tool_spans(&tree, &mut builders);
    tool_results::join(&tree, &mut builders);
    let mut seen = SeenMessages::default();
    let error = outer_spans::error(&tree, &builders);
    let unread_calls: Vec<Value> = builders.iter().flat_map(|builder| builder.unread_calls.iter().cloned()).collect();
    let steps: Vec<_> = builders.into_iter().map(|builder| builder.build(&mut seen)).collect();

    let mut usage = StepUsage::default();
    for step_usage in steps.iter().filter_map(|step| step.usage.as_ref()) {
        usage.add(step_usage);
    }
    let root = tree.root();
    let mut metadata = metadata(&tree, root);
    if !unread_calls.is_empty() {
        metadata.insert(UNREAD_CALLS_KEY.to_owned(), Value::Array(unread_calls));
    }
    let attribute = |get: fn(&Map<String, Value>) -> Option<&str>| {
        tree.by_time.iter().find_map(|index| get(&tree.spans[*index].attributes)).map(str::to_owned)
    };
    let document = TraceContent {
        trace_id: parts.trace_id.clone(),
        name: attribute(vocabulary::trace_name)
            .or_else(|| root.map(|root| tree.spans[root].name.clone()).filter(|name| !name.is_empty())),
        session_id: attribute(vocabulary::session),
        user_id: attribute(vocabulary::user),
        started_at: tree.spans.iter().filter_map(|span| span.start).min(),
        ended_at: tree.spans.iter().filter_map(|span| span.end).max(),
        model: steps.iter().rev().find_map(|step| step.model.clone()),
        usage: (!usage.is_empty()).then_some(usage),
        error,
        tags: tree
            .by_time
            .iter()
            .map(|index| vocabulary::tags(&tree.spans[*index].attributes))
            .find(|tags| !tags.is_empty())
            .unwrap_or_default(),
        metadata,
        steps,
    };
    let feedback =
        tree.by_time.iter().flat_map(|index| vocabulary::annotations(&tree.spans[*index], &parts.source)).collect();
    let has_agent_spans =
        [Role::Model, Role::Tool, Role::Agent].iter().any(|role| tree.with_role(*role).next().is_some());
    AssembledTrace { document, has_agent_spans, feedback }
}

/// Returns the metadata of the trace from the root span: its service, and the user's metadata.
fn metadata(tree: &Tree<'_>, root: Option<usize>) -> Map<String, Value> {
    let mut metadata = Map::new();
    let Some(root) = root.map(|root| &tree.spans[root]) else { return metadata };
    for name in ["service.name", "service.version", "deployment.environment", "deployment.environment.name"] {
        if let Some(value) = root.resource.get(name) {
            metadata.insert(name.to_owned(), value.clone());
        }
    }
    if let Some(user_metadata) = root.attributes.get("metadata")
        && let Value::Object(user_metadata) = karat_chat::lenient::unpack(user_metadata).as_ref()
    {
        metadata.extend(user_metadata.clone());
    }
    metadata
}

/// Returns the name of the agent that a span belongs to.
fn agent_of(tree: &Tree<'_>, index: usize) -> Option<String> {
    if let Some(own) = vocabulary::agent_name(&tree.spans[index]) {
        return Some(own.to_owned());
    }
    let mut at = tree.enclosing[index];
    while let Some(above) = at {
        let span = &tree.spans[above];
        if let Some(name) = vocabulary::agent_name(span) {
            return Some(name.to_owned());
        }
        if tree.roles[above] == Role::Agent {
            let name = span.name.strip_prefix("invoke_agent").unwrap_or(&span.name).trim();
            return (!name.is_empty()).then(|| name.to_owned());
        }
        at = tree.enclosing[above];
    }
    None
}

impl StepBuilder {
    pub(super) fn has_output(&self) -> bool {
        !self.response.is_empty() || !self.calls.is_empty() || self.output_value.is_some()
    }
}
