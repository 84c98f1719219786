//! An agent that replies from a file, for examples, demos and CI without a real agent.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use karat_cases::Case;
use karat_core::assertion::Mode;
use karat_core::port::{Agent, AgentError, BoxFuture, Conversation, TrialContext};
use karat_core::trace::Trace;
use karat_json::hash::short_hash;
use karat_json::{
    Finding, ObjectReader, Path, Problems, parse, read_array, read_bool, read_count, read_object_map, read_string,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::reply::ResponseMap;

/// The problems in an invalid script.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the script is invalid")]
pub struct ScriptError {
    pub findings: Vec<Finding>,
}

/// A file of scripted replies.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(title = "karat script")]
pub struct Script {
    /// URL or path of this file's JSON Schema, for editors.
    #[serde(rename = "$schema", skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// The reply to each message.
    pub replies: BTreeMap<String, ScriptedReply>,
    /// The reply to any other message; without it, other messages are errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub otherwise: Option<ScriptedReply>,
}

/// A scripted reply.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ScriptedReply {
    /// The agent's text; empty by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<String>,
    /// The tool calls: `name`, `params`, `success`, `durationMs`, `result`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Vec<Map<String, Value>>>,
    /// Whether the agent does not report its tool calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls_unreported: Option<bool>,
    /// `inputTokens`, `outputTokens`, `costUsd`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Delay before the reply, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// Time until the first text of the answer, in milliseconds, as if it were streamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_token_ms: Option<u64>,
    /// Fail with this message instead of replying.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The replies of a conversation that begins with this message, one per turn, in place of the other keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub turns: Option<Vec<ScriptedReply>>,
}

/// An agent that replies from a script.
#[derive(Debug)]
pub struct ScriptedAgent {
    identity: String,
    /// Hash of the script's text.
    hash: String,
    replies: BTreeMap<String, Reply>,
    otherwise: Option<Reply>,
}

/// The reply to a message.
#[derive(Debug)]
enum Reply {
    Single(Box<Answer>),
    /// One per turn of the conversation that begins with the message.
    Turns(Vec<Answer>),
}

#[derive(Debug, Clone)]
struct Answer {
    delay: Duration,
    outcome: Result<Trace, String>,
}

impl ScriptedAgent {
    /// Parses a script; `identity` is the agent's name in results.
    pub fn parse(text: &str, identity: String) -> Result<Self, ScriptError> {
        let value = parse(text).map_err(|error| ScriptError { findings: vec![Finding::syntax(text, error)] })?;
        let mut problems = Problems::default();
        let script = read_script(&value, &mut problems);
        if let Some((replies, otherwise)) = script.filter(|_| problems.is_empty()) {
            return Ok(Self { identity, hash: short_hash(text.as_bytes()), replies, otherwise });
        }
        Err(ScriptError { findings: Finding::locate_all(text, problems.into_list()) })
    }
}

type Replies = (BTreeMap<String, Reply>, Option<Reply>);

fn read_script(value: &Value, problems: &mut Problems) -> Option<Replies> {
    let path = Path::Root;
    let mut object = ObjectReader::open(value, &path, problems)?;
    object.nullable("$schema", &path, problems, read_string);
    let replies = object.required("replies", &path, problems, |value, path, problems| {
        let map = read_object_map(value, path, problems)?;
        let mut replies = BTreeMap::new();
        for (message, reply) in map {
            let reply = read_reply(&reply, &path.key(&message), problems);
            replies.extend(reply.map(|reply| (message.clone(), reply)));
        }
        Some(replies)
    });
    let otherwise = object.nullable("otherwise", &path, problems, read_reply);
    object.close(&path, problems);
    Some((replies?, otherwise))
}

