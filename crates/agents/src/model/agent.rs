//! Runs a conversation with a model for one case.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use karat_cases::Case;
use karat_cases::registry::Tool;
use karat_core::assertion::Mode;
use karat_core::port::{Agent, AgentError, BoxFuture, Conversation, ToolRunner, ToolUnavailable, TrialContext};
use karat_core::trace::{MAX_TURNS_REACHED, ToolCall, Trace, Usage};
use karat_json::canonical::{exact_hash, sorted};
use karat_json::hash::short_hash;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::client::ModelClient;
use super::provider::Api;
use super::turn::{Arguments, Call, CallResult};
use super::{anthropic, openai};

const DEFAULT_MAX_TURNS: u64 = 5;

/// The tools cannot be offered to the model.
#[derive(Debug, thiserror::Error)]
pub enum ModelAgentError {
    #[error("invalid tool name '{name}': models accept at most 64 letters, digits, '_' and '-'")]
    ToolName { name: String },
    #[error("cannot serialise the tools: {0}")]
    Tools(#[from] serde_json::Error),
}

/// How a model's tool calls are answered.
#[derive(Clone)]
pub enum ToolExecution {
    /// By the stubs of the case; a case without stubs has one turn only.
    Stubs,
    /// By the real tools, if they are allowed.
    Live { runner: Arc<dyn ToolRunner>, allowed: AllowedTools },
}

/// The tools that may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowedTools {
    All,
    Named(Vec<String>),
}

impl AllowedTools {
    fn allows(&self, tool: &str) -> bool {
        match self {
            Self::All => true,
            Self::Named(names) => names.iter().any(|name| name == tool),
        }
    }
}

/// An agent that consists of a model and the tools of the registry.
pub struct ModelAgent {
    client: ModelClient,
    system_prompt: Option<String>,
    execution: ToolExecution,
    /// In the wire format of the provider; `None` if there are no tools.
    tools: Option<Box<RawValue>>,
    /// The determinants that are the same for all cases.
    determinants: Map<String, Value>,
}

impl ModelAgent {
    pub fn new(
        client: ModelClient,
        system_prompt: Option<String>,
        tools: &[Tool],
        execution: ToolExecution,
    ) -> Result<Self, ModelAgentError> {
        if let Some(tool) = tools.iter().find(|tool| !is_valid_tool_name(&tool.name)) {
            return Err(ModelAgentError::ToolName { name: tool.name.clone() });
        }
        let offered = match client.api() {
            Api::Openai => openai::tool_definitions(tools),
            Api::Anthropic => anthropic::tool_definitions(tools),
        };
        let mut determinants = Map::new();
        determinants.insert("agent".to_owned(), client.identity().into());
        let mut parameters = client.parameters();
        determinants.extend(parameters.shift_remove_entry("model"));
        determinants.insert("parameters".to_owned(), parameters.into());
        determinants.extend(system_prompt_hash(system_prompt.as_deref()));
        let hash = |tool: &Tool| {
            let definition = json!({"name": tool.name, "description": tool.description.get(), "inputSchema": tool.input_schema.get()});
            (tool.name.clone(), exact_hash(&definition).into())
        };
        determinants.insert("tools".to_owned(), Value::Object(tools.iter().map(hash).collect()));
        determinants.extend(live_execution_parts(&execution));
        let offered = (!offered.is_empty()).then(|| RawValue::from_string(Value::from(offered).to_string()));
        Ok(Self { client, system_prompt, execution, tools: offered.transpose()?, determinants })
    }

