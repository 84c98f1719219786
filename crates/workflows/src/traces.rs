//! Lists stored traces, and shows one with its executions and feedback.

use karat_core::port::TraceStore;
use karat_core::stored::TraceFilter;
use karat_evals::port::{EvalStore, FeedbackStore};
use karat_evals::traces::{TraceDetails, TraceList};

use crate::context::Context;
use crate::error::Error;
use crate::hint::Hint;
use crate::trace_filter::no_match_error;
use crate::trace_id::{self, resolve_trace_id};

#[derive(Debug, Clone)]
pub struct ListRequest {
    pub filter: TraceFilter,
    pub limit: Option<u64>,
    /// Also return shortened ids.
    pub short_ids: bool,
}

#[derive(Debug)]
pub struct TraceListing {
    pub list: TraceList,
    /// The shortened ids of the traces; empty if not requested.
    pub short_ids: Vec<String>,
    /// The error to report if no trace matches.
    pub empty_error: Option<Error>,
}

/// Lists traces, newest first.
pub async fn list(request: ListRequest, context: &Context<'_>) -> Result<TraceListing, Error> {
    let ListRequest { filter, limit, short_ids } = request;
    context
        .read_store(async |store| {
            let total = store.count_traces(&filter).await?;
            let empty_error = match total {
                0 if store.count_traces(&TraceFilter::default()).await? == 0 => {
                    Some(Error::nothing_selected("no traces in the store").hint(Hint::ImportOrReceiveTraces))
                }
                0 => Some(no_match_error(&filter, store).await?),
                _ => None,
            };
            let traces = store.list_traces(&TraceFilter { limit, ..filter }).await?;
            let short_ids = if short_ids {
                trace_id::short_ids(store, traces.iter().map(|trace| trace.head.trace_id.as_str())).await?
            } else {
                Vec::new()
            };
            Ok(TraceListing { list: TraceList { total, traces }, short_ids, empty_error })
        })
        .await
}

/// Reads a trace with its executions and feedback, by its id or a prefix.
pub async fn show(trace: &str, context: &Context<'_>) -> Result<TraceDetails, Error> {
    context
        .read_store(async |store| {
            let id = resolve_trace_id(store, trace).await?;
            let removed = || removed(&id);
            let filter = TraceFilter { ids: vec![id.clone()], ..TraceFilter::default() };
            let item = store.list_traces(&filter).await?.into_iter().next().ok_or_else(removed)?;
            let stored = store.trace(&id).await?.ok_or_else(removed)?;
            Ok(TraceDetails {
                item,
                document: stored.document()?,
                executions: store.executions_of_trace(&id).await?,
                feedback: store.feedback_of(&id).await?,
            })
        })
        .await
}

/// Reads the original payload of a trace.
pub async fn raw(trace: &str, context: &Context<'_>) -> Result<Vec<u8>, Error> {
    context
        .read_store(async |store| {
            let id = resolve_trace_id(store, trace).await?;
            store.raw(&id).await?.ok_or_else(|| removed(&id))
        })
        .await
}

fn removed(id: &str) -> Error {
    Error::conflict(format!("trace '{id}' is no longer in the store"))
}
