//! Suggestions for misspelt verbs.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};
use karat_json::nearest;

/// Suggests the nearest verb in the error for an unknown one. clap itself prefers verbs with the same prefix.
pub(crate) fn suggest_verb(mut error: Error, root: &Command, arguments: &[String]) -> Error {
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidSubcommand) else { return error };
    if error.kind() == ErrorKind::InvalidSubcommand
        && let Some(verb) = nearest_verb(unknown, root, arguments)
    {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![verb]));
    }
    error
}

/// Improves the tips for an unknown flag: no flag is a value, and other programs have a flag for each output format.
pub(crate) fn suggest_flag(mut error: Error) -> Error {
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    let format = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(flag)) if flag.starts_with("--") => match flag.as_str() {
            "--json" => Some("--format json"),
            "--jsonl" => Some("--format jsonl"),
            _ => None,
        },
        _ => return error,
    };
    error.remove(ContextKind::Suggested);
    if let Some(format) = format {
        error.insert(ContextKind::SuggestedArg, ContextValue::String(format.to_owned()));
    }
    error
}

/// Returns the verb nearest to an unknown word, among the verbs of its parent.
fn nearest_verb(unknown: &str, root: &Command, arguments: &[String]) -> Option<String> {
    let mut parent = root;
    for argument in arguments {
        if argument == unknown {
            break;
        }
        parent = parent.find_subcommand(argument).unwrap_or(parent);
    }
    let verbs: Vec<&str> = parent.get_subcommands().filter(|verb| !verb.is_hide_set()).map(Command::get_name).collect();
    nearest(unknown, &verbs).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};
    use rstest::rstest;

    use super::*;
    use crate::args::Cli;

    #[rstest]
    #[case(&["eval", "run", "a.py", "--jsonl"], Some("'--format jsonl'"))]
    #[case(&["check", "--json"], Some("'--format json'"))]
    #[case(&["run", "--quite"], Some("'--quiet'"))]
    #[case(&["run", "--xyzzy"], None)]
    fn an_unknown_flag_is_not_suggested_as_a_value(#[case] arguments: &[&str], #[case] expected: Option<&str>) {
        let error = Cli::try_parse_from(["karat"].iter().chain(arguments)).expect_err("an unknown flag");
        let text = suggest_flag(error).to_string();
        assert!(!text.contains("'-- "), "{text}");
        match expected {
            Some(flag) => assert!(text.contains(flag), "{text}"),
            None => assert!(!text.contains("tip: "), "{text}"),
        }
    }

    #[rstest]
    #[case(&["rnu"], Some("run"))]
    #[case(&["--quiet", "chekc"], Some("check"))]
    #[case(&["eval", "rnu"], Some("run"))]
    #[case(&["trace", "lsit"], Some("list"))]
    #[case(&["feedback", "ad", "t1", "good"], Some("add"))]
    #[case(&["xyzzyxyzzy"], None)]
    fn suggests_the_nearest_verb(#[case] arguments: &[&str], #[case] expected: Option<&str>) {
        let error = Cli::try_parse_from(["karat"].iter().chain(arguments)).expect_err("an unknown verb");
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let text = suggest_verb(error, &Cli::command(), &arguments).to_string();
        match expected {
            Some(verb) => assert!(text.contains(&format!("'{verb}'")) && text.contains("tip: "), "{text}"),
            None => assert!(!text.contains("tip: "), "{text}"),
        }
    }
}
