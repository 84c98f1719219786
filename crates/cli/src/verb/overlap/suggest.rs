//! `karat overlap suggest`.

use std::fmt::Write as _;

use karat_core::exit::ExitStatus;
use karat_report::{counted, printable};
use karat_tools::overlap::{Suggestion, shell_quote};
use karat_workflows::overlaps::{Suggested, suggest};
use schemars::JsonSchema;
use serde::Serialize;

use super::{push_labelled, shorten_name};
use crate::args::{OutputFormat, OverlapSuggestArgs};
use crate::failure::Failure;
use crate::printer::Printer;
use crate::surface::Surface;

/// Suggestions in text output by default.
const DEFAULT_LIMIT: usize = 20;
/// Shared words of a suggestion in text output.
const MAX_WORDS: usize = 8;

/// Suggestions: the most often confused pairs first, then the most similar ones.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "karat overlap suggestions")]
pub(crate) struct SuggestionReport {
    /// Minimum similarity of a suggested pair, unless it was confused or names each other.
    at_least: f64,
    /// Whether there are results in which confusion was measured.
    measured: bool,
    /// Number of suggestions, including those that are not listed.
    total: usize,
    /// Number of pairs that are not suggested because they are declared already.
    declared: usize,
    /// Tools without a description, compared by name only.
    without_description: Vec<String>,
    suggestions: Vec<ReportedSuggestion>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ReportedSuggestion {
    tools: (String, String),
    /// From 0 to 1: the cosine of the weights of the words in their names and descriptions.
    score: f64,
    /// Words that both tools share, highest weight first.
    shared_words: Vec<String>,
    /// Tools of the pair whose description names the other.
    named_by: Vec<String>,
    /// How often one tool was called where the other was expected.
    confused: Vec<Confused>,
    /// Command that declares the overlap.
    command: String,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Confused {
    expected: String,
    called: String,
    count: u64,
}

pub(super) fn run(args: &OverlapSuggestArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    if !(args.at_least > 0.0 && args.at_least <= 1.0) {
        return Err(Failure::invalid("--at-least must be greater than 0 and at most 1"));
    }
    let context = surface.context(args, &[])?;
    let suggested = surface.run(suggest(args.at_least, &context))?;
    let is_human = args.format == OutputFormat::Human;
    let limit = args.limit.or(is_human.then_some(DEFAULT_LIMIT)).filter(|limit| *limit > 0).unwrap_or(usize::MAX);
    let Suggested { has_gaps, is_broken, .. } = suggested;
    let report = SuggestionReport::of(suggested, args.at_least, limit);
    let printer = surface.printer;
    match args.format {
        OutputFormat::Json => printer.print_json(&report)?,
        OutputFormat::Human => printer.print(&report.text(printer))?,
    }
    if !report.suggestions.is_empty() && args.format == OutputFormat::Human {
        printer.note(
            "for each overlap that you declare, 'karat check' requires an ambiguous case that names both tools \
             (untested-overlap); 'karat forge TOOL --tier labeled' drafts it",
        );
    }
    if has_gaps {
        printer.warn("part of the tool registry cannot be read, so suggestions may be missing");
    }
    if let [first, rest @ ..] = report.without_description.as_slice() {
        let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
        printer.note(&format!("no description of '{first}'{more}: compared by name only"));
    }
    // The missing tools may be the confused ones.
    Ok(if is_broken { ExitStatus::Errored } else { ExitStatus::Success })
}

impl SuggestionReport {
    fn of(suggested: Suggested, at_least: f64, limit: usize) -> Self {
        let Suggested { suggestions: found, measured, .. } = suggested;
        Self {
            at_least,
            measured,
            total: found.list.len(),
            declared: found.declared,
            without_description: found.without_description,
            suggestions: found.list.into_iter().take(limit).map(ReportedSuggestion::of).collect(),
        }
    }

    fn text(&self, printer: &Printer) -> String {
        let mut out = String::new();
        for suggestion in &self.suggestions {
            suggestion.write(printer, &mut out);
        }
        out.push_str(&counted(self.total, "suggestion"));
        if self.suggestions.len() < self.total {
            let _ = write!(out, ", {} shown (pass --limit 0 to show all)", self.suggestions.len());
        }
        if self.declared > 0 {
            let _ = write!(out, "; {} already declared", counted(self.declared, "pair"));
        }
        out.push('\n');
        out
    }
}

impl ReportedSuggestion {
    fn of(suggestion: Suggestion) -> Self {
        let Suggestion { tools: (first, second), score, shared_words, named_by, confused } = suggestion;
        let counts = [(&first, &second, confused.0), (&second, &first, confused.1)];
        let confused = counts
            .into_iter()
            .filter(|(_, _, count)| *count > 0)
            .map(|(expected, called, count)| Confused { expected: expected.clone(), called: called.clone(), count });
        Self {
            confused: confused.collect(),
            command: format!("karat overlap add {} {}", shell_quote(&first), shell_quote(&second)),
            tools: (first, second),
            score,
            shared_words,
            named_by,
        }
    }

    fn write(&self, printer: &Printer, out: &mut String) {
        let name = |name: &str| shorten_name(name, printer);
        let (first, second) = (name(&self.tools.0), name(&self.tools.1));
        let title = format!("{first} {} {second}", printer.symbols.dash);
        let _ = writeln!(out, "{}  similarity {:.2}", printer.stdout_palette.bold(title), self.score);
        for Confused { expected, called, count } in &self.confused {
            let times = if *count == 1 { "once".to_owned() } else { format!("{count} times") };
            let text = format!("{} was called {times} where {} was expected", name(called), name(expected));
            push_labelled("  confused  ", &text, printer.columns, out);
        }
        for by in &self.named_by {
            let other = if *by == self.tools.0 { &self.tools.1 } else { &self.tools.0 };
            push_labelled(
                "  named     ",
                &format!("the description of {} names {}", name(by), name(other)),
                printer.columns,
                out,
            );
        }
        if !self.shared_words.is_empty() {
            let mut words = self.shared_words.iter().take(MAX_WORDS).cloned().collect::<Vec<_>>().join(", ");
            if self.shared_words.len() > MAX_WORDS {
                let _ = write!(words, ", {}", printer.symbols.ellipsis);
            }
            push_labelled("  words     ", &words, printer.columns, out);
        }
        // Not wrapped, so that it can be copied.
        let _ = writeln!(out, "  {}\n", printable(&self.command));
    }
}
