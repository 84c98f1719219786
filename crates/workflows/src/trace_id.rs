//! Resolves prefixes of trace ids, and shortens ids.

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
    let matches = store.trace_ids(text, MAX_LISTED_IDS + 1).await?;
    match matches.as_slice() {
        [] => {
            let error = Error::not_found(format!("trace '{text}' not found in the store"));
            Err(error.hint(Hint::ListTraces))
        }
        [first, ..] if first == text => Ok(first.clone()),
        [only] => Ok(only.clone()),
        several => {
            if let Some(imported) = imported_id(text, several) {
                return Ok(imported.to_owned());
            }
            let count = several.len();
            let max_listed = usize::try_from(MAX_LISTED_IDS).unwrap_or(count).min(count);
            let more = if count > max_listed { " and others" } else { "" };
            let error = Error::invalid(format!("ambiguous trace id: several ids begin with '{text}'"));
            Err(error.hint(format!("use a longer prefix: {}{more}", several[..max_listed].join(", "))))
        }
    }
}

/// Length of the hash that an import appends to an id that is unique only within its file.
const HASH_LENGTH: usize = 12;

/// Returns the id that an import made from `own`, the id of an entry in its file, if only one of these ids was.
pub(crate) fn imported_id<'i>(own: &str, ids: &'i [String]) -> Option<&'i str> {
    let is_hash = |rest: &str| rest.len() == HASH_LENGTH && rest.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_imported = |id: &&String| id.strip_prefix(own).and_then(|rest| rest.strip_prefix('-')).is_some_and(is_hash);
    let mut imported = ids.iter().filter(is_imported);
    imported.next().filter(|_| imported.next().is_none()).map(String::as_str)
}

/// Minimum length of a shortened id, in characters.
pub(crate) const MIN_PREFIX_LENGTH: usize = 8;

/// Maximum length of an id that is not shortened, in characters; short ids are often names.
const MAX_FULL_LENGTH: usize = 20;

/// Minimum length of a run id that is shortened, in characters.
const MIN_RUN_ID_LENGTH: usize = 16;

/// Shortens each id to an abbreviation that is unique in the store: a prefix, or `RUN:REST` with a prefix of the run id
/// for traces of runs.
pub async fn short_ids<'i>(
    store: &impl TraceStore,
    ids: impl IntoIterator<Item = &'i str>,
) -> Result<Vec<String>, Error> {
    let mut short = Vec::new();
    for id in ids {
        let mut shortest = id.to_owned();
        let is_long = id.chars().count() > MAX_FULL_LENGTH;
        for abbreviation in abbreviations(id).filter(|_| is_long) {
            if store.trace_ids(&abbreviation, 2).await?.len() < 2 {
                shortest = abbreviation;
                break;
            }
        }
        short.push(shortest);
    }
    Ok(short)
}

/// Returns abbreviations of an id, shortest first.
fn abbreviations(id: &str) -> impl Iterator<Item = String> {
    let run_length = id.find(':').filter(|length| *length >= MIN_RUN_ID_LENGTH);
    let (shortened, rest) = id.split_at(run_length.unwrap_or(id.len()));
    let ends = shortened.char_indices().map(|(start, character)| start + character.len_utf8());
    ends.skip(MIN_PREFIX_LENGTH - 1).step_by(4).map(move |end| format!("{}{rest}", &shortened[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_id_that_an_import_made() {
        let ids =
            ["conv-1-1e2ec23a4aa6", "conv-10-1e2ec23a4aa6", "conv-2-1e2ec23a4aa6", "conv-2-ffffc23a4aa6", "conv-3-x"];
        let ids = ids.map(str::to_owned);
        assert_eq!(imported_id("conv-1", &ids), Some("conv-1-1e2ec23a4aa6"));
        assert_eq!(imported_id("conv-2", &ids), None);
        assert_eq!(imported_id("conv-3", &ids), None);
    }

    #[test]
    fn abbreviates_the_run_of_a_trace() {
        assert_eq!(abbreviations("0123456789ab").collect::<Vec<_>>(), ["01234567", "0123456789ab"]);
        assert_eq!(abbreviations("urn:trace:1").collect::<Vec<_>>(), ["urn:trac"]);
        let of_run: Vec<String> = abbreviations("0123456789abcdef:1:gs-x-001:1").collect();
        assert_eq!(of_run, ["01234567:1:gs-x-001:1", "0123456789ab:1:gs-x-001:1", "0123456789abcdef:1:gs-x-001:1"]);
    }
}
