//! Imports feedback from CSV or JSON lines.

use std::collections::{BTreeSet, HashMap, HashSet};

use jiff::Timestamp;
use karat_core::port::TraceStore;
use karat_evals::feedback::{Feedback, FeedbackEntry, FeedbackFile, FeedbackFormat, FeedbackOptions, RowProblem};
use karat_evals::port::FeedbackStore;
use karat_json::{Finding, InvalidFile, Position, without_bom};
use karat_store::Store;
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::Context;
use crate::error::Error;
use crate::hint::Hint;
use crate::trace_id::{MIN_PREFIX_LENGTH, imported_id};

/// Maximum number of unknown ids to look up as short ids.
const MAX_SHORT_IDS: usize = 10_000;

#[derive(Debug, Clone, Default)]
pub struct ImportRequest {
    /// The file name for display.
    pub name: String,
    pub bytes: Vec<u8>,
    /// Default: detected from the content.
    pub format: Option<FeedbackFormat>,
    /// The author of rows that do not specify one.
    pub author: Option<String>,
    /// Ignore unknown columns and keys.
    pub ignore_unknown: bool,
    /// Import the valid rows even if others are invalid.
    pub skip_invalid: bool,
    pub dry_run: bool,
    /// Help text for unknown trace ids, in terms of the surface.
    pub unknown_trace_help: Option<String>,
}

/// The result of an import. A refused file has both an error and a report.
#[derive(Debug)]
pub struct ImportOutcome {
    pub report: FeedbackImportReport,
    pub refused: Option<Error>,
}

/// The report of a feedback import.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "karat feedback import")]
pub struct FeedbackImportReport {
    /// Whether the store was written; false with --dry-run, and for an invalid file without --skip-invalid.
    pub written: bool,
    pub rows: u64,
    /// Rows that are new, or would be with --dry-run.
    pub added: u64,
    /// Rows that are already in the store.
    pub unchanged: u64,
    /// Problems, in the order of the file.
    pub invalid: Vec<InvalidRow>,
}

/// A problem in a feedback file.
#[derive(Debug, Serialize, JsonSchema)]
pub struct InvalidRow {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    pub message: String,
    pub help: Option<String>,
}

impl From<&Finding> for InvalidRow {
    fn from(finding: &Finding) -> Self {
        let Position { line, column } = finding.location.position;
        Self { line, column, message: finding.message.clone(), help: finding.help.clone() }
    }
}

/// Imports all rows; none if any is invalid and invalid rows are not skipped.
pub async fn import(request: ImportRequest, context: &Context<'_>) -> Result<ImportOutcome, Error> {
    let text = decode_text(&request)?;
    let format = request.format.unwrap_or_else(|| FeedbackFormat::detect(text));
    let now = context.clock.now();
    let author = request.author.as_deref();
    let options = FeedbackOptions { format, author, now, ignore_unknown: request.ignore_unknown };
    let mut file = match FeedbackFile::read(text, options) {
        Ok(file) => file,
        Err(problems) => return Ok(refused(&request.name, text, 0, RowProblem::locate(text, problems))),
    };
    context
        .read_store(async |store| {
            resolve_traces(&mut file, request.unknown_trace_help.as_deref(), store).await?;
            let findings = RowProblem::locate(text, std::mem::take(&mut file.problems));
            if file.rows == 0 {
                return Err(Error::nothing_selected(format!("no ratings in {}", request.name)));
            }
            if !findings.is_empty() && !request.skip_invalid {
                return Ok(refused(&request.name, text, file.rows, findings));
            }
            let (statements, repeated) = new_feedback(&file, now, store).await?;
            let mut report = FeedbackImportReport {
                written: !request.dry_run,
                rows: file.rows,
                added: statements.len() as u64,
                unchanged: file.repeated + repeated,
                invalid: findings.iter().map(InvalidRow::from).collect(),
            };
            if !request.dry_run {
                let added = store.add_feedback(&statements).await?;
                let new = added.iter().filter(|is_new| **is_new).count() as u64;
                report.unchanged += report.added - new;
                report.added = new;
            }
            Ok(ImportOutcome { report, refused: None })
        })
        .await
}

fn refused(name: &str, text: &str, rows: u64, findings: Vec<Finding>) -> ImportOutcome {
    let invalid = findings.iter().map(InvalidRow::from).collect();
    let report = FeedbackImportReport { written: false, rows, added: 0, unchanged: 0, invalid };
    let files = vec![InvalidFile { name: name.to_owned(), text: text.to_owned(), findings }];
    let error = Error { files, ..Error::invalid(format!("nothing was imported from {name}")) };
    let error = if rows > 0 { error.hint(Hint::SkipInvalidRows) } else { error };
    ImportOutcome { report, refused: Some(error) }
}

fn decode_text(request: &ImportRequest) -> Result<&str, Error> {
    let bytes = without_bom(&request.bytes);
    std::str::from_utf8(bytes).map_err(|error| {
        let valid = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        let Position { line, column } = Position::of(&valid, valid.len());
        Error::invalid(format!("{}:{line}:{column} is not valid UTF-8", request.name))
            .hint("in a spreadsheet, save the file as \"CSV UTF-8\"")
    })
}

