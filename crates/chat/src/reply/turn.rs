//! Builds the reply of one turn from its parts.

use std::collections::{HashMap, HashSet, VecDeque};

use karat_core::trace::{ToolCall, Usage};
use serde_json::{Map, Value};

use super::{Approval, LateResult, Reply, ReplyCall, ReplyStep};
use crate::lenient::{parse_nested, text_of};

/// Builds the reply of an agent. Parts of a stream are added in the order of arrival.
#[derive(Debug, Default)]
pub(super) struct TurnBuilder {
    steps: Vec<OpenStep>,
    calls: Vec<OpenCall>,
    /// The latest call with an id.
    by_id: HashMap<String, CallIndex>,
    /// Calls without a result, by name.
    open_by_name: HashMap<String, VecDeque<CallIndex>>,
    /// All calls before this one have a result.
    first_open: usize,
    starts_step: bool,
    pub(super) after_result: AfterResult,
    event: Option<usize>,
    pub(super) first_text_event: Option<usize>,
    late_results: Vec<LateResult>,
    /// The ids of the late results.
    late_ids: HashSet<String>,
    /// The reason why the reply is invalid.
    pub(super) invalid: Option<String>,
    pub(super) error: Option<String>,
    pub(super) approval: Option<Approval>,
    pub(super) conversation_id: Option<String>,
    pub(super) is_complete: bool,
    pub(super) calls_unreported: bool,
    pub(super) usage: Option<Usage>,
    pub(super) model: Option<String>,
    pub(super) stop_reason: Option<String>,
}

/// The step of text and calls that follow the result of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum AfterResult {
    /// A new step: they belong to the model's next message.
    #[default]
    NewStep,
    /// The same step: the server ran the tool while the model wrote its message.
    SameStep,
}

/// The index of a call in its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CallIndex(usize);

#[derive(Debug, Default)]
struct OpenStep {
    text: String,
    reasoning: String,
    has_result: bool,
    ends_line: bool,
}

#[derive(Debug)]
struct OpenCall {
    step: usize,
    id: Option<String>,
    name: String,
    arguments: Arguments,
    outcome: Option<Outcome>,
}

#[derive(Debug)]
enum Arguments {
    /// Pieces of JSON text.
    Text(String),
    Value(Value),
}

/// The outcome of a call.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Outcome {
    pub(super) result: Option<Value>,
    /// `None` if the protocol does not report it.
    pub(super) success: Option<bool>,
    pub(super) error: Option<String>,
}

impl Outcome {
    /// Creates an outcome of a protocol that does not flag failures.
    pub(super) fn unknown(result: &Value) -> Self {
        Self { result: Some(parse_text(result)), ..Self::default() }
    }

    /// Creates an outcome of a protocol that flags failures.
    pub(super) fn known(result: &Value, failed: bool) -> Self {
        if failed { Self::failed(result) } else { Self { success: Some(true), ..Self::unknown(result) } }
    }

    /// Creates a failure with an error in place of the result.
    pub(super) fn failed(error: &Value) -> Self {
        let message = error.get("message").and_then(Value::as_str).map_or_else(|| text_of(error), str::to_owned);
        let text = if message.trim().is_empty() { "the call failed".to_owned() } else { message };
        let result = (!error.is_null()).then(|| parse_text(error));
        Self { result, success: Some(false), error: Some(text) }
    }
}

/// Parses the JSON text of an object or a list.
fn parse_text(value: &Value) -> Value {
    crate::lenient::unpack(value).into_owned()
}

impl TurnBuilder {
    /// Sets the index of the current event.
    pub(super) fn at_event(&mut self, index: usize) {
        self.event = Some(index);
    }

    /// Makes the next content start a new step.
    pub(super) fn start_step(&mut self) {
        self.starts_step = true;
    }

    /// Discards the content of the current step.
    pub(super) fn discard_step(&mut self) {
        if self.starts_step || self.steps.is_empty() {
            return;
        }
        let last = self.steps.len() - 1;
        while self.calls.last().is_some_and(|call| call.step == last) {
            if let Some(id) = self.calls.pop().and_then(|call| call.id) {
                self.by_id.remove(&id);
            }
        }
        self.first_open = self.first_open.min(self.calls.len());
        self.steps.pop();
        self.starts_step = true;
    }

