//! Imports traces from a Langfuse server, page by page.

use jiff::Timestamp;
use karat_core::port::TraceStore;
use karat_core::stored::RefusalKind;
use karat_traces::{LangfuseApi, LangfuseError, LangfuseKeys, Piece, TraceFormat, resume_from};

use super::cursor::Cursor;
use super::{FilePiece, Import, refused};
use crate::context::Context;
use crate::error::Error;
use crate::trace_filter::parse_time;

const PUBLIC_KEY: &str = "LANGFUSE_PUBLIC_KEY";
const SECRET_KEY: &str = "LANGFUSE_SECRET_KEY";

/// A server to read from.
pub(super) struct Server {
    pub(super) url: String,
    api: LangfuseApi,
    since: Option<Timestamp>,
    /// The progress of earlier imports; `None` for a dry run.
    cursor: Option<Cursor>,
}

impl Server {
    pub(super) fn new(
        url: &str,
        kind: Option<TraceFormat>,
        since: Option<&str>,
        dry_run: bool,
        context: &Context<'_>,
    ) -> Result<Self, Error> {
        if kind != Some(TraceFormat::Langfuse) {
            return Err(Error::invalid("--url supports only Langfuse servers").hint("pass --from langfuse"));
        }
        let settings = &context.settings;
        let key = |name: &str| {
            settings.variables.get(name).filter(|key| !key.is_empty()).ok_or_else(|| {
                Error::invalid(format!("{name} is not set"))
                    .hint("find the keys in the settings of the Langfuse project; set them as variables or in .env")
            })
        };
        let keys = LangfuseKeys { public: key(PUBLIC_KEY)?, secret: key(SECRET_KEY)? };
        settings.redactor.add(&keys.public);
        settings.redactor.add(&keys.secret);
        let since = since.map(|text| parse_time("--since", text, context.clock.now())).transpose()?;
        let cursor = (!dry_run).then(|| Cursor::open(url, &keys.public, settings));
        let api = LangfuseApi::new(url, keys).map_err(|error| Error::invalid(error.to_string()))?;
        Ok(Self { url: url.to_owned(), api, since, cursor })
    }
}

impl Import<'_> {
    /// Imports page by page. Each page is stored before the next request, so that a later import can resume there.
    pub(super) async fn read_server(&mut self, server: Server) -> Result<(), Error> {
        let Server { url, api, since, mut cursor } = server;
        let mut from = since;
        if let Some(cursor) = &cursor
            && let Some(seen) = cursor.seen_until(since)
            && self.is_stored(cursor.last_trace()).await?
        {
            from = from.max(Some(resume_from(seen)));
        }
        let mut pages = api.pages(from, None);
        loop {
            let page = tokio::select! {
                biased;
                () = self.cancel.cancelled() => {
                    self.totals.report_mut().interrupted = true;
                    return Ok(());
                }
                page = pages.next() => page.map_err(|error| server_error(&error, self.totals.traces() > 0))?,
            };
            let Some(page) = page else { return Ok(()) };
            let mut last = None;
            for piece in page.pieces {
                match piece {
                    Ok(piece) => {
                        if let Piece::Whole(whole) = &piece {
                            last = Some(whole.trace_id.clone());
                        }
                        self.writer.push(FilePiece { file: 0, piece });
                    }
                    Err(item) => {
                        let item = refused(&url, Some(item.location), &item.message, RefusalKind::Invalid);
                        self.totals.report_mut().refused.push(item);
                    }
                }
            }
            self.flush(0).await?;
            if let (Some(cursor), Some(seen_until)) = (&mut cursor, page.seen_until) {
                cursor.advance(since, seen_until, last)?;
            }
        }
    }

    /// Whether the store still has a trace of an earlier import.
    async fn is_stored(&self, trace: Option<&str>) -> Result<bool, Error> {
        let Some(trace) = trace else { return Ok(false) };
        let ids = self.store.trace_ids(trace, 1).await?;
        Ok(ids.first().is_some_and(|id| id == trace))
    }
}

fn server_error(error: &LangfuseError, has_stored_some: bool) -> Error {
    let unavailable = Error::unavailable(error.to_string());
    match error {
        LangfuseError::Unauthorized(_) => {
            unavailable.hint(format!("{PUBLIC_KEY} and {SECRET_KEY} must belong to the same project of this server"))
        }
        _ if has_stored_some => {
            unavailable.hint("the traces read so far are stored; run the same command again to continue")
        }
        _ => unavailable,
    }
}
