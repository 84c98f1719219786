//! Reads an eval function's syntax before it runs.
//!
//! This is a courtesy: what is wrong is said at once, with its line, and not by a failing run. It guards nothing.
//! Only the syntax tree is looked at, never the text: a word in a string or a comment is only a word.

mod addresses;
mod entry;
mod footprint;
mod known;
mod nesting;
mod rules;
mod semantics;

use std::borrow::Cow;
use std::ops::Range;

use ruff_python_ast::{ModModule, PythonVersion};
use ruff_python_parser::{Mode, ParseOptions, Parsed, parse_unchecked};
use ruff_text_size::Ranged as _;

use crate::function::{Finding, Function, Rule};

/// How long a source may be, in bytes.
pub const MOST_SOURCE: usize = 64 * 1024;

/// One mistake can make Python of none of what follows; more of it helps nobody.
const MOST_SYNTAX_ERRORS: usize = 50;

/// Enough for the deepest tree that is let through, in a build without optimisation too.
const STACK: usize = 64 * 1024 * 1024;

/// The Python in the guest.
const VERSION: PythonVersion = PythonVersion::PY314;

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Validates an eval function's source: the function, or all that is wrong, in the order of the source.
pub fn validate(source: &[u8]) -> Result<Function, Vec<Finding>> {
    let source = source.strip_prefix(BYTE_ORDER_MARK).unwrap_or(source);
    if source.len() > MOST_SOURCE {
        return Err(vec![unreadable(Rule::Size, "the source is longer than 64 KB", 0..0)]);
    }
    let text = std::str::from_utf8(source).map_err(|error| {
        let at = error.valid_up_to();
        vec![unreadable(Rule::Syntax, "this is not UTF-8", at..at)]
    })?;
    if let Some(at) = text.find('\0') {
        return Err(vec![unreadable(Rule::Syntax, "there is a NUL character", at..at + 1)]);
    }
    if let Some(finding) = nesting::find_too_deep(text) {
        return Err(vec![finding]);
    }
    let read = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || read(text));
        thread.ok()?.join().ok()
    });
    // No thread can be had, or the parser has a mistake.
    read.unwrap_or_else(|| Err(vec![unreadable(Rule::Syntax, "the source cannot be parsed", 0..0)]))
}

fn unreadable(rule: Rule, message: &str, range: Range<usize>) -> Finding {
    Finding { rule, message: message.to_owned(), help: None, range }
}

fn read(text: &str) -> Result<Function, Vec<Finding>> {
    let options = ParseOptions::from(Mode::Module).with_target_version(VERSION);
    let Some(parsed) = parse_unchecked(text, options).try_into_module() else {
        return Err(vec![unreadable(Rule::Syntax, "the source cannot be parsed", 0..0)]);
    };
    let body = &parsed.syntax().body;
    let mut findings = syntax_errors(&parsed, text);
    let is_python = findings.is_empty();
    findings.extend(rules::check(body));
    let (name, mut wrong) = entry::find(body);
    // Of what is no Python, it cannot be said which functions it has.
    if is_python {
        findings.append(&mut wrong);
    }
    findings.sort_by_key(|finding| (finding.range.start, finding.rule));
    match name {
        Some(name) if findings.is_empty() => Ok(Function::new(name, text, footprint::leaves_no_trace(body))),
        _ => Err(findings),
    }
}

fn syntax_errors(parsed: &Parsed<ModModule>, text: &str) -> Vec<Finding> {
    let invalid = parsed.errors().iter().map(|error| (error.error.to_string(), error.location));
    let unsupported = parsed.unsupported_syntax_errors().iter().map(|error| (error.to_string(), error.range()));
    // What is wrong within a tree that was guessed would be a guess too.
    let is_tree = parsed.errors().is_empty();
    let later = if is_tree { semantics::check(&parsed.syntax().body, text, VERSION) } else { Vec::new() };
    let all = invalid.chain(unsupported).chain(later);
    let mut findings: Vec<Finding> = all
        .map(|(message, range)| unreadable(Rule::Syntax, &lower_first(&message), visible(range.into(), text)))
        .collect();
    findings.sort_by_key(|finding| finding.range.start);
    // Whoever mends the first of a line has mended most of the others.
    findings.dedup_by_key(|finding| line_start(text, finding.range.start));
    findings.truncate(MOST_SYNTAX_ERRORS);
    findings
}

/// Moves what is wrong with the end of a line, or of the source, to behind the last text before it.
fn visible(range: Range<usize>, text: &str) -> Range<usize> {
    let end = text.trim_end().len();
    if range.start >= end {
        return end..end;
    }
    let is_line_end = text.get(range.clone()).is_some_and(|part| part.trim_matches(['\r', '\n']).is_empty());
    if is_line_end { range.start..range.start } else { range }
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind(['\r', '\n']).map_or(0, |end| end + 1)
}

fn lower_first(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

/// Returns a source as a person is shown it; the places of findings are places in it. Each of Python's line ends has
/// a `\n`, and what is no text has a stand-in.
pub fn readable(source: &[u8]) -> String {
    let source = source.strip_prefix(BYTE_ORDER_MARK).unwrap_or(source);
    let mut bytes = Cow::Borrowed(source);
    for at in 0..source.len() {
        if source[at] == b'\r' && source.get(at + 1) != Some(&b'\n') {
            bytes.to_mut()[at] = b'\n';
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
