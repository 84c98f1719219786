//! Reads traces from a Langfuse server in pages.

mod transport;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;

use crate::langfuse;
use crate::piece::{Piece, RefusedItem};
use crate::time::parse_any_unit;
use karat_chat::lenient::first_text;
use transport::{Reply, Transport};

pub use transport::LangfuseError;

const TRACES_PER_PAGE: usize = 50;

/// The maximum that the server allows.
const OBSERVATIONS_PER_PAGE: usize = 1000;

/// Servers limit requests per minute, so more concurrency would only add waiting.
const MAX_CONCURRENT_FETCHES: usize = 4;

/// The maximum delay until a server shows the data it received.
const INGESTION_DELAY: SignedDuration = SignedDuration::from_mins(15);

/// The keys of a Langfuse project.
#[derive(Clone)]
pub struct LangfuseKeys {
    pub public: String,
    pub secret: String,
}

impl std::fmt::Debug for LangfuseKeys {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("LangfuseKeys").finish_non_exhaustive()
    }
}

/// A Langfuse server.
#[derive(Debug)]
pub struct LangfuseApi {
    transport: Transport,
    /// Assumed until a request shows that the server is too old.
    has_observations_v2: AtomicBool,
}

impl LangfuseApi {
    /// `url` is `https://cloud.langfuse.com` or the URL of a self-hosted server.
    pub fn new(url: &str, keys: LangfuseKeys) -> Result<Self, LangfuseError> {
        Ok(Self { transport: Transport::new(url, keys)?, has_observations_v2: AtomicBool::new(true) })
    }

    /// Sets the delay before the first retry of a request. It doubles with each further retry.
    #[must_use]
    pub fn with_retry_delay(mut self, delay: Duration) -> Self {
        self.transport.retry_delay = delay;
        self
    }

    /// Reads the traces that began in this time range, oldest first, then those that people scored in it.
    pub fn pages(self, since: Option<Timestamp>, until: Option<Timestamp>) -> LangfusePages {
        LangfusePages {
            api: Arc::new(self),
            since,
            until,
            stage: Stage::Scores,
            scores: BTreeMap::new(),
            read: BTreeSet::new(),
            newest: None,
            ascending: true,
        }
    }

    /// Reads all observations of a trace. Returns `None` if the server does not support the v2 endpoint.
    async fn observations(&self, trace: &str) -> Result<Option<Vec<Value>>, LangfuseError> {
        let mut all = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let mut query = vec![
                ("traceId", trace.to_owned()),
                ("fields", "core,basic,time,io,metadata,model,usage".to_owned()),
                ("limit", OBSERVATIONS_PER_PAGE.to_string()),
            ];
            query.extend(cursor.iter().map(|cursor| ("cursor", cursor.clone())));
            let Reply::Found(mut page) = self.transport.get_page(&["v2", "observations"], &query).await? else {
                return Ok(None);
            };
            all.extend(take_data(&mut page));
            let next = page.get("meta").and_then(|meta| meta.get("cursor")).and_then(Value::as_str).map(str::to_owned);
            match next.filter(|next| !next.is_empty()) {
                None => return Ok(Some(all)),
                Some(next) if cursor.as_ref() == Some(&next) => {
                    let reason = "the cursor does not advance".to_owned();
                    return Err(LangfuseError::InvalidResponse { path: "v2/observations".to_owned(), reason });
                }
                next => cursor = next,
            }
        }
    }

    /// Reads a full trace. `list_entry` is its entry in the list of traces.
    async fn fetch_trace(
        &self,
        id: &str,
        list_entry: Option<Map<String, Value>>,
    ) -> Result<Option<Value>, LangfuseError> {
        if let Some(trace) = list_entry
            && self.has_observations_v2.load(Ordering::Relaxed)
        {
            if let Some(observations) = self.observations(id).await? {
                return Ok(Some(json!({"trace": trace, "observations": observations})));
            }
            // Self-hosted servers may be older.
            self.has_observations_v2.store(false, Ordering::Relaxed);
        }
        Ok(match self.transport.get(&["traces", id], &[]).await? {
            Reply::Found(trace) => Some(json!({"trace": trace})),
            Reply::NotFound => None,
        })
    }

    /// Reads a trace with its scores.
    async fn read_trace(
        &self,
        id: &str,
        list_entry: Option<Map<String, Value>>,
        scores: Vec<Value>,
    ) -> Result<Result<Piece, RefusedItem>, LangfuseError> {
        let refused = |message: String| RefusedItem { location: format!("trace {id}"), message };
        let Some(mut export) = self.fetch_trace(id, list_entry).await? else {
            return Ok(Err(refused("the trace no longer exists on the server".to_owned())));
        };
        if !scores.is_empty() {
            export["scores"] = Value::Array(scores);
        }
        let text = export.to_string();
        let read = langfuse::read(&export, text.as_bytes());
        Ok(read.map(|imported| Piece::Whole(Box::new(imported))).map_err(refused))
    }
}

