//! Reads traces from a Langfuse server, page by page.

mod transport;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;

use crate::json::first_text;
use crate::langfuse;
use crate::piece::{Piece, Refused};
use crate::time::guessed;
use transport::{Reply, Transport};

pub use transport::LangfuseError;

/// How many traces are on a page.
const PAGE: usize = 50;

/// How many observations are asked for at once; the server gives no more.
const OBSERVATIONS: usize = 1000;

/// How many traces are fetched at the same time. Servers count requests by the minute, so that more would only wait.
const AT_ONCE: usize = 4;

/// A server shows what it was sent up to this much later.
const DELAY: SignedDuration = SignedDuration::from_mins(15);

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
    /// The server knows the second version of the observations' interface, as far as is known.
    has_version_2: AtomicBool,
}

impl LangfuseApi {
    /// Takes the server's address: `https://cloud.langfuse.com`, or one's own.
    pub fn new(url: &str, keys: LangfuseKeys) -> Result<Self, LangfuseError> {
        Ok(Self { transport: Transport::new(url, keys)?, has_version_2: AtomicBool::new(true) })
    }

    /// Waits this long before the second try of a request, and twice as long before each further one.
    #[must_use]
    pub fn with_pause(mut self, pause: Duration) -> Self {
        self.transport.pause = pause;
        self
    }

    /// Reads the traces that began in this time, oldest first, and then those that people scored in it.
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

    /// Reads all observations of a trace; nothing where the server has no such interface.
    async fn observations(&self, trace: &str) -> Result<Option<Vec<Value>>, LangfuseError> {
        let mut all = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let mut query = vec![
                ("traceId", trace.to_owned()),
                ("fields", "core,basic,time,io,metadata,model,usage".to_owned()),
                ("limit", OBSERVATIONS.to_string()),
            ];
            query.extend(cursor.iter().map(|cursor| ("cursor", cursor.clone())));
            let Reply::Found(mut page) = self.transport.get_page(&["v2", "observations"], &query).await? else {
                return Ok(None);
            };
            all.extend(take_list(&mut page));
            let next = page.get("meta").and_then(|meta| meta.get("cursor")).and_then(Value::as_str).map(str::to_owned);
            match next.filter(|next| !next.is_empty()) {
                None => return Ok(Some(all)),
                Some(next) if cursor.as_ref() == Some(&next) => {
                    let why = "the same page follows itself".to_owned();
                    return Err(LangfuseError::Broken { path: "v2/observations".to_owned(), why });
                }
                next => cursor = next,
            }
        }
    }

    /// Reads a trace whole. `listed` is what the list says of it.
    async fn trace(&self, id: &str, listed: Option<Map<String, Value>>) -> Result<Option<Value>, LangfuseError> {
        if let Some(trace) = listed
            && self.has_version_2.load(Ordering::Relaxed)
        {
            if let Some(observations) = self.observations(id).await? {
                return Ok(Some(json!({"trace": trace, "observations": observations})));
            }
            // Servers of one's own may be older.
            self.has_version_2.store(false, Ordering::Relaxed);
        }
        Ok(match self.transport.get(&["traces", id], &[]).await? {
            Reply::Found(trace) => Some(json!({"trace": trace})),
            Reply::Missing => None,
        })
    }

    /// Reads a trace and makes a piece of it, with what people said.
    async fn piece(
        &self,
        id: &str,
        listed: Option<Map<String, Value>>,
        scores: Vec<Value>,
    ) -> Result<Result<Piece, Refused>, LangfuseError> {
        let refused = |message: String| Refused { place: format!("trace {id}"), message };
        let Some(mut export) = self.trace(id, listed).await? else {
            return Ok(Err(refused("the server has it no more".to_owned())));
        };
        if !scores.is_empty() {
            export["scores"] = Value::Array(scores);
        }
        let text = export.to_string();
        let read = langfuse::read(&export, text.as_bytes());
        Ok(read.map(|imported| Piece::Whole(Box::new(imported))).map_err(refused))
    }
}

/// Some of a server's traces.
#[derive(Debug)]
pub struct LangfusePage {
    pub pieces: Vec<Result<Piece, Refused>>,
    /// All traces that began before this were seen; nothing where that is not known yet. See [`resume_from`].
    pub seen_until: Option<Timestamp>,
    /// How many traces there are in all, by the server's word.
    pub total: Option<u64>,
}

/// Returns from when on to read the next time, so that traces that reached the server late are not missed. Those that are
/// read again change nothing.
pub fn resume_from(seen_until: Timestamp) -> Timestamp {
    seen_until.checked_sub(DELAY).unwrap_or(seen_until)
}

/// Pages of a server's traces.
#[derive(Debug)]
pub struct LangfusePages {
    api: Arc<LangfuseApi>,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    stage: Stage,
    /// What people said, by trace.
    scores: BTreeMap<String, Vec<Value>>,
    read: BTreeSet<String>,
    newest: Option<Timestamp>,
    /// The server keeps the order that it is asked for.
    ascending: bool,
}

#[derive(Debug)]
enum Stage {
    Scores,
    /// The page that comes next.
    Traces(u64),
    /// Traces that began earlier and were scored since.
    Scored(VecDeque<String>),
}

/// A trace that is to be fetched.
struct Wanted {
    id: String,
    listed: Option<Map<String, Value>>,
}

