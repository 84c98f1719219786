//! Traces from a Langfuse server, page by page.

use jiff::Timestamp;
use karat_core::port::{Clock, TraceStore};
use karat_core::stored::RefusalKind;
use karat_traces::{Kind, LangfuseApi, LangfuseError, LangfuseKeys, Piece, resume_from};

use super::cursor::Cursor;
use super::{Import, refused};
use crate::args::TraceImportArgs;
use crate::failure::Failure;
use crate::interrupt::Interrupts;
use crate::printer::Printer;
use karat_workflows::context::clock::SystemClock;
use karat_workflows::settings::Settings;
use karat_workflows::trace_filter::parse_time;

const PUBLIC_KEY: &str = "LANGFUSE_PUBLIC_KEY";
const SECRET_KEY: &str = "LANGFUSE_SECRET_KEY";

/// A server that will be read.
pub(super) struct Server {
    url: String,
    api: LangfuseApi,
    since: Option<Timestamp>,
    /// How far earlier imports came; none for a dry run.
    cursor: Option<Cursor>,
}

impl Server {
    pub(super) fn new(
        url: &str,
        kind: Option<Kind>,
        args: &TraceImportArgs,
        settings: &Settings,
        _printer: &Printer,
    ) -> Result<Self, Failure> {
        if kind != Some(Kind::Langfuse) {
            return Err(Failure::invalid("--url reads from a Langfuse server only").hint("add --from langfuse"));
        }
        let key = |name: &str| {
            settings.variables.get(name).filter(|key| !key.is_empty()).ok_or_else(|| {
                Failure::invalid(format!("{name} is not set"))
                    .hint("the keys of a Langfuse project are in its settings; set them as variables, or in .env")
            })
        };
        let keys = LangfuseKeys { public: key(PUBLIC_KEY)?, secret: key(SECRET_KEY)? };
        let redactor = &settings.redactor;
        redactor.add(&keys.public);
        redactor.add(&keys.secret);
        let since = args.since.as_deref().map(|text| parse_time("--since", text, SystemClock.now())).transpose()?;
        let cursor = (!args.dry_run).then(|| Cursor::open(url, &keys.public, settings));
        let api = LangfuseApi::new(url, keys).map_err(|error| Failure::invalid(error.to_string()))?;
        Ok(Self { url: url.to_owned(), api, since, cursor })
    }
}

impl Import<'_> {
    /// Takes page after page, each written before the next one is asked for, so that a later import can go on there.
    pub(super) async fn read_server(&mut self, server: Server, interrupts: &Interrupts) -> Result<(), Failure> {
        let Server { url, api, since, mut cursor } = server;
        let mut from = since;
        if let Some(cursor) = &cursor
            && let Some(seen) = cursor.seen_until(since)
            && self.is_there(cursor.last_trace()).await?
        {
            from = from.max(Some(resume_from(seen)));
        }
        let mut pages = api.pages(from, None);
        loop {
            let page = tokio::select! {
                biased;
                () = interrupts.asked() => {
                    self.totals.report_mut().interrupted = true;
                    return Ok(());
                }
                page = pages.next() => page.map_err(|error| failure(&error, self.totals.traces() > 0))?,
            };
            let Some(page) = page else { return Ok(()) };
            let mut last = None;
            for piece in page.pieces {
                match piece {
                    Ok(piece) => {
                        if let Piece::Whole(whole) = &piece {
                            last = Some(whole.trace_id.clone());
                        }
                        self.waiting.push(piece);
                    }
                    Err(one) => {
                        let one = refused(&url, Some(one.place), one.message, RefusalKind::Invalid);
                        self.totals.report_mut().refused.push(one);
                    }
                }
            }
            self.write(&url, 0).await?;
            if let (Some(cursor), Some(seen_until)) = (&mut cursor, page.seen_until) {
                cursor.advance(since, seen_until, last)?;
            }
        }
    }

    /// Tells whether the store still has what an earlier import put there.
    async fn is_there(&self, trace: Option<&str>) -> Result<bool, Failure> {
        let Some(trace) = trace else { return Ok(false) };
        let found = self.store.trace_ids(trace, 1).await?;
        Ok(found.first().is_some_and(|found| found == trace))
    }
}

fn failure(error: &LangfuseError, has_kept_some: bool) -> Failure {
    let failure = Failure::errored(error.to_string());
    match error {
        LangfuseError::Keys(_) => {
            failure.hint(format!("{PUBLIC_KEY} and {SECRET_KEY} belong to one project of one server"))
        }
        _ if has_kept_some => failure.hint("what was read is kept; the same command goes on"),
        _ => failure,
    }
}