    /// Discards everything so far, because a reply begins after the last user message.
    pub(super) fn discard_all(&mut self) {
        self.steps.clear();
        self.calls.clear();
        self.by_id.clear();
        self.open_by_name.clear();
        self.late_results.clear();
        self.late_ids.clear();
        self.first_open = 0;
        self.usage = None;
        self.first_text_event = None;
        self.approval = None;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.late_results.is_empty()
    }

    pub(super) fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    pub(super) fn call_count(&self) -> usize {
        self.calls.len()
    }

    pub(super) fn has_text(&self) -> bool {
        self.steps.iter().any(|step| !step.text.is_empty())
    }

    /// Marks the current event as having text, which may be added later.
    pub(super) fn mark_text(&mut self) {
        self.first_text_event = self.first_text_event.or(self.event);
    }

    fn step(&mut self) -> &mut OpenStep {
        if std::mem::take(&mut self.starts_step) || self.steps.is_empty() {
            self.steps.push(OpenStep::default());
        }
        let last = self.steps.len() - 1;
        &mut self.steps[last]
    }

    /// Adds text to the current step. Text after the result of a call belongs to the next one.
    pub(super) fn add_text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.mark_text();
        self.end_answered_step();
        let step = self.step();
        if std::mem::take(&mut step.ends_line) {
            step.text.push('\n');
        }
        step.text.push_str(text);
    }

    /// Makes the next text of the current step start on a new line.
    pub(super) fn end_line(&mut self) {
        if !self.starts_step
            && let Some(step) = self.steps.last_mut()
        {
            step.ends_line = !step.text.is_empty();
        }
    }

    /// Ends the step after the result of a call, unless the protocol has everything in one message.
    fn end_answered_step(&mut self) {
        if self.after_result == AfterResult::NewStep && self.steps.last().is_some_and(|step| step.has_result) {
            self.starts_step = true;
        }
    }

    /// Replaces the text of the current step.
    pub(super) fn replace_text(&mut self, text: &str) {
        self.step().text.clear();
        self.add_text(text);
    }

    pub(super) fn add_reasoning(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.end_answered_step();
        self.step().reasoning.push_str(text);
    }

    /// Adds a call, or returns the one with this id if it has no result yet.
    pub(super) fn call(&mut self, id: Option<&str>, name: &str) -> CallIndex {
        if let Some(index) = id.and_then(|id| self.by_id.get(id)).copied()
            && let Some(call) = self.calls.get_mut(index.0)
            && call.outcome.is_none()
        {
            self.complete_call(index, id, name);
            return index;
        }
        self.new_call(id, name)
    }

    /// Adds a call even if there is one with this id: some models number the calls of each message from the start.
    pub(super) fn new_call(&mut self, id: Option<&str>, name: &str) -> CallIndex {
        self.end_answered_step();
        self.step();
        let step = self.steps.len() - 1;
        let index = CallIndex(self.calls.len());
        if let Some(id) = id {
            self.by_id.insert(id.to_owned(), index);
        }
        self.open_by_name.entry(name.to_owned()).or_default().push_back(index);
        self.calls.push(OpenCall {
            step,
            id: id.map(str::to_owned),
            name: name.to_owned(),
            arguments: Arguments::Text(String::new()),
            outcome: None,
        });
        index
    }

    pub(super) fn find_call(&self, id: &str) -> Option<CallIndex> {
        self.by_id.get(id).copied()
    }

    pub(super) fn call_id(&self, call: CallIndex) -> Option<&str> {
        self.calls.get(call.0)?.id.as_deref()
    }

    /// Adds the id or name of a call that a stream sends after its start.
    pub(super) fn complete_call(&mut self, index: CallIndex, id: Option<&str>, name: &str) {
        let Some(call) = self.calls.get_mut(index.0) else { return };
        if let Some(id) = id.filter(|_| call.id.is_none()) {
            call.id = Some(id.to_owned());
            self.by_id.insert(id.to_owned(), index);
        }
        if call.name.is_empty() && !name.is_empty() {
            name.clone_into(&mut call.name);
            self.open_by_name.entry(name.to_owned()).or_default().push_back(index);
        }
    }

    /// Appends to the JSON text of the arguments.
    pub(super) fn add_arguments(&mut self, call: CallIndex, piece: &str) {
        let Some(call) = self.calls.get_mut(call.0) else { return };
        match &mut call.arguments {
            Arguments::Text(text) => text.push_str(piece),
            whole @ Arguments::Value(_) => *whole = Arguments::Text(piece.to_owned()),
        }
    }

    pub(super) fn set_arguments(&mut self, call: CallIndex, arguments: &Value) {
        let Some(call) = self.calls.get_mut(call.0) else { return };
        call.arguments = match arguments {
            Value::String(text) => Arguments::Text(text.clone()),
            other => Arguments::Value(other.clone()),
        };
    }

    /// Finishes the call with this id. Without an id, finishes the first open call, with this name if it is given.
    pub(super) fn finish_call(&mut self, id: Option<&str>, name: Option<&str>, outcome: Outcome) {
        let index = match (id, name) {
            (Some(id), _) => self.by_id.get(id).copied(),
            (None, Some(name)) => self.next_open_named(name),
            (None, None) => self.next_open(),
        };
        if let Some(index) = index {
            self.set_outcome(index, outcome);
        } else if let Some(id) = id {
            let Outcome { result, success, error } = outcome;
            self.late_ids.insert(id.to_owned());
            self.late_results.push(LateResult { call_id: id.to_owned(), result, success, error });
        }
    }

    pub(super) fn set_outcome(&mut self, index: CallIndex, outcome: Outcome) {
        if let Some(call) = self.calls.get_mut(index.0) {
            call.outcome = Some(outcome);
            if let Some(step) = self.steps.get_mut(call.step) {
                step.has_result = true;
            }
        }
    }

    /// Clears the success of a call, because its result only reports that it waits for approval.
    pub(super) fn clear_success(&mut self, id: &str) {
        if let Some(index) = self.by_id.get(id)
            && let Some(outcome) = self.calls.get_mut(index.0).and_then(|call| call.outcome.as_mut())
        {
            outcome.success = None;
            outcome.error = None;
        }
    }

    fn next_open_named(&mut self, name: &str) -> Option<CallIndex> {
        let open = self.open_by_name.get_mut(name)?;
        while let Some(index) = open.pop_front() {
            if self.calls.get(index.0).is_some_and(|call| call.outcome.is_none() && call.name == name) {
                return Some(index);
            }
        }
        None
    }

    fn next_open(&mut self) -> Option<CallIndex> {
        while self.calls.get(self.first_open)?.outcome.is_some() {
            self.first_open += 1;
        }
        Some(CallIndex(self.first_open))
    }

    /// Returns the name and arguments of a call, for a question about it.
    pub(super) fn describe_call(&self, id: &str) -> Option<String> {
        let call = self.calls.get(self.by_id.get(id)?.0)?;
        let arguments = match &call.arguments {
            Arguments::Text(text) => text.clone(),
            Arguments::Value(value) => value.to_string(),
        };
        Some(format!("{} {arguments}", call.name).trim_end().to_owned())
    }

    pub(super) fn is_answered(&self, id: &str) -> bool {
        let call = self.by_id.get(id).and_then(|index| self.calls.get(index.0));
        call.is_some_and(|call| call.outcome.is_some()) || self.late_ids.contains(id)
    }

    pub(super) fn add_usage(&mut self, more: &Usage) {
        add_usage(&mut self.usage, more);
    }

    /// Records an error. Only the first is kept, since it usually causes the others.
    pub(super) fn fail(&mut self, error: String) {
        self.error.get_or_insert(error);
    }

    /// Records a request for approval. Only the first is kept.
    pub(super) fn request_approval(&mut self, approval: Approval) {
        self.approval.get_or_insert(approval);
    }

    pub(super) fn set_model(&mut self, model: Option<&str>) {
        if let Some(model) = model {
            self.model = Some(model.to_owned());
        }
    }

    pub(super) fn set_stop_reason(&mut self, reason: Option<&str>) {
        if let Some(reason) = reason {
            self.stop_reason = Some(reason.to_owned());
        }
    }

    pub(super) fn set_conversation_id(&mut self, id: Option<&str>) {
        if let Some(id) = id {
            self.conversation_id = Some(id.to_owned());
        }
    }

    /// Replaces the steps with those of another builder of the same turn.
    pub(super) fn replace_steps(&mut self, other: Self) {
        let Self { steps, calls, by_id, open_by_name, first_open, late_results, late_ids, invalid, .. } = other;
        *self = Self {
            steps,
            calls,
            by_id,
            open_by_name,
            first_open,
            late_results,
            late_ids,
            invalid,
            starts_step: true,
            ..std::mem::take(self)
        };
    }

    pub(super) fn into_reply(mut self, protocol: &'static str) -> Reply {
        // The result of a call that waits for approval does not report success.
        if let Some(id) = self.approval.as_ref().and_then(|approval| approval.call_id.clone()) {
            self.clear_success(&id);
        }
        let mut steps: Vec<ReplyStep> = self
            .steps
            .into_iter()
            .map(|step| ReplyStep {
                text: step.text,
                reasoning: (!step.reasoning.trim().is_empty()).then_some(step.reasoning),
                calls: Vec::new(),
            })
            .collect();
        for call in self.calls {
            if let Some(step) = steps.get_mut(call.step) {
                step.calls.push(call.into_reply_call());
            }
        }
        steps.retain(|step| *step != ReplyStep::default());
        Reply {
            protocol,
            calls_unreported: self.calls_unreported && steps.iter().all(|step| step.calls.is_empty()),
            steps,
            error: self.error,
            approval: self.approval,
            first_text_event: self.first_text_event,
            conversation_id: self.conversation_id,
            is_complete: self.is_complete,
            usage: self.usage,
            model: self.model,
            stop_reason: self.stop_reason,
            late_results: self.late_results,
        }
    }
}

