//! A conversation with an HTTP agent: its session, ids, cookies and history.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use karat_cases::Case;
use karat_core::assertion::Mode;
use karat_core::port::{Agent, AgentError, BoxFuture, Conversation, TrialContext};
use karat_core::trace::Trace;
use karat_http::{Jar, RetryClass};
use karat_json::text::text_form;
use serde_json::{Map, Value};

use crate::exchange::Purpose;
use crate::http::{HttpAgent, Poll};
use crate::http_reply::{Content, HttpReply};
use crate::json_template::Node;
use crate::placeholder::{Ids, Values};
use crate::reply::Answer;
use crate::reply_error::find_error;
use crate::request_template::RequestTemplate;
use crate::retry::{AttemptError, retry};

/// Maximum number of approval decisions per message.
const MAX_DECISIONS: usize = 20;

pub(crate) struct HttpConversation<'a> {
    agent: &'a HttpAgent,
    trial: TrialContext<'a>,
    /// Present after the first reply.
    session: Option<Session<'a>>,
    turn: usize,
    /// The header `traceparent` of this turn, if the agent's spans are read.
    traceparent: Option<String>,
    /// The ids of messages in the history.
    message_ids: Ids<'a>,
    /// The messages before this turn, if a request has them.
    history: Vec<Value>,
    /// The last reply of the previous turn.
    reply: Option<Value>,
}

/// The state that the agent keeps by ids or cookies. A retry of the first message starts a new one.
struct Session<'a> {
    ids: Ids<'a>,
    cookies: OnceLock<Jar>,
}

/// The message of a turn.
#[derive(Clone, Copy)]
struct Message<'m> {
    text: &'m str,
    /// In the form of the history, if a request has it.
    form: Option<&'m Value>,
}

impl<'a> HttpConversation<'a> {
    pub(crate) fn new(agent: &'a HttpAgent, trial: TrialContext<'a>) -> Self {
        let message_ids = Ids::of_messages(trial);
        Self { agent, trial, session: None, turn: 0, traceparent: None, message_ids, history: Vec::new(), reply: None }
    }

    fn values<'v>(&'v self, ids: &'v Ids<'v>, message: Message<'v>) -> Values<'v> {
        Values {
            message: message.text,
            turn: self.turn,
            messages: &self.history,
            user_message: message.form,
            reply: self.reply.as_ref(),
            decision: None,
            approval: None,
            content: None,
            case_id: &self.trial.case.id,
            traceparent: self.traceparent.as_deref(),
            ids,
        }
    }

