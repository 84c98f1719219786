//! Steps before they are whole.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use karat_core::document::{Message, Step, StepCall, StepInput, StepOutput, StepUsage};
use serde_json::Value;

use super::agent_of;
use super::fresh::Seen;
use super::tree::Tree;
use crate::chat::Said;
use crate::parts::Role;
use crate::vocabulary::{self, Content};

/// A step of which not everything is known yet.
#[derive(Debug, Default)]
pub(super) struct Draft {
    /// Of which spans it is made, the outermost first.
    pub(super) spans: Vec<usize>,
    pub(super) start: Option<Timestamp>,
    pub(super) end: Option<Timestamp>,
    /// All that went in, not only what is new.
    pub(super) input: Vec<Message>,
    /// The input is only what was added since the step before.
    pub(super) only_new: bool,
    pub(super) input_value: Option<Value>,
    pub(super) response: String,
    pub(super) reasoning: Option<String>,
    pub(super) output_value: Option<Value>,
    pub(super) calls: Vec<StepCall>,
    /// What the source says the model said, by which the next step's conversation is compared.
    pub(super) answered: Vec<u64>,
    pub(super) error: Option<String>,
    pub(super) model: Option<String>,
    pub(super) agent: Option<String>,
    pub(super) stop_reason: Option<String>,
    pub(super) usage: StepUsage,
}

/// Makes a draft for each call of a model.
pub(super) fn of_models(tree: &Tree<'_>) -> Vec<Draft> {
    let models: Vec<usize> = tree.of_role(Role::Model).collect();
    let contents: HashMap<usize, Content> =
        models.iter().map(|index| (*index, vocabulary::content(&tree.spans[*index], tree.logs_of(*index)))).collect();
    let mut drafts: Vec<Draft> =
        groups(tree, &models, &contents).into_iter().map(|group| of_group(tree, &group, &contents)).collect();
    // Of those that began at the same time, or nobody knows when, the one with the shorter history came first.
    drafts.sort_by_key(|draft| (draft.start.is_none(), draft.start, draft.input.len(), draft.spans.first().copied()));
    drafts
}

/// Puts spans together that tell of the same call: one directly within the other, or with the same answer's id.
fn groups(tree: &Tree<'_>, models: &[usize], contents: &HashMap<usize, Content>) -> Vec<Vec<usize>> {
    let around = |index: usize| tree.enclosing[index].filter(|outer| tree.roles[*outer] == Role::Model);
    let mut within: HashMap<usize, Vec<usize>> = HashMap::new();
    for index in models {
        if let Some(outer) = around(*index) {
            within.entry(outer).or_default().push(*index);
        }
    }
    let is_empty = |index: &usize| contents.get(index).is_none_or(Content::is_empty);
    // One that has several calls within is an agent's loop, unless only it tells what was said.
    let loops: HashSet<usize> = within
        .iter()
        .filter(|(outer, inner)| inner.len() > 1 && (is_empty(outer) || !inner.iter().all(is_empty)))
        .map(|(outer, _)| *outer)
        .collect();
    let is_loop = |outer: &usize| loops.contains(outer);
    let mut top: HashMap<usize, usize> = HashMap::new();
    let mut grouped: Vec<Vec<usize>> = Vec::new();
    let mut place: HashMap<usize, usize> = HashMap::new();
    for index in models {
        let mut path = vec![*index];
        let mut at = *index;
        let found = loop {
            if let Some(known) = top.get(&at) {
                break *known;
            }
            match around(at) {
                Some(outer) if !is_loop(&outer) => {
                    path.push(outer);
                    at = outer;
                }
                _ => break at,
            }
        };
        for one in path {
            top.insert(one, found);
        }
        let at = *place.entry(found).or_insert_with(|| {
            grouped.push(Vec::new());
            grouped.len() - 1
        });
        grouped[at].push(*index);
    }
    grouped.retain(|group| !group.iter().any(is_loop));
    let depths = depths(models, around);
    for group in &mut grouped {
        group.sort_by_key(|index| depths.get(index).copied());
    }
    join_by_answer(tree, grouped)
}

