//! Archived and sealed regression cases.

use std::fmt::Write as _;

use karat_workflows::regress::RegressReport;

use crate::terminal_text::printable;

/// Renders the archived cases.
pub fn archived_text(report: &RegressReport) -> String {
    let mut out = String::new();
    for case in &report.cases {
        let archive = printable(case.archive.as_deref().unwrap_or_default());
        let _ = writeln!(out, "archived {} in {archive}", printable(&case.id));
    }
    out
}

/// Renders the sealed cases.
pub fn sealed_text(report: &RegressReport, has_failed: bool) -> String {
    if report.cases.is_empty() && !has_failed {
        return "nothing to seal: no regression case lacks a hash\n".to_owned();
    }
    let mut out = String::new();
    for case in &report.cases {
        let _ = writeln!(out, "sealed {} in {}", printable(&case.id), printable(&case.path));
    }
    out
}
