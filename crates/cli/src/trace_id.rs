//! Which trace a person means.

use karat_core::port::TraceStore;

use crate::failure::Failure;

/// How many candidates are named where a beginning fits several.
const MOST_NAMED: u64 = 5;

/// Finds the trace whose id this is, or whose id alone begins so.
pub(crate) async fn resolve_trace_id(store: &impl TraceStore, text: &str) -> Result<String, Failure> {
    if text.is_empty() {
        return Err(Failure::invalid("the id of a trace is empty"));
    }
    // An id that is the beginning of others is sorted before them.
    let found = store.trace_ids(text, MOST_NAMED + 1).await?;
    match found.as_slice() {
        [] => {
            let failure = Failure::invalid(format!("there is no trace '{text}' in the store"));
            Err(failure.hint("'karat trace list' shows the traces; an id may be shortened to its beginning"))
        }
        [first, ..] if first == text => Ok(first.clone()),
        [only] => Ok(only.clone()),
        several => {
            let count = several.len();
            let shown = usize::try_from(MOST_NAMED).unwrap_or(count).min(count);
            let more = if count > shown { " and others" } else { "" };
            let failure = Failure::invalid(format!("the ids of several traces begin with '{text}'"));
            Err(failure.hint(format!("say more of it: {}{more}", several[..shown].join(", "))))
        }
    }
}

/// What a person types of an id, at least.
const LEAST_TYPED: usize = 8;

/// Shortens ids to beginnings by which each can be named.
pub(crate) async fn shortest_ids(store: &impl TraceStore, ids: &[&str]) -> Result<Vec<String>, Failure> {
    let mut short = Vec::with_capacity(ids.len());
    for id in ids {
        let ends = id.char_indices().map(|(start, character)| start + character.len_utf8());
        let mut shortest = *id;
        for end in ends.skip(LEAST_TYPED - 1).step_by(4) {
            if store.trace_ids(&id[..end], 2).await?.len() < 2 {
                shortest = &id[..end];
                break;
            }
        }
        short.push(shortest.to_owned());
    }
    Ok(short)
}