/// Returns how many models are around each.
fn depths(models: &[usize], around: impl Fn(usize) -> Option<usize>) -> HashMap<usize, usize> {
    let mut depths: HashMap<usize, usize> = HashMap::new();
    let mut path = Vec::new();
    for index in models {
        let mut at = Some(*index);
        while let Some(one) = at.filter(|one| !depths.contains_key(one)) {
            path.push(one);
            at = around(one);
        }
        let around = at.and_then(|known| depths.get(&known).copied()).map_or(0, |depth| depth + 1);
        for (more, one) in path.drain(..).rev().enumerate() {
            depths.insert(one, around + more);
        }
    }
    depths
}

/// Joins groups that have the same answer's id and overlap in time. Some servers draw their ids from a few hundred, so that
/// two calls one after the other may have the same.
fn join_by_answer(tree: &Tree<'_>, groups: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
    let mut joined: Vec<Vec<usize>> = Vec::new();
    let mut newest: HashMap<String, (usize, Lasting)> = HashMap::new();
    for group in groups {
        let answer = group.iter().find_map(|index| vocabulary::response_id(&tree.spans[*index].attributes));
        let Some(answer) = answer else {
            joined.push(group);
            continue;
        };
        let lasting = Lasting::of(tree, &group);
        if let Some((at, known)) = newest.get_mut(answer).filter(|(_, known)| known.overlaps(&lasting)) {
            known.start = earliest(known.start, lasting.start);
            known.end = known.end.max(lasting.end);
            joined[*at].extend(group);
        } else {
            newest.insert(answer.to_owned(), (joined.len(), lasting));
            joined.push(group);
        }
    }
    joined
}

/// When something was under way.
struct Lasting {
    start: Option<Timestamp>,
    end: Option<Timestamp>,
}

impl Lasting {
    fn of(tree: &Tree<'_>, group: &[usize]) -> Self {
        Self {
            start: group.iter().filter_map(|index| tree.spans[*index].start).min(),
            end: group.iter().filter_map(|index| tree.spans[*index].end).max(),
        }
    }

    /// Tells whether both were under way at the same time. What has no times may have been.
    fn overlaps(&self, other: &Self) -> bool {
        let is_after =
            |start: Option<Timestamp>, end: Option<Timestamp>| start.zip(end).is_some_and(|(start, end)| start > end);
        !is_after(self.start, other.end) && !is_after(other.start, self.end)
    }
}

/// Tells how much a reading is worth: messages that say something, then a bare text, then nothing.
fn worth(said: &Said) -> u8 {
    let says = said
        .messages
        .iter()
        .any(|message| !message.content.is_empty() || !message.tool_calls.is_empty() || !message.parts.is_empty());
    match (said.is_empty(), said.structured && says) {
        (true, _) => 0,
        (false, false) => 1,
        (false, true) => 2,
    }
}

