//! `karat eval check`: what an eval function may not do or has wrong, without running it.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use karat_core::exit::ExitStatus;
use karat_core::lint::Severity;
use karat_json::{Finding, Place, Position};
use karat_report::{counted, printable};
use karat_sandbox::{Function, MOST_SOURCE, Rule, readable, validate};
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::{ConfigArgs, EvalCheckArgs, OutputFormat};
use crate::diagnostic::{SourceProblem, render};
use crate::environment::Environment;
use crate::eval_functions::FunctionFile;
use crate::failure::Failure;
use crate::functions::{Meant, find_meant, no_functions, paths_among, refuse_other_file};
use crate::printer::Printer;
use crate::resolve::resolve_settings;
use karat_workflows::settings::Settings;

/// How many findings of one file a person is shown.
const MOST_SHOWN: usize = 50;

/// A longer line is no use to whoever reads the report, and a file can be a single line.
const LONGEST_LINE: usize = 1000;

/// What `karat eval check --format json` prints.
#[derive(Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "karat eval check report")]
pub(crate) struct EvalCheckReport {
    /// The files in the order of the arguments, those of a folder by name.
    files: Vec<CheckedFile>,
}

/// An eval function's file.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CheckedFile {
    path: String,
    /// The name of its eval function; null where something is wrong.
    function: Option<String>,
    /// The first twelve hex digits of the source's SHA-256; null where something is wrong.
    code_hash: Option<String>,
    /// Why the file could not be read; null where it could.
    error: Option<String>,
    /// What may help with that.
    #[serde(skip)]
    hints: Vec<String>,
    /// What is wrong, in the order of the source.
    findings: Vec<FileFinding>,
}

/// Something that is wrong in an eval function's source.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct FileFinding {
    /// The rule's name: syntax, import, name, dunder, function or size.
    rule: String,
    message: String,
    /// What to do about it; null where there is nothing to say.
    help: Option<String>,
    /// From 1.
    line: usize,
    /// From 1, in characters.
    column: usize,
    end_line: usize,
    /// From 1, in characters; behind the last one.
    end_column: usize,
    /// The line that it begins in; null where that has more than 1000 characters.
    source_line: Option<String>,
}

pub(crate) fn run(args: &EvalCheckArgs, environment: &Environment, printer: &Printer) -> Result<ExitStatus, Failure> {
    let paths = paths_among(&args.functions, &environment.process.current_dir);
    let config = ConfigArgs { config: args.config.clone(), ..ConfigArgs::default() };
    let settings = resolve_settings(&config, &paths, environment, printer)?;
    let files = find_meant(&args.functions, &settings)?;
    if files.is_empty() {
        return Err(no_functions(&settings));
    }
    let mut report = EvalCheckReport::default();
    for meant in files {
        let file = check(&meant, &settings, |problem| match args.format {
            OutputFormat::Json => Ok(()),
            OutputFormat::Human => printer.print(&format!("{}\n\n", render(problem, printer, printer.stdout_palette))),
        })?;
        if args.format == OutputFormat::Human {
            tell(&file, printer)?;
        }
        report.files.push(file);
    }
    match args.format {
        OutputFormat::Json => printer.print_json(&report)?,
        OutputFormat::Human => printer.print(&format!("{}\n", report.totals(printer)))?,
    }
    Ok(if report.files.iter().all(CheckedFile::is_valid) { ExitStatus::Success } else { ExitStatus::Invalid })
}