    /// Returns the stubs of a turn if they answer the model's calls.
    fn stubs<'c>(&self, case: &'c Case, turn: usize) -> Option<Cow<'c, Map<String, Value>>> {
        case.stubs_of_turn(turn).filter(|_| matches!(self.execution, ToolExecution::Stubs))
    }

    /// Returns the maximum number of model calls per message, or `None` if there is only one.
    fn max_turns(&self, case: &Case) -> Option<u64> {
        (self.mode(case) != Mode::RoutingOnly).then(|| case.max_turns.unwrap_or(DEFAULT_MAX_TURNS))
    }

    /// Sends a message after those of the conversation so far, and runs the model and its tools until it answers.
    async fn answer(
        &self,
        trial: TrialContext<'_>,
        turn: usize,
        messages: &mut Vec<Value>,
    ) -> Result<Trace, AgentError> {
        let case = trial.case;
        let mode = self.mode(case);
        let max_turns = self.max_turns(case).unwrap_or(1);
        let stubs = self.stubs(case, turn);
        let system = self.system_prompt.as_deref();
        let mut trace = Trace::default();
        let mut elapsed = Duration::ZERO;
        let mut usage = Some(None::<Usage>);
        for turn_number in 1..=max_turns {
            let outcome =
                self.client.next_turn(system, messages, self.tools.as_deref(), None, trial.wait_observer).await;
            let completion = outcome.map_err(|error| AgentError { elapsed: error.elapsed + elapsed, ..error })?;
            let turn = completion.turn;
            elapsed += completion.latency;
            usage = usage
                .zip(completion.usage)
                .map(|(sum, usage)| Some(sum.map_or_else(|| usage.clone(), |sum| sum.plus(&usage))));
            trace.model = turn.model.or(trace.model);
            trace.warnings.extend(turn.incomplete_reason);
            let step = Some(turn_number - 1);
            trace.steps = Some(turn_number);
            if mode == Mode::RoutingOnly {
                // A single call, which no message follows.
                trace.response = turn.text;
                let calls = turn.calls.into_iter().map(unexecuted_call);
                trace.tool_calls.extend(calls.map(|call| ToolCall { step, ..call }));
                break;
            }
            if turn.calls.is_empty() {
                trace.response = turn.text;
                trace.stop_reason = Some("final".to_owned());
                push_answer(messages, turn.message);
                break;
            }
            let mut results = Vec::with_capacity(turn.calls.len());
            for call in turn.calls {
                let start = Instant::now();
                let result = self.answer_call(stubs.as_deref(), call).await;
                elapsed += start.elapsed();
                let (tool_call, result) = result.map_err(|error| AgentError::new(error.to_string(), elapsed))?;
                trace.tool_calls.push(ToolCall { step, ..tool_call });
                results.push(result);
            }
            if turn_number == max_turns {
                trace.stop_reason = Some(MAX_TURNS_REACHED.to_owned());
            }
            messages.push(turn.message);
            messages.extend(match self.client.api() {
                Api::Openai => openai::result_messages(&results),
                Api::Anthropic => anthropic::result_messages(&results),
            });
        }
        trace.usage = usage.flatten();
        trace.latency_ms = elapsed.as_secs_f64() * 1000.0;
        Ok(trace)
    }

    /// Answers one of the model's calls with its stub or the real tool. If the tool is unavailable, the case has no
    /// verdict.
    async fn answer_call(
        &self,
        stubs: Option<&Map<String, Value>>,
        call: Call,
    ) -> Result<(ToolCall, CallResult), ToolUnavailable> {
        let (params, raw_params) = split_arguments(call.arguments);
        let mut tool_call = ToolCall { name: call.name, params, raw_params, ..ToolCall::default() };
        let mut text = None;
        let outcome = if tool_call.raw_params.is_some() {
            Err("the arguments are not a JSON object".to_owned())
        } else {
            match &self.execution {
                ToolExecution::Stubs => {
                    let stub = stubs.and_then(|stubs| stubs.get(&tool_call.name));
                    tool_call.duration_ms = stub.map(|_| STUB_MS);
                    stub.cloned().ok_or_else(|| format!("the tool '{}' has no stub", tool_call.name))
                }
                ToolExecution::Live { allowed, .. } if !allowed.allows(&tool_call.name) => {
                    Err(format!("refused: '{}' is not in 'allowTools'", tool_call.name))
                }
                ToolExecution::Live { runner, .. } => {
                    let start = Instant::now();
                    let outcome = runner.call(&tool_call.name, &tool_call.params).await?;
                    tool_call.duration_ms = Some(start.elapsed().as_secs_f64() * 1000.0);
                    // The text of a real tool is sent to the model unchanged.
                    text = outcome.result.as_str().map(str::to_owned);
                    tool_call.error = outcome.error;
                    Ok(outcome.result)
                }
            }
        };
        let result = outcome.unwrap_or_else(|error| {
            let result = json!({"error": error});
            tool_call.error = Some(error);
            result
        });
        tool_call.success = Some(tool_call.error.is_none());
        let text = text.unwrap_or_else(|| result.to_string());
        tool_call.result = Some(result);
        let is_error = tool_call.error.is_some();
        Ok((tool_call, CallResult { id: call.id, text, is_error }))
    }
}

impl Agent for ModelAgent {
    fn identity(&self) -> String {
        self.client.identity()
    }

    fn parameters(&self) -> Map<String, Value> {
        let mut parameters = self.client.parameters();
        parameters.extend(system_prompt_hash(self.system_prompt.as_deref()));
        parameters.extend(live_execution_parts(&self.execution));
        parameters
    }

