//! Resolves trace ids from prefixes, and shortens them.

use karat_core::port::TraceStore;

use crate::error::Error;
use crate::hint::Hint;

/// Maximum number of ids to list if a prefix is ambiguous.
const MAX_LISTED_IDS: u64 = 5;

/// Resolves an id, or a unique prefix of one, to the full id of a trace.
pub async fn resolve_trace_id(store: &impl TraceStore, text: &str) -> Result<String, Error> {
    if text.is_empty() {
        return Err(Error::invalid("empty trace id"));
    }
    // An id that is a prefix of others sorts before them.
    let found = store.trace_ids(text, MAX_LISTED_IDS + 1).await?;
    match found.as_slice() {
        [] => {
            let error = Error::not_found(format!("trace '{text}' not found in the store"));
            Err(error.hint(Hint::ListTraces))
        }
        [first, ..] if first == text => Ok(first.clone()),
        [only] => Ok(only.clone()),
        several => {
            let count = several.len();
            let listed = usize::try_from(MAX_LISTED_IDS).unwrap_or(count).min(count);
            let more = if count > listed { " and others" } else { "" };
            let error = Error::invalid(format!("ambiguous trace id: several ids begin with '{text}'"));
            Err(error.hint(format!("use a longer prefix: {}{more}", several[..listed].join(", "))))
        }
    }
}

/// Minimum length of a shortened id, in characters.
pub(crate) const MIN_PREFIX_LENGTH: usize = 8;

/// Shortens each id to a prefix that is unique in the store.
pub async fn unique_prefixes(store: &impl TraceStore, ids: &[&str]) -> Result<Vec<String>, Error> {
    let mut short = Vec::with_capacity(ids.len());
    for id in ids {
        let ends = id.char_indices().map(|(start, character)| start + character.len_utf8());
        let mut shortest = *id;
        for end in ends.skip(MIN_PREFIX_LENGTH - 1).step_by(4) {
            if store.trace_ids(&id[..end], 2).await?.len() < 2 {
                shortest = &id[..end];
                break;
            }
        }
        short.push(shortest.to_owned());
    }
    Ok(short)
}
