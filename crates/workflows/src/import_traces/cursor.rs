//! Remembers how far a server was read.
//!
//! The cursor is a file next to the store, for one server, project and store. Without it all traces are read again,
//! which does not change the store.

use std::path::PathBuf;

use jiff::Timestamp;
use karat_json::hash::short_hash;
use karat_project::replace_file;
use karat_store::{Location, create_data_dir};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::settings::Settings;

#[derive(Debug)]
pub(super) struct Cursor {
    path: PathBuf,
    state: CursorState,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct CursorState {
    url: String,
    /// The start of the range that was read; null for all traces.
    since: Option<Timestamp>,
    /// The end of the range: all traces that started in it are in the store.
    seen_until: Option<Timestamp>,
    /// A trace of the range, to detect that the store was replaced.
    last_trace: Option<String>,
}

impl Cursor {
    /// Reads the cursor of a server. Ignores an unreadable file.
    pub(super) fn open(url: &str, public_key: &str, settings: &Settings) -> Self {
        let (folder, store) = match &settings.store {
            Location::File(path) => (path.parent().map(PathBuf::from), path.to_string_lossy().into_owned()),
            Location::Postgres(url) => (None, url.clone()),
        };
        let folder = folder.unwrap_or_else(|| settings.layout.root.join(".karat"));
        let hash = short_hash(format!("{url}\n{public_key}\n{store}").as_bytes());
        let path = folder.join(format!("langfuse-{hash}.json"));
        let state = std::fs::read(&path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Self { path, state: CursorState { url: url.to_owned(), ..state.unwrap_or_default() } }
    }

    /// Returns the end of the range that was read, if `since` is within it. `None` sorts before all times.
    pub(super) fn seen_until(&self, since: Option<Timestamp>) -> Option<Timestamp> {
        let seen_until = self.state.seen_until?;
        (self.state.since <= since && since <= Some(seen_until)).then_some(seen_until)
    }

    pub(super) fn last_trace(&self) -> Option<&str> {
        self.state.last_trace.as_deref()
    }

    /// Records that all traces that started from `since` until `seen_until` are stored.
    pub(super) fn advance(
        &mut self,
        since: Option<Timestamp>,
        seen_until: Timestamp,
        last_trace: Option<String>,
    ) -> Result<(), Error> {
        let extends_range = self.seen_until(since).is_some();
        let state = CursorState {
            url: self.state.url.clone(),
            since: if extends_range { self.state.since } else { since },
            seen_until: if extends_range { self.state.seen_until.max(Some(seen_until)) } else { Some(seen_until) },
            last_trace: last_trace.or_else(|| self.state.last_trace.take()),
        };
        self.state = state;
        let failed = |error: std::io::Error| {
            Error::unavailable(format!("cannot save the import progress to {}: {error}", self.path.display()))
        };
        let text = serde_json::to_string_pretty(&self.state).map_err(|error| Error::unavailable(error.to_string()))?;
        if let Some(folder) = self.path.parent() {
            create_data_dir(folder).map_err(failed)?;
        }
        replace_file(&self.path, &format!("{text}\n")).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("valid time")
    }

    #[test]
    fn resumes_only_within_the_range_that_was_read() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("sub/langfuse.json");
        let mut cursor = Cursor { path: path.clone(), state: CursorState::default() };
        assert_eq!(cursor.seen_until(None), None);
        cursor.advance(Some(time(10)), time(20), Some("t".to_owned())).expect("written");
        cursor.advance(Some(time(12)), time(15), None).expect("written");
        assert_eq!((cursor.seen_until(Some(time(10))), cursor.last_trace()), (Some(time(20)), Some("t")));
        assert_eq!(cursor.seen_until(Some(time(11))), Some(time(20)));
        // Earlier traces were never read; a later start would leave a gap.
        assert_eq!((cursor.seen_until(Some(time(9))), cursor.seen_until(None)), (None, None));
        assert_eq!(cursor.seen_until(Some(time(21))), None);
        cursor.advance(None, time(5), None).expect("written");
        assert_eq!(cursor.seen_until(None), Some(time(5)));
        let bytes = std::fs::read(path).expect("file exists");
        assert_eq!(serde_json::from_slice::<CursorState>(&bytes).expect("valid state"), cursor.state);
    }
}
