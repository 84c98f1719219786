//! The totals of all batches of an import.

use std::collections::hash_map::{DefaultHasher, Entry};
use std::collections::{BTreeSet, HashMap};
use std::hash::{Hash, Hasher};

use karat_core::stored::{ImportReport, PutOutcome};

use super::{IngestOutcome, IngestedTrace};

/// Maximum number of tool names to collect; more are unlikely to be real tools.
const MAX_TOOLS: usize = 1000;

/// Counts each trace once, even if it comes in several pieces.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    report: ImportReport,
    tools: BTreeSet<String>,
    /// By the hash of the id, to save memory for millions of traces.
    traces: HashMap<u64, TraceCounts>,
}

#[derive(Debug, Clone, Copy)]
struct TraceCounts {
    put: PutOutcome,
    steps: u32,
    tool_calls: u32,
    unread_calls: u32,
    errors: u32,
}

impl Totals {
    /// Returns the report, to set the parts that are not counted here.
    pub(crate) fn report_mut(&mut self) -> &mut ImportReport {
        &mut self.report
    }

    /// Returns the number of different traces.
    pub(crate) fn traces(&self) -> usize {
        self.traces.len()
    }

    pub(crate) fn add(&mut self, ingested: IngestOutcome) {
        self.report.superseded += ingested.superseded;
        self.report.feedback.found += ingested.feedback_found;
        self.report.feedback.added += ingested.feedback_added;
        for trace in ingested.traces {
            let mut hasher = DefaultHasher::new();
            trace.head.trace_id.hash(&mut hasher);
            let now = trace_counts(&trace);
            match self.traces.entry(hasher.finish()) {
                Entry::Vacant(entry) => {
                    entry.insert(now);
                    *self.report.sources.entry(trace.source).or_default() += 1;
                }
                Entry::Occupied(mut before) => {
                    self.report.superseded += u64::from(trace.is_whole && trace.put == PutOutcome::Changed);
                    // A trace that this import added stays "added" even if it changes later.
                    let put = if before.get().put == PutOutcome::Unchanged { trace.put } else { before.get().put };
                    before.insert(TraceCounts { put, ..now });
                }
            }
            if self.tools.len() < MAX_TOOLS {
                self.tools.extend(trace.head.tools);
            }
        }
    }

    /// Returns the complete report.
    pub(crate) fn into_report(self) -> ImportReport {
        let mut report = self.report;
        for trace in self.traces.values() {
            match trace.put {
                PutOutcome::Added => report.added += 1,
                PutOutcome::Changed => report.changed += 1,
                PutOutcome::Unchanged | PutOutcome::Conflict => report.unchanged += 1,
            }
            report.steps += u64::from(trace.steps);
            report.tool_calls += u64::from(trace.tool_calls);
            report.unread_tool_calls += u64::from(trace.unread_calls);
            report.errors += u64::from(trace.errors);
        }
        report.tools = self.tools.into_iter().collect();
        report
    }
}

fn trace_counts(trace: &IngestedTrace) -> TraceCounts {
    let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let head = &trace.head;
    TraceCounts {
        put: trace.put,
        steps: small(head.steps),
        tool_calls: small(head.tool_calls),
        unread_calls: small(trace.unread_calls),
        errors: small(head.errors),
    }
}

#[cfg(test)]
mod tests {
    use karat_core::stored::TraceHead;

    use super::*;

    fn ingested(id: &str, put: PutOutcome, steps: u64, is_whole: bool) -> IngestOutcome {
        let head = TraceHead { trace_id: id.to_owned(), steps, ..TraceHead::default() };
        IngestOutcome {
            traces: vec![IngestedTrace { head, source: "otlp".to_owned(), put, is_whole, unread_calls: 2 }],
            ..IngestOutcome::default()
        }
    }

    #[test]
    fn counts_each_trace_once_in_its_last_state() {
        let mut totals = Totals::default();
        totals.add(ingested("a", PutOutcome::Added, 1, false));
        totals.add(ingested("a", PutOutcome::Changed, 3, false));
        totals.add(ingested("b", PutOutcome::Unchanged, 2, false));
        totals.add(ingested("b", PutOutcome::Changed, 4, false));
        totals.add(ingested("c", PutOutcome::Changed, 5, true));
        totals.add(ingested("c", PutOutcome::Changed, 6, true));
        let report = totals.into_report();
        assert_eq!((report.added, report.changed, report.unchanged), (1, 2, 0));
        assert_eq!((report.steps, report.superseded, report.sources["otlp"]), (13, 1, 3));
        assert_eq!(report.unread_tool_calls, 6);
    }
}
