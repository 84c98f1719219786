//! Leads a conversation with a model about one case.

use std::sync::Arc;
use std::time::{Duration, Instant};

use karat_core::assertion::Mode;
use karat_core::case::Case;
use karat_core::port::{Agent, AgentError, Ask, Pending, ToolRunner};
use karat_core::registry::Tool;
use karat_core::trace::{ToolCall, Trace, Usage};
use karat_json::canonical::{exact_hash, sorted};
use karat_json::hash::short_hash;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::client::ModelClient;
use super::provider::Api;
use super::turn::{Arguments, Call, CallResult};
use super::{anthropic, openai};

/// How often a model is asked in a loop, where a case does not say.
const MAX_TURNS: u64 = 5;

/// Why a model cannot be offered its tools.
#[derive(Debug, thiserror::Error)]
pub enum ModelAgentError {
    #[error("the tool '{name}' cannot be offered to a model: names are at most 64 letters, digits, '_' and '-'")]
    ToolName { name: String },
    #[error("the tools cannot be written as JSON: {0}")]
    Tools(#[from] serde_json::Error),
}

/// What answers a model's calls.
#[derive(Clone)]
pub enum ToolExecution {
    /// The case's stubs; a case without any is asked for one turn only.
    Stubs,
    /// The real tools, of those that a person allowed.
    Live { runner: Arc<dyn ToolRunner>, allowed: AllowedTools },
}

/// Which tools may run.
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

/// Answers cases with a model that is offered the registry's tools.
pub struct ModelAgent {
    client: ModelClient,
    system_prompt: Option<String>,
    execution: ToolExecution,
    /// As the provider wants them; none at all is no list.
    tools: Option<Box<RawValue>>,
    /// What determines an answer beside the case.
    determinants: Map<String, Value>,
}

impl ModelAgent {
    pub fn new(
        client: ModelClient,
        system_prompt: Option<String>,
        tools: &[Tool],
        execution: ToolExecution,
    ) -> Result<Self, ModelAgentError> {
        if let Some(tool) = tools.iter().find(|tool| !can_be_offered(&tool.name)) {
            return Err(ModelAgentError::ToolName { name: tool.name.clone() });
        }
        let offered = match client.api() {
            Api::Openai => openai::tools(tools),
            Api::Anthropic => anthropic::tools(tools),
        };
        let mut determinants = Map::new();
        determinants.insert("agent".to_owned(), client.identity().into());
        let mut parameters = client.parameters();
        determinants.extend(parameters.shift_remove_entry("model"));
        determinants.insert("parameters".to_owned(), parameters.into());
        determinants.extend(hashed_prompt(system_prompt.as_deref()));
        let hash = |tool: &Tool| {
            let definition = json!({"name": tool.name, "description": tool.description.get(), "inputSchema": tool.input_schema.get()});
            (tool.name.clone(), exact_hash(&definition).into())
        };
        determinants.insert("tools".to_owned(), Value::Object(tools.iter().map(hash).collect()));
        determinants.extend(live_parts(&execution));
        let offered = (!offered.is_empty()).then(|| RawValue::from_string(Value::from(offered).to_string()));
        Ok(Self { client, system_prompt, execution, tools: offered.transpose()?, determinants })
    }

    /// Returns the case's stubs, if they answer the model's calls.
    fn stubs<'c>(&self, case: &'c Case) -> Option<&'c Map<String, Value>> {
        case.stubs.as_ref().filter(|_| matches!(self.execution, ToolExecution::Stubs))
    }

    /// Returns how often the model is asked at most; none where its first turn is all there is.
    fn most_turns(&self, case: &Case) -> Option<u64> {
        (self.mode(case) != Mode::RoutingOnly).then(|| case.max_turns.unwrap_or(MAX_TURNS))
    }

    async fn converse(&self, ask: Ask<'_>) -> Result<Trace, AgentError> {
        let case = ask.case;
        let mode = self.mode(case);
        let most_turns = self.most_turns(case).unwrap_or(1);
        let system = self.system_prompt.as_deref();
        let mut messages = self.client.first_messages(system, &case.input.message);
        let mut trace = Trace::default();
        let mut spent = Duration::ZERO;
        let mut usage = Some(Usage { input_tokens: Some(0), output_tokens: Some(0), ..Usage::default() });
        for turn_number in 1..=most_turns {
            let asked = self.client.ask(system, &messages, self.tools.as_deref(), None, ask.waiting).await;
            let answered = asked.map_err(|error| AgentError { elapsed: error.elapsed + spent, ..error })?;
            let turn = answered.turn;
            spent += answered.latency;
            usage = usage.zip(answered.usage).map(|(sum, one)| add(&sum, &one, turn_number == 1));
            trace.model = turn.model.or(trace.model);
            trace.warnings.extend(turn.cut_off);
            if mode == Mode::RoutingOnly {
                trace.response = turn.text;
                trace.tool_calls.extend(turn.calls.into_iter().map(unanswered));
                break;
            }
            if turn.calls.is_empty() {
                trace.response = turn.text;
                trace.stop_reason = Some("final".to_owned());
                break;
            }
            let mut results = Vec::with_capacity(turn.calls.len());
            for call in turn.calls {
                let start = Instant::now();
                let (call_made, result) = self.answer_call(case, call).await;
                spent += start.elapsed();
                trace.tool_calls.push(call_made);
                results.push(result);
            }
            if turn_number == most_turns {
                trace.stop_reason = Some("maxTurns".to_owned());
            }
            messages.push(turn.message);
            messages.extend(match self.client.api() {
                Api::Openai => openai::results(&results),
                Api::Anthropic => anthropic::results(&results),
            });
        }
        trace.usage = usage;
        trace.latency_ms = spent.as_secs_f64() * 1000.0;
        Ok(trace)
    }

    /// Answers one of the model's calls: by its stub, or by the tool itself.
    async fn answer_call(&self, case: &Case, call: Call) -> (ToolCall, CallResult) {
        let (params, raw_params) = split(call.arguments);
        let mut made = ToolCall { name: call.name, params, raw_params, ..ToolCall::default() };
        let mut text = None;
        let outcome = if made.raw_params.is_some() {
            Err("the arguments are no JSON object".to_owned())
        } else {
            match &self.execution {
                ToolExecution::Stubs => {
                    let stub = case.stubs.as_ref().and_then(|stubs| stubs.get(&made.name));
                    stub.cloned().ok_or_else(|| format!("the tool '{}' has no stub", made.name))
                }
                ToolExecution::Live { allowed, .. } if !allowed.allows(&made.name) => {
                    Err(format!("refused: '{}' is not among the tools that may run ('allowTools')", made.name))
                }
                ToolExecution::Live { runner, .. } => {
                    let start = Instant::now();
                    let outcome = runner.call(&made.name, &made.params).await;
                    made.duration_ms = Some(start.elapsed().as_secs_f64() * 1000.0);
                    // A real tool's text is told as it is.
                    text = outcome.result.as_str().map(str::to_owned);
                    made.error = outcome.error;
                    Ok(outcome.result)
                }
            }
        };
        let result = outcome.unwrap_or_else(|error| {
            let told = json!({"error": error});
            made.error = Some(error);
            told
        });
        made.success = Some(made.error.is_none());
        let text = text.unwrap_or_else(|| result.to_string());
        made.result = Some(result);
        let failed = made.error.is_some();
        (made, CallResult { id: call.id, text, failed })
    }
}

