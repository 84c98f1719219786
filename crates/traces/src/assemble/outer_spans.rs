//! Content and errors of the spans around the steps.

use super::step::{StepBuilder, turns};
use super::tree::Tree;
use crate::parts::Role;
use crate::vocabulary;
use karat_chat::plain_message;

/// Returns the spans that enclose the steps, ordered by time.
fn enclosing_spans(tree: &Tree<'_>, builders: &[StepBuilder]) -> Vec<usize> {
    let mut is_enclosing = vec![false; tree.spans.len()];
    for span in builders.iter().flat_map(|builder| &builder.spans) {
        let mut at = tree.parents[*span];
        while let Some(above) = at.filter(|above| !is_enclosing[*above]) {
            is_enclosing[above] = true;
            at = tree.parents[above];
        }
    }
    let step_spans: std::collections::HashSet<usize> =
        builders.iter().flat_map(|builder| builder.spans.iter().copied()).collect();
    let root = tree.root();
    tree.by_time
        .iter()
        .copied()
        .filter(|index| is_enclosing[*index] || tree.roles[*index] == Role::Agent || Some(*index) == root)
        .filter(|index| !step_spans.contains(index) && tree.roles[*index] != Role::Tool)
        .collect()
}

/// Fills in the first input and the last output from the enclosing spans if the model spans have no content.
pub(super) fn fill_content(tree: &Tree<'_>, builders: &mut [StepBuilder]) {
    let lacks_input = builders.iter().all(|builder| builder.input.is_empty() && builder.input_value.is_none());
    let lacks_output = builders.iter().all(|builder| !builder.has_output());
    if !lacks_input && !lacks_output {
        return;
    }
    for index in enclosing_spans(tree, builders) {
        let span = &tree.spans[index];
        if lacks_output
            && let Some(conversation) = vocabulary::conversation(span)
            && turns(&conversation.messages).count() == builders.len()
        {
            for (builder, (input, message)) in builders.iter_mut().zip(turns(&conversation.messages)) {
                builder.input = input.to_vec();
                builder.is_delta = true;
                builder.response.clone_from(&message.content);
                builder.calls.clone_from(&message.tool_calls);
            }
            return;
        }
        let content = vocabulary::content(span, tree.logs_of(index));
        if lacks_input
            && let Some(first) =
                builders.first_mut().filter(|first| first.input.is_empty() && first.input_value.is_none())
        {
            first.input.clone_from(&content.input.messages);
            first.input_value = content.input_value;
        }
        if lacks_output && let Some(last) = builders.last_mut().filter(|last| !last.has_output()) {
            last.add_output(&content.output);
            if !last.has_output() {
                last.output_value = content.output_value;
            }
        }
    }
}

/// Fills in the system prompt if only a span around the first step has it.
pub(super) fn fill_system_prompt(tree: &Tree<'_>, builders: &mut [StepBuilder]) {
    let has_system_prompt = |builder: &StepBuilder| builder.input.iter().any(|message| message.role == "system");
    if builders.iter().any(has_system_prompt) {
        return;
    }
    let Some(first) = builders.first_mut() else { return };
    let mut at = first.spans.first().and_then(|span| tree.parents[*span]);
    while let Some(above) = at {
        let input = tree.spans[above].input.as_ref();
        let system = input.and_then(|input| input.get("system")?.as_str()).filter(|system| !system.trim().is_empty());
        if let Some(system) = system {
            first.input.insert(0, plain_message("system", system));
            return;
        }
        let content = vocabulary::content(&tree.spans[above], tree.logs_of(above));
        if let Some(system) = content.input.messages.into_iter().find(|message| message.role == "system") {
            first.input.insert(0, system);
            return;
        }
        at = tree.parents[above];
    }
}

/// Returns the error outside of the steps: of the root, of an agent, or of a span around a step. Other spans are
/// ignored, because failed requests are often expected there.
pub(super) fn error(tree: &Tree<'_>, builders: &[StepBuilder]) -> Option<String> {
    enclosing_spans(tree, builders)
        .into_iter()
        .filter_map(|index| vocabulary::failure(&tree.spans[index], tree.roles[index], true))
        .find(|failure| !builders.iter().any(|builder| builder.error.as_ref() == Some(failure)))
}
