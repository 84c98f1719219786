//! A case in the person's own editor.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

use karat_json::{Finding, parse};
use serde_json::Value;

use crate::ask::{NoAnswer, yes_or_no};
use crate::environment::Environment;
use crate::printer::Printer;

/// What came of an edit.
pub(super) enum Edited {
    /// What the person wrote, as it stands.
    Case(Value),
    /// The draft stays as it was.
    Unchanged,
}

/// Lets a person edit a case until nothing is wrong with it, or until they give up.
///
/// Nothing that was written is lost: the editor opens what it was left with, and who gives up is told where it is.
pub(super) fn edit(
    case: Option<&Value>,
    id: &str,
    environment: &Environment,
    printer: &Printer,
    examine: &dyn Fn(&Value) -> Vec<String>,
) -> Result<Edited, NoAnswer> {
    let before = case.map(|case| serde_json::to_string_pretty(case).unwrap_or_default() + "\n").unwrap_or_default();
    let file = match temporary(&before, id) {
        Ok(file) => file,
        Err(error) => {
            printer.warn(&format!("cannot make a file to edit: {error}"));
            return Ok(Edited::Unchanged);
        }
    };
    loop {
        let opened = open(&file, environment);
        let text = match std::fs::read(&file).map(String::from_utf8) {
            Ok(Ok(text)) => text,
            Ok(Err(_)) => {
                printer.warn(&format!("what you wrote is not UTF-8; it is in {}", file.display()));
                return Ok(Edited::Unchanged);
            }
            Err(error) => {
                printer.warn(&format!("cannot read {}: {error}", file.display()));
                return Ok(Edited::Unchanged);
            }
        };
        if let Err(why) = opened {
            printer.warn(&why);
            if text == before {
                std::fs::remove_file(&file).ok();
            } else {
                printer.talk(&format!("what you wrote is in {}", file.display()));
            }
            return Ok(Edited::Unchanged);
        }
        if text == before || text.trim().is_empty() {
            std::fs::remove_file(&file).ok();
            printer.note("nothing was changed");
            return Ok(Edited::Unchanged);
        }
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        match parse(text) {
            Ok(value) => {
                let problems = examine(&value);
                if problems.is_empty() {
                    std::fs::remove_file(&file).ok();
                    return Ok(Edited::Case(value));
                }
                for problem in &problems {
                    printer.talk(&format!("error: {problem}"));
                }
            }
            Err(error) => printer.findings(id, text, &[Finding::syntax(text, error)]),
        }
        let again = yes_or_no("Edit it again?", true);
        if !matches!(again, Ok(true)) {
            printer.talk(&format!("the draft stays as it was; what you wrote is in {}", file.display()));
            again?;
            return Ok(Edited::Unchanged);
        }
    }
}

/// Writes a text to a file of its own, which stays until it is removed.
fn temporary(text: &str, id: &str) -> std::io::Result<PathBuf> {
    let plain: String = id.chars().filter(|letter| letter.is_ascii_alphanumeric() || *letter == '-').take(60).collect();
    let mut file = tempfile::Builder::new().prefix(&format!("karat-{plain}-")).suffix(".json").tempfile()?;
    file.write_all(text.as_bytes())?;
    let (_, path) = file.keep()?;
    Ok(path)
}

/// Opens a file in the person's editor, and waits.
fn open(file: &std::path::Path, environment: &Environment) -> Result<(), String> {
    let editor = environment.editor.as_deref().unwrap_or(if cfg!(windows) { "notepad" } else { "vi" });
    let words = shell_words::split(editor).unwrap_or_else(|_| vec![editor.to_owned()]);
    let (program, arguments) = words.split_first().ok_or("EDITOR is empty")?;
    let status = Command::new(program).args(arguments).arg(file).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("the editor '{program}' ended with {status}: the draft stays as it was")),
        Err(error) => Err(format!("cannot start the editor '{program}': {error} (EDITOR or VISUAL names another)")),
    }
}
