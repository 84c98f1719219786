//! An agent that is a program: JSON on stdin and stdout.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use karat_core::assertion::Mode;
use karat_core::case::Case;
use karat_core::port::{Agent, AgentError, BoxFuture, Conversation, TrialContext};
use karat_core::trace::Trace;
use karat_process::Limits;
use serde_json::{Map, Value, json};

use crate::exchange::{ExchangeObserver, Observer, Purpose};
use crate::history::{History, add_missing};
use crate::http_config::{HttpConfig, RequestMap};
use crate::process_pool::{PooledProcess, ProcessPool, ask_error};
use crate::program::{CommandError, Program, parse_answer, parse_json, with_stderr};

/// Sends requests to a program on its stdin and reads the replies from its stdout. The program is started for each
/// message, or kept and sent one request per line.
#[derive(Debug)]
pub struct CommandAgent {
    identity: String,
    program: Program,
    config: HttpConfig,
    /// Present if programs are kept.
    pool: Option<ProcessPool>,
    /// The number of the next request to a kept program.
    next_id: AtomicU64,
    observer: Observer,
}

impl CommandAgent {
    /// Parses a command line; a program name with a `/` is relative to `folder`.
    pub fn new(command: &str, folder: &Path, config: HttpConfig) -> Result<Self, CommandError> {
        let program = Program::new(command, folder)?;
        // A command has no query string, so the message goes into the body.
        let request = RequestMap { query: None, ..config.request.clone() };
        if request.body_with("").is_none() {
            return Err(CommandError::InvalidMessagePath(request.message));
        }
        let pool = config.keep_alive.then(|| ProcessPool::new(program.0.clone()));
        let config = HttpConfig { request, ..config };
        let (identity, next_id) = (format!("command:{command}"), AtomicU64::new(1));
        Ok(Self { identity, program, config, pool, next_id, observer: Observer::default() })
    }

    /// Sets the observer of exchanges.
    #[must_use]
    pub fn with_observer(self, observer: Arc<dyn ExchangeObserver>) -> Self {
        Self { observer: observer.into(), ..self }
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
    async fn run(&self, body: &Value) -> Result<Trace, AgentError> {
        let started = Instant::now();
        let limits = Limits { stdout_bytes: self.max_bytes(), time: None };
        let body = body.to_string();
        let mut record = self.observer.record(Purpose::Message);
        if let Some(record) = &mut record {
            record.exchange.body = Some(body.clone().into_bytes());
        }
        let run = self.program.run(&body, limits).await;
        if let Some(record) = &mut record {
            match &run {
                Ok(finished) => record.set_output(&finished.stdout, &finished.stderr),
                Err(message) => record.exchange.error = Some(message.clone()),
            }
        }
        drop(record);
        let finished = run.map_err(|message| AgentError::new(message, started.elapsed()))?;
        let parsed = parse_json(&finished).and_then(|reply| self.trace(&reply, &finished.stderr));
        let trace = parsed.map_err(|message| AgentError::new(message, finished.elapsed))?;
        Ok(Trace { latency_ms: finished.elapsed.as_secs_f64() * 1000.0, ..trace }.with_stderr(finished.stderr))
    }

    /// Sends a request to a kept program. One that does not answer as it should is replaced.
    async fn ask(
        &self,
        mut body: Value,
        kept: &mut PooledProcess<'_>,
        pool: &ProcessPool,
    ) -> Result<Trace, AgentError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        add_missing(&mut body, Map::from_iter([("id".to_owned(), id.into())]));
        let waiting = kept.take().await;
        let started = Instant::now();
        let fail = |message: String| AgentError::new(message, started.elapsed());
        let mut process = match waiting {
            Some(process) => process,
            None => pool.start().map_err(fail)?,
        };
        let request = body.to_string();
        let mut record = self.observer.record(Purpose::Message);
        if let Some(record) = &mut record {
            record.exchange.body = Some(request.clone().into_bytes());
        }
        let answer = match process.ask(&request, self.max_bytes()).await {
            Ok(answer) => answer,
            Err(error) => {
                let message = ask_error("the program", error, self.max_bytes(), &process).await;
                if let Some(record) = &mut record {
                    record.exchange.error = Some(message.clone());
                }
                return Err(fail(message));
            }
        };
        let elapsed = started.elapsed();
        let stderr = process.take_stderr().await;
        if let Some(record) = &mut record {
            record.set_output(&answer, &stderr);
        }
        drop(record);
        let reply = parse_answer(&answer, &stderr).map_err(|message| AgentError::new(message, elapsed))?;
        // Agents may have ids of their own, which are rarely numbers.
        if let Some(other) = reply.get("id").and_then(Value::as_u64).filter(|other| Some(*other) != body["id"].as_u64())
        {
            let message = format!("the program answered request {other} instead of request {}", body["id"]);
            return Err(AgentError::new(with_stderr(&message, &stderr), elapsed));
        }
        kept.put_back(process);
        let trace = self.trace(&reply, &stderr).map_err(|message| AgentError::new(message, elapsed))?;
        Ok(Trace { latency_ms: elapsed.as_secs_f64() * 1000.0, ..trace }.with_stderr(stderr))
    }

    fn trace(&self, reply: &Value, stderr: &str) -> Result<Trace, String> {
        self.config.response.parse_trace(reply).map_err(|message| with_stderr(&message, stderr))
    }
}

impl Agent for CommandAgent {
    fn identity(&self) -> String {
        self.identity.clone()
    }

    fn determinants(&self, case: &Case) -> Map<String, Value> {
        let HttpConfig { request, response, max_response_bytes, .. } = &self.config;
        let mut parts = Map::new();
        parts.insert("agent".to_owned(), self.identity().into());
        let mapping = json!({"request": request, "response": response, "maxResponseBytes": max_response_bytes});
        parts.insert("request".to_owned(), mapping);
        parts.insert("message".to_owned(), case.input.message.as_str().into());
        parts
    }

    fn mode(&self, _case: &Case) -> Mode {
        Mode::Endpoint
    }

    fn start<'a>(&'a self, trial: TrialContext<'a>) -> Box<dyn Conversation + 'a> {
        let kept = self.pool.as_ref().map(|pool| (PooledProcess::new(pool), pool));
        Box::new(CommandConversation { agent: self, kept, history: History::new(trial) })
    }
}

struct CommandConversation<'a> {
    agent: &'a CommandAgent,
    kept: Option<(PooledProcess<'a>, &'a ProcessPool)>,
    history: History<'a>,
}

impl Conversation for CommandConversation<'_> {
    fn send<'s>(&'s mut self, message: &'s str) -> BoxFuture<'s, Result<Trace, AgentError>> {
        Box::pin(async move {
            let mut body = self.agent.config.request.body_with(message).unwrap_or_default();
            if self.history.trial().has_turns {
                add_missing(&mut body, self.history.members());
            }
            if self.agent.config.telemetry.is_some() {
                add_missing(&mut body, Map::from_iter([("traceparent".to_owned(), self.history.traceparent().into())]));
            }
            let trace = match &mut self.kept {
                Some((kept, pool)) => self.agent.ask(body, kept, pool).await?,
                None => self.agent.run(&body).await?,
            };
            self.history.push(message, &trace.response);
            Ok(trace)
        })
    }
}