fn read_reply(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Reply> {
    if value.get("turns").is_none() {
        return read_answer(value, path, problems).map(|answer| Reply::Single(Box::new(answer)));
    }
    let mut object = ObjectReader::open(value, path, problems)?;
    let turns = object.required("turns", path, problems, |value, path, problems| {
        let turns = read_array(value, path, problems, read_answer)?;
        if turns.is_empty() {
            problems.at(path, "'turns' needs at least one reply");
            return None;
        }
        Some(turns)
    });
    object.close(path, problems);
    turns.map(Reply::Turns)
}

fn read_answer(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Answer> {
    let mut object = ObjectReader::open(value, path, problems)?;
    let response = object.nullable("response", path, problems, read_string).unwrap_or_default();
    let delay = object.nullable("delayMs", path, problems, read_count).unwrap_or_default();
    let first_token = object.nullable("firstTokenMs", path, problems, read_count).map(Duration::from_millis);
    let calls_unreported = object.nullable("callsUnreported", path, problems, read_bool).unwrap_or_default();
    let error = object.nullable("error", path, problems, read_string);
    let mut reply = Map::new();
    reply.insert("response".to_owned(), Value::from(response));
    reply.extend(object.raw("toolCalls").map(|calls| ("toolCalls".to_owned(), calls.clone())));
    let usage = object.nullable("usage", path, problems, read_object_map);
    reply.extend(usage.map(|usage| ("usage".to_owned(), Value::Object(usage))));
    let model = object.nullable("model", path, problems, read_string);
    reply.extend(model.map(|model| ("model".to_owned(), Value::String(model))));
    object.close(path, problems);
    let trace = ResponseMap::default().parse_trace(&Value::Object(reply));
    match &trace {
        // Everything but the tool calls has been validated above.
        Err(message) => problems.at(&path.key("toolCalls"), message.clone()),
        Ok(trace) if calls_unreported && !trace.tool_calls.is_empty() => {
            problems.at(&path.key("callsUnreported"), "'callsUnreported' contradicts 'toolCalls'");
        }
        Ok(_) => {}
    }
    let first_token_ms = first_token.map(|elapsed| elapsed.as_secs_f64() * 1000.0);
    let trace = trace.map(|trace| Trace { first_token_ms, calls_unreported, ..trace });
    let outcome = error.map_or(trace, Err);
    Some(Answer { delay: Duration::from_millis(delay), outcome })
}

impl Agent for ScriptedAgent {
    fn identity(&self) -> String {
        self.identity.clone()
    }

    fn determinants(&self, case: &Case, turn: usize) -> Map<String, Value> {
        let mut parts = Map::new();
        parts.insert("agent".to_owned(), self.identity().into());
        parts.insert("script".to_owned(), self.hash.as_str().into());
        parts.insert("message".to_owned(), case.message(turn).into());
        parts
    }

    fn mode(&self, _case: &Case) -> Mode {
        Mode::Endpoint
    }

    fn start<'a>(&'a self, _trial: TrialContext<'a>) -> Box<dyn Conversation + 'a> {
        Box::new(ScriptedConversation { agent: self, turn: 0, turns: None })
    }
}

struct ScriptedConversation<'a> {
    agent: &'a ScriptedAgent,
    turn: usize,
    /// The replies of the turns, if the reply to the first message has them.
    turns: Option<&'a [Answer]>,
}

impl<'a> ScriptedConversation<'a> {
    fn next_answer(&mut self, message: &str) -> Result<&'a Answer, String> {
        let turn = self.turn;
        self.turn += 1;
        if turn > 0
            && let Some(turns) = self.turns
        {
            return turns.get(turn).ok_or_else(|| format!("the script has no reply in turn {}", turn + 1));
        }
        let agent = self.agent;
        match agent.replies.get(message).or(agent.otherwise.as_ref()) {
            Some(Reply::Single(answer)) => Ok(answer),
            Some(Reply::Turns(turns)) if turn == 0 => {
                self.turns = Some(turns);
                turns.first().ok_or_else(|| "the script has no reply in turn 1".to_owned())
            }
            Some(Reply::Turns(_)) => {
                Err("the script has replies to this message only as the first of a conversation".to_owned())
            }
            None => Err("the script has no reply to this message".to_owned()),
        }
    }
}

impl Conversation for ScriptedConversation<'_> {
    fn send<'s>(&'s mut self, message: &'s str) -> BoxFuture<'s, Result<Trace, AgentError>> {
        Box::pin(async move {
            let start = Instant::now();
            let fail = |message: String| AgentError::new(message, start.elapsed());
            let answer = self.next_answer(message).map_err(fail)?;
            if !answer.delay.is_zero() {
                tokio::time::sleep(answer.delay).await;
            }
            let trace = answer.outcome.clone().map_err(fail)?;
            Ok(Trace { latency_ms: start.elapsed().as_secs_f64() * 1000.0, ..trace })
        })
    }
}
