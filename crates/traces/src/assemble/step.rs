//! Builds steps from spans.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use karat_core::document::{Message, Step, StepCall, StepInput, StepOutput, StepUsage};
use serde_json::Value;

use super::agent_of;
use super::new_messages::SeenMessages;
use super::tree::Tree;
use crate::parts::Role;
use crate::vocabulary::{self, Content};
use karat_chat::ParsedMessages;

/// A step under construction.
#[derive(Debug, Default)]
pub(super) struct StepBuilder {
    /// The spans of the step, outermost first.
    pub(super) spans: Vec<usize>,
    pub(super) start: Option<Timestamp>,
    pub(super) end: Option<Timestamp>,
    /// The whole input, including messages of earlier steps.
    pub(super) input: Vec<Message>,
    /// The input contains only the messages since the step before.
    pub(super) is_delta: bool,
    pub(super) input_value: Option<Value>,
    pub(super) response: String,
    pub(super) reasoning: Option<String>,
    pub(super) output_value: Option<Value>,
    pub(super) calls: Vec<StepCall>,
    /// Hashes of the output as recorded, to recognise it in the input of later steps.
    pub(super) output_hashes: Vec<u64>,
    pub(super) error: Option<String>,
    pub(super) model: Option<String>,
    pub(super) agent: Option<String>,
    pub(super) stop_reason: Option<String>,
    pub(super) usage: StepUsage,
    /// Entries of the answer's `tool_calls` without a tool name.
    pub(super) unread_calls: Vec<Value>,
}

/// Creates a step for each model call.
pub(super) fn from_models(tree: &Tree<'_>) -> Vec<StepBuilder> {
    let models: Vec<usize> = tree.with_role(Role::Model).collect();
    let contents: HashMap<usize, Content> =
        models.iter().map(|index| (*index, vocabulary::content(&tree.spans[*index], tree.logs_of(*index)))).collect();
    let mut builders: Vec<StepBuilder> =
        group_spans(tree, &models, &contents).into_iter().map(|group| from_group(tree, &group, &contents)).collect();
    // Of steps with the same or an unknown start time, the one with the shorter history comes first.
    builders.sort_by_key(|builder| {
        (builder.start.is_none(), builder.start, builder.input.len(), builder.spans.first().copied())
    });
    builders
}

/// Groups spans that describe the same call: directly nested ones, or those with the same response id.
fn group_spans(tree: &Tree<'_>, models: &[usize], contents: &HashMap<usize, Content>) -> Vec<Vec<usize>> {
    let outer_model = |index: usize| tree.enclosing[index].filter(|outer| tree.roles[*outer] == Role::Model);
    let mut inner_models: HashMap<usize, Vec<usize>> = HashMap::new();
    for index in models {
        if let Some(outer) = outer_model(*index) {
            inner_models.entry(outer).or_default().push(*index);
        }
    }
    let is_empty = |index: &usize| contents.get(index).is_none_or(Content::is_empty);
    // A span around several calls is an agent loop, unless only it has content.
    let loops: HashSet<usize> = inner_models
        .iter()
        .filter(|(outer, inner)| inner.len() > 1 && (is_empty(outer) || !inner.iter().all(is_empty)))
        .map(|(outer, _)| *outer)
        .collect();
    let is_loop = |outer: &usize| loops.contains(outer);
    let mut tops: HashMap<usize, usize> = HashMap::new();
    let mut grouped: Vec<Vec<usize>> = Vec::new();
    let mut group_of_top: HashMap<usize, usize> = HashMap::new();
    for index in models {
        let mut path = vec![*index];
        let mut at = *index;
        let top = loop {
            if let Some(known) = tops.get(&at) {
                break *known;
            }
            match outer_model(at) {
                Some(outer) if !is_loop(&outer) => {
                    path.push(outer);
                    at = outer;
                }
                _ => break at,
            }
        };
        for model in path {
            tops.insert(model, top);
        }
        let at = *group_of_top.entry(top).or_insert_with(|| {
            grouped.push(Vec::new());
            grouped.len() - 1
        });
        grouped[at].push(*index);
    }
    grouped.retain(|group| !group.iter().any(is_loop));
    let depths = depths(models, outer_model);
    for group in &mut grouped {
        group.sort_by_key(|index| depths.get(index).copied());
    }
    join_by_response_id(tree, grouped)
}

/// Returns the number of models around each model.
fn depths(models: &[usize], outer_model: impl Fn(usize) -> Option<usize>) -> HashMap<usize, usize> {
    let mut depths: HashMap<usize, usize> = HashMap::new();
    let mut path = Vec::new();
    for index in models {
        let mut at = Some(*index);
        while let Some(model) = at.filter(|model| !depths.contains_key(model)) {
            path.push(model);
            at = outer_model(model);
        }
        let base = at.and_then(|known| depths.get(&known).copied()).map_or(0, |depth| depth + 1);
        for (more, model) in path.drain(..).rev().enumerate() {
            depths.insert(model, base + more);
        }
    }
    depths
}