    fn determinants(&self, case: &Case, turn: usize) -> Map<String, Value> {
        let mut parts = self.determinants.clone();
        parts.insert("message".to_owned(), case.message(turn).into());
        parts.extend(self.stubs(case, turn).map(|stubs| ("stubs".to_owned(), stubs.into_owned().into())));
        parts.extend(self.max_turns(case).map(|turns| ("maxTurns".to_owned(), turns.into())));
        parts
    }

    fn equality_key(&self, case: &Case) -> String {
        let turns = self.max_turns(case).map(|turns| turns.to_string()).unwrap_or_default();
        let stubs = |turn| {
            self.stubs(case, turn)
                .map(|stubs| sorted(&Value::Object(stubs.into_owned())).to_string())
                .unwrap_or_default()
        };
        if let Some(input) = &case.input {
            // Always append two lines, so that a message cannot equal another message with its stubs.
            return format!("{}\n{turns}\n{}", input.message, stubs(0));
        }
        if case.user.is_some() {
            return format!("\0{}\n{turns}\n{}", case.script(), stubs(0));
        }
        let messages = case.messages().enumerate().map(|(turn, message)| json!([message, stubs(turn)]));
        format!("\0{}\n{turns}\n", messages.collect::<Value>())
    }

    fn mode(&self, case: &Case) -> Mode {
        match self.execution {
            ToolExecution::Live { .. } => Mode::Endpoint,
            // A history of calls without results would be refused.
            ToolExecution::Stubs if case.stubs.is_some() || case.has_turns() => Mode::Stubbed,
            ToolExecution::Stubs => Mode::RoutingOnly,
        }
    }

    fn start<'a>(&'a self, trial: TrialContext<'a>) -> Box<dyn Conversation + 'a> {
        Box::new(ModelConversation { agent: self, trial, turn: 0, messages: Vec::new() })
    }
}

struct ModelConversation<'a> {
    agent: &'a ModelAgent,
    trial: TrialContext<'a>,
    turn: usize,
    /// The messages so far in the provider's format, with calls and results.
    messages: Vec<Value>,
}

impl Conversation for ModelConversation<'_> {
    fn send<'s>(&'s mut self, message: &'s str) -> BoxFuture<'s, Result<Trace, AgentError>> {
        Box::pin(async move {
            let client = &self.agent.client;
            if self.messages.is_empty() {
                self.messages = client.first_messages(self.agent.system_prompt.as_deref(), message);
            } else {
                client.push_user_message(&mut self.messages, message);
            }
            let trace = self.agent.answer(self.trial, self.turn, &mut self.messages).await?;
            self.turn += 1;
            Ok(trace)
        })
    }
}

/// Whether both wire formats accept this name.
fn is_valid_tool_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=64).contains(&name.len()) && name.bytes().all(is_allowed)
}

fn system_prompt_hash(prompt: Option<&str>) -> Option<(String, Value)> {
    prompt.map(|prompt| ("systemPrompt".to_owned(), short_hash(prompt.as_bytes()).into()))
}

/// Returns the determinants of live tool execution.
fn live_execution_parts(execution: &ToolExecution) -> Map<String, Value> {
    let mut parts = Map::new();
    if let ToolExecution::Live { allowed, .. } = execution {
        parts.insert("toolExecution".to_owned(), "mcp".into());
        let allowed = match allowed {
            AllowedTools::All => json!("*"),
            AllowedTools::Named(names) => json!(names),
        };
        parts.insert("allowTools".to_owned(), allowed);
    }
    parts
}

/// Duration of a call that a stub answers: constant, so that results are reproducible.
const STUB_MS: f64 = 0.0;

/// Converts a call that is not executed: whether it would succeed is unknown, unless its arguments are invalid.
fn unexecuted_call(call: Call) -> ToolCall {
    let (params, raw_params) = split_arguments(call.arguments);
    let error = raw_params.as_ref().map(|_| "the arguments are not a JSON object".to_owned());
    let success = error.as_ref().map(|_| false);
    ToolCall { name: call.name, params, raw_params, success, error, ..ToolCall::default() }
}

fn split_arguments(arguments: Arguments) -> (Map<String, Value>, Option<String>) {
    match arguments {
        Arguments::Object(map) => (map, None),
        Arguments::Invalid(text) => (Map::new(), Some(text)),
    }
}

/// Adds the model's answer to the messages of a conversation.
fn push_answer(messages: &mut Vec<Value>, answer: Value) {
    // An empty list of blocks is rejected; the next message of the user then follows the last one.
    if answer.get("content").and_then(Value::as_array).is_none_or(|blocks| !blocks.is_empty()) {
        messages.push(answer);
    }
}
