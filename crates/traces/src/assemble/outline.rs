//! What the spans around the steps tell.

use super::step::{Draft, turns};
use super::tree::Tree;
use crate::chat::plain;
use crate::parts::Role;
use crate::vocabulary;

/// Returns the spans around the steps, the outermost first.
fn around(tree: &Tree<'_>, drafts: &[Draft]) -> Vec<usize> {
    let mut is_around = vec![false; tree.spans.len()];
    for span in drafts.iter().flat_map(|draft| &draft.spans) {
        let mut at = tree.parents[*span];
        while let Some(above) = at.filter(|above| !is_around[*above]) {
            is_around[above] = true;
            at = tree.parents[above];
        }
    }
    let of_steps: std::collections::HashSet<usize> =
        drafts.iter().flat_map(|draft| draft.spans.iter().copied()).collect();
    let root = tree.root();
    tree.by_time
        .iter()
        .copied()
        .filter(|index| is_around[*index] || tree.roles[*index] == Role::Agent || Some(*index) == root)
        .filter(|index| !of_steps.contains(index) && tree.roles[*index] != Role::Tool)
        .collect()
}

/// Fills in the first question and the last answer from the spans around, where models' spans carry no content.
pub(super) fn fill(tree: &Tree<'_>, drafts: &mut [Draft]) {
    let no_question = drafts.iter().all(|draft| draft.input.is_empty() && draft.input_value.is_none());
    let no_answer = drafts.iter().all(|draft| !draft.has_said());
    if !no_question && !no_answer {
        return;
    }
    for index in around(tree, drafts) {
        let span = &tree.spans[index];
        if no_answer
            && let Some(said) = vocabulary::conversation(span)
            && turns(&said.messages).count() == drafts.len()
        {
            for (draft, (input, message)) in drafts.iter_mut().zip(turns(&said.messages)) {
                draft.input = input.to_vec();
                draft.only_new = true;
                draft.response.clone_from(&message.content);
                draft.calls.clone_from(&message.tool_calls);
            }
            return;
        }
        let content = vocabulary::content(span, tree.logs_of(index));
        if no_question
            && let Some(first) =
                drafts.first_mut().filter(|first| first.input.is_empty() && first.input_value.is_none())
        {
            first.input.clone_from(&content.input.messages);
            first.input_value = content.input_value;
        }
        if no_answer && let Some(last) = drafts.last_mut().filter(|last| !last.has_said()) {
            last.take_output(&content.output);
            if !last.has_said() {
                last.output_value = content.output_value;
            }
        }
    }
}

/// Fills in what the system was told, where only a span around the first step has it, in the source's own field.
pub(super) fn fill_system(tree: &Tree<'_>, drafts: &mut [Draft]) {
    let is_told = |draft: &Draft| draft.input.iter().any(|message| message.role == "system");
    if drafts.iter().any(is_told) {
        return;
    }
    let Some(first) = drafts.first_mut() else { return };
    let mut at = first.spans.first().and_then(|span| tree.parents[*span]);
    while let Some(above) = at {
        let input = tree.spans[above].input.as_ref();
        let system = input.and_then(|input| input.get("system")?.as_str()).filter(|system| !system.trim().is_empty());
        if let Some(system) = system {
            first.input.insert(0, plain("system", system));
            return;
        }
        at = tree.parents[above];
    }
}

/// Returns what went wrong outside of all steps: in the root, in an agent, or in what is around a step. Other spans are
/// the plumbing, where a failed request is often expected.
pub(super) fn error(tree: &Tree<'_>, drafts: &[Draft]) -> Option<String> {
    around(tree, drafts)
        .into_iter()
        .filter_map(|index| vocabulary::failure(&tree.spans[index], tree.roles[index], true))
        .find(|failure| !drafts.iter().any(|draft| draft.error.as_ref() == Some(failure)))
}
