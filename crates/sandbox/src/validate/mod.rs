//! Validates the source of an eval function before it runs.
//!
//! Validation reports errors early and with their line; it is not a security boundary. It uses the syntax tree only, so
//! words in strings and comments are ignored.

mod entry;
mod imports;
mod nesting;
mod own_input;
mod project_rules;
mod returns;
mod rules;
mod semantics;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use karat_core::judgement::{EvalOptions, ReturnForm};
use karat_json::Position;
use ruff_python_ast::{ModModule, PythonVersion};
use ruff_python_parser::{Mode, ParseOptions, Parsed, parse_unchecked};
use ruff_text_size::Ranged as _;

use self::imports::Imports;
pub use self::imports::ModuleOutline;
pub use self::project_rules::{FindHelper, ProjectRules};
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

/// Validates the source of an eval function without optional features. Returns the function, or all findings in source
/// order.
pub fn validate(source: &[u8]) -> Result<Function, Vec<Finding>> {
    validate_with(source, &ProjectRules::default())
}

/// Validates the source of an eval function. Returns the function, or all findings in source order.
pub fn validate_with(source: &[u8], rules: &ProjectRules<'_>) -> Result<Function, Vec<Finding>> {
    let text = readable_text(source).map_err(|finding| vec![finding])?;
    // `None`: the thread cannot be started, or the parser panicked.
    on_parser_thread(|| read(text, rules)).unwrap_or_else(|| Err(vec![unparsable()]))
}

/// Returns what a source imports and whether it defines an eval function; `None` if it is not Python.
pub fn outline(source: &[u8]) -> Option<ModuleOutline> {
    let text = readable_text(source).ok()?;
    on_parser_thread(|| parse(text).map(|parsed| ModuleOutline::of(parsed.syntax()))).flatten()
}

pub(crate) fn on_parser_thread<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(PARSER_STACK).spawn_scoped(scope, work);
        thread.ok()?.join().ok()
    })
}

/// Returns a source as text, unless it is too long or too deeply nested to be parsed.
pub(crate) fn readable_text(source: &[u8]) -> Result<&str, Finding> {
    let source = source.strip_prefix(BYTE_ORDER_MARK).unwrap_or(source);
    if source.len() > MAX_SOURCE_BYTES {
        return Err(new_finding(Rule::Size, "the source is longer than 64 KB", 0..0));
    }
    let text = std::str::from_utf8(source).map_err(|error| {
        let at = error.valid_up_to();
        new_finding(Rule::Syntax, "the source is not valid UTF-8", at..at)
    })?;
    if let Some(at) = text.find('\0') {
        return Err(new_finding(Rule::Syntax, "the source contains a NUL character", at..at + 1));
    }
    nesting::find_too_deep(text).map_or(Ok(text), Err)
}

fn unparsable() -> Finding {
    new_finding(Rule::Syntax, "the source cannot be parsed", 0..0)
}

pub(crate) fn parse(text: &str) -> Option<Parsed<ModModule>> {
    parse_unchecked(text, ParseOptions::from(Mode::Module).with_target_version(VERSION)).try_into_module()
}

fn new_finding(rule: Rule, message: &str, range: Range<usize>) -> Finding {
    Finding { rule, message: message.to_owned(), help: None, range }
}

fn read(text: &str, rules: &ProjectRules<'_>) -> Result<Function, Vec<Finding>> {
    let parsed = parse(text).ok_or_else(|| vec![unparsable()])?;
    let body = &parsed.syntax().body;
    let mut findings = syntax_errors(&parsed, text);
    let has_valid_syntax = findings.is_empty();
    let mut imports = Imports::new(*rules);
    findings.extend(rules::check(body, &mut imports));
    let (entry, mut entry_findings) = entry::find(body);
    // With syntax errors, the list of functions may be incomplete.
    if has_valid_syntax {
        findings.append(&mut entry_findings);
    }
    findings.extend(check_helpers(&mut imports));
    let (threshold, mut return_findings) = returns::threshold(body, rules);
    findings.append(&mut return_findings);
    findings.sort_by_key(|finding| (finding.range.start, finding.rule));
    let Some(entry) = entry.filter(|_| findings.is_empty()) else { return Err(findings) };
    let form = if threshold.is_some() { ReturnForm::Flexible } else { ReturnForm::Contract };
    let options =
        EvalOptions { imports: imports.optional.iter().cloned().collect(), threshold, helpers: sources(imports) };
    let function = Function::new(entry.name.to_string(), text);
    Ok(Function {
        takes_context: entry::takes_context(entry),
        warnings: returns::find_invalid(entry, form),
        ..function.with_options(options)
    })
}

/// Checks the imported helpers and what they import. A finding is located where the function imports the helper.
fn check_helpers(imports: &mut Imports<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    while let Some((name, helper)) = imports.helpers.iter_mut().find(|(_, helper)| !helper.is_checked) {
        helper.is_checked = true;
        let (name, source, imported_at) = (name.clone(), helper.source.clone(), helper.imported_at);
        imports.origin = Some(imported_at);
        if let Some(Finding { rule, message, help, range }) = check_helper(&source, imports).into_iter().next() {
            let line = Position::of(&display_source(&source), range.start).line;
            let message = format!("{name}.py, line {line}: {message}");
            findings.push(Finding { rule, message, help, range: imported_at.into() });
        }
    }
    findings
}

fn check_helper(source: &[u8], imports: &mut Imports<'_>) -> Vec<Finding> {
    let text = match readable_text(source) {
        Ok(text) => text,
        Err(finding) => return vec![finding],
    };
    let Some(parsed) = parse(text) else { return vec![unparsable()] };
    let mut findings = syntax_errors(&parsed, text);
    findings.extend(rules::check(&parsed.syntax().body, imports));
    findings.sort_by_key(|finding| (finding.range.start, finding.rule));
    findings
}

/// Returns the sources of helpers that were checked.
fn sources(imports: Imports<'_>) -> BTreeMap<String, String> {
    imports.helpers.into_iter().map(|(name, helper)| (name, display_source(&helper.source))).collect()
}

fn syntax_errors(parsed: &Parsed<ModModule>, text: &str) -> Vec<Finding> {
    let invalid = parsed.errors().iter().map(|error| (error.error.to_string(), error.location));
    let unsupported = parsed.unsupported_syntax_errors().iter().map(|error| (error.to_string(), error.range()));
    // With syntax errors, the tree is incomplete, and errors found in it may be wrong.
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

/// Moves the range of an error that is at the end of a line or of the source to the end of the text before it.
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
