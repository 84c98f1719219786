//! Reports received data: totals on stderr, or events on stdout.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use karat_core::stored::{ReceiveEvent, ReceiveTotals};
use karat_report::counted;
use karat_workflows::EventSink;
use karat_workflows::receive_traces::{Event, RefusedRequest};

use crate::args::ReceiveFormat;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::printer::Printer;

/// Distinct reasons for refusals that are shown; an SDK repeats a failed request every few seconds.
const MAX_REASONS: usize = 10;

pub(super) struct ReceiveReporter<'r> {
    format: ReceiveFormat,
    printer: &'r Printer,
    /// The URL for SDKs.
    url: String,
    /// Display name of the store.
    store: String,
    is_interactive: bool,
    status_line: Option<ProgressBar>,
    reasons: BTreeSet<(u16, String)>,
    /// Whether the user was told that there are more reasons.
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
    pub(super) fn new(
        format: ReceiveFormat,
        url: String,
        store: String,
        environment: &Environment,
        printer: &'r Printer,
    ) -> Self {
        Self {
            format,
            printer,
            url,
            store,
            is_interactive: environment.stderr_is_terminal && !environment.process.ci,
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
                self.show(&totals);
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
        self.status_line = self.is_interactive.then(new_status_line);
        self.printer.set_progress_bar(self.status_line.clone());
        self.show(&ReceiveTotals::default());
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
    pub(super) fn finish(self, totals: &ReceiveTotals) -> Result<(), Failure> {
        if let Some(line) = &self.status_line {
            line.finish_and_clear();
            self.printer.set_progress_bar(None);
        }
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        match self.format {
            ReceiveFormat::Jsonl => self.printer.print_json_line(&ReceiveEvent::Stopped(*totals)),
            ReceiveFormat::Human => {
                self.printer.print(&format!("{}\n", summary(totals)))?;
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

    fn show(&self, totals: &ReceiveTotals) {
        if let Some(line) = &self.status_line {
            line.set_message(counts(totals));
        }
    }
}

fn new_status_line() -> ProgressBar {
    let line = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    line.set_style(ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_spinner()));
    line.enable_steady_tick(Duration::from_millis(500));
    line
}

fn count(number: u64, noun: &str) -> String {
    counted(usize::try_from(number).unwrap_or(usize::MAX), noun)
}

/// Returns the counts; log records and refusals only if there are any.
fn counts(totals: &ReceiveTotals) -> String {
    let mut parts = vec![count(totals.traces, "trace"), count(totals.spans, "span")];
    if totals.log_records > 0 {
        parts.push(count(totals.log_records, "log record"));
    }
    if totals.rejected > 0 {
        parts.push(format!("{} rejected", totals.rejected));
    }
    if totals.refused_requests > 0 {
        parts.push(format!("{} refused", count(totals.refused_requests, "request")));
    }
    parts.join(", ")
}

fn summary(totals: &ReceiveTotals) -> String {
    let kinds = [(totals.added, "new"), (totals.changed, "changed"), (totals.unchanged, "unchanged")];
    let kinds: Vec<String> =
        kinds.iter().filter(|(number, _)| *number > 0).map(|(number, kind)| format!("{number} {kind}")).collect();
    if kinds.is_empty() { counts(totals) } else { format!("{} | {}", counts(totals), kinds.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn omits_zero_counts() {
        assert_eq!(summary(&ReceiveTotals::default()), "0 traces, 0 spans");
        let single = ReceiveTotals { traces: 1, added: 1, spans: 1, ..ReceiveTotals::default() };
        assert_eq!(summary(&single), "1 trace, 1 span | 1 new");
        let all = ReceiveTotals {
            traces: 6,
            added: 3,
            changed: 2,
            unchanged: 1,
            spans: 20,
            log_records: 1,
            refused_requests: 2,
            rejected: 4,
        };
        let expected =
            "6 traces, 20 spans, 1 log record, 4 rejected, 2 requests refused | 3 new, 2 changed, 1 unchanged";
        assert_eq!(summary(&all), expected);
    }
}
