//! Validates the source of an eval function before it runs.
//!
//! Validation reports errors early and with their line; it is not a security boundary. It uses the syntax tree only, so
//! words in strings and comments are ignored.

mod entry;
mod nesting;
mod rules;
mod semantics;

use std::borrow::Cow;
use std::ops::Range;

use ruff_python_ast::{ModModule, PythonVersion};
use ruff_python_parser::{Mode, ParseOptions, Parsed, parse_unchecked};
use ruff_text_size::Ranged as _;

use crate::function::{Finding, Function, Rule};

/// Maximum size of a source.
pub const MAX_SOURCE_BYTES: usize = 64 * 1024;

/// Maximum number of syntax errors reported: one error can cause many more.
const MAX_SYNTAX_ERRORS: usize = 50;

/// Enough for the deepest accepted tree, also in a build without optimisation.
const PARSER_STACK: usize = 64 * 1024 * 1024;

/// Version of the guest's Python.
const VERSION: PythonVersion = PythonVersion::PY314;

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Validates the source of an eval function. Returns the function, or all findings in source order.
pub fn validate(source: &[u8]) -> Result<Function, Vec<Finding>> {
    let source = source.strip_prefix(BYTE_ORDER_MARK).unwrap_or(source);
    if source.len() > MAX_SOURCE_BYTES {
        return Err(vec![new_finding(Rule::Size, "the source is longer than 64 KB", 0..0)]);
    }
    let text = std::str::from_utf8(source).map_err(|error| {
        let at = error.valid_up_to();
        vec![new_finding(Rule::Syntax, "the source is not valid UTF-8", at..at)]
    })?;
    if let Some(at) = text.find('\0') {
        return Err(vec![new_finding(Rule::Syntax, "the source contains a NUL character", at..at + 1)]);
    }
    if let Some(finding) = nesting::find_too_deep(text) {
        return Err(vec![finding]);
    }
    let read = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(PARSER_STACK).spawn_scoped(scope, || read(text));
        thread.ok()?.join().ok()
    });
    // The thread cannot be started, or the parser panicked.
    read.unwrap_or_else(|| Err(vec![new_finding(Rule::Syntax, "the source cannot be parsed", 0..0)]))
}

fn new_finding(rule: Rule, message: &str, range: Range<usize>) -> Finding {
    Finding { rule, message: message.to_owned(), help: None, range }
}

fn read(text: &str) -> Result<Function, Vec<Finding>> {
    let options = ParseOptions::from(Mode::Module).with_target_version(VERSION);
    let Some(parsed) = parse_unchecked(text, options).try_into_module() else {
        return Err(vec![new_finding(Rule::Syntax, "the source cannot be parsed", 0..0)]);
    };
    let body = &parsed.syntax().body;
    let mut findings = syntax_errors(&parsed, text);
    let is_python = findings.is_empty();
    findings.extend(rules::check(body));
    let (name, mut entry_findings) = entry::find(body);
    // With syntax errors, the list of functions may be incomplete.
    if is_python {
        findings.append(&mut entry_findings);
    }
    findings.sort_by_key(|finding| (finding.range.start, finding.rule));
    match name {
        Some(name) if findings.is_empty() => Ok(Function::new(name, text)),
        _ => Err(findings),
    }
}

fn syntax_errors(parsed: &Parsed<ModModule>, text: &str) -> Vec<Finding> {
    let invalid = parsed.errors().iter().map(|error| (error.error.to_string(), error.location));
    let unsupported = parsed.unsupported_syntax_errors().iter().map(|error| (error.to_string(), error.range()));
    // With syntax errors, the tree is a guess and so would be its errors.
    let is_complete = parsed.errors().is_empty();
    let semantic = if is_complete { semantics::check(&parsed.syntax().body, text, VERSION) } else { Vec::new() };
    let all = invalid.chain(unsupported).chain(semantic);
    let mut findings: Vec<Finding> = all
        .map(|(message, range)| new_finding(Rule::Syntax, &lower_first(&message), visible_range(range.into(), text)))
        .collect();
    findings.sort_by_key(|finding| finding.range.start);
    // Further errors on the same line usually follow from the first.
    findings.dedup_by_key(|finding| line_start(text, finding.range.start));
    findings.truncate(MAX_SYNTAX_ERRORS);
    findings
}

/// Moves the range of an error at the end of a line or of the source to the end of the text before it.
fn visible_range(range: Range<usize>, text: &str) -> Range<usize> {
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

/// Returns a source as text for display; the ranges of findings refer to it. All of Python's line endings contain `\n`,
/// and invalid UTF-8 is replaced.
pub fn display_source(source: &[u8]) -> String {
    let source = source.strip_prefix(BYTE_ORDER_MARK).unwrap_or(source);
    let mut bytes = Cow::Borrowed(source);
    for at in 0..source.len() {
        if source[at] == b'\r' && source.get(at + 1) != Some(&b'\n') {
            bytes.to_mut()[at] = b'\n';
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
