//! Remembers how far a server was read.
//!
//! A file beside the store, for one server, one project and one store. Without it everything is read again, which changes
//! nothing.

use std::path::PathBuf;

use jiff::Timestamp;
use karat_json::hash::short_hash;
use karat_project::replace_file;
use karat_store::{Location, make_folder};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::settings::Settings;

/// What is remembered, and where.
#[derive(Debug)]
pub(super) struct Cursor {
    path: PathBuf,
    mark: Mark,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    url: String,
    /// From when on it was read; null: from the beginning.
    since: Option<Timestamp>,
    /// All traces that began in between are in the store.
    seen_until: Option<Timestamp>,
    /// One of them: a store that does not have it is another one.
    last_trace: Option<String>,
}

impl Cursor {
    /// Reads what is remembered of a server. A file that cannot be read is as good as none.
    pub(super) fn open(url: &str, public_key: &str, settings: &Settings) -> Self {
        let (folder, store) = match &settings.store {
            Location::File(path) => (path.parent().map(PathBuf::from), path.to_string_lossy().into_owned()),
            Location::Postgres(url) => (None, url.clone()),
        };
        let folder = folder.unwrap_or_else(|| settings.layout.root.join(".karat"));
        let hash = short_hash(format!("{url}\n{public_key}\n{store}").as_bytes());
        let path = folder.join(format!("langfuse-{hash}.json"));
        let mark = std::fs::read(&path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Self { path, mark: Mark { url: url.to_owned(), ..mark.unwrap_or_default() } }
    }

    /// Returns until when all is there, where what is asked for now begins within that; no time is before all times.
    pub(super) fn seen_until(&self, since: Option<Timestamp>) -> Option<Timestamp> {
        let seen_until = self.mark.seen_until?;
        (self.mark.since <= since && since <= Some(seen_until)).then_some(seen_until)
    }

    pub(super) fn last_trace(&self) -> Option<&str> {
        self.mark.last_trace.as_deref()
    }

    /// Remembers that all traces are there that began from `since` until `seen_until`.
    pub(super) fn advance(
        &mut self,
        since: Option<Timestamp>,
        seen_until: Timestamp,
        last_trace: Option<String>,
    ) -> Result<(), Error> {
        let goes_on = self.seen_until(since).is_some();
        let mark = Mark {
            url: self.mark.url.clone(),
            since: if goes_on { self.mark.since } else { since },
            seen_until: if goes_on { self.mark.seen_until.max(Some(seen_until)) } else { Some(seen_until) },
            last_trace: last_trace.or_else(|| self.mark.last_trace.take()),
        };
        self.mark = mark;
        let failed = |error: std::io::Error| {
            Error::unavailable(format!("cannot note in {} how far it is: {error}", self.path.display()))
        };
        let text = serde_json::to_string_pretty(&self.mark).map_err(|error| Error::unavailable(error.to_string()))?;
        if let Some(folder) = self.path.parent() {
            make_folder(folder).map_err(failed)?;
        }
        replace_file(&self.path, &format!("{text}\n")).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    #[test]
    fn what_was_read_is_not_read_again_unless_more_is_asked_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("sub/langfuse.json");
        let mut cursor = Cursor { path: path.clone(), mark: Mark::default() };
        assert_eq!(cursor.seen_until(None), None);
        cursor.advance(Some(time(10)), time(20), Some("t".to_owned())).expect("written");
        cursor.advance(Some(time(12)), time(15), None).expect("written");
        assert_eq!((cursor.seen_until(Some(time(10))), cursor.last_trace()), (Some(time(20)), Some("t")));
        assert_eq!(cursor.seen_until(Some(time(11))), Some(time(20)));
        // What came before was never read, and between then and later is a gap.
        assert_eq!((cursor.seen_until(Some(time(9))), cursor.seen_until(None)), (None, None));
        assert_eq!(cursor.seen_until(Some(time(21))), None);
        cursor.advance(None, time(5), None).expect("written");
        assert_eq!(cursor.seen_until(None), Some(time(5)));
        let kept: Mark = serde_json::from_slice(&std::fs::read(path).expect("there")).expect("a mark");
        assert_eq!(kept, cursor.mark);
    }
}