fn of_group(tree: &Tree<'_>, group: &[usize], contents: &HashMap<usize, Content>) -> Draft {
    let empty = Said::default();
    let (mut input, mut output) = (&empty, &empty);
    let (mut input_value, mut output_value) = (None, None);
    let mut draft = Draft { spans: group.to_vec(), ..Draft::default() };
    // The innermost is nearest to the model: it comes last, and wins where it tells as much.
    for index in group {
        let span = &tree.spans[*index];
        if let Some(content) = contents.get(index) {
            if worth(&content.input) >= worth(input) && worth(&content.input) > 0 {
                input = &content.input;
            }
            if worth(&content.output) >= worth(output) && worth(&content.output) > 0 {
                output = &content.output;
            }
            input_value = content.input_value.clone().or(input_value);
            output_value = content.output_value.clone().or(output_value);
        }
        draft.start = earliest(draft.start, span.start);
        draft.end = draft.end.max(span.end);
        draft.model = vocabulary::model(&span.attributes).map(str::to_owned).or(draft.model);
        draft.stop_reason = vocabulary::stop_reason(&span.attributes).or(draft.stop_reason);
        // Some frameworks count up over all their calls: the innermost tells of this one.
        let used = vocabulary::usage(&span.attributes);
        draft.usage = StepUsage {
            input_tokens: used.input_tokens.or(draft.usage.input_tokens),
            output_tokens: used.output_tokens.or(draft.usage.output_tokens),
            cached_input_tokens: used.cached_input_tokens.or(draft.usage.cached_input_tokens),
            cost_usd: used.cost_usd.or(draft.usage.cost_usd),
        };
    }
    draft.agent = group.first().and_then(|outermost| agent_of(tree, *outermost));
    draft.input.clone_from(&input.messages);
    draft.input_value = input_value.filter(|_| draft.input.is_empty());
    draft.take_output(output);
    draft.output_value = output_value.filter(|_| !draft.has_said());
    let failed = |index: &usize| vocabulary::failure(&tree.spans[*index], Role::Model, draft.has_said());
    // What failed within, was tried again and came through is no failure.
    let came_through = draft.has_said() && group.first().is_some_and(|outermost| failed(outermost).is_none());
    draft.error = group.iter().rev().find_map(failed).filter(|_| !came_through);
    draft
}

fn earliest(left: Option<Timestamp>, right: Option<Timestamp>) -> Option<Timestamp> {
    match (left, right) {
        (Some(left), Some(right)) => Some(left.min(right)),
        (known, None) | (None, known) => known,
    }
}

/// Makes a draft for each outermost agent, or for the root where there is no agent.
pub(super) fn of_agents(tree: &Tree<'_>) -> Vec<Draft> {
    let outermost = |index: &usize| {
        let mut at = tree.enclosing[*index];
        while let Some(above) = at {
            if tree.roles[above] == Role::Agent {
                return false;
            }
            at = tree.enclosing[above];
        }
        true
    };
    let mut agents: Vec<usize> = tree.of_role(Role::Agent).filter(outermost).collect();
    if agents.is_empty() {
        agents.extend(tree.root());
    }
    agents.into_iter().flat_map(|index| of_agent(tree, index)).collect()
}

/// Makes one draft of an agent's span, or one for each answer where the span carries its whole conversation.
fn of_agent(tree: &Tree<'_>, index: usize) -> Vec<Draft> {
    let span = &tree.spans[index];
    let content = vocabulary::content(span, tree.logs_of(index));
    let conversation = vocabulary::conversation(span).map_or_else(|| told(&content), |said| said.messages);
    // A root that is only the request around the work says nothing of an agent.
    let whole = Draft {
        spans: vec![index],
        start: span.start,
        end: span.end,
        model: vocabulary::model(&span.attributes).map(str::to_owned),
        agent: if tree.roles[index] == Role::Agent { agent_of(tree, index) } else { None },
        usage: vocabulary::usage(&span.attributes),
        error: vocabulary::failure(span, Role::Agent, false),
        ..Draft::default()
    };
    let mut drafts = of_conversation(&conversation, &whole);
    if drafts.is_empty() {
        let mut draft = whole;
        draft.input.clone_from(&content.input.messages);
        draft.input_value = content.input_value;
        draft.take_output(&content.output);
        draft.output_value = content.output_value.filter(|_| !draft.has_said());
        return vec![draft];
    }
    if let Some(last) = drafts.last_mut() {
        // The span's numbers are of all its steps together: they are told once.
        last.usage = whole.usage;
        last.error = whole.error;
        last.end = whole.end;
    }
    drafts
}

/// Returns the conversation that input and output tell together, where the output has more than one answer. Frameworks give
/// back their whole state, in which the input is there again.
fn told(content: &Content) -> Vec<Message> {
    let (known, output) = (&content.input.messages, &content.output.messages);
    let again = output.iter().zip(known).take_while(|(one, other)| one == other).count();
    let after = if again == known.len() { &output[again..] } else { &output[..] };
    let answers = after.iter().filter(|message| message.role == "assistant").count();
    if answers > 1 { known.iter().chain(after).cloned().collect() } else { Vec::new() }
}

