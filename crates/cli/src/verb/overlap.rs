//! `karat overlap`: overlaps between tools.

mod edit;
mod list;
mod suggest;

use karat_core::exit::ExitStatus;

pub(crate) use self::suggest::SuggestionReport;
use crate::args::{OverlapAction, OverlapArgs};
use crate::failure::Failure;
use crate::printer::Printer;
use crate::surface::Surface;

pub(crate) fn run(args: OverlapArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    match args.action {
        None => list::run(&args.list, surface),
        Some(OverlapAction::List(args)) => list::run(&args, surface),
        Some(OverlapAction::Suggest(args)) => suggest::run(&args, surface),
        Some(OverlapAction::Add(args)) => edit::add(args, surface),
        Some(OverlapAction::Remove(args)) => edit::remove(args, surface),
    }
}

/// Width of a tool name in text output; JSON has the whole name.
const MAX_NAME_COLUMNS: usize = 60;

fn shorten_name(name: &str, printer: &Printer) -> String {
    karat_report::truncate_middle(&karat_report::printable(name), MAX_NAME_COLUMNS, printer.symbols.ellipsis)
        .into_owned()
}

fn join_names(names: &[String], separator: &str, printer: &Printer) -> String {
    names.iter().map(|name| shorten_name(name, printer)).collect::<Vec<_>>().join(separator)
}

/// Wraps a text behind a label.
fn push_labelled(label: &str, text: &str, columns: usize, out: &mut String) {
    let indent = " ".repeat(label.len());
    let options = textwrap::Options::new(columns)
        .initial_indent(label)
        .subsequent_indent(&indent)
        .break_words(false)
        .word_splitter(textwrap::WordSplitter::NoHyphenation);
    for line in textwrap::wrap(&karat_report::printable(text), options) {
        out.push_str(line.trim_end());
        out.push('\n');
    }
}
