//! `karat eval new`: a first eval function with its cases, never over what is there.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

use karat_core::exit::ExitStatus;

use crate::args::{ConfigArgs, EvalNewArgs};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::resolve::resolve_settings;
use karat_workflows::settings::Settings;

const FUNCTION: &str = include_str!("starting_function.py");
const CASES: &str = include_str!("starting_cases.jsonl");

/// What the starting function is called in its file.
const PLACEHOLDER: &str = "eval_starting_function";

/// A longer one is a sentence.
const LONGEST_NAME: usize = 80;

pub(crate) fn run(args: &EvalNewArgs, environment: &Environment, printer: &Printer) -> Result<ExitStatus, Failure> {
    let name = plain_name(&args.name)?;
    let config = ConfigArgs { config: args.config.clone(), ..ConfigArgs::default() };
    let settings = resolve_settings(&config, &[], environment, printer)?;
    let folder = &settings.eval_functions.path;
    let function = folder.join(format!("{name}.py"));
    let cases = folder.join(format!("{name}.cases.jsonl"));
    // Also a link that leads nowhere is there.
    let is_there = |path: &Path| path.symlink_metadata().is_ok();
    let left = |path: &Path| format!("{} is there already, and is left as it is", settings.shown(path));
    let first = match (is_there(&function), is_there(&cases)) {
        (true, true) => return Err(Failure::invalid(left(&function))),
        (false, true) => return Err(Failure::invalid(left(&cases))),
        (true, false) => left(&function),
        (false, false) => {
            write_new(&function, &FUNCTION.replace(PLACEHOLDER, &format!("eval_{name}")), &settings)?;
            format!("wrote {}", settings.shown(&function))
        }
    };
    write_new(&cases, CASES, &settings)?;
    let text = format!(
        "{first}\nwrote {}\n\n\
         Next: say in the function what a good trace is, and in the cases which traces\n\
         show it, then\n  \
         karat eval test {name}\n  karat eval run {name} --traces traces.jsonl\n\
         or, over the traces of the store,\n  \
         karat eval add {name}\n  karat eval run {name} --stored\n",
        settings.shown(&cases)
    );
    printer.print(&text)?;
    Ok(ExitStatus::Success)
}

/// Returns the name without its `eval_`, if it is one.
fn plain_name(given: &str) -> Result<&str, Failure> {
    let name = given.strip_prefix("eval_").unwrap_or(given);
    if is_snake_case(name) && name.len() <= LONGEST_NAME {
        return Ok(name);
    }
    let failure = Failure::invalid(format!("'{given}' cannot be a function's name: it is in snake_case"));
    let near = snake_case(name);
    let near = near.strip_prefix("eval_").unwrap_or(&near);
    Err(if is_snake_case(near) && near.len() <= LONGEST_NAME && near != name {
        failure.hint(format!("did you mean '{near}'?"))
    } else {
        failure.hint("lower-case letters, digits and _, beginning with a letter, such as response_quality")
    })
}

fn is_snake_case(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

/// Returns what somebody may have meant: `ResponseQuality` and `response-quality.py` are `response_quality`.
fn snake_case(name: &str) -> String {
    let mut out = String::new();
    for character in name.strip_suffix(".py").unwrap_or(name).chars() {
        match character {
            '-' | ' ' | '.' | '_' => out.push('_'),
            'A'..='Z' => {
                if out.ends_with(|last: char| last.is_ascii_lowercase() || last.is_ascii_digit()) {
                    out.push('_');
                }
                out.push(character.to_ascii_lowercase());
            }
            other => out.push(other),
        }
    }
    out
}

/// Creates a file; one that appeared in the meantime is not overwritten.
fn write_new(path: &Path, text: &str, settings: &Settings) -> Result<(), Failure> {
    let write = || -> io::Result<()> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        OpenOptions::new().write(true).create_new(true).open(path)?.write_all(text.as_bytes())
    };
    write().map_err(|error| Failure::invalid(format!("cannot write {}: {error}", settings.shown(path))))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("tone", Ok("tone"))]
    #[case("eval_tone_2", Ok("tone_2"))]
    #[case("Response-Quality", Err("did you mean 'response_quality'?"))]
    #[case("EvalToneOfVoice.py", Err("did you mean 'tone_of_voice'?"))]
    #[case("../x", Err("lower-case letters, digits and _, beginning with a letter, such as response_quality"))]
    #[case("eval_", Err("lower-case letters, digits and _, beginning with a letter, such as response_quality"))]
    #[case("2nd", Err("lower-case letters, digits and _, beginning with a letter, such as response_quality"))]
    fn names(#[case] given: &str, #[case] expected: Result<&str, &str>) {
        let read = plain_name(given).map_err(|failure| failure.hints[0].clone());
        assert_eq!(read, expected.map_err(str::to_owned));
    }
}
