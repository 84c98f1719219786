//! The traces of the store: list them, and show one with what evals and people say of it.

use karat_core::port::TraceStore;
use karat_core::stored::TraceFilter;
use karat_evals::port::{EvalStore, FeedbackStore};
use karat_evals::shown::{ShownTrace, TraceList};

use crate::context::Context;
use crate::error::Error;
use crate::hint::Hint;
use crate::trace_filter::nothing_fits;
use crate::trace_id::{resolve_trace_id, shortest_ids};

#[derive(Debug, Clone)]
pub struct ListRequest {
    pub filter: TraceFilter,
    pub limit: Option<u64>,
    /// Also shorten the ids, for a person who types them.
    pub short_ids: bool,
}

#[derive(Debug)]
pub struct Listed {
    pub list: TraceList,
    /// The ids of the listed traces, shortened; empty where nobody asked for them.
    pub short_ids: Vec<String>,
    /// Why nothing is listed, where nothing is.
    pub nothing: Option<Error>,
}

/// Lists traces, the newest first.
pub async fn list(request: ListRequest, context: &Context<'_>) -> Result<Listed, Error> {
    let ListRequest { filter, limit, short_ids } = request;
    context
        .read_store(async |store| {
            let total = store.count_traces(&filter).await?;
            let nothing = match total {
                0 if filter == TraceFilter::default() => {
                    Some(Error::nothing_selected("there are no traces in the store").hint(Hint::ImportOrReceiveTraces))
                }
                0 => Some(nothing_fits(&filter, store).await?),
                _ => None,
            };
            let traces = store.list_traces(&TraceFilter { limit, ..filter }).await?;
            let short_ids = if short_ids {
                let ids: Vec<&str> = traces.iter().map(|listed| listed.head.trace_id.as_str()).collect();
                shortest_ids(store, &ids).await?
            } else {
                Vec::new()
            };
            Ok(Listed { list: TraceList { total, traces }, short_ids, nothing })
        })
        .await
}

/// Reads all that is known of a trace, by its id or the beginning of it.
pub async fn show(trace: &str, context: &Context<'_>) -> Result<ShownTrace, Error> {
    context
        .read_store(async |store| {
            let id = resolve_trace_id(store, trace).await?;
            let gone = || gone(&id);
            let filter = TraceFilter { ids: vec![id.clone()], ..TraceFilter::default() };
            let listed = store.list_traces(&filter).await?.into_iter().next().ok_or_else(gone)?;
            let stored = store.trace(&id).await?.ok_or_else(gone)?;
            Ok(ShownTrace {
                listed,
                document: stored.document()?,
                executions: store.executions_of_trace(&id).await?,
                feedback: store.feedback_of(&id).await?,
            })
        })
        .await
}

/// Reads what the source of a trace sent, byte for byte.
pub async fn raw(trace: &str, context: &Context<'_>) -> Result<Vec<u8>, Error> {
    context
        .read_store(async |store| {
            let id = resolve_trace_id(store, trace).await?;
            store.raw(&id).await?.ok_or_else(|| gone(&id))
        })
        .await
}

fn gone(id: &str) -> Error {
    Error::conflict(format!("the trace '{id}' is not in the store any more"))
}