/// Joins groups that have the same response id and overlap in time. Some servers reuse ids, so consecutive calls may
/// have the same one.
fn join_by_response_id(tree: &Tree<'_>, groups: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
    let mut joined: Vec<Vec<usize>> = Vec::new();
    let mut newest: HashMap<String, (usize, TimeRange)> = HashMap::new();
    for group in groups {
        let response_id = group.iter().find_map(|index| vocabulary::response_id(&tree.spans[*index].attributes));
        let Some(response_id) = response_id else {
            joined.push(group);
            continue;
        };
        let range = TimeRange::of(tree, &group);
        if let Some((at, known)) = newest.get_mut(response_id).filter(|(_, known)| known.overlaps(&range)) {
            known.start = earliest(known.start, range.start);
            known.end = known.end.max(range.end);
            joined[*at].extend(group);
        } else {
            newest.insert(response_id.to_owned(), (joined.len(), range));
            joined.push(group);
        }
    }
    joined
}

struct TimeRange {
    start: Option<Timestamp>,
    end: Option<Timestamp>,
}

impl TimeRange {
    fn of(tree: &Tree<'_>, group: &[usize]) -> Self {
        Self {
            start: group.iter().filter_map(|index| tree.spans[*index].start).min(),
            end: group.iter().filter_map(|index| tree.spans[*index].end).max(),
        }
    }

    /// Whether the ranges overlap. Missing times are assumed to overlap.
    fn overlaps(&self, other: &Self) -> bool {
        let is_after =
            |start: Option<Timestamp>, end: Option<Timestamp>| start.zip(end).is_some_and(|(start, end)| start > end);
        !is_after(self.start, other.end) && !is_after(other.start, self.end)
    }
}

/// Ranks content: messages with content are best, then a bare text, then nothing.
fn quality(parsed: &ParsedMessages) -> u8 {
    let has_content = parsed
        .messages
        .iter()
        .any(|message| !message.content.is_empty() || !message.tool_calls.is_empty() || !message.parts.is_empty());
    match (parsed.is_empty(), parsed.structured && has_content) {
        (true, _) => 0,
        (false, false) => 1,
        (false, true) => 2,
    }
}

fn from_group(tree: &Tree<'_>, group: &[usize], contents: &HashMap<usize, Content>) -> StepBuilder {
    let empty = ParsedMessages::default();
    let (mut input, mut output) = (&empty, &empty);
    let (mut input_value, mut output_value) = (None, None);
    let mut builder = StepBuilder { spans: group.to_vec(), ..StepBuilder::default() };
    // The innermost span is nearest to the model: it comes last and wins ties.
    for index in group {
        let span = &tree.spans[*index];
        if let Some(content) = contents.get(index) {
            if quality(&content.input) >= quality(input) && quality(&content.input) > 0 {
                input = &content.input;
            }
            if quality(&content.output) >= quality(output) && quality(&content.output) > 0 {
                output = &content.output;
            }
            input_value = content.input_value.clone().or(input_value);
            output_value = content.output_value.clone().or(output_value);
        }
        builder.start = earliest(builder.start, span.start);
        builder.end = builder.end.max(span.end);
        builder.model = vocabulary::model(&span.attributes).map(str::to_owned).or(builder.model);
        builder.stop_reason = vocabulary::stop_reason(&span.attributes).or(builder.stop_reason);
        // Some frameworks accumulate usage over calls: the innermost span has that of this call.
        let usage = vocabulary::usage(&span.attributes);
        builder.usage = StepUsage {
            input_tokens: usage.input_tokens.or(builder.usage.input_tokens),
            output_tokens: usage.output_tokens.or(builder.usage.output_tokens),
            cached_input_tokens: usage.cached_input_tokens.or(builder.usage.cached_input_tokens),
            cost_usd: usage.cost_usd.or(builder.usage.cost_usd),
        };
    }
    builder.agent = group.first().and_then(|outermost| agent_of(tree, *outermost));
    builder.input.clone_from(&input.messages);
    builder.input_value = input_value.filter(|_| builder.input.is_empty());
    builder.add_output(output);
    builder.output_value = output_value.filter(|_| !builder.has_output());
    let failure = |index: &usize| vocabulary::failure(&tree.spans[*index], Role::Model, builder.has_output());
    // A failed attempt inside a call that succeeded is not an error.
    let succeeded = builder.has_output() && group.first().is_some_and(|outermost| failure(outermost).is_none());
    builder.error = group.iter().rev().find_map(failure).filter(|_| !succeeded);
    builder
}

fn earliest(left: Option<Timestamp>, right: Option<Timestamp>) -> Option<Timestamp> {
    match (left, right) {
        (Some(left), Some(right)) => Some(left.min(right)),
        (known, None) | (None, known) => known,
    }
}

