//! Creates an eval function with cases from a template. Never overwrites files.

use std::path::Path;

use karat_json::text::snake_case;
use karat_project::create_file;

use crate::context::Context;
use crate::error::Error;

const FUNCTION: &str = include_str!("starting_function.py");
const CASES: &str = include_str!("starting_cases.jsonl");

/// The name of the function in the template.
const PLACEHOLDER: &str = "eval_starting_function";

const MAX_NAME_LENGTH: usize = 80;

/// The files of a new eval function.
#[derive(Debug, PartialEq, Eq)]
pub struct NewEval {
    /// The name without `eval_`.
    pub name: String,
    pub function_file: String,
    /// Whether the function's file was written; false if it already exists.
    pub wrote_function: bool,
    pub cases_file: String,
}

/// Writes a function and its cases; only the cases if the function exists.
pub fn new_eval(name: &str, context: &Context<'_>) -> Result<NewEval, Error> {
    let name = parse_name(name)?;
    let settings = &context.settings;
    let folder = &settings.eval_functions.path;
    let function = folder.join(format!("{name}.py"));
    let cases = folder.join(format!("{name}.cases.jsonl"));
    // Broken links also count.
    let exists = |path: &Path| path.symlink_metadata().is_ok();
    let wrote_function = !exists(&function);
    if exists(&cases) {
        let display_path = settings.display_path(if wrote_function { &cases } else { &function });
        return Err(Error::invalid(format!("{display_path} already exists")));
    }
    let write = |path: &Path, text: &str| {
        create_file(path, text.as_bytes()).map_err(|error| Error::cannot_write(&settings.display_path(path), &error))
    };
    if wrote_function {
        write(&function, &FUNCTION.replace(PLACEHOLDER, &format!("eval_{name}")))?;
    }
    write(&cases, CASES)?;
    Ok(NewEval {
        name: name.to_owned(),
        function_file: settings.display_path(&function),
        wrote_function,
        cases_file: settings.display_path(&cases),
    })
}

/// Validates a name and strips `eval_`.
pub(crate) fn parse_name(input: &str) -> Result<&str, Error> {
    let name = input.strip_prefix("eval_").unwrap_or(input);
    if is_snake_case(name) && name.len() <= MAX_NAME_LENGTH {
        return Ok(name);
    }
    let error = Error::invalid(format!("invalid function name '{input}': expected snake_case"));
    let near = snake_case(name.strip_suffix(".py").unwrap_or(name));
    let near = near.strip_prefix("eval_").unwrap_or(&near);
    Err(if is_snake_case(near) && near.len() <= MAX_NAME_LENGTH && near != name {
        error.hint(format!("did you mean '{near}'?"))
    } else {
        error.hint("use lower-case letters, digits and _, starting with a letter, such as response_quality")
    })
}

fn is_snake_case(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::hint::Hint;

    const EXPECTED: &str = "use lower-case letters, digits and _, starting with a letter, such as response_quality";

    #[rstest]
    #[case("tone", Ok("tone"))]
    #[case("eval_tone_2", Ok("tone_2"))]
    #[case("Response-Quality", Err("did you mean 'response_quality'?"))]
    #[case("EvalToneOfVoice.py", Err("did you mean 'tone_of_voice'?"))]
    #[case("../x", Err(EXPECTED))]
    #[case("eval_", Err(EXPECTED))]
    #[case("2nd", Err(EXPECTED))]
    fn parses_names_and_suggests_valid_ones(#[case] input: &str, #[case] expected: Result<&str, &str>) {
        let parsed = parse_name(input).map_err(|error| error.hints[0].clone());
        assert_eq!(parsed, expected.map_err(Hint::from));
    }
}
