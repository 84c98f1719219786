//! Finds the preset for a running agent.
//!
//! Discovery requests, which products document and which have no side effects, are sent first. Then a message is sent in
//! the format of each product. No other server is contacted, and no credentials are sent except those in the URL.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use karat_cases::Case;
use karat_chat::read_reply;
use karat_core::port::{Agent as _, AgentErrorCause, IgnoreWaits, TrialContext};
use karat_http::{Client, ClientError, ClientOptions, Url, client, parse_url, read_body, redact_url, send};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::exchange::{Exchange, ExchangeObserver};
use crate::http::HttpAgent;
use crate::http_config::HttpConfig;
use crate::preset::url::{is_path_prefix, take_parameters};
use crate::preset::{Discovery, Preset};
use crate::reply::parse_reply;
use crate::selector::Selector;
use crate::stream::{EventDecoder, Framing};

/// Discovery replies are small, so even remote servers send them within a second.
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(2);

/// A list of agents may include their instructions.
const MAX_DISCOVERY_BYTES: u64 = 4 << 20;

/// Maximum number of parent URLs that are tried as the base URL of a product.
const MAX_BASE_URLS: usize = 4;

/// Paths that several products use.
const SHARED_PATHS: [&str; 1] = ["/api/chat"];

/// Kinds that are tried with a message, in order; `None` is karat's own format.
const KINDS_TRIED_BY_MESSAGE: [Option<&str>; 9] = [
    None,
    Some("ai-sdk"),
    Some("ag-ui"),
    Some("n8n"),
    Some("flowise"),
    Some("langserve"),
    Some("chat"),
    Some("responses"),
    Some("messages"),
];

/// An agent that was recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetectedAgent {
    /// `None` for the format that karat reads without a preset.
    pub kind: Option<&'static str>,
    /// The value of `agentEndpoint`.
    pub endpoint: String,
    pub evidence: Evidence,
    /// Hints about parameters that are missing or have other possible values.
    pub notes: Vec<String>,
}

/// How an agent was recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Evidence {
    /// The reply to a GET request for this URL.
    Discovery(String),
    /// The path of the URL.
    Path,
    /// The reply to a message.
    Reply,
}

/// An unsuccessful attempt to send a message in the format of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetectionAttempt {
    pub kind: Option<&'static str>,
    /// Why the agent is not of this kind.
    pub problem: String,
}

/// Requests the documented discovery endpoints of all products, then compares the path. Fails if the URL is invalid.
pub async fn discover(url: &str) -> Result<Option<DetectedAgent>, ClientError> {
    let agent_url = parse_url(url)?;
    let client = client(&agent_url, ClientOptions::default())?;
    let presets: Vec<Preset> = Preset::kinds().filter_map(Preset::by_name).collect();
    let bases = base_urls(&agent_url);
    let mut urls: Vec<Url> = Vec::new();
    for discovery in presets.iter().flat_map(|preset| &preset.detect) {
        for url in bases.iter().filter_map(|base| base.join(&discovery.url).ok()) {
            if url.origin() == agent_url.origin() && !urls.contains(&url) {
                urls.push(url);
            }
        }
    }
    let replies = fetch_all(&client, urls).await;
    for preset in &presets {
        for discovery in &preset.detect {
            for base in &bases {
                let Some(discovery_url) = base.join(&discovery.url).ok() else { continue };
                let Some(reply) = replies.get(discovery_url.as_str()) else { continue };
                if let Some(detected) = match_discovery(preset, discovery, base, &agent_url, reply) {
                    return Ok(Some(DetectedAgent {
                        evidence: Evidence::Discovery(redact_url(discovery_url.as_str())),
                        ..detected
                    }));
                }
            }
        }
    }
    let by_path = presets.iter().find(|preset| matches_path(preset, &agent_url));
    Ok(by_path.map(|preset| DetectedAgent {
        kind: Some(preset.kind),
        endpoint: format!("{}:{url}", preset.kind),
        evidence: Evidence::Path,
        notes: Vec::new(),
    }))
}

/// Sends a message in the format of each product until a reply can be read. Also returns the unsuccessful attempts.
pub async fn detect_by_replies(
    url: &str,
    message: &str,
    timeout: Duration,
) -> (Option<DetectedAgent>, Vec<DetectionAttempt>) {
    let mut attempts = Vec::new();
    for kind in KINDS_TRIED_BY_MESSAGE {
        let fail = |problem: String| DetectionAttempt { kind, problem };
        match try_kind(kind, url, message, timeout).await {
            Ok(endpoint) => {
                let detected = DetectedAgent { kind, endpoint, evidence: Evidence::Reply, notes: Vec::new() };
                return (Some(detected), attempts);
            }
            Err(Mismatch { problem, is_final: true }) => {
                attempts.push(fail(problem));
                break;
            }
            Err(Mismatch { problem, .. }) => attempts.push(fail(problem)),
        }
    }
    (None, attempts)
}