/// Cuts a conversation into one draft for each answer.
fn of_conversation(messages: &[Message], whole: &Draft) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = turns(messages)
        .map(|(input, answer)| Draft {
            spans: whole.spans.clone(),
            start: whole.start,
            model: whole.model.clone(),
            agent: whole.agent.clone(),
            input: input.to_vec(),
            only_new: true,
            response: answer.content.clone(),
            calls: answer.tool_calls.clone(),
            ..Draft::default()
        })
        .collect();
    // What came of the last calls.
    let after = messages.iter().rposition(|message| message.role == "assistant").map_or(0, |at| at + 1);
    if let Some(last) = drafts.last_mut() {
        for message in
            messages[after..].iter().filter(|message| message.role == "tool" && message.tool_call_id.is_some())
        {
            if let Some(call) = last.calls.iter_mut().find(|call| call.id == message.tool_call_id) {
                super::answers::answer(call, message);
            }
        }
    }
    drafts
}

/// Returns each answer of a conversation with what was said since the answer before.
pub(super) fn turns(messages: &[Message]) -> impl Iterator<Item = (&[Message], &Message)> {
    let mut from = 0;
    messages.iter().enumerate().filter(|(_, message)| message.role == "assistant").map(move |(at, answer)| {
        let input = &messages[from..at];
        from = at + 1;
        (input, answer)
    })
}

impl Draft {
    pub(super) fn take_output(&mut self, said: &Said) {
        let answers = said.messages.iter().any(|message| message.role == "assistant");
        for message in
            said.messages.iter().filter(|message| message.role == "assistant" || !answers && message.role != "tool")
        {
            if !self.response.is_empty() && !message.content.is_empty() {
                self.response.push('\n');
            }
            self.response.push_str(&message.content);
            for call in &message.tool_calls {
                if call.id.is_none() || !self.calls.iter().any(|known| known.id == call.id) {
                    self.calls.push(call.clone());
                }
            }
        }
        // Tools that the provider runs itself answer within the same output.
        for message in said.messages.iter().filter(|message| message.role == "tool" && message.tool_call_id.is_some()) {
            if let Some(call) = self.calls.iter_mut().find(|call| call.id == message.tool_call_id) {
                super::answers::answer(call, message);
            }
        }
        self.reasoning = said.reasoning.clone().or(self.reasoning.take());
        self.stop_reason = said.stop_reason.clone().or(self.stop_reason.take());
    }

    /// Takes in what another draft of the same call knows more.
    pub(super) fn absorb(&mut self, other: Self) {
        self.spans.extend(other.spans);
        self.end = self.end.max(other.end);
        if self.input.is_empty() {
            self.input = other.input;
        }
        self.reasoning = self.reasoning.take().or(other.reasoning);
        self.error = self.error.take().or(other.error);
        self.model = self.model.take().or(other.model);
        self.agent = self.agent.take().or(other.agent);
        self.stop_reason = self.stop_reason.take().or(other.stop_reason);
        if self.usage.is_empty() {
            self.usage = other.usage;
        }
    }

    /// Makes the step: of what went in, only what is new stays.
    pub(super) fn finish(self, seen: &mut Seen) -> Step {
        let messages = seen.fresh(self.input, &self.answered);
        Step {
            input: StepInput {
                message: messages
                    .iter()
                    .rev()
                    .find(|message| message.role == "user")
                    .map(|message| message.content.clone()),
                messages,
                value: self.input_value,
            },
            output: StepOutput { response: self.response, reasoning: self.reasoning, value: self.output_value },
            tool_calls: self.calls,
            error: self.error,
            model: self.model,
            agent: self.agent,
            started_at: self.start,
            ended_at: self.end,
            stop_reason: self.stop_reason,
            usage: (!self.usage.is_empty()).then_some(self.usage),
        }
    }
}
