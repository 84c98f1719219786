//! Reports received data: totals on stderr, or events on stdout.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use karat_core::stored::{ReceiveEvent, ReceiveTotals};
use karat_report::{receive_counts, receive_summary};
use karat_workflows::EventSink;
use karat_workflows::receive_traces::{Event, RefusedRequest};

use crate::args::ReceiveFormat;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::progress::Progress;
use crate::surface::Surface;

/// Distinct reasons for refusals that are shown; an SDK repeats a failed request every few seconds.
const MAX_REASONS: usize = 10;

pub(super) struct ReceiveReporter<'r> {
    format: ReceiveFormat,
    surface: &'r Surface<'r>,
    printer: &'r Printer,
    /// The URL for SDKs.
    url: String,
    /// Display name of the store.
    store: String,
    status_line: Option<Progress<'r>>,
    reasons: BTreeSet<(u16, String)>,
    /// Whether the note about further reasons was printed.
    has_more_reasons: bool,
    /// The first error of printing an event.
    failure: Option<Failure>,
}

impl EventSink<Event> for ReceiveReporter<'_> {
    fn emit(&mut self, event: Event) -> ControlFlow<()> {
        match self.report(event) {
            Ok(()) => ControlFlow::Continue(()),
            Err(failure) => {
                self.failure.get_or_insert(failure);
                ControlFlow::Break(())
            }
        }
    }
}

impl<'r> ReceiveReporter<'r> {
    pub(super) fn new(format: ReceiveFormat, url: String, store: String, surface: &'r Surface<'r>) -> Self {
        Self {
            format,
            surface,
            printer: surface.printer,
            url,
            store,
            status_line: None,
            reasons: BTreeSet::new(),
            has_more_reasons: false,
            failure: None,
        }
    }

    fn report(&mut self, event: Event) -> Result<(), Failure> {
        match event {
            Event::Ready => self.start(),
            Event::Stored { change, head } => self.print_event(|| ReceiveEvent::Stored { change, head }),
            Event::Refused(refused) => self.report_refused(refused),
            Event::Progress(totals) => {
                if let Some(line) = &self.status_line {
                    line.set(receive_counts(&totals));
                }
                Ok(())
            }
            Event::Stopping => {
                self.printer.note("stopping: finishing open requests (press Ctrl-C again to stop now)");
                Ok(())
            }
        }
    }

    /// Prints the address and how to configure an SDK.
    fn start(&mut self) -> Result<(), Failure> {
        let (url, store) = (&self.url, &self.store);
        self.printer.print_stderr(&format!("listening on {url} (OTLP over HTTP), storing in {store}"));
        self.printer.note("to send data from an OpenTelemetry SDK:");
        if !self.printer.quiet {
            // Not wrapped, so that they can be copied.
            self.printer.print_stderr(&format!("  export OTEL_EXPORTER_OTLP_ENDPOINT={url}"));
            self.printer.print_stderr("  export OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf");
        }
        self.printer.note("press Ctrl-C to stop");
        self.print_event(|| ReceiveEvent::Listening { url: url.clone(), store: store.clone() })?;
        self.status_line = Progress::line(self.surface, "{msg}", &receive_counts(&ReceiveTotals::default()));
        Ok(())
    }

    fn report_refused(&mut self, refused: RefusedRequest) -> Result<(), Failure> {
        let is_fully_refused = refused.is_fully_refused();
        let RefusedRequest { status, rejected, message } = refused;
        let reason = (status, message.clone());
        if !self.reasons.contains(&reason) {
            if self.reasons.len() < MAX_REASONS {
                let outcome =
                    if is_fully_refused { format!("refused with {status}") } else { "partially refused".to_owned() };
                self.printer.warn(&format!("{outcome}: {message}"));
                self.reasons.insert(reason);
            } else if !self.has_more_reasons {
                self.has_more_reasons = true;
                self.printer.warn("further reasons are not shown; pass --format jsonl to print all");
            }
        }
        self.print_event(|| ReceiveEvent::Refused { status, rejected, message })
    }

    /// Prints the totals.
    pub(super) fn finish(mut self, totals: &ReceiveTotals) -> Result<(), Failure> {
        drop(self.status_line.take());
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        match self.format {
            ReceiveFormat::Jsonl => self.printer.print_json_line(&ReceiveEvent::Stopped(*totals)),
            ReceiveFormat::Human => {
                self.printer.print(&format!("{}\n", receive_summary(totals)))?;
                if totals.traces > 0 {
                    self.printer
                        .note("next: 'karat trace list', 'karat trace show ID' or 'karat eval run NAME --stored'");
                }
                Ok(())
            }
        }
    }

    fn print_event(&self, event: impl FnOnce() -> ReceiveEvent) -> Result<(), Failure> {
        match self.format {
            ReceiveFormat::Human => Ok(()),
            ReceiveFormat::Jsonl => self.printer.print_json_line(&event()),
        }
    }
}