/// Returns the preset whose replies have this shape.
pub fn recognise(content_type: Option<&str>, body: &[u8]) -> Option<&'static str> {
    let value = read_body_value(content_type, body)?;
    let reply = read_reply(&value).ok()?;
    match reply.protocol {
        "openai-chat" => Some("chat"),
        "openai-responses" => Some("responses"),
        "anthropic" => Some("messages"),
        other => Preset::kinds().find(|kind| *kind == other),
    }
}

/// Why an agent is not of a kind.
struct Mismatch {
    problem: String,
    /// Whether trying other kinds is pointless.
    is_final: bool,
}

/// Keeps the last exchange.
#[derive(Default)]
struct LastExchange(Mutex<Option<Exchange>>);

impl ExchangeObserver for LastExchange {
    fn on_exchange(&self, exchange: Exchange) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(exchange);
    }

    fn on_conversation_id(&self, _id: &str) {}
}

/// Sends a message in the format of a kind, and returns the endpoint if the reply is of that kind.
async fn try_kind(kind: Option<&'static str>, url: &str, message: &str, timeout: Duration) -> Result<String, Mismatch> {
    let fail = |problem: String| Mismatch { problem, is_final: false };
    let (agent_endpoint, url, config) = match kind.and_then(Preset::by_name) {
        Some(preset) => {
            let endpoint = preset.endpoint(url, &json!({})).map_err(|error| fail(error.to_string()))?;
            (format!("{}:{url}", preset.kind), endpoint.url, endpoint.config)
        }
        None => (url.to_owned(), url.to_owned(), HttpConfig::default()),
    };
    let last_exchange = Arc::new(LastExchange::default());
    let observer: Arc<dyn ExchangeObserver> = Arc::<LastExchange>::clone(&last_exchange);
    let agent = HttpAgent::new(&url, config, &|_| None).map_err(|error| fail(error.to_string()))?;
    let agent = agent.with_observer(observer);
    let case = json!({"id": "detect", "input": {"message": message}, "expect": {}});
    let Ok(case) = Case::read_one(&case) else { return Err(fail("the message is not valid".to_owned())) };
    let trial = TrialContext {
        run_id: "detect",
        number: 0,
        case: &case,
        sample: 0,
        has_turns: false,
        wait_observer: &IgnoreWaits,
    };
    let mut conversation = agent.start(trial);
    let answered = tokio::time::timeout(timeout, conversation.send(message)).await;
    drop(conversation);
    let exchange = last_exchange.0.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default();
    let reply = exchange.reply.unwrap_or_default();
    let recognised = recognise(reply.content_type.as_deref(), &reply.body);
    match answered {
        Err(_) => Err(Mismatch { problem: format!("no reply within {} s", timeout.as_secs()), is_final: true }),
        Ok(Err(error)) => {
            let is_unreachable = matches!(error.cause, AgentErrorCause::Unreachable { .. });
            // No kind can be recognised without credentials.
            let is_refused = matches!(reply.status, Some(401 | 403));
            Err(Mismatch { problem: error.message, is_final: is_unreachable || is_refused })
        }
        Ok(Ok(trace)) if trace.response.trim().is_empty() => Err(fail("the reply has no text".to_owned())),
        Ok(Ok(_)) if recognised == kind => Ok(agent_endpoint),
        Ok(Ok(_)) => Err(fail(format!("the reply is that of '{}'", recognised.unwrap_or("an unknown product")))),
    }
}

/// Requests all URLs at once. Returns the JSON replies by URL, regardless of their status.
async fn fetch_all(client: &Client, urls: Vec<Url>) -> BTreeMap<String, Value> {
    let mut requests = tokio::task::JoinSet::new();
    for url in urls {
        let request = client.get(url.clone()).header("accept", "application/json").timeout(DISCOVERY_TIMEOUT);
        requests.spawn(async move {
            let response = send(request).await.ok()?;
            let body = read_body(response, MAX_DISCOVERY_BYTES).await.ok()?;
            Some((url.to_string(), parse_reply(&body).ok()?))
        });
    }
    requests.join_all().await.into_iter().flatten().collect()
}

/// Returns the URL's folders, innermost first: each may be the base URL of a product.
fn base_urls(url: &Url) -> Vec<Url> {
    let mut folder = url.clone();
    folder.set_query(None);
    folder.set_fragment(None);
    let mut bases = Vec::new();
    loop {
        let path = folder.path().trim_end_matches('/').to_owned();
        folder.set_path(&format!("{path}/"));
        bases.push(folder.clone());
        let Some((parent, _)) = path.rsplit_once('/') else { break };
        folder.set_path(parent);
    }
    // The root is always kept.
    if bases.len() > MAX_BASE_URLS {
        bases.drain(MAX_BASE_URLS - 1..bases.len() - 1);
    }
    bases
}