/// Reads no more of a file than shows that it is too long.
fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // A byte order mark does not count.
    let most = MOST_SOURCE as u64 + 4;
    File::open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn check(
    meant: &Meant,
    settings: &Settings,
    mut show: impl FnMut(SourceProblem) -> Result<(), Failure>,
) -> Result<CheckedFile, Failure> {
    let path = meant.path();
    let mut file = CheckedFile {
        path: settings.shown(path),
        function: None,
        code_hash: None,
        error: None,
        hints: Vec::new(),
        findings: Vec::new(),
    };
    let unreadable = |error| Failure::invalid(format!("cannot read {}: {error}", settings.shown(path)));
    let bytes = match refuse_other_file(path, settings).map_or_else(|| read(path).map_err(unreadable), Err) {
        Ok(bytes) => bytes,
        Err(failure) => {
            file.error = Some(failure.message);
            file.hints = failure.hints;
            return Ok(file);
        }
    };
    match validate(&bytes).and_then(|function| alone(function, meant)) {
        Ok(function) => {
            file.function = Some(function.name);
            file.code_hash = Some(function.code_hash);
        }
        Err(findings) => {
            let text: Arc<str> = readable(&bytes).into();
            for finding in findings {
                let found = FileFinding::new(&finding, &text);
                if file.findings.len() < MOST_SHOWN {
                    let position = Position { line: found.line, column: found.column };
                    let place = Place { range: finding.range, position };
                    let told =
                        Finding { place, pointer: None, case_id: None, message: finding.message, help: finding.help };
                    let rule = Some(found.rule.clone());
                    show(SourceProblem::new(&file.path, &text, told, Severity::Error, rule))?;
                }
                file.findings.push(found);
            }
        }
    }
    Ok(file)
}

/// Refuses a function that is fine by itself, where the project has another one of its name.
fn alone(function: Function, meant: &Meant) -> Result<Function, Vec<karat_sandbox::Finding>> {
    let Meant::Project(FunctionFile { function: Err(among_others), .. }) = meant else { return Ok(function) };
    let finding = |one: &Finding| karat_sandbox::Finding {
        rule: Rule::Function,
        message: one.message.clone(),
        help: one.help.clone(),
        range: one.place.range.clone(),
    };
    Err(among_others.iter().map(finding).collect())
}

impl FileFinding {
    fn new(finding: &karat_sandbox::Finding, text: &str) -> Self {
        let (start, end) = (Position::of(text, finding.range.start), Position::of(text, finding.range.end));
        let line_start = text[..finding.range.start].rfind('\n').map_or(0, |end| end + 1);
        let line = text[line_start..].split('\n').next().unwrap_or_default().trim_end_matches('\r');
        Self {
            rule: finding.rule.to_string(),
            message: finding.message.clone(),
            help: finding.help.clone(),
            line: start.line,
            column: start.column,
            end_line: end.line,
            end_column: end.column,
            source_line: (line.chars().count() <= LONGEST_LINE).then(|| line.to_owned()),
        }
    }
}

/// Says of a file what no finding says.
fn tell(file: &CheckedFile, printer: &Printer) -> Result<(), Failure> {
    if let Some(error) = &file.error {
        printer.failure(&Failure { hints: file.hints.clone(), ..Failure::invalid(error) });
    } else if let Some(more) = file.findings.len().checked_sub(MOST_SHOWN).filter(|more| *more > 0) {
        let line = format!("{} and {more} more in {}", printer.symbols.ellipsis, printable(&file.path));
        printer.print(&format!("{line}\n--format json lists all\n\n"))?;
    } else if let Some(function) = file.function.as_ref().filter(|_| !printer.quiet) {
        let sign = printer.stdout_palette.good(printer.symbols.passed);
        printer.print(&format!("{sign} {}: {}\n", printable(&file.path), printable(function)))?;
    }
    Ok(())
}

impl CheckedFile {
    fn is_valid(&self) -> bool {
        self.function.is_some()
    }
}

impl EvalCheckReport {
    fn totals(&self, printer: &Printer) -> String {
        let invalid = self.files.iter().filter(|file| !file.is_valid()).count();
        let findings: usize = self.files.iter().map(|file| file.findings.len()).sum();
        let line =
            format!("{}: {invalid} invalid, {}", counted(self.files.len(), "file"), counted(findings, "finding"));
        if invalid > 0 { printer.stdout_palette.bad(line) } else { printer.stdout_palette.good(line) }
    }
}