/// Creates steps for each outermost agent, or for the root if there is no agent.
pub(super) fn from_agents(tree: &Tree<'_>) -> Vec<StepBuilder> {
    let is_outermost = |index: &usize| {
        let mut at = tree.enclosing[*index];
        while let Some(above) = at {
            if tree.roles[above] == Role::Agent {
                return false;
            }
            at = tree.enclosing[above];
        }
        true
    };
    let mut agents: Vec<usize> = tree.with_role(Role::Agent).filter(is_outermost).collect();
    if agents.is_empty() {
        agents.extend(tree.root());
    }
    agents.into_iter().flat_map(|index| from_agent(tree, index)).collect()
}

/// Creates one step from an agent span, or one per answer if the span carries its whole conversation.
fn from_agent(tree: &Tree<'_>, index: usize) -> Vec<StepBuilder> {
    let span = &tree.spans[index];
    let content = vocabulary::content(span, tree.logs_of(index));
    let conversation = vocabulary::conversation(span)
        .map_or_else(|| joined_conversation(&content), |conversation| conversation.messages);
    // A root that is not an agent has no agent name.
    let whole = StepBuilder {
        spans: vec![index],
        start: span.start,
        end: span.end,
        model: vocabulary::model(&span.attributes).map(str::to_owned),
        agent: if tree.roles[index] == Role::Agent { agent_of(tree, index) } else { None },
        usage: vocabulary::usage(&span.attributes),
        error: vocabulary::failure(span, Role::Agent, false),
        ..StepBuilder::default()
    };
    let mut builders = from_conversation(&conversation, &whole);
    if builders.is_empty() {
        let mut builder = whole;
        builder.input.clone_from(&content.input.messages);
        builder.input_value = content.input_value;
        builder.add_output(&content.output);
        builder.output_value = content.output_value.filter(|_| !builder.has_output());
        return vec![builder];
    }
    if let Some(last) = builders.last_mut() {
        // Usage and error apply to all steps together: attach them once.
        last.usage = whole.usage;
        last.error = whole.error;
        last.end = whole.end;
    }
    builders
}

/// Joins input and output into a conversation if the output has more than one answer. Frameworks may return their whole
/// state, which repeats the input.
fn joined_conversation(content: &Content) -> Vec<Message> {
    let (input, output) = (&content.input.messages, &content.output.messages);
    let repeated = output.iter().zip(input).take_while(|(left, right)| left == right).count();
    let after = if repeated == input.len() { &output[repeated..] } else { &output[..] };
    let answers = after.iter().filter(|message| message.role == "assistant").count();
    if answers > 1 { input.iter().chain(after).cloned().collect() } else { Vec::new() }
}

/// Splits a conversation into one step per answer.
fn from_conversation(messages: &[Message], whole: &StepBuilder) -> Vec<StepBuilder> {
    let mut builders: Vec<StepBuilder> = turns(messages)
        .map(|(input, answer)| StepBuilder {
            spans: whole.spans.clone(),
            start: whole.start,
            model: whole.model.clone(),
            agent: whole.agent.clone(),
            input: input.to_vec(),
            is_delta: true,
            response: answer.content.clone(),
            calls: answer.tool_calls.clone(),
            ..StepBuilder::default()
        })
        .collect();
    // The results of the last calls.
    let after = messages.iter().rposition(|message| message.role == "assistant").map_or(0, |at| at + 1);
    if let Some(last) = builders.last_mut() {
        for message in
            messages[after..].iter().filter(|message| message.role == "tool" && message.tool_call_id.is_some())
        {
            if let Some(call) = last.calls.iter_mut().find(|call| call.id == message.tool_call_id) {
                super::tool_results::apply_result(call, message);
            }
        }
    }
    builders
}

/// Returns each answer of a conversation with the messages since the answer before.
pub(super) fn turns(messages: &[Message]) -> impl Iterator<Item = (&[Message], &Message)> {
    let mut from = 0;
    messages.iter().enumerate().filter(|(_, message)| message.role == "assistant").map(move |(at, answer)| {
        let input = &messages[from..at];
        from = at + 1;
        (input, answer)
    })
}

impl StepBuilder {
    pub(super) fn add_output(&mut self, parsed: &ParsedMessages) {
        let has_answer = parsed.messages.iter().any(|message| message.role == "assistant");
        for message in parsed
            .messages
            .iter()
            .filter(|message| message.role == "assistant" || !has_answer && message.role != "tool")
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
        // The results of provider-run tools are in the same output.
        for message in parsed.messages.iter().filter(|message| message.role == "tool" && message.tool_call_id.is_some())
        {
            if let Some(call) = self.calls.iter_mut().find(|call| call.id == message.tool_call_id) {
                super::tool_results::apply_result(call, message);
            }
        }
        self.unread_calls.extend(parsed.unread_calls.iter().cloned());
        self.reasoning = parsed.reasoning.clone().or(self.reasoning.take());
        self.stop_reason = parsed.stop_reason.clone().or(self.stop_reason.take());
    }

    /// Fills in missing values from another description of the same call.
    pub(super) fn merge(&mut self, other: Self) {
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

    /// Builds the step. Its input keeps only new messages.
    pub(super) fn build(self, seen: &mut SeenMessages) -> Step {
        let messages = seen.take_new(self.input, &self.output_hashes);
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