/// Returns the agent if the reply to a discovery request is that of the product.
fn match_discovery(
    preset: &Preset,
    discovery: &Discovery,
    base: &Url,
    agent_url: &Url,
    reply: &Value,
) -> Option<DetectedAgent> {
    if discovery.when.holds(reply) != Ok(true) {
        return None;
    }
    let rest = agent_url.path().strip_prefix(base.path().trim_end_matches('/'))?.trim_end_matches('/');
    let mut url = match (&discovery.endpoint, &preset.path) {
        (Some(endpoint), _) => announced_url(endpoint, reply, agent_url).unwrap_or_else(|| agent_url.clone()),
        // The server has this API, but the URL is not part of it.
        (None, Some(path)) if !is_path_prefix(rest, path) => return None,
        (None, Some(_)) => agent_url.clone(),
        (None, None) => base.clone(),
    };
    url.set_query(agent_url.query());
    let (_, taken) = take_parameters(agent_url.as_str(), &preset.parameters);
    let mut notes = Vec::new();
    for (name, default) in preset.parameters.iter().filter(|(name, _)| !taken.contains_key(*name)) {
        let values = discovery.parameters.get(name).map(|selector| select_strings(selector, reply)).unwrap_or_default();
        let Some((first, others)) = values.split_first() else {
            if default.is_null() {
                notes.push(format!("add ?{name}=NAME to the URL"));
            }
            continue;
        };
        if values.iter().any(|value| Some(value.as_str()) == default.as_str()) {
            continue;
        }
        let pair = format!("{name}={}", utf8_percent_encode(first, QUERY_ENCODED));
        url.set_query(Some(&url.query().map_or_else(|| pair.clone(), |query| format!("{query}&{pair}"))));
        if !others.is_empty() {
            notes.push(format!("{name} is the first of {}: change it in the URL to test another", values.join(", ")));
        }
    }
    let text = url.as_str();
    let text = if url.query().is_none() { text.trim_end_matches('/').to_owned() } else { text.replacen("/?", "?", 1) };
    let endpoint = format!("{}:{text}", preset.kind);
    Some(DetectedAgent { kind: Some(preset.kind), endpoint, evidence: Evidence::Path, notes })
}

/// Characters that are common in names are not encoded.
const QUERY_ENCODED: &percent_encoding::AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/').remove(b':');

/// Returns the agent's URL from a reply, always on the server of `agent_url`: no other server is contacted.
fn announced_url(endpoint: &Selector, reply: &Value, agent_url: &Url) -> Option<Url> {
    let announced = Url::parse(endpoint.find(reply)?.as_str()?).ok()?;
    let mut url = agent_url.clone();
    url.set_path(announced.path());
    Some(url)
}

fn select_strings(selector: &Selector, reply: &Value) -> Vec<String> {
    selector.select(reply).into_iter().filter_map(|value| value.as_str().map(str::to_owned)).collect()
}

/// Whether the URL ends with the preset's path, and no other product uses this path.
fn matches_path(preset: &Preset, url: &Url) -> bool {
    let own = url.path().trim_end_matches('/');
    let path = preset.path.as_deref().filter(|path| !SHARED_PATHS.contains(path));
    path.is_some_and(|path| own.ends_with(path)) || has_path_of_example(&preset.example, own)
}

/// Whether a path ends with that of a preset's example, in which the segment `ID` stands for any other.
fn has_path_of_example(example: &str, path: &str) -> bool {
    let Ok(example) = Url::parse(example) else { return false };
    let mut segments = path.rsplit('/');
    let expected: Vec<&str> = example.path().trim_start_matches('/').rsplit('/').collect();
    expected.contains(&"ID")
        && expected.into_iter().all(|expected| {
            segments.next().is_some_and(|segment| segment == expected || (expected == "ID" && !segment.is_empty()))
        })
}