/// One page of a server's traces.
#[derive(Debug)]
pub struct LangfusePage {
    pub pieces: Vec<Result<Piece, RefusedItem>>,
    /// All traces that began before this time were read. `None` if unknown. See [`resume_from`].
    pub seen_until: Option<Timestamp>,
    /// The total number of traces according to the server.
    pub total: Option<u64>,
}

/// Returns the start of the next import, with an overlap for traces that reached the server late. Reading a trace again
/// is harmless.
pub fn resume_from(seen_until: Timestamp) -> Timestamp {
    seen_until.checked_sub(INGESTION_DELAY).unwrap_or(seen_until)
}

/// Pages of a server's traces.
#[derive(Debug)]
pub struct LangfusePages {
    api: Arc<LangfuseApi>,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    stage: Stage,
    /// Scores of people, by trace.
    scores: BTreeMap<String, Vec<Value>>,
    read: BTreeSet<String>,
    newest: Option<Timestamp>,
    /// The server honours the requested order.
    ascending: bool,
}

#[derive(Debug)]
enum Stage {
    Scores,
    /// The number of the next page.
    Traces(u64),
    /// Earlier traces that were scored in the time range.
    Scored(VecDeque<String>),
}

/// A trace to fetch.
struct PendingTrace {
    id: String,
    list_entry: Option<Map<String, Value>>,
}

impl LangfusePages {
    /// Reads the next page, or `None` after the last one. After an error, the next call retries the same page.
    pub async fn next(&mut self) -> Result<Option<LangfusePage>, LangfuseError> {
        loop {
            match &mut self.stage {
                Stage::Scores => {
                    self.scores = self.read_scores().await?;
                    self.stage = Stage::Traces(1);
                }
                Stage::Traces(number) => {
                    let number = *number;
                    if let Some(page) = self.read_page(number).await? {
                        return Ok(Some(page));
                    }
                }
                Stage::Scored(ids) => {
                    let pending: Vec<PendingTrace> = ids
                        .iter()
                        .take(TRACES_PER_PAGE)
                        .map(|id| PendingTrace { id: id.clone(), list_entry: None })
                        .collect();
                    if pending.is_empty() {
                        return Ok(None);
                    }
                    let count = pending.len();
                    let pieces = self.fetch(pending).await?;
                    if let Stage::Scored(ids) = &mut self.stage {
                        ids.drain(..count);
                    }
                    return Ok(Some(LangfusePage { pieces, seen_until: self.newest, total: None }));
                }
            }
        }
    }