    /// Starts a session before the first message.
    async fn start_session(&self, attempt: usize) -> Result<Session<'a>, AttemptError> {
        let is_assigned = self.agent.config.response.conversation_id.is_some();
        let mut session = Session { ids: Ids::new(self.trial, is_assigned, attempt), cookies: OnceLock::new() };
        let Some((request, id)) = &self.agent.requests.session else { return Ok(session) };
        let in_session = |message: &str| format!("cannot start a session: {message}");
        let values = self.values(&session.ids, Message { text: "", form: None });
        let reply = self.agent.exchange(Purpose::Session, request, &values, &session.cookies, None).await;
        let reply = reply.map_err(|error| AttemptError { message: in_session(&error.message), ..error })?;
        let (class, elapsed) = (reply.class, reply.elapsed);
        let fail = |message: &str| AttemptError { elapsed, ..AttemptError::new(in_session(message), class) };
        let Some(id) = id else {
            return reply.check_status().map(|()| session).map_err(|message| fail(&message));
        };
        let content = reply.into_content(None, false).map_err(|message| fail(&message))?;
        let Some(session_id) = id.find_non_null(&content.value) else {
            let error = find_error(&content.value).map_or_else(String::new, |error| format!(": {error}"));
            return Err(fail(&format!("the reply has no id at '{}'{error}", id.as_str())));
        };
        self.agent.observer.on_conversation_id(&text_form(session_id));
        session.ids.set(text_form(session_id).into_owned());
        Ok(session)
    }

    /// Sends a message; returns the session if it is new.
    async fn attempt(
        &self,
        message: Message<'_>,
        attempt: usize,
    ) -> Result<(Option<Session<'a>>, HttpReply), AttemptError> {
        let requests = &self.agent.requests;
        let request = if self.trial.has_turns { &requests.turn } else { &requests.message };
        let format = self.agent.config.response.format;
        if let Some(session) = &self.session {
            let values = self.values(&session.ids, message);
            let reply = self.agent.exchange(Purpose::Message, request, &values, &session.cookies, format).await?;
            return Ok((None, reply));
        }
        let session = self.start_session(attempt).await?;
        let values = self.values(&session.ids, message);
        let reply = self.agent.exchange(Purpose::Message, request, &values, &session.cookies, format).await?;
        Ok((Some(session), reply))
    }

    async fn attempt_with_retries(
        &self,
        message: Message<'_>,
    ) -> Result<(Option<Session<'a>>, HttpReply), AttemptError> {
        let Some((policy, throttle)) = &self.agent.retries else { return self.attempt(message, 0).await };
        let attempts = AtomicUsize::new(0);
        let attempt = async || {
            let (session, reply) = self.attempt(message, attempts.fetch_add(1, Ordering::Relaxed)).await?;
            match reply.check_status() {
                Err(message) if reply.class != RetryClass::Permanent => Err(AttemptError::new(message, reply.class)),
                _ => Ok((session, reply)),
            }
        };
        retry(*policy, throttle, self.trial.wait_observer, || Box::pin(attempt())).await
    }

    /// Sends a follow-up request of the turn.
    async fn send_follow_up(
        &self,
        purpose: Purpose,
        request: &RequestTemplate,
        values: &Values<'_>,
        session: &Session<'a>,
    ) -> Result<Content, AttemptError> {
        let format = self.agent.config.response.format;
        let reply = self.agent.exchange(purpose, request, values, &session.cookies, format).await?;
        reply.into_content(format, self.agent.config.response.conversation.is_some()).map_err(AttemptError::permanent)
    }

    /// Polls until the reply is the answer.
    async fn poll(
        &self,
        (request, until, interval): &Poll,
        content: Content,
        message: Message<'_>,
        session: &Session<'a>,
    ) -> Result<Content, AttemptError> {
        let first = content.value.clone();
        let mut content = content;
        while !until.holds(&content.value).map_err(AttemptError::permanent)? {
            if let Some(error) = find_error(&content.value) {
                return Err(AttemptError::permanent(format!("the agent replied with an error: {error}")));
            }
            tokio::time::sleep(*interval).await;
            let values = Values { reply: Some(&first), ..self.values(&session.ids, message) };
            content = self.send_follow_up(Purpose::Poll, request, &values, session).await?;
        }
        Ok(content)
    }

    /// Reads the id of the conversation from the first reply.
    fn read_conversation_id(&self, content: &Content, session: &mut Session<'a>) -> Result<(), String> {
        let Some(id) = self.agent.config.response.conversation_id.as_ref().filter(|_| self.turn == 0) else {
            return Ok(());
        };
        match id.find_non_null(&content.value) {
            Some(id) => {
                self.agent.observer.on_conversation_id(&text_form(id));
                session.ids.set(text_form(id).into_owned());
            }
            None if self.trial.has_turns => {
                let error = find_error(&content.value).map_or_else(String::new, |error| format!(": {error}"));
                return Err(format!("the reply has no conversation id at '{}'{error}", id.as_str()));
            }
            None => {}
        }
        Ok(())
    }

    async fn answer(&mut self, text: &str) -> Result<Trace, AgentError> {
        if self.agent.config.telemetry.is_some() {
            self.traceparent = Some(self.trial.trace_context(self.turn).traceparent());
        }
        let forms = self.agent.requests.forms(self.trial.has_turns);
        let form = match forms {
            Some((user, _)) => Some(self.render_message(user, text)?),
            None => None,
        };
        let message = Message { text, form: form.as_ref() };
        let (session, reply) = self.attempt_with_retries(message).await?;
        let Some(mut session) = session.or_else(|| self.session.take()) else {
            return Err(AgentError::new("the conversation has no session", reply.elapsed));
        };
        let elapsed = reply.elapsed;
        let result = self.finish_turn(reply, message, &mut session).await;
        self.session = Some(session);
        let (trace, value) = result.map_err(|error| AttemptError { elapsed: elapsed + error.elapsed, ..error })?;
        let trace = Trace { latency_ms: trace.latency_ms + elapsed.as_secs_f64() * 1000.0, ..trace };
        if let Some((_, assistant)) = forms {
            let response = self.render_message(assistant, &trace.response)?;
            self.history.extend(form);
            self.history.push(response);
        }
        self.reply = Some(value);
        self.turn += 1;
        Ok(trace)
    }

    /// Reads the reply to a message: polls and decides on approvals, as configured. The trace's latency is that of
    /// follow-up requests.
    async fn finish_turn(
        &self,
        reply: HttpReply,
        message: Message<'_>,
        session: &mut Session<'a>,
    ) -> Result<(Trace, Value), AttemptError> {
        let agent = self.agent;
        let response = &agent.config.response;
        let first_elapsed = reply.elapsed;
        let start = Instant::now();
        let fail = |message: String| AttemptError { elapsed: start.elapsed(), ..AttemptError::permanent(message) };
        let mut content = reply.into_content(response.format, response.conversation.is_some()).map_err(fail)?;
        self.read_conversation_id(&content, session).map_err(fail)?;
        let session = &*session;
        let with_elapsed = |error: AttemptError| AttemptError { elapsed: start.elapsed(), ..error };
        let mut previous: Option<Answer> = None;
        let mut first_token = None;
        // The total time of follow-up requests, and when the last of them was sent.
        let (mut follow_up_time, mut sent_at) = (Duration::ZERO, Duration::ZERO);
        for _ in 0..MAX_DECISIONS {
            if let Some(poll) = &agent.requests.poll {
                let start = Instant::now();
                content = self.poll(poll, content, message, session).await.map_err(with_elapsed)?;
                follow_up_time += start.elapsed();
            }
            let answer = response.read_answer(&content.value, content.is_stream, previous.take()).map_err(fail)?;
            let arrival = answer.first_text_event.and_then(|event| content.arrivals.get(event));
            first_token = first_token.or(arrival.map(|arrival| sent_at + *arrival));
            let Some((request, decision)) = agent.requests.resume.as_ref().filter(|_| answer.approval.is_some()) else {
                let trace = Trace {
                    latency_ms: follow_up_time.as_secs_f64() * 1000.0,
                    first_token_ms: first_token.map(|time| time.as_secs_f64() * 1000.0),
                    ..answer.into_trace()
                };
                return Ok((trace, content.value));
            };
            sent_at = first_elapsed + follow_up_time;
            let start = Instant::now();
            let values = Values {
                reply: Some(&content.value),
                approval: answer.approval.as_ref(),
                decision: Some(decision),
                ..self.values(&session.ids, message)
            };
            content = self.send_follow_up(Purpose::Decision, request, &values, session).await.map_err(with_elapsed)?;
            follow_up_time += start.elapsed();
            previous = Some(answer);
        }
        Err(fail(format!("the agent asked for approval more than {MAX_DECISIONS} times")))
    }

    /// Renders a message of the history.
    fn render_message(&self, form: &Node, text: &str) -> Result<Value, AgentError> {
        let values = Values { content: Some(text), ..self.values(&self.message_ids, Message { text, form: None }) };
        let rendered = form.render(&values);
        let parsed = rendered.and_then(|json| serde_json::from_str(&json).map_err(|error| error.to_string()));
        parsed.map_err(|message| AgentError::new(message, Duration::ZERO))
    }
}

impl Agent for HttpAgent {
    fn identity(&self) -> String {
        self.identity.clone()
    }

    fn determinants(&self, case: &Case, turn: usize) -> Map<String, Value> {
        let mut parts = Map::new();
        parts.insert("agent".to_owned(), self.identity().into());
        parts.insert("request".to_owned(), serde_json::to_value(&self.config).unwrap_or_default());
        parts.insert("message".to_owned(), case.message(turn).into());
        parts
    }

    fn mode(&self, _case: &Case) -> Mode {
        Mode::Endpoint
    }

    fn start<'a>(&'a self, trial: TrialContext<'a>) -> Box<dyn Conversation + 'a> {
        Box::new(HttpConversation::new(self, trial))
    }
}

impl Conversation for HttpConversation<'_> {
    fn send<'s>(&'s mut self, message: &'s str) -> BoxFuture<'s, Result<Trace, AgentError>> {
        Box::pin(self.answer(message))
    }
}
