//! Overlaps between tools, as text.

use std::fmt::Write as _;

use karat_tools::overlap::OverlapChange;
use karat_workflows::overlaps::{ConfusionCount, EditReport, OverlapList, ReportedSuggestion, SuggestionReport};

use crate::console::ConsoleSettings;
use crate::message::write_wrapped;
use crate::terminal_text::{printable, truncate_middle};
use crate::tools::counted;

/// Shared words of a suggestion that are shown.
const MAX_WORDS: usize = 8;

/// Renders the declared overlaps and clusters of each tool.
pub fn overlap_list_text(list: &OverlapList, settings: ConsoleSettings) -> String {
    let mut out = String::new();
    for tool in &list.tools {
        out.push_str(&settings.palette.bold(shorten_name(&tool.tool, settings)));
        out.push('\n');
        if !tool.overlaps.is_empty() {
            push_labelled("  overlaps  ", &join_names(&tool.overlaps, ", ", settings), settings.columns, &mut out);
        }
        for cluster in &tool.clusters {
            push_labelled("  cluster   ", &join_names(cluster, " + ", settings), settings.columns, &mut out);
        }
        if let Some(reason) = &tool.reason {
            push_labelled("  reason    ", reason, settings.columns, &mut out);
        }
    }
    let counts =
        [counted(list.tools.len(), "tool"), counted(list.overlaps, "overlap"), counted(list.clusters, "cluster")];
    out.push_str(&counts.join(", "));
    out.push('\n');
    out
}

/// Renders the suggestions, each with its evidence and the command that declares it.
pub fn suggestions_text(report: &SuggestionReport, settings: ConsoleSettings) -> String {
    let mut out = String::new();
    for suggestion in &report.suggestions {
        write_suggestion(suggestion, settings, &mut out);
    }
    out.push_str(&counted(report.total, "suggestion"));
    if report.suggestions.len() < report.total {
        let _ = write!(out, ", {} shown (pass --limit 0 to show all)", report.suggestions.len());
    }
    if report.declared > 0 {
        let _ = write!(out, "; {} already declared", counted(report.declared, "pair"));
    }
    out.push('\n');
    out
}

fn write_suggestion(suggestion: &ReportedSuggestion, settings: ConsoleSettings, out: &mut String) {
    let name = |name: &str| shorten_name(name, settings);
    let (first, second) = (name(&suggestion.tools.0), name(&suggestion.tools.1));
    let title = format!("{first} {} {second}", settings.symbols.dash);
    let _ = writeln!(out, "{}  similarity {:.2}", settings.palette.bold(title), suggestion.score);
    for ConfusionCount { expected, called, count } in &suggestion.confused {
        let times = if *count == 1 { "once".to_owned() } else { format!("{count} times") };
        let text = format!("{} was called {times} where {} was expected", name(called), name(expected));
        push_labelled("  confused  ", &text, settings.columns, out);
    }
    for by in &suggestion.named_by {
        let other = if *by == suggestion.tools.0 { &suggestion.tools.1 } else { &suggestion.tools.0 };
        push_labelled(
            "  named     ",
            &format!("the description of {} names {}", name(by), name(other)),
            settings.columns,
            out,
        );
    }
    if !suggestion.shared_words.is_empty() {
        let mut words = suggestion.shared_words.iter().take(MAX_WORDS).cloned().collect::<Vec<_>>().join(", ");
        if suggestion.shared_words.len() > MAX_WORDS {
            let _ = write!(words, ", {}", settings.symbols.ellipsis);
        }
        push_labelled("  words     ", &words, settings.columns, out);
    }
    // Not wrapped, so that it can be copied.
    let _ = writeln!(out, "  {}\n", printable(&suggestion.command));
}

/// Renders the changes of the map; `unchanged` is the reason if there are none.
pub fn overlap_edit_text(edited: &EditReport, unchanged: &str) -> String {
    let path = printable(&edited.path);
    let mut out = match (edited.converted, edited.changes.is_empty()) {
        (true, _) => format!("{path}, converted to the format that karat edits\n"),
        (false, true) => format!("{path} is unchanged: {unchanged}\n"),
        (false, false) => format!("{path}\n"),
    };
    for change in &edited.changes {
        let _ = writeln!(out, "  {}", printable(&change_text(change)));
    }
    out
}

fn change_text(change: &OverlapChange) -> String {
    match change {
        OverlapChange::OverlapAdded { tool, other } => format!("+ {tool} overlaps {other}"),
        OverlapChange::OverlapRemoved { tool, other } => format!("- {tool} overlaps {other}"),
        OverlapChange::ClusterAdded { tool, members } => format!("+ {tool} in the cluster {}", members.join(" + ")),
        OverlapChange::ClusterRemoved { tool, members } => format!("- {tool} in the cluster {}", members.join(" + ")),
        OverlapChange::ReasonSet { tool, reason } => format!("+ reason of {tool}: {reason}"),
        OverlapChange::EntryRemoved { tool } => format!("- empty entry of {tool}"),
    }
}

/// Width of a tool name in text output; JSON has the whole name.
const MAX_NAME_COLUMNS: usize = 60;

fn shorten_name(name: &str, settings: ConsoleSettings) -> String {
    truncate_middle(&printable(name), MAX_NAME_COLUMNS, settings.symbols.ellipsis).into_owned()
}

fn join_names(names: &[String], separator: &str, settings: ConsoleSettings) -> String {
    names.iter().map(|name| shorten_name(name, settings)).collect::<Vec<_>>().join(separator)
}

/// Wraps text after a label.
fn push_labelled(label: &str, text: &str, columns: usize, out: &mut String) {
    write_wrapped(label, &" ".repeat(label.len()), &printable(text), columns, out);
}