impl Agent for ModelAgent {
    fn identity(&self) -> String {
        self.client.identity()
    }

    fn parameters(&self) -> Map<String, Value> {
        let mut named = self.client.parameters();
        named.extend(hashed_prompt(self.system_prompt.as_deref()));
        named.extend(live_parts(&self.execution));
        named
    }

    fn determinants(&self, case: &Case) -> Map<String, Value> {
        let mut parts = self.determinants.clone();
        parts.insert("message".to_owned(), case.input.message.as_str().into());
        parts.extend(self.stubs(case).map(|stubs| ("stubs".to_owned(), stubs.clone().into())));
        parts.extend(self.most_turns(case).map(|turns| ("maxTurns".to_owned(), turns.into())));
        parts
    }

    fn question(&self, case: &Case) -> String {
        let stubs = self.stubs(case).map(|stubs| sorted(&Value::Object(stubs.clone())).to_string());
        let turns = self.most_turns(case).map(|turns| turns.to_string());
        // Two lines after any message, so that no message looks like another one with its stubs.
        format!("{}\n{}\n{}", case.input.message, turns.unwrap_or_default(), stubs.unwrap_or_default())
    }

    fn mode(&self, case: &Case) -> Mode {
        match self.execution {
            ToolExecution::Live { .. } => Mode::Endpoint,
            ToolExecution::Stubs if case.stubs.is_some() => Mode::Stubbed,
            ToolExecution::Stubs => Mode::RoutingOnly,
        }
    }

    fn answer<'a>(&'a self, ask: Ask<'a>) -> Pending<'a, Result<Trace, AgentError>> {
        Box::pin(self.converse(ask))
    }
}

/// Tells whether both providers take this name.
fn can_be_offered(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=64).contains(&name.len()) && name.bytes().all(is_allowed)
}

fn hashed_prompt(prompt: Option<&str>) -> Option<(String, Value)> {
    prompt.map(|prompt| ("systemPrompt".to_owned(), short_hash(prompt.as_bytes()).into()))
}

/// Names what is special about real tools.
fn live_parts(execution: &ToolExecution) -> Map<String, Value> {
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

/// Notes a call that nobody answers.
fn unanswered(call: Call) -> ToolCall {
    let (params, raw_params) = split(call.arguments);
    let error = raw_params.as_ref().map(|_| "the arguments are no JSON object".to_owned());
    let success = error.as_ref().map(|_| false);
    ToolCall { name: call.name, params, raw_params, success, error, ..ToolCall::default() }
}

fn split(arguments: Arguments) -> (Map<String, Value>, Option<String>) {
    match arguments {
        Arguments::Object(map) => (map, None),
        Arguments::Unreadable(text) => (Map::new(), Some(text)),
    }
}

/// Adds a turn's usage; what one turn does not say is not known of the sum either.
fn add(sum: &Usage, turn: &Usage, is_first: bool) -> Usage {
    let both = |left: Option<u64>, right: Option<u64>| left.zip(right).map(|(left, right)| left.saturating_add(right));
    let cached = match (sum.cached_input_tokens, turn.cached_input_tokens) {
        (None, None) => None,
        (left, right) => Some(left.unwrap_or(0).saturating_add(right.unwrap_or(0))),
    };
    let earlier_cost = if is_first { Some(0.0) } else { sum.cost_usd };
    Usage {
        input_tokens: both(sum.input_tokens, turn.input_tokens),
        output_tokens: both(sum.output_tokens, turn.output_tokens),
        cached_input_tokens: cached,
        cost_usd: earlier_cost.zip(turn.cost_usd).map(|(left, right)| left + right),
    }
}