/// Reads a body as JSON, or as a list of events if it is a stream.
fn read_body_value(content_type: Option<&str>, body: &[u8]) -> Option<Value> {
    if let Ok(value) = parse_reply(body) {
        return Some(value);
    }
    let is_events = content_type.is_some_and(|name| name.contains("event-stream"));
    let framing = if is_events { Framing::ServerSentEvents } else { Framing::JsonLines };
    let mut decoder = EventDecoder::new(framing);
    decoder.push(body).ok()?;
    decoder.finish().ok().map(Value::Array)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn url(text: &str) -> Url {
        parse_url(text).expect(text)
    }

    #[rstest]
    #[case("http://host", &["/"])]
    #[case("http://host/?a=1#b", &["/"])]
    #[case("http://host/agent/invoke", &["/agent/invoke/", "/agent/", "/"])]
    #[case("http://host/a/b/c/d/e", &["/a/b/c/d/e/", "/a/b/c/d/", "/a/b/c/", "/"])]
    fn returns_all_folders_of_the_url(#[case] agent_url: &str, #[case] expected: &[&str]) {
        let bases = base_urls(&url(agent_url));
        assert_eq!(bases.iter().map(Url::path).collect::<Vec<_>>(), expected);
        assert!(bases.iter().all(|base| base.query().is_none()));
    }

    /// Returns the endpoint and the notes for a reply to the first discovery request of a kind.
    fn detect(kind: &str, agent_url: &str, base: &str, reply: &Value) -> Option<(String, Vec<String>)> {
        let preset = Preset::by_name(kind).expect(kind);
        let detected = match_discovery(&preset, &preset.detect[0], &url(base), &url(agent_url), reply);
        detected.map(|detected| (detected.endpoint, detected.notes))
    }

    #[rstest]
    #[case("langgraph", "http://host/", "http://host/", json!({"langgraph_py_version": "1"}), Some("langgraph:http://host"))]
    #[case("langgraph", "http://host/?assistant=x", "http://host/", json!({"langgraph_py_version": "1"}), Some("langgraph:http://host?assistant=x"))]
    #[case("langgraph", "http://host/", "http://host/", json!({"version": "1"}), None)]
    #[case("langserve", "http://host/agent/invoke", "http://host/agent/", json!({"type": "object"}), Some("langserve:http://host/agent"))]
    #[case("adk", "http://host", "http://host/", json!(["my app"]), Some("adk:http://host?app=my%20app"))]
    #[case("adk", "http://host?app=b", "http://host/", json!(["a", "b"]), Some("adk:http://host?app=b"))]
    #[case("chat", "http://host/v1", "http://host/", json!({"data": [{"id": "m", "object": "model"}]}), Some("chat:http://host/v1?model=m"))]
    #[case("chat", "http://host", "http://host/", json!({"data": [{"id": "agent", "object": "model"}]}), Some("chat:http://host"))]
    #[case("chat", "http://host/my/agent", "http://host/", json!({"data": [{"id": "m", "object": "model"}]}), None)]
    #[case("a2a", "http://host:1", "http://host:1/", json!({"protocolVersion": "0.3", "url": "http://other:2/rpc"}), Some("a2a:http://host:1/rpc"))]
    fn completes_the_endpoint(
        #[case] kind: &str,
        #[case] agent_url: &str,
        #[case] base: &str,
        #[case] reply: Value,
        #[case] expected: Option<&str>,
    ) {
        let detected = detect(kind, agent_url, base, &reply);
        assert_eq!(detected.as_ref().map(|(endpoint, _)| endpoint.as_str()), expected);
    }

    #[rstest]
    #[case("http://host/webhook/5b8c/chat", Some("n8n"))]
    #[case("http://host/n8n/webhook/5b8c/chat/", Some("n8n"))]
    #[case("http://host/webhook//chat", None)]
    #[case("http://host/webhook/chat", None)]
    #[case("http://host/api/v1/prediction/5b8c", Some("flowise"))]
    #[case("http://host/v1/chat-messages", Some("dify"))]
    #[case("http://host/v1", None)]
    #[case("http://host", None)]
    fn recognises_paths(#[case] agent_url: &str, #[case] expected: Option<&str>) {
        let mut presets = Preset::kinds().filter_map(Preset::by_name);
        let found = presets.find(|preset| matches_path(preset, &url(agent_url)));
        assert_eq!(found.map(|preset| preset.kind), expected);
    }

    #[test]
    fn lists_other_values_of_a_parameter() {
        let (endpoint, notes) = detect("adk", "http://host", "http://host/", &json!(["a", "b"])).expect("found");
        assert_eq!(endpoint, "adk:http://host?app=a");
        assert_eq!(notes, ["app is the first of a, b: change it in the URL to test another"]);
    }

    #[rstest]
    #[case(None, r#"{"choices": [{"message": {"role": "assistant", "content": "hi"}}]}"#, Some("chat"))]
    #[case(
        Some("text/event-stream"),
        "data: {\"type\":\"RUN_STARTED\",\"threadId\":\"t\",\"runId\":\"r\"}\n\n",
        Some("ag-ui")
    )]
    #[case(None, r#"{"response": "hi"}"#, None)]
    #[case(None, "<html>", None)]
    fn recognises_replies(#[case] content_type: Option<&str>, #[case] body: &str, #[case] expected: Option<&str>) {
        assert_eq!(recognise(content_type, body.as_bytes()), expected);
    }
}
