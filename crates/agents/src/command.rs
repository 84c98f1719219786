//! An agent that is a program, which reads JSON from stdin and writes JSON to stdout.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use karat_cases::Case;
use karat_core::assertion::Mode;
use karat_core::port::{Agent, AgentError, BoxFuture, Conversation, TraceContext, TrialContext};
use karat_core::trace::Trace;
use karat_json::text::text_form;
use karat_process::{Limits, with_stderr};
use serde_json::{Map, Value, json};

use crate::exchange::{ExchangeObserver, Observer, Purpose};
use crate::http_config::{HttpConfig, RequestMap};
use crate::json_template::Node;
use crate::placeholder::{Ids, Scope, Values};
use crate::process_pool::{PooledProcess, ProcessPool, no_answer_message};
use crate::program::{CommandError, Program, parse_answer, parse_json};
use crate::template::Environment;

/// Sends requests to a program on its stdin and reads the replies from its stdout. The program is started for each
/// message, or kept running and sent one request per line.
#[derive(Debug)]
pub struct CommandAgent {
    identity: String,
    program: Program,
    config: HttpConfig,
    requests: Requests,
    /// Values of environment variables in requests.
    secrets: Vec<String>,
    /// Present if programs are kept running.
    pool: Option<ProcessPool>,
    /// The id of the next request to a program that is kept running.
    next_id: AtomicU64,
    observer: Observer,
}

/// The templates of requests and of messages in the history.
#[derive(Debug)]
struct Requests {
    message: Node,
    /// The request in a conversation with several turns.
    turn: Node,
    user: Node,
    assistant: Node,
    /// Whether requests have an `id` of their own.
    has_id: bool,
}

impl Requests {
    fn new(request: &RequestMap, environment: &mut Environment<'_>) -> Result<Self, CommandError> {
        let message = request.body_template(false).map_err(CommandError::InvalidRequest)?;
        let turn = request.body_template(!request.maps_conversation()).map_err(CommandError::InvalidRequest)?;
        let form = request.message_form.clone().unwrap_or_default();
        let mut compile = |value, scope| {
            let node = Node::compile(value, scope, environment);
            node.map_err(|error| CommandError::InvalidRequest(error.to_string()))
        };
        Ok(Self {
            message: compile(&message, Scope::Request)?,
            turn: compile(&turn, Scope::Request)?,
            user: compile(&form.user, Scope::Item)?,
            assistant: compile(&form.assistant, Scope::Item)?,
            has_id: message.get("id").is_some(),
        })
    }
}

