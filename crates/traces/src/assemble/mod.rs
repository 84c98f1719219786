//! Makes a document of the spans of a trace.
//!
//! One step for each call of a model, by the time at which it began. Agent frameworks and model clients are often
//! instrumented both, so that one call has several spans within one another: they give one step. Tools are joined with the
//! calls that asked for them. Without spans of models, the agents' spans are the steps, or the root.

mod answers;
mod calls;
mod fresh;
mod open;
mod outline;
mod step;
mod tree;

use karat_core::document::{StepUsage, TraceContent};
use serde_json::{Map, Value};

use crate::parts::{Role, TraceParts};
use crate::piece::SourceFeedback;
use crate::vocabulary;

use fresh::Seen;
use step::Draft;
use tree::Tree;

/// A document, and what people said of the trace in its source.
#[derive(Debug, Clone, PartialEq)]
pub struct Assembled {
    pub document: TraceContent,
    pub feedback: Vec<SourceFeedback>,
}

/// Makes a document of all that is known of a trace. The same parts give the same document, in whichever order they came.
pub fn assemble(parts: &TraceParts) -> Assembled {
    let tree = Tree::of(parts);
    let mut drafts = step::of_models(&tree);
    let from_models = !drafts.is_empty();
    if !from_models {
        drafts = step::of_agents(&tree);
    }
    if from_models {
        calls::drop_doubles(&mut drafts);
        calls::fill_answers(&mut drafts);
        outline::fill(&tree, &mut drafts);
        outline::fill_system(&tree, &mut drafts);
    }
    for draft in &mut drafts {
        draft.answered = fresh::answered(&draft.response, &draft.calls);
    }
    calls::join_spans(&tree, &mut drafts);
    answers::join(&tree, &mut drafts);
    let mut seen = Seen::default();
    let error = outline::error(&tree, &drafts);
    let steps: Vec<_> = drafts.into_iter().map(|draft| draft.finish(&mut seen)).collect();

    let mut usage = StepUsage::default();
    for step_usage in steps.iter().filter_map(|step| step.usage.as_ref()) {
        usage.add(step_usage);
    }
    let root = tree.root();
    let attribute = |read: fn(&Map<String, Value>) -> Option<&str>| {
        tree.by_time.iter().find_map(|index| read(&tree.spans[*index].attributes)).map(str::to_owned)
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
        metadata: metadata(&tree, root),
        steps,
    };
    let feedback =
        tree.by_time.iter().flat_map(|index| vocabulary::annotations(&tree.spans[*index], &parts.source)).collect();
    Assembled { document, feedback }
}

/// Returns what the root says of the whole trace: its service, and the metadata that its author gave.
fn metadata(tree: &Tree<'_>, root: Option<usize>) -> Map<String, Value> {
    let mut metadata = Map::new();
    let Some(root) = root.map(|root| &tree.spans[root]) else { return metadata };
    for name in ["service.name", "service.version", "deployment.environment", "deployment.environment.name"] {
        if let Some(value) = root.resource.get(name) {
            metadata.insert(name.to_owned(), value.clone());
        }
    }
    if let Some(given) = root.attributes.get("metadata")
        && let Value::Object(given) = crate::json::unpacked(given).as_ref()
    {
        metadata.extend(given.clone());
    }
    metadata
}

/// Returns the agent that a span belongs to, by its name.
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

impl Draft {
    pub(super) fn has_said(&self) -> bool {
        !self.response.is_empty() || !self.calls.is_empty() || self.output_value.is_some()
    }
}
