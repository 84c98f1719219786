//! Edits a case in the user's editor.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

use karat_json::{Finding, parse};
use serde_json::Value;

use crate::ask::{NoAnswer, yes_or_no};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::printer::Printer;

pub(super) enum EditOutcome {
    /// The edited case, which has no errors.
    Case(Value),
    Unchanged,
}

/// Opens a case in the editor until it has no errors or the user gives up.
///
/// No edits are lost: the editor reopens the same file, and giving up prints its path.
pub(super) fn edit(
    case: Option<&Value>,
    id: &str,
    environment: &Environment,
    printer: &Printer,
    check: &dyn Fn(&Value) -> Vec<String>,
) -> Result<EditOutcome, NoAnswer> {
    let before = case.map(|case| serde_json::to_string_pretty(case).unwrap_or_default() + "\n").unwrap_or_default();
    let file = match temporary_file(&before, id) {
        Ok(file) => file,
        Err(error) => {
            printer.warn(&format!("cannot create a temporary file: {error}"));
            return Ok(EditOutcome::Unchanged);
        }
    };
    loop {
        let result = open(&file, environment);
        let text = match std::fs::read(&file).map(String::from_utf8) {
            Ok(Ok(text)) => text,
            Ok(Err(_)) => {
                printer.warn(&format!("the file is not valid UTF-8; your edits are saved in {}", file.display()));
                return Ok(EditOutcome::Unchanged);
            }
            Err(error) => {
                printer.warn(&format!("cannot read {}: {error}", file.display()));
                return Ok(EditOutcome::Unchanged);
            }
        };
        if let Err(message) = result {
            printer.warn(&message);
            if text == before {
                std::fs::remove_file(&file).ok();
            } else {
                printer.print_wrapped("", &format!("your edits are saved in {}", file.display()));
            }
            return Ok(EditOutcome::Unchanged);
        }
        if text == before || text.trim().is_empty() {
            std::fs::remove_file(&file).ok();
            printer.note("no changes");
            return Ok(EditOutcome::Unchanged);
        }
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        match parse(text) {
            Ok(value) => {
                let problems = check(&value);
                if problems.is_empty() {
                    std::fs::remove_file(&file).ok();
                    return Ok(EditOutcome::Case(value));
                }
                for problem in &problems {
                    printer.failure(&Failure::invalid(problem));
                }
            }
            Err(error) => printer.findings(id, text, &[Finding::syntax(text, error)]),
        }
        let again = yes_or_no("Edit again?", true);
        if !matches!(again, Ok(true)) {
            printer.print_wrapped("", &format!("the draft is unchanged; your edits are saved in {}", file.display()));
            again?;
            return Ok(EditOutcome::Unchanged);
        }
    }
}

/// Writes text to a temporary file that is not deleted automatically.
fn temporary_file(text: &str, id: &str) -> std::io::Result<PathBuf> {
    let name: String = id.chars().filter(|letter| letter.is_ascii_alphanumeric() || *letter == '-').take(60).collect();
    let mut file = tempfile::Builder::new().prefix(&format!("karat-{name}-")).suffix(".json").tempfile()?;
    file.write_all(text.as_bytes())?;
    let (_, path) = file.keep()?;
    Ok(path)
}

/// Opens a file in the editor and waits for it.
fn open(file: &std::path::Path, environment: &Environment) -> Result<(), String> {
    let editor = environment.editor.as_deref().unwrap_or(if cfg!(windows) { "notepad" } else { "vi" });
    let words = shell_words::split(editor).unwrap_or_else(|_| vec![editor.to_owned()]);
    let (program, arguments) = words.split_first().ok_or("EDITOR is empty")?;
    let status = Command::new(program).args(arguments).arg(file).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("the editor '{program}' ended with {status}; the draft is unchanged")),
        Err(error) => Err(format!("cannot start the editor '{program}': {error} (set EDITOR or VISUAL)")),
    }
}
