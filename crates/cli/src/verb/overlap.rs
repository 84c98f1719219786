//! `karat overlap`: which tools are easily taken for each other.

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

/// How long a name is shown; programs are given all of it.
const MAX_NAME_COLUMNS: usize = 60;

/// Returns a name as people are shown it.
fn clipped(name: &str, printer: &Printer) -> String {
    karat_report::cut_middle(&karat_report::printable(name), MAX_NAME_COLUMNS, printer.symbols.ellipsis).into_owned()
}

fn joined(names: &[String], between: &str, printer: &Printer) -> String {
    names.iter().map(|name| clipped(name, printer)).collect::<Vec<_>>().join(between)
}

/// Lays a text out behind a label, in the columns that there are.
fn labelled(label: &str, text: &str, columns: usize, out: &mut String) {
    let rest = " ".repeat(label.len());
    let options = textwrap::Options::new(columns)
        .initial_indent(label)
        .subsequent_indent(&rest)
        .break_words(false)
        .word_splitter(textwrap::WordSplitter::NoHyphenation);
    for line in textwrap::wrap(&karat_report::printable(text), options) {
        out.push_str(line.trim_end());
        out.push('\n');
    }
}