    /// Reads a page of the list and its traces. Returns `None` at the end of the list.
    async fn read_page(&mut self, number: u64) -> Result<Option<LangfusePage>, LangfuseError> {
        let mut query = self.time_range();
        query.push(("page", number.to_string()));
        query.push(("limit", TRACES_PER_PAGE.to_string()));
        query.push(("orderBy", "timestamp.asc".to_owned()));
        query.push(("fields", "core,io".to_owned()));
        let mut page = self.api.transport.get_page(&["traces"], &query).await?.into_value("traces")?;
        let traces = take_data(&mut page);
        let count = |name: &str| page.get("meta").and_then(|meta| meta.get(name)).and_then(Value::as_u64);
        let is_last = match count("totalPages") {
            Some(pages) => number >= pages,
            None => traces.len() < TRACES_PER_PAGE,
        };
        let total = count("totalItems");
        let is_empty = traces.is_empty();
        if is_empty && !is_last {
            return Err(unexpected_end("traces", number));
        }
        let (mut newest, mut ascending) = (self.newest, self.ascending);
        let (mut pending, mut pieces) = (Vec::new(), Vec::new());
        for (item, trace) in (1_u64..).zip(traces) {
            let Some(id) = trace.as_object().and_then(|trace| first_text(trace, &["id"])).map(str::to_owned) else {
                let location = format!("page {number}, item {item}");
                pieces.push(Err(RefusedItem { location, message: "the trace has no 'id'".to_owned() }));
                continue;
            };
            let began = trace.get("timestamp").and_then(parse_any_unit);
            ascending &= began >= newest || began.is_none();
            newest = newest.max(began);
            if let Value::Object(list_entry) = trace
                && !self.read.contains(&id)
            {
                pending.push(PendingTrace { id, list_entry: Some(list_entry) });
            }
        }
        pieces.splice(0..0, self.fetch(pending).await?);
        (self.newest, self.ascending) = (newest, ascending);
        if is_last || is_empty {
            let remaining = self.scores.keys().filter(|id| !self.read.contains(*id)).cloned().collect();
            self.stage = Stage::Scored(remaining);
            if is_empty {
                return Ok(None);
            }
        } else {
            self.stage = Stage::Traces(number + 1);
        }
        let seen_until = self.newest.filter(|_| self.ascending || is_last);
        Ok(Some(LangfusePage { pieces, seen_until, total }))
    }

    /// Fetches traces concurrently and returns them in order.
    async fn fetch(&mut self, pending: Vec<PendingTrace>) -> Result<Vec<Result<Piece, RefusedItem>>, LangfuseError> {
        let ids: Vec<String> = pending.iter().map(|trace| trace.id.clone()).collect();
        let mut pieces: BTreeMap<usize, Result<Piece, RefusedItem>> = BTreeMap::new();
        let mut waiting = pending.into_iter().enumerate();
        let mut running = JoinSet::new();
        loop {
            while running.len() < MAX_CONCURRENT_FETCHES
                && let Some((index, pending)) = waiting.next()
            {
                let api = Arc::clone(&self.api);
                let scores = self.scores.get(&pending.id).cloned().unwrap_or_default();
                running.spawn(async move { (index, api.read_trace(&pending.id, pending.list_entry, scores).await) });
            }
            match running.join_next().await {
                None => break,
                Some(Ok((index, piece))) => {
                    pieces.insert(index, piece?);
                }
                Some(Err(error)) => return Err(LangfuseError::Unreachable(error.to_string())),
            }
        }
        self.read.extend(ids);
        Ok(pieces.into_values().collect())
    }

    /// Reads the scores of people in the time range, by trace.
    async fn read_scores(&self) -> Result<BTreeMap<String, Vec<Value>>, LangfuseError> {
        let mut scores: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for number in 1_u64.. {
            let mut query = self.time_range();
            query.push(("source", "ANNOTATION".to_owned()));
            query.push(("page", number.to_string()));
            query.push(("limit", "100".to_owned()));
            let Reply::Found(mut page) = self.api.transport.get_page(&["v2", "scores"], &query).await? else { break };
            let entries = take_data(&mut page);
            let pages = page.get("meta").and_then(|meta| meta.get("totalPages")).and_then(Value::as_u64);
            let is_last = pages.map_or(entries.len() < 100, |pages| number >= pages);
            if entries.is_empty() && !is_last {
                return Err(unexpected_end("v2/scores", number));
            }
            for score in entries {
                if let Some(trace) = score.get("traceId").and_then(Value::as_str).map(str::to_owned) {
                    scores.entry(trace).or_default().push(score);
                }
            }
            if is_last {
                break;
            }
        }
        Ok(scores)
    }

    fn time_range(&self) -> Vec<(&'static str, String)> {
        let since = self.since.map(|since| ("fromTimestamp", since.to_string()));
        let until = self.until.map(|until| ("toTimestamp", until.to_string()));
        since.into_iter().chain(until).collect()
    }
}

fn unexpected_end(path: &str, page: u64) -> LangfuseError {
    let reason = format!("page {page} is empty but not the last one");
    LangfuseError::InvalidResponse { path: format!("api/public/{path}"), reason }
}

fn take_data(page: &mut Value) -> Vec<Value> {
    match page.get_mut("data").map(Value::take) {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}