/// The traces that an unknown id may refer to.
enum Completion {
    /// The trace that was imported with this id.
    Imported(String),
    /// The first traces whose ids begin with it.
    Prefix(Vec<String>),
}

/// Replaces short ids with full ids. Removes each row whose trace is not in the store, and records a problem.
async fn resolve_traces(file: &mut FeedbackFile, unknown_trace_help: Option<&str>, store: &Store) -> Result<(), Error> {
    let ids: BTreeSet<&str> = file.entries.iter().map(|entry| entry.feedback.trace_id.as_str()).collect();
    let ids: Vec<String> = ids.into_iter().map(str::to_owned).collect();
    let missing = store.missing_traces(&ids).await?;
    if missing.is_empty() {
        return Ok(());
    }
    let mut completions: HashMap<&str, Completion> = HashMap::new();
    for id in missing.iter().take(MAX_SHORT_IDS) {
        // The import of traces may have appended a hash to the id.
        let imported = store.trace_ids(&format!("{id}-"), 3).await?;
        let found = match imported_id(id, &imported) {
            Some(imported) => Completion::Imported(imported.to_owned()),
            None => Completion::Prefix(store.trace_ids(id, 2).await?),
        };
        completions.insert(id, found);
    }
    let unknown: HashSet<&str> = missing.iter().map(String::as_str).collect();
    let key = |feedback: &Feedback| (feedback.trace_id.clone(), feedback.author.clone(), feedback.created_at);
    let complete = file.entries.iter().filter(|entry| !unknown.contains(entry.feedback.trace_id.as_str()));
    let mut seen: HashSet<(String, String, Timestamp)> = complete.map(|entry| key(&entry.feedback)).collect();
    let mut problems = Vec::new();
    file.entries.retain_mut(|entry| {
        let id = entry.feedback.trace_id.clone();
        if !unknown.contains(id.as_str()) {
            return true;
        }
        let mut reject = |message: String, help: Option<String>| {
            problems.push(RowProblem::new(entry.trace_id_range.clone(), message, help));
            false
        };
        let not_found = format!("trace '{id}' not found in the store");
        let (found, min_length) = match completions.get(id.as_str()) {
            Some(Completion::Imported(full)) => (std::slice::from_ref(full), 0),
            Some(Completion::Prefix(found)) => (found.as_slice(), MIN_PREFIX_LENGTH),
            None => (&[][..], MIN_PREFIX_LENGTH),
        };
        match found {
            // A number could be the start of another trace's id by chance.
            [full] if id.chars().count() < min_length => {
                let help = format!("did you mean '{full}'? A short id has at least {MIN_PREFIX_LENGTH} characters");
                reject(not_found, Some(help))
            }
            [full] => {
                entry.feedback.trace_id.clone_from(full);
                if seen.insert(key(&entry.feedback)) {
                    return true;
                }
                reject(format!("duplicate rating of '{full}' by the same author"), None)
            }
            [_, _, ..] => {
                let message = format!("ambiguous trace id: several ids begin with '{id}'");
                reject(message, Some("use a longer id".to_owned()))
            }
            [] => reject(not_found, unknown_trace_help.map(str::to_owned)),
        }
    });
    file.problems.extend(problems);
    Ok(())
}

/// Returns the feedback to add, and the number of rows that are left out: those without a time that repeat their
/// author's newest feedback. Other rows without a time are dated after it.
async fn new_feedback(file: &FeedbackFile, now: Timestamp, store: &Store) -> Result<(Vec<Feedback>, u64), Error> {
    let undated: BTreeSet<&str> =
        file.entries.iter().filter(|entry| !entry.is_dated).map(|entry| entry.feedback.author.as_str()).collect();
    let mut newest: HashMap<(String, String), Feedback> = HashMap::new();
    for author in undated {
        // Newest first.
        for feedback in store.list_feedback(Some(author), false, None).await? {
            newest.entry((feedback.trace_id.clone(), feedback.author.clone())).or_insert(feedback);
        }
    }
    // Dated rows count as earlier feedback wherever they are in the file.
    for FeedbackEntry { feedback, .. } in file.entries.iter().filter(|entry| entry.is_dated) {
        let key = (feedback.trace_id.clone(), feedback.author.clone());
        if newest.get(&key).is_none_or(|known| known.created_at <= feedback.created_at) {
            newest.insert(key, feedback.clone());
        }
    }
    let (mut statements, mut repeated) = (Vec::with_capacity(file.entries.len()), 0);
    for entry in &file.entries {
        let mut feedback = entry.feedback.clone();
        if !entry.is_dated {
            let before = newest.get(&(feedback.trace_id.clone(), feedback.author.clone()));
            if feedback.repeats(before) {
                repeated += 1;
                continue;
            }
            feedback.created_at = Feedback::time_after(before, now);
        }
        statements.push(feedback);
    }
    Ok((statements, repeated))
}
