//! Tells what happens: on stderr for a person who waits, on stdout for whoever reads it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use karat_core::stored::{ReceiveEvent, ReceiveTotals};
use karat_report::counted;
use karat_server::RefusedRequest;

use super::sink::{Refusals, Told};
use crate::args::ReceiveFormat;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::ingest::{Taken, Totals};
use crate::printer::Printer;

/// How many different reasons for refusals are told; an SDK sends every few seconds, and fails alike each time.
const MOST_REASONS: usize = 10;

/// Keeps count, and tells.
pub(super) struct Telling<'t> {
    format: ReceiveFormat,
    printer: &'t Printer,
    line: Option<ProgressBar>,
    totals: Totals,
    /// Spans and log records that were stored.
    spans: u64,
    log_records: u64,
    refusals: Arc<Refusals>,
    reasons: BTreeSet<(u16, String)>,
    /// Whether it was said that there are more reasons.
    said_of_more: bool,
}

impl<'t> Telling<'t> {
    pub(super) fn new(
        format: ReceiveFormat,
        refusals: Arc<Refusals>,
        environment: &Environment,
        printer: &'t Printer,
    ) -> Self {
        let seen = environment.stderr_is_terminal && !environment.process.ci;
        Self {
            format,
            printer,
            line: seen.then(live_line),
            totals: Totals::default(),
            spans: 0,
            log_records: 0,
            refusals,
            reasons: BTreeSet::new(),
            said_of_more: false,
        }
    }

    /// Says where it listens, and how an SDK is told.
    pub(super) fn begin(&self, listening: &ReceiveEvent) -> Result<(), Failure> {
        if let ReceiveEvent::Listening { url, store } = listening {
            self.printer.talk(&format!("listening on {url} (OTLP over HTTP), storing in {store}"));
            self.printer.note("point an OpenTelemetry SDK here:");
            if !self.printer.quiet {
                // Unbroken however narrow the terminal is: they are copied into a shell.
                self.printer.talk(&format!("  export OTEL_EXPORTER_OTLP_ENDPOINT={url}"));
                self.printer.talk("  export OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf");
            }
            self.printer.note("Ctrl-C ends");
        }
        self.event(listening)?;
        if let Some(line) = &self.line {
            self.printer.show_above(Some(line.clone()));
        }
        self.show();
        Ok(())
    }

    pub(super) fn tell(&mut self, told: Told) -> Result<(), Failure> {
        match told {
            Told::Stored { taken, spans, log_records } => {
                self.spans += spans;
                self.log_records += log_records;
                self.stored(taken)?;
            }
            Told::Refused(refusal) => self.refused(refusal)?,
        }
        self.show();
        Ok(())
    }

    fn stored(&mut self, taken: Taken) -> Result<(), Failure> {
        if self.format == ReceiveFormat::Jsonl {
            for trace in &taken.traces {
                self.event(&ReceiveEvent::Stored { change: trace.put.into(), head: Box::new(trace.head.clone()) })?;
            }
        }
        self.totals.add(taken);
        Ok(())
    }

    fn refused(&mut self, refusal: RefusedRequest) -> Result<(), Failure> {
        let is_whole = refusal.is_whole();
        let RefusedRequest { status, rejected, message } = refusal;
        let reason = (status, message.clone());
        if !self.reasons.contains(&reason) {
            if self.reasons.len() < MOST_REASONS {
                let said = if is_whole { format!("refused with {status}") } else { "not all was taken".to_owned() };
                self.printer.warn(&format!("{said}: {message}"));
                self.reasons.insert(reason);
            } else if !self.said_of_more {
                self.said_of_more = true;
                self.printer.warn("further reasons are not shown (--format jsonl has all)");
            }
        }
        self.event(&ReceiveEvent::Refused { status, rejected, message })
    }

    pub(super) fn stopping(&self) {
        self.printer.note("stopping: what is under way is stored first; Ctrl-C again ends at once");
    }

    /// Tells the numbers.
    pub(super) fn end(self) -> Result<(), Failure> {
        if let Some(line) = &self.line {
            line.finish_and_clear();
            self.printer.show_above(None);
        }
        let (format, printer, sums) = (self.format, self.printer, self.sums());
        let report = self.totals.into_report();
        let totals = ReceiveTotals {
            traces: report.traces(),
            added: report.added,
            changed: report.changed,
            unchanged: report.unchanged,
            ..sums
        };
        let text = match format {
            ReceiveFormat::Jsonl => line_of(&ReceiveEvent::Stopped(totals))?,
            ReceiveFormat::Human => format!("{}\n", summary(&totals)),
        };
        printer.print(&text)?;
        if format == ReceiveFormat::Human && totals.traces > 0 {
            printer.note("next: karat trace list, karat trace show ID, karat eval run NAME --stored");
        }
        Ok(())
    }

    /// Tells a program.
    fn event(&self, event: &ReceiveEvent) -> Result<(), Failure> {
        if self.format == ReceiveFormat::Human {
            return Ok(());
        }
        self.printer.print(&line_of(event)?)
    }

    fn show(&self) {
        if let Some(line) = &self.line {
            line.set_message(counts(&self.sums()));
        }
    }

    fn sums(&self) -> ReceiveTotals {
        let (refused_requests, rejected) = self.refusals.counts();
        ReceiveTotals {
            traces: self.totals.traces() as u64,
            spans: self.spans,
            log_records: self.log_records,
            refused_requests,
            rejected,
            ..ReceiveTotals::default()
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
