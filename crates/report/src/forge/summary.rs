//! Text summary of a session.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use karat_cases::{Difficulty, Tier};
use karat_core::cost::dollars;
use karat_core::trace::Usage;
use karat_workflows::forge::{ForgeReport, Summary, WrittenFile};

use crate::terminal_text::printable;
use crate::tools::counted;

/// Lists the written cases and the drafts that were left out, with reasons if no person decided.
pub fn summary_text(summary: &Summary, overlap_map: &str, is_scripted: bool) -> String {
    let report = &summary.report;
    let mut out = String::new();
    for file in &report.files {
        let _ = writeln!(out, "{}", written_text(file));
    }
    if !report.overlaps_added.is_empty() {
        let _ = writeln!(out, "{}", overlaps_text(overlap_map, &report.tool, &report.overlaps_added));
    }
    if !report.left_out.is_empty() {
        let _ = writeln!(out, "left out: {}", counted(report.left_out.len(), "draft"));
    }
    for refused in summary.refused.iter().filter(|_| is_scripted) {
        let _ = writeln!(out, "  {}: {}", printable(&refused.id), printable(&refused.reasons.join("; ")));
    }
    if summary.is_complete {
        let _ = writeln!(out, "nothing to draft: {} has all planned cases", printable(&report.tool));
    }
    out.push_str(&open_text(report));
    out
}

/// Returns the line about overlaps that were added to the overlap map.
pub fn overlaps_text(overlap_map: &str, tool: &str, added: &[String]) -> String {
    printable(&format!("wrote {overlap_map}: {tool} overlaps {}", added.join(", "))).into_owned()
}

fn written_text(file: &WrittenFile) -> String {
    let path = printable(&file.path);
    let cases = counted(file.added.len(), &format!("{} case", file.tier.name()));
    match (file.is_new, file.added.is_empty()) {
        (true, _) => format!("wrote {path}: {cases}"),
        (false, true) => format!("{path} already has all cases: {} in total", file.total),
        (false, false) => format!("added {cases} to {path}: {} in total", file.total),
    }
}

/// Lists the open slots and the ways to fill them.
pub fn open_text(report: &ForgeReport) -> String {
    if report.open.is_empty() {
        return String::new();
    }
    let mut kinds: BTreeMap<(Tier, Option<Difficulty>), usize> = BTreeMap::new();
    for slot in &report.open {
        *kinds.entry((slot.tier, slot.difficulty)).or_default() += 1;
    }
    let kinds = kinds
        .into_iter()
        .map(|((tier, difficulty), count)| format!("{count} {}", difficulty.map_or(tier.name(), Difficulty::name)));
    let options = [
        ("--brief", "print instructions for a coding agent"),
        ("--drafts FILE", "read drafts from a file"),
        ("--model PROVIDER:MODEL", "draft with a model"),
        ("--drafter traces", "use messages of stored traces"),
    ];
    let mut text = format!("still open: {}\n", kinds.collect::<Vec<_>>().join(", "));
    for (flag, effect) in options {
        let _ = writeln!(text, "  {flag:<22}  {effect}");
    }
    text
}

/// Returns the tokens and cost of drafting.
pub fn usage_text(usage: &Usage) -> String {
    let tokens = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), |count| count.to_string());
    let cost = usage.cost_usd.map(|cost| format!(", {}", dollars(cost))).unwrap_or_default();
    format!("tokens used: {} input, {} output{cost}", tokens(usage.input_tokens), tokens(usage.output_tokens))
}