impl LangfusePages {
    /// Reads the next page; nothing after the last. After an error the same page is tried again.
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
                    let wanted: Vec<Wanted> =
                        ids.iter().take(PAGE).map(|id| Wanted { id: id.clone(), listed: None }).collect();
                    if wanted.is_empty() {
                        return Ok(None);
                    }
                    let count = wanted.len();
                    let pieces = self.fetch(wanted).await?;
                    if let Stage::Scored(ids) = &mut self.stage {
                        ids.drain(..count);
                    }
                    return Ok(Some(LangfusePage { pieces, seen_until: self.newest, total: None }));
                }
            }
        }
    }

    /// Reads a page of the list and its traces; nothing where the list has ended.
    async fn read_page(&mut self, number: u64) -> Result<Option<LangfusePage>, LangfuseError> {
        let mut query = self.times();
        query.push(("page", number.to_string()));
        query.push(("limit", PAGE.to_string()));
        query.push(("orderBy", "timestamp.asc".to_owned()));
        query.push(("fields", "core,io".to_owned()));
        let mut page = self.api.transport.get_page(&["traces"], &query).await?.found("traces")?;
        let traces = take_list(&mut page);
        let count = |name: &str| page.get("meta").and_then(|meta| meta.get(name)).and_then(Value::as_u64);
        let last = match count("totalPages") {
            Some(pages) => number >= pages,
            None => traces.len() < PAGE,
        };
        let total = count("totalItems");
        let empty = traces.is_empty();
        if empty && !last {
            return Err(ends_early("traces", number));
        }
        let (mut newest, mut ascending) = (self.newest, self.ascending);
        let (mut wanted, mut pieces) = (Vec::new(), Vec::new());
        for (item, trace) in (1_u64..).zip(traces) {
            let Some(id) = trace.as_object().and_then(|trace| first_text(trace, &["id"])).map(str::to_owned) else {
                let place = format!("page {number}, item {item}");
                pieces.push(Err(Refused { place, message: "the trace has no 'id'".to_owned() }));
                continue;
            };
            let began = trace.get("timestamp").and_then(guessed);
            ascending &= began >= newest || began.is_none();
            newest = newest.max(began);
            if let Value::Object(listed) = trace
                && !self.read.contains(&id)
            {
                wanted.push(Wanted { id, listed: Some(listed) });
            }
        }
        pieces.splice(0..0, self.fetch(wanted).await?);
        (self.newest, self.ascending) = (newest, ascending);
        if last || empty {
            let left = self.scores.keys().filter(|id| !self.read.contains(*id)).cloned().collect();
            self.stage = Stage::Scored(left);
            if empty {
                return Ok(None);
            }
        } else {
            self.stage = Stage::Traces(number + 1);
        }
        let seen_until = self.newest.filter(|_| self.ascending || last);
        Ok(Some(LangfusePage { pieces, seen_until, total }))
    }

    /// Fetches traces, some at the same time; they keep their order.
    async fn fetch(&mut self, wanted: Vec<Wanted>) -> Result<Vec<Result<Piece, Refused>>, LangfuseError> {
        let ids: Vec<String> = wanted.iter().map(|one| one.id.clone()).collect();
        let mut pieces: BTreeMap<usize, Result<Piece, Refused>> = BTreeMap::new();
        let mut waiting = wanted.into_iter().enumerate();
        let mut running = JoinSet::new();
        loop {
            while running.len() < AT_ONCE
                && let Some((place, one)) = waiting.next()
            {
                let api = Arc::clone(&self.api);
                let scores = self.scores.get(&one.id).cloned().unwrap_or_default();
                running.spawn(async move { (place, api.piece(&one.id, one.listed, scores).await) });
            }
            match running.join_next().await {
                None => break,
                Some(Ok((place, piece))) => {
                    pieces.insert(place, piece?);
                }
                Some(Err(error)) => return Err(LangfuseError::Unreached(error.to_string())),
            }
        }
        self.read.extend(ids);
        Ok(pieces.into_values().collect())
    }

    /// Reads what people said in the time, by trace.
    async fn read_scores(&self) -> Result<BTreeMap<String, Vec<Value>>, LangfuseError> {
        let mut scores: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for number in 1_u64.. {
            let mut query = self.times();
            query.push(("source", "ANNOTATION".to_owned()));
            query.push(("page", number.to_string()));
            query.push(("limit", "100".to_owned()));
            let Reply::Found(mut page) = self.api.transport.get_page(&["v2", "scores"], &query).await? else { break };
            let listed = take_list(&mut page);
            let pages = page.get("meta").and_then(|meta| meta.get("totalPages")).and_then(Value::as_u64);
            let last = pages.map_or(listed.len() < 100, |pages| number >= pages);
            if listed.is_empty() && !last {
                return Err(ends_early("v2/scores", number));
            }
            for score in listed {
                if let Some(trace) = score.get("traceId").and_then(Value::as_str).map(str::to_owned) {
                    scores.entry(trace).or_default().push(score);
                }
            }
            if last {
                break;
            }
        }
        Ok(scores)
    }

    fn times(&self) -> Vec<(&'static str, String)> {
        let since = self.since.map(|since| ("fromTimestamp", since.to_string()));
        let until = self.until.map(|until| ("toTimestamp", until.to_string()));
        since.into_iter().chain(until).collect()
    }
}

/// Tells of a list that is said to go on, and does not.
fn ends_early(path: &str, page: u64) -> LangfuseError {
    let why = format!("page {page} is empty, though more are said to follow");
    LangfuseError::Broken { path: format!("api/public/{path}"), why }
}

fn take_list(page: &mut Value) -> Vec<Value> {
    match page.get_mut("data").map(Value::take) {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}