impl OpenCall {
    fn into_reply_call(self) -> ReplyCall {
        let (params, raw_params) = match self.arguments {
            Arguments::Text(text) => parse_params(text),
            Arguments::Value(Value::Object(map)) => (map, None),
            Arguments::Value(Value::Null) => (Map::new(), None),
            Arguments::Value(other) => (Map::new(), Some(other.to_string())),
        };
        let Outcome { result, success, error } = self.outcome.unwrap_or_default();
        let call =
            ToolCall { name: self.name, success, duration_ms: None, params, raw_params, result, error, step: None };
        ReplyCall { id: self.id, call }
    }
}

/// Parses the JSON text of arguments. Text that is not an object is returned as it is.
fn parse_params(text: String) -> (Map<String, Value>, Option<String>) {
    if text.trim().is_empty() || text.trim() == "null" {
        return (Map::new(), None);
    }
    match parse_nested(&text) {
        Some(Value::Object(map)) => (map, None),
        _ => (Map::new(), Some(text)),
    }
}

/// Adds the usage of another step; a value that both lack stays unknown.
pub(super) fn add_usage(sum: &mut Option<Usage>, more: &Usage) {
    let sum = sum.get_or_insert_default();
    let add = |left: Option<u64>, right: Option<u64>| match (left, right) {
        (Some(left), Some(right)) => Some(left.saturating_add(right)),
        (known, None) | (None, known) => known,
    };
    sum.input_tokens = add(sum.input_tokens, more.input_tokens);
    sum.output_tokens = add(sum.output_tokens, more.output_tokens);
    sum.cached_input_tokens = add(sum.cached_input_tokens, more.cached_input_tokens);
    sum.cost_usd = match (sum.cost_usd, more.cost_usd) {
        (Some(left), Some(right)) => Some(left + right),
        (known, None) | (None, known) => known,
    };
}