impl CommandAgent {
    /// Parses a command line; a program name with a `/` is relative to `folder`. `lookup` returns environment
    /// variables.
    pub fn new(
        command: &str,
        folder: &Path,
        config: HttpConfig,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, CommandError> {
        let program = Program::new(command, folder)?;
        // A program has no URL, so the message goes into the body.
        let request = RequestMap { query: None, url: None, ..config.request };
        let mut environment = Environment::new(lookup);
        let requests = Requests::new(&request, &mut environment)?;
        let pool = config.keep_alive.then(|| ProcessPool::new(program.0.clone()));
        Ok(Self {
            identity: format!("command:{command}"),
            program,
            config: HttpConfig { request, ..config },
            requests,
            secrets: environment.secrets,
            pool,
            next_id: AtomicU64::new(1),
            observer: Observer::default(),
        })
    }

    /// Sets the observer of exchanges.
    #[must_use]
    pub fn with_observer(self, observer: Arc<dyn ExchangeObserver>) -> Self {
        Self { observer: observer.into(), ..self }
    }

    /// Returns the values of environment variables that requests contain.
    pub fn secrets(&self) -> &[String] {
        &self.secrets
    }

    /// Returns the program's path, or its bare name if it is looked up on the PATH.
    pub fn program(&self) -> &Path {
        &self.program.0.program
    }

    /// Returns the program's arguments.
    pub fn arguments(&self) -> &[String] {
        &self.program.0.arguments
    }

    fn max_bytes(&self) -> usize {
        usize::try_from(self.config.max_response_bytes).unwrap_or(usize::MAX)
    }

    /// Starts the program for one request.
    async fn run(&self, body: &str) -> Result<ProgramReply, AgentError> {
        let started = Instant::now();
        let limits = Limits { stdout_bytes: self.max_bytes(), time: None };
        let mut record = self.observer.record(Purpose::Message);
        if let Some(record) = &mut record {
            record.exchange.body = Some(body.as_bytes().to_vec());
        }
        let run = self.program.run(body, limits).await;
        if let Some(record) = &mut record {
            match &run {
                Ok(finished) => record.set_output(&finished.stdout, &finished.stderr),
                Err(message) => record.exchange.error = Some(message.clone()),
            }
        }
        drop(record);
        let finished = run.map_err(|message| AgentError::new(message, started.elapsed()))?;
        let (elapsed, stderr) = (finished.elapsed, finished.stderr.clone());
        let reply = parse_json(&finished).map_err(|message| AgentError::new(message, elapsed))?;
        Ok(ProgramReply { reply, elapsed, stderr })
    }

    /// Sends a request to a running program. After an invalid answer, the program is killed and replaced.
    async fn request(
        &self,
        body: &str,
        pooled: &mut PooledProcess<'_>,
        pool: &ProcessPool,
    ) -> Result<ProgramReply, AgentError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let request = match body.strip_prefix('{') {
            Some(members) if !self.requests.has_id => Cow::Owned(format!(r#"{{"id":{id},{members}"#)),
            _ => Cow::Borrowed(body),
        };
        let idle = pooled.take().await;
        let started = Instant::now();
        let fail = |message: String| AgentError::new(message, started.elapsed());
        let mut process = match idle {
            Some(process) => process,
            None => pool.start().map_err(fail)?,
        };
        let mut record = self.observer.record(Purpose::Message);
        if let Some(record) = &mut record {
            record.exchange.body = Some(request.as_bytes().to_vec());
        }
        let answer = match process.request(&request, self.max_bytes()).await {
            Ok(answer) => answer,
            Err(error) => {
                let message = no_answer_message("the program", error, self.max_bytes(), &process).await;
                if let Some(record) = &mut record {
                    record.exchange.error = Some(message.clone());
                }
                return Err(fail(message));
            }
        };
        let elapsed = started.elapsed();
        let fail = |message: String| AgentError::new(message, elapsed);
        let stderr = process.take_stderr().await;
        if let Some(record) = &mut record {
            record.set_output(&answer, &stderr);
        }
        drop(record);
        let reply = parse_answer(&answer, &stderr).map_err(fail)?;
        // An agent may use `id` for its own ids, which are rarely numbers.
        let reply_id = reply.get("id").and_then(Value::as_u64);
        if let Some(other) = reply_id.filter(|other| *other != id && !self.requests.has_id) {
            let message = format!("the program answered request {other} instead of request {id}");
            return Err(fail(with_stderr(&message, &stderr)));
        }
        pooled.put_back(process);
        Ok(ProgramReply { reply, elapsed, stderr })
    }
}

/// The JSON reply of a program.
struct ProgramReply {
    reply: Value,
    elapsed: Duration,
    stderr: String,
}

impl Agent for CommandAgent {
    fn identity(&self) -> String {
        self.identity.clone()
    }

    fn determinants(&self, case: &Case, turn: usize) -> Map<String, Value> {
        let HttpConfig { request, response, max_response_bytes, .. } = &self.config;
        let mut parts = Map::new();
        parts.insert("agent".to_owned(), self.identity().into());
        let mapping = json!({"request": request, "response": response, "maxResponseBytes": max_response_bytes});
        parts.insert("request".to_owned(), mapping);
        parts.insert("message".to_owned(), case.message(turn).into());
        parts
    }

    fn mode(&self, _case: &Case) -> Mode {
        Mode::Endpoint
    }

    fn start<'a>(&'a self, trial: TrialContext<'a>) -> Box<dyn Conversation + 'a> {
        let pooled = self.pool.as_ref().map(|pool| (PooledProcess::new(pool), pool));
        let ids = Ids::new(trial, self.config.response.conversation_id.is_some(), 0);
        let message_ids = Ids::of_messages(trial);
        Box::new(CommandConversation { agent: self, trial, pooled, ids, message_ids, turn: 0, history: Vec::new() })
    }
}

struct CommandConversation<'a> {
    agent: &'a CommandAgent,
    trial: TrialContext<'a>,
    pooled: Option<(PooledProcess<'a>, &'a ProcessPool)>,
    ids: Ids<'a>,
    /// The ids of messages in the history.
    message_ids: Ids<'a>,
    turn: usize,
    /// The messages before this turn.
    history: Vec<Value>,
}

impl CommandConversation<'_> {
    /// Renders a message of the history.
    fn render_message(&self, form: &Node, text: &str) -> Result<Value, String> {
        let values = Values { content: Some(text), ..self.values(&self.message_ids, text, None) };
        serde_json::from_str(&form.render(&values)?).map_err(|error| error.to_string())
    }

