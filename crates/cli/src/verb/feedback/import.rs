//! `karat feedback import`: what people said, from a table or from JSON lines.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::Path;

use jiff::Timestamp;
use karat_core::exit::ExitStatus;
use karat_core::feedback::{Feedback, FeedbackFile, FeedbackFormat, FeedbackReading, RowProblem, Statement};
use karat_core::port::{Clock, FeedbackStore, TraceStore};
use karat_json::{Finding, Position};
use karat_report::counted;
use karat_store::Store;
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::{FeedbackImportArgs, FeedbackKind, OutputFormat};
use crate::diagnostic::print_findings;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::interrupt::runtime_that_ends;
use crate::printer::Printer;
use crate::resolve::resolve_settings;
use crate::store::{open_store_to_read, with_store};
use karat_json::without_bom;
use karat_workflows::context::clock::SystemClock;

/// How many rows that are left out are told in words.
const MOST_TOLD: usize = 10;

/// How many ids are completed for the person who shortened them.
const MOST_COMPLETED: usize = 50;

/// What came of a file of feedback.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "karat feedback import")]
pub(crate) struct FeedbackImportReport {
    /// Whether anything was written; false for --dry-run, and where something is invalid without --skip-invalid.
    written: bool,
    rows: u64,
    /// Statements that are new, or would be.
    added: u64,
    /// Statements that were there already.
    unchanged: u64,
    /// What is wrong, in the order of the file.
    invalid: Vec<InvalidRow>,
}

/// Something wrong in a file of feedback.
#[derive(Serialize, JsonSchema)]
struct InvalidRow {
    /// From 1.
    line: usize,
    /// From 1, in characters.
    column: usize,
    message: String,
    help: Option<String>,
}

impl From<&Finding> for InvalidRow {
    fn from(finding: &Finding) -> Self {
        let Position { line, column } = finding.place.position;
        Self { line, column, message: finding.message.clone(), help: finding.help.clone() }
    }
}

pub(super) fn run(
    args: &FeedbackImportArgs,
    environment: &Environment,
    printer: &Printer,
) -> Result<ExitStatus, Failure> {
    // Only rows that name nobody need one.
    let author = match args.author.name(environment) {
        Err(failure) if args.author.author.is_some() => return Err(failure),
        author => author.ok(),
    };
    let settings = resolve_settings(&args.store.config_args(), &[], environment, printer)?;
    let (name, bytes) = read_file(&args.file, environment)?;
    let text = text_of(&name, &bytes)?;
    let format = match args.from {
        Some(FeedbackKind::Csv) => FeedbackFormat::Csv,
        Some(FeedbackKind::Jsonl) => FeedbackFormat::JsonLines,
        None => FeedbackFormat::detect(text),
    };
    let (now, ignore_unknown) = (SystemClock.now(), args.ignore_unknown);
    let reading = FeedbackReading { format, author: author.as_deref(), now, ignore_unknown };
    let mut file = match FeedbackFile::read(text, reading) {
        Ok(file) => file,
        Err(problems) => {
            let findings = RowProblem::locate(text, problems);
            let report = FeedbackImportReport::refused(0, &findings);
            return refuse(&name, text, &findings, &report, args, printer);
        }
    };
    let runtime = runtime_that_ends()?;
    runtime.block_on(with_store(open_store_to_read(&settings), async |store| {
        refuse_unknown_traces(&mut file, store).await?;
        let rows = file.rows;
        let findings = RowProblem::locate(text, std::mem::take(&mut file.problems));
        if rows == 0 {
            return Err(Failure::nothing_selected(format!("there is no feedback in {name}")));
        }
        if !findings.is_empty() && !args.skip_invalid {
            let report = FeedbackImportReport::refused(rows, &findings);
            return refuse(&name, text, &findings, &report, args, printer);
        }
        tell_of_skipped(&name, &findings, printer);
        let (statements, repeated) = without_known(&file, now, store).await?;
        let mut report = FeedbackImportReport {
            written: !args.dry_run,
            rows,
            added: statements.len() as u64,
            unchanged: file.repeated + repeated,
            invalid: findings.iter().map(InvalidRow::from).collect(),
        };
        if !args.dry_run {
            let added = store.add_feedback(&statements).await?;
            let new = added.iter().filter(|is_new| **is_new).count() as u64;
            report.unchanged += report.added - new;
            report.added = new;
        }
        match args.format {
            OutputFormat::Json => printer.print_json(&report)?,
            OutputFormat::Human => printer.print(&report.told(&name))?,
        }
        // A script that skips what is invalid must be able to see that something was.
        Ok(if report.invalid.is_empty() { ExitStatus::Success } else { ExitStatus::Failed })
    }))
}

