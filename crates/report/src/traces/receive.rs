//! Counts of received traces.

use karat_core::stored::ReceiveTotals;

use crate::tools::counted;

/// Renders the counts of received data; log records and refusals only if there are any.
pub fn receive_counts(totals: &ReceiveTotals) -> String {
    let mut parts = vec![counted(totals.traces, "trace"), counted(totals.spans, "span")];
    if totals.log_records > 0 {
        parts.push(counted(totals.log_records, "log record"));
    }
    if totals.rejected > 0 {
        parts.push(format!("{} rejected", totals.rejected));
    }
    if totals.refused_requests > 0 {
        parts.push(format!("{} refused", counted(totals.refused_requests, "request")));
    }
    parts.join(", ")
}

/// Renders the totals of received data.
pub fn receive_summary(totals: &ReceiveTotals) -> String {
    let kinds = [(totals.added, "new"), (totals.changed, "changed"), (totals.unchanged, "unchanged")];
    let kinds: Vec<String> =
        kinds.iter().filter(|(number, _)| *number > 0).map(|(number, kind)| format!("{number} {kind}")).collect();
    if kinds.is_empty() { receive_counts(totals) } else { format!("{} | {}", receive_counts(totals), kinds.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn omits_zero_counts() {
        assert_eq!(receive_summary(&ReceiveTotals::default()), "0 traces, 0 spans");
        let single = ReceiveTotals { traces: 1, added: 1, spans: 1, ..ReceiveTotals::default() };
        assert_eq!(receive_summary(&single), "1 trace, 1 span | 1 new");
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
        assert_eq!(receive_summary(&all), expected);
    }
}
