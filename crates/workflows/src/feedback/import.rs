//! Ratings out of a table or JSON lines.

use std::collections::{BTreeSet, HashMap, HashSet};

use jiff::Timestamp;
use karat_core::port::TraceStore;
use karat_evals::feedback::{Feedback, FeedbackFile, FeedbackFormat, FeedbackReading, RowProblem, Statement};
use karat_evals::port::FeedbackStore;
use karat_json::{Finding, InvalidFile, Position, without_bom};
use karat_store::Store;
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::Context;
use crate::error::Error;
use crate::hint::Hint;

/// For how many unknown ids the whole id is looked for.
const MAX_COMPLETED: usize = 50;

#[derive(Debug, Clone, Default)]
pub struct ImportRequest {
    /// The file as the user would name it, and what is in it.
    pub name: String,
    pub bytes: Vec<u8>,
    /// Found out by the content where none is given.
    pub format: Option<FeedbackFormat>,
    /// Who speaks in rows that name nobody.
    pub author: Option<String>,
    /// Pass over unknown columns and keys.
    pub ignore_unknown: bool,
    /// Import the valid rows where others are not.
    pub skip_invalid: bool,
    pub dry_run: bool,
    /// How a user of this surface finds the ids of traces.
    pub unknown_trace_help: Option<String>,
}

/// What came of an import. A refused file is an error and has a report too.
#[derive(Debug)]
pub struct Imported {
    pub report: FeedbackImportReport,
    pub refused: Option<Error>,
}

/// What came of a file of feedback.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "karat feedback import")]
pub struct FeedbackImportReport {
    /// Whether anything was written; false for --dry-run, and where something is invalid without --skip-invalid.
    pub written: bool,
    pub rows: u64,
    /// Statements that are new, or would be.
    pub added: u64,
    /// Statements that were there already.
    pub unchanged: u64,
    /// What is wrong, in the order of the file.
    pub invalid: Vec<InvalidRow>,
}

/// Something wrong in a file of feedback.
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
        let Position { line, column } = finding.place.position;
        Self { line, column, message: finding.message.clone(), help: finding.help.clone() }
    }
}

/// Imports all rows, or none where one is invalid and invalid rows are not skipped.
pub async fn import(request: ImportRequest, context: &Context<'_>) -> Result<Imported, Error> {
    let text = text_of(&request)?;
    let format = request.format.unwrap_or_else(|| FeedbackFormat::detect(text));
    let now = context.clock.now();
    let author = request.author.as_deref();
    let reading = FeedbackReading { format, author, now, ignore_unknown: request.ignore_unknown };
    let mut file = match FeedbackFile::read(text, reading) {
        Ok(file) => file,
        Err(problems) => return Ok(refused(&request.name, text, 0, RowProblem::locate(text, problems))),
    };
    context
        .read_store(async |store| {
            refuse_unknown_traces(&mut file, request.unknown_trace_help.as_deref(), store).await?;
            let findings = RowProblem::locate(text, std::mem::take(&mut file.problems));
            if file.rows == 0 {
                return Err(Error::nothing_selected(format!("there is no feedback in {}", request.name)));
            }
            if !findings.is_empty() && !request.skip_invalid {
                return Ok(refused(&request.name, text, file.rows, findings));
            }
            let (statements, repeated) = without_known(&file, now, store).await?;
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
            Ok(Imported { report, refused: None })
        })
        .await
}

fn refused(name: &str, text: &str, rows: u64, findings: Vec<Finding>) -> Imported {
    let invalid = findings.iter().map(InvalidRow::from).collect();
    let report = FeedbackImportReport { written: false, rows, added: 0, unchanged: 0, invalid };
    let files = vec![InvalidFile { name: name.to_owned(), text: text.to_owned(), findings }];
    let error = Error { files, ..Error::invalid(format!("nothing of {name} is imported")) };
    let error = if rows > 0 { error.hint(Hint::SkipInvalidRows) } else { error };
    Imported { report, refused: Some(error) }
}

fn text_of(request: &ImportRequest) -> Result<&str, Error> {
    let bytes = without_bom(&request.bytes);
    std::str::from_utf8(bytes).map_err(|error| {
        let valid = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        let Position { line, column } = Position::of(&valid, valid.len());
        Error::invalid(format!("{}:{line}:{column} is not UTF-8", request.name))
            .hint("a spreadsheet saves it as \"CSV UTF-8\"")
    })
}

/// Makes problems of the rows whose trace is not in the store.
async fn refuse_unknown_traces(
    file: &mut FeedbackFile,
    unknown_trace_help: Option<&str>,
    store: &Store,
) -> Result<(), Error> {
    let ids: BTreeSet<&str> = file.statements.iter().map(|statement| statement.feedback.trace_id.as_str()).collect();
    let ids: Vec<String> = ids.into_iter().map(str::to_owned).collect();
    let missing = store.missing_traces(&ids).await?;
    let mut longer: HashMap<&str, String> = HashMap::new();
    for id in missing.iter().take(MAX_COMPLETED) {
        if let [only] = store.trace_ids(id, 2).await?.as_slice() {
            longer.insert(id, only.clone());
        }
    }
    let unknown: HashSet<&str> = missing.iter().map(String::as_str).collect();
    let mut problems = Vec::new();
    file.statements.retain(|statement| {
        let id = statement.feedback.trace_id.as_str();
        let is_known = !unknown.contains(id);
        if !is_known {
            let help = match longer.get(id) {
                Some(longer) => Some(format!("did you mean '{longer}'? A file has whole ids")),
                None => unknown_trace_help.map(str::to_owned),
            };
            let message = format!("there is no trace '{id}' in the store");
            problems.push(RowProblem::new(statement.place.clone(), message, help));
        }
        is_known
    });
    file.problems.extend(problems);
    Ok(())
}

/// Leaves out rows without a time that say what their author says anyway, and returns how many these are. The others
/// are newer than what their author said before.
async fn without_known(file: &FeedbackFile, now: Timestamp, store: &Store) -> Result<(Vec<Feedback>, u64), Error> {
    let undated: BTreeSet<&str> = file
        .statements
        .iter()
        .filter(|statement| !statement.is_dated)
        .map(|statement| statement.feedback.author.as_str())
        .collect();
    let mut newest: HashMap<(String, String), Feedback> = HashMap::new();
    for author in undated {
        // The newest come first.
        for feedback in store.list_feedback(Some(author), false, None).await? {
            newest.entry((feedback.trace_id.clone(), feedback.author.clone())).or_insert(feedback);
        }
    }
    // Rows with a time say what was so before, wherever they stand in the file.
    for Statement { feedback, .. } in file.statements.iter().filter(|statement| statement.is_dated) {
        let key = (feedback.trace_id.clone(), feedback.author.clone());
        if newest.get(&key).is_none_or(|known| known.created_at <= feedback.created_at) {
            newest.insert(key, feedback.clone());
        }
    }
    let (mut statements, mut repeated) = (Vec::with_capacity(file.statements.len()), 0);
    for statement in &file.statements {
        let mut feedback = statement.feedback.clone();
        if !statement.is_dated {
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