impl FeedbackImportReport {
    fn refused(rows: u64, findings: &[Finding]) -> Self {
        let invalid = findings.iter().map(InvalidRow::from).collect();
        Self { written: false, rows, added: 0, unchanged: 0, invalid }
    }

    fn told(&self, name: &str) -> String {
        let count = |number: u64, noun: &str| counted(usize::try_from(number).unwrap_or(usize::MAX), noun);
        let what = if self.written { "imported" } else { "would import" };
        let mut text = format!("{what} {} from {name}", count(self.added, "statement"));
        if self.unchanged > 0 {
            let _ = write!(text, "; {} known already", count(self.unchanged, "row"));
        }
        if !self.invalid.is_empty() {
            let _ = write!(text, "; {} left out", count(self.rows - self.added - self.unchanged, "row"));
        }
        text + "\n"
    }
}

/// Shows what is wrong with the file, of which nothing is written.
fn refuse(
    name: &str,
    text: &str,
    findings: &[Finding],
    report: &FeedbackImportReport,
    args: &FeedbackImportArgs,
    printer: &Printer,
) -> Result<ExitStatus, Failure> {
    print_findings(name, text, findings, printer);
    if args.format == OutputFormat::Json {
        printer.print_json(report)?;
    }
    let failure = Failure::invalid(format!("nothing of {name} is imported"));
    Err(if report.rows > 0 { failure.hint("--skip-invalid imports the rows that are valid") } else { failure })
}

fn tell_of_skipped(name: &str, findings: &[Finding], printer: &Printer) {
    for finding in findings.iter().take(MOST_TOLD) {
        let Position { line, column } = finding.place.position;
        printer.warn(&format!("{name}:{line}:{column}: {}", finding.message));
    }
    if let Some(more) = findings.len().checked_sub(MOST_TOLD).filter(|more| *more > 0) {
        printer.warn(&format!("{more} more problems in {name}; --format json tells them all"));
    }
}

fn read_file(file: &Path, environment: &Environment) -> Result<(String, Vec<u8>), Failure> {
    let name = if file.as_os_str() == "-" { "stdin".to_owned() } else { file.display().to_string() };
    let mut bytes = Vec::new();
    let read = if file.as_os_str() == "-" {
        std::io::stdin().lock().read_to_end(&mut bytes)
    } else {
        std::fs::File::open(environment.process.current_dir.join(file))
            .and_then(|mut file| file.read_to_end(&mut bytes))
    };
    match read {
        Ok(_) => Ok((name, bytes)),
        Err(error) => Err(Failure::invalid(format!("cannot read {name}: {error}"))),
    }
}

fn text_of<'b>(name: &str, bytes: &'b [u8]) -> Result<&'b str, Failure> {
    let bytes = without_bom(bytes);
    std::str::from_utf8(bytes).map_err(|error| {
        let valid = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        let Position { line, column } = Position::of(&valid, valid.len());
        Failure::invalid(format!("{name}:{line}:{column} is not UTF-8")).hint("a spreadsheet saves it as \"CSV UTF-8\"")
    })
}

/// Makes problems of the rows whose trace is not in the store.
async fn refuse_unknown_traces(file: &mut FeedbackFile, store: &Store) -> Result<(), Failure> {
    let ids: BTreeSet<&str> = file.statements.iter().map(|statement| statement.feedback.trace_id.as_str()).collect();
    let ids: Vec<String> = ids.into_iter().map(str::to_owned).collect();
    let missing = store.missing_traces(&ids).await?;
    let mut longer: HashMap<&str, String> = HashMap::new();
    for id in missing.iter().take(MOST_COMPLETED) {
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
                Some(longer) => format!("did you mean '{longer}'? A file has whole ids"),
                None => "'karat trace list' shows the traces".to_owned(),
            };
            let message = format!("there is no trace '{id}' in the store");
            problems.push(RowProblem::new(statement.place.clone(), message, Some(help)));
        }
        is_known
    });
    file.problems.extend(problems);
    Ok(())
}

/// Leaves out rows without a time that say what their author says anyway, and returns how many these are. The others
/// are newer than what their author said before.
async fn without_known(file: &FeedbackFile, now: Timestamp, store: &Store) -> Result<(Vec<Feedback>, u64), Failure> {
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
