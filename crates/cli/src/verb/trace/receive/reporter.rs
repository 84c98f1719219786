//! Reports what is received: on stderr for a person who waits, on stdout for a program.

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

/// How many different reasons for refusals are shown; an SDK sends every few seconds, and fails alike each time.
const MAX_REASONS: usize = 10;

pub(super) struct ReceiveReporter<'r> {
    format: ReceiveFormat,
    printer: &'r Printer,
    /// Where it listens, as an SDK needs to know it.
    url: String,
    /// The store, as a person would name it.
    store: String,
    /// Somebody sees a line that changes.
    is_watched: bool,
    line: Option<ProgressBar>,
    reasons: BTreeSet<(u16, String)>,
    /// It was said that there are more reasons.
    has_more_reasons: bool,
    /// Why the last event could not be printed.
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
            is_watched: environment.stderr_is_terminal && !environment.process.ci,
            line: None,
            reasons: BTreeSet::new(),
            has_more_reasons: false,
            failure: None,
        }
    }

    fn report(&mut self, event: Event) -> Result<(), Failure> {
        match event {
            Event::Ready => self.begin(),
            Event::Stored { change, head } => self.print_event(|| ReceiveEvent::Stored { change, head }),
            Event::Refused(refused) => self.report_refused(refused),
            Event::Progress(totals) => {
                self.show(&totals);
                Ok(())
            }
            Event::Stopping => {
                self.printer.note("stopping: what is under way is stored first; Ctrl-C again ends at once");
                Ok(())
            }
        }
    }

    /// Says where it listens, and how to configure an SDK.
    fn begin(&mut self) -> Result<(), Failure> {
        let (url, store) = (&self.url, &self.store);
        self.printer.talk(&format!("listening on {url} (OTLP over HTTP), storing in {store}"));
        self.printer.note("point an OpenTelemetry SDK here:");
        if !self.printer.quiet {
            // Unbroken however narrow the terminal is: they are copied into a shell.
            self.printer.talk(&format!("  export OTEL_EXPORTER_OTLP_ENDPOINT={url}"));
            self.printer.talk("  export OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf");
        }
        self.printer.note("Ctrl-C ends");
        self.print_event(|| ReceiveEvent::Listening { url: url.clone(), store: store.clone() })?;
        self.line = self.is_watched.then(live_line);
        self.printer.show_above(self.line.clone());
        self.show(&ReceiveTotals::default());
        Ok(())
    }

    fn report_refused(&mut self, refused: RefusedRequest) -> Result<(), Failure> {
        let is_whole = refused.is_whole();
        let RefusedRequest { status, rejected, message } = refused;
        let reason = (status, message.clone());
        if !self.reasons.contains(&reason) {
            if self.reasons.len() < MAX_REASONS {
                let what = if is_whole { format!("refused with {status}") } else { "not all was taken".to_owned() };
                self.printer.warn(&format!("{what}: {message}"));
                self.reasons.insert(reason);
            } else if !self.has_more_reasons {
                self.has_more_reasons = true;
                self.printer.warn("further reasons are not shown (--format jsonl has all)");
            }
        }
        self.print_event(|| ReceiveEvent::Refused { status, rejected, message })
    }

    /// Prints the totals.
    pub(super) fn end(self, totals: &ReceiveTotals) -> Result<(), Failure> {
        if let Some(line) = &self.line {
            line.finish_and_clear();
            self.printer.show_above(None);
        }
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        match self.format {
            ReceiveFormat::Jsonl => self.printer.print(&line_of(&ReceiveEvent::Stopped(*totals))?),
            ReceiveFormat::Human => {
                self.printer.print(&format!("{}\n", summary(totals)))?;
                if totals.traces > 0 {
                    self.printer.note("next: karat trace list, karat trace show ID, karat eval run NAME --stored");
                }
                Ok(())
            }
        }
    }

    fn print_event(&self, event: impl FnOnce() -> ReceiveEvent) -> Result<(), Failure> {
        match self.format {
            ReceiveFormat::Human => Ok(()),
            ReceiveFormat::Jsonl => self.printer.print(&line_of(&event())?),
        }
    }

    fn show(&self, totals: &ReceiveTotals) {
        if let Some(line) = &self.line {
            line.set_message(counts(totals));
        }
    }
}

fn live_line() -> ProgressBar {
    let line = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    line.set_style(ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_spinner()));
    line.enable_steady_tick(Duration::from_millis(500));
    line
}

fn line_of(event: &ReceiveEvent) -> Result<String, Failure> {
    let line = serde_json::to_string(event).map_err(|error| Failure::errored(error.to_string()))?;
    Ok(format!("{line}\n"))
}

fn count(number: u64, noun: &str) -> String {
    counted(usize::try_from(number).unwrap_or(usize::MAX), noun)
}

/// Says what came, and what did not where there is something.
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
    fn only_what_there_is_is_counted() {
        assert_eq!(summary(&ReceiveTotals::default()), "0 traces, 0 spans");
        let one = ReceiveTotals { traces: 1, added: 1, spans: 1, ..ReceiveTotals::default() };
        assert_eq!(summary(&one), "1 trace, 1 span | 1 new");
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