    fn values<'v>(&'v self, ids: &'v Ids<'v>, message: &'v str, user_message: Option<&'v Value>) -> Values<'v> {
        Values {
            message,
            turn: self.turn,
            messages: &self.history,
            user_message,
            reply: None,
            decision: None,
            approval: None,
            content: None,
            case_id: &self.trial.case.id,
            traceparent: None,
            ids,
        }
    }

    /// Reads the id of the conversation from the first reply.
    fn read_conversation_id(&mut self, reply: &Value) -> Result<(), String> {
        let Some(id) = self.agent.config.response.conversation_id.as_ref().filter(|_| self.turn == 0) else {
            return Ok(());
        };
        match id.find_non_null(reply) {
            Some(id) => self.ids.set(text_form(id).into_owned()),
            None if self.trial.has_turns => {
                return Err(format!("the reply has no conversation id at '{}'", id.as_str()));
            }
            None => {}
        }
        Ok(())
    }

    async fn answer(&mut self, message: &str) -> Result<Trace, AgentError> {
        let agent = self.agent;
        let fail = |message: String| AgentError::new(message, Duration::ZERO);
        let user = self.render_message(&agent.requests.user, message).map_err(fail)?;
        let request = if self.trial.has_turns { &agent.requests.turn } else { &agent.requests.message };
        let body = request.render(&self.values(&self.ids, message, Some(&user))).map_err(fail)?;
        let body = match &agent.config.telemetry {
            Some(_) => with_traceparent(&body, &self.trial.trace_context(self.turn)),
            None => body,
        };
        let ProgramReply { reply, elapsed, stderr } = match &mut self.pooled {
            Some((pooled, pool)) => agent.request(&body, pooled, pool).await?,
            None => agent.run(&body).await?,
        };
        let trace = self.read_conversation_id(&reply).and_then(|()| agent.config.response.parse_trace(&reply));
        let trace = trace.map_err(|message| AgentError::new(with_stderr(&message, &stderr), elapsed))?;
        let assistant = self.render_message(&agent.requests.assistant, &trace.response).map_err(fail)?;
        self.history.extend([user, assistant]);
        self.turn += 1;
        Ok(Trace { latency_ms: elapsed.as_secs_f64() * 1000.0, ..trace }.with_stderr(stderr))
    }
}

/// Adds the trace context to a request that is an object.
fn with_traceparent(body: &str, context: &TraceContext) -> String {
    let Ok(Value::Object(mut members)) = serde_json::from_str(body) else { return body.to_owned() };
    members.insert("traceparent".to_owned(), context.traceparent().into());
    Value::Object(members).to_string()
}

impl Conversation for CommandConversation<'_> {
    fn send<'s>(&'s mut self, message: &'s str) -> BoxFuture<'s, Result<Trace, AgentError>> {
        Box::pin(self.answer(message))
    }
}
