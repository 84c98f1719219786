//! Which trace a person means.

use karat_core::port::TraceStore;

use crate::error::Error;
use crate::hint::Hint;

/// How many candidates are named where a beginning fits several.
const MAX_NAMED: u64 = 5;

/// Finds the trace whose id this is, or whose id alone begins so.
pub async fn resolve_trace_id(store: &impl TraceStore, text: &str) -> Result<String, Error> {
    if text.is_empty() {
        return Err(Error::invalid("the id of a trace is empty"));
    }
    // An id that is the beginning of others is sorted before them.
    let found = store.trace_ids(text, MAX_NAMED + 1).await?;
    match found.as_slice() {
        [] => {
            let error = Error::not_found(format!("there is no trace '{text}' in the store"));
            Err(error.hint(Hint::ListTraces))
        }
        [first, ..] if first == text => Ok(first.clone()),
        [only] => Ok(only.clone()),
        several => {
            let count = several.len();
            let shown = usize::try_from(MAX_NAMED).unwrap_or(count).min(count);
            let more = if count > shown { " and others" } else { "" };
            let error = Error::invalid(format!("the ids of several traces begin with '{text}'"));
            Err(error.hint(format!("say more of it: {}{more}", several[..shown].join(", "))))
        }
    }
}

/// What a person types of an id, at least.
const MIN_TYPED: usize = 8;

/// Shortens ids to beginnings by which each can be named.
pub async fn shortest_ids(store: &impl TraceStore, ids: &[&str]) -> Result<Vec<String>, Error> {
    let mut short = Vec::with_capacity(ids.len());
    for id in ids {
        let ends = id.char_indices().map(|(start, character)| start + character.len_utf8());
        let mut shortest = *id;
        for end in ends.skip(MIN_TYPED - 1).step_by(4) {
            if store.trace_ids(&id[..end], 2).await?.len() < 2 {
                shortest = &id[..end];
                break;
            }
        }
        short.push(shortest.to_owned());
    }
    Ok(short)
}
