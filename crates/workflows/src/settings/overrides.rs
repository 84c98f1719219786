//! Keys of `karat.json` that flags and `KARAT_…` variables set: every key has both.

use std::path::PathBuf;

use karat_core::redact::Redactor;
use karat_json::{Path, Problem, Problems, parse};
use serde_json::{Map, Value, json};

use super::config::{Config, Form};
use crate::error::Error;

/// Keys that mean the same thing: a flag for one also beats a variable for another.
const RIVALS: [[&str; 2]; 3] =
    [["agentEndpoint", "matrix"], ["baseline", "baselineRunId"], ["toolRegistry", "toolRegistryPath"]];

/// What flags say, by the keys of the configuration.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    /// The configuration to read in place of the nearest `karat.json`.
    pub config: Option<PathBuf>,
    values: Vec<(&'static str, FlagValue)>,
}

#[derive(Debug, Clone)]
enum FlagValue {
    /// In the form that the key has on the command line.
    Text(String),
    Value(Value),
}

impl Flags {
    /// Sets a key from the text of its flag.
    pub fn text(&mut self, key: &'static str, text: Option<&str>) {
        self.values.extend(text.map(|text| (key, FlagValue::Text(text.to_owned()))));
    }

    pub fn path(&mut self, key: &'static str, path: Option<&std::path::Path>) {
        self.text(key, path.map(|path| path.to_string_lossy()).as_deref());
    }

    /// Sets a key from a flag that clap has parsed.
    pub fn value(&mut self, key: &'static str, value: Option<impl Into<Value>>) {
        self.values.extend(value.map(|value| (key, FlagValue::Value(value.into()))));
    }

    /// Reads these flags, and under them the variables.
    pub(crate) fn over_variables(
        &self,
        lookup: &dyn Fn(&str) -> Option<String>,
        redactor: &Redactor,
    ) -> Result<Config, Error> {
        let mut flags = Map::new();
        for (key, value) in &self.values {
            let value = match value {
                FlagValue::Value(value) => value.clone(),
                FlagValue::Text(text) => value_of(text, form_of(key), &flag_name(key))?,
            };
            flags.insert((*key).to_owned(), value);
        }
        let mut variables = read_variables(lookup)?;
        for rivals in RIVALS.iter().filter(|rivals| rivals.iter().any(|key| flags.contains_key(*key))) {
            for key in rivals {
                variables.remove(*key);
            }
        }
        let mut all = read(flags, flag_name, redactor)?;
        variables.retain(|key, _| !all.contains_key(key));
        all.extend(read(variables, variable_name, redactor)?);
        // Each was read by itself, so that this reads too.
        Ok(Config::read_value(&Value::Object(all), &Path::Root, &mut Problems::default()).unwrap_or_default())
    }
}

fn read_variables(lookup: &dyn Fn(&str) -> Option<String>) -> Result<Map<String, Value>, Error> {
    // An empty variable is what build servers set for "none".
    let get = |name: &str| lookup(name).filter(|value| !value.is_empty());
    let mut values = Map::new();
    for (key, form) in Config::KEYS.iter().filter(|(key, _)| *key != "$schema") {
        let name = variable_name(key);
        if let Some(text) = get(&name) {
            values.insert((*key).to_owned(), value_of(&text, *form, &name)?);
        }
    }
    if let (Some(file), false) = (get("KARAT_SNAPSHOT_FILE"), values.contains_key("snapshot")) {
        values.insert("snapshot".to_owned(), json!({ "file": file }));
    }
    if values.contains_key("toolRegistry") && values.contains_key("toolRegistryPath") {
        return Err(Error::invalid("KARAT_TOOL_REGISTRY and KARAT_TOOL_REGISTRY_PATH are both set: keep one"));
    }
    Ok(values)
}

fn form_of(key: &str) -> Form {
    Config::KEYS.iter().find(|(known, _)| *known == key).map_or(Form::Text, |(_, form)| *form)
}

/// Checks values, and returns them; an error names the flag or the variable.
fn read(
    values: Map<String, Value>,
    name: impl Fn(&str) -> String,
    redactor: &Redactor,
) -> Result<Map<String, Value>, Error> {
    values.iter().for_each(|(key, value)| redactor.learn(key, value));
    let values = Value::Object(values);
    let mut problems = Problems::default();
    Config::read_value(&values, &Path::Root, &mut problems);
    match (problems.into_list().into_iter().next(), values) {
        (Some(problem), _) => Err(error_of(problem, name)),
        (None, Value::Object(values)) => Ok(values),
        (None, _) => Ok(Map::new()),
    }
}

fn error_of(problem: Problem, name: impl Fn(&str) -> String) -> Error {
    let pointer = problem.pointer.trim_start_matches('/');
    let (key, rest) = pointer.split_at(pointer.find('/').unwrap_or(pointer.len()));
    let name = name(key);
    let message = match problem.message.strip_prefix(&format!("'{key}'")) {
        Some(message) if rest.is_empty() => format!("{name}{message}"),
        _ => format!("{name}{rest}: {}", problem.message),
    };
    let error = Error::invalid(message);
    match problem.help {
        Some(help) => error.hint(help),
        None => error,
    }
}

/// Turns the text of a flag or a variable into a value.
fn value_of(text: &str, form: Form, name: &str) -> Result<Value, Error> {
    let json = || parse(text).map_err(|error| Error::invalid(format!("{name} is not JSON: {}", error.message)));
    match form {
        Form::Text => Ok(Value::from(text)),
        Form::Bool => match text {
            "true" | "1" => Ok(Value::Bool(true)),
            "false" | "0" => Ok(Value::Bool(false)),
            other => Err(Error::invalid(format!("{name} must be true or false, found '{other}'"))),
        },
        Form::Number => parse(text)
            .ok()
            .filter(Value::is_number)
            .ok_or_else(|| Error::invalid(format!("{name} must be a number, found '{text}'"))),
        Form::Json => json(),
        Form::Model if text.trim_start().starts_with('{') => json(),
        Form::Model => Ok(json!({ "model": text.trim() })),
        Form::List => Ok(text.split(',').map(|name| Value::from(name.trim())).collect()),
    }
}

fn flag_name(key: &str) -> String {
    format!("--{}", words(key).join("-"))
}

fn variable_name(key: &str) -> String {
    format!("KARAT_{}", words(key).join("_").to_uppercase())
}

/// Splits `camelCase` into its words, in small letters.
fn words(key: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for letter in key.chars() {
        if letter.is_uppercase() {
            words.push(String::new());
        }
        words.last_mut().expect("there is a word").extend(letter.to_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn over(flags: &Flags, variables: &[(&str, &str)]) -> Result<Config, Error> {
        let lookup = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        flags.over_variables(&lookup, &Redactor::default())
    }

    #[test]
    fn a_flag_wins_over_its_variable_and_over_its_rivals() {
        let mut flags = Flags::default();
        flags.text("baseline", Some("file"));
        flags.value("concurrency", Some(2));
        let variables = [
            ("KARAT_BASELINE_RUN_ID", "x"),
            ("KARAT_CONCURRENCY", "9"),
            ("KARAT_STRICT", "1"),
            ("KARAT_TIMEOUT_MS", ""),
        ];
        let merged = over(&flags, &variables).expect("valid");
        assert_eq!((merged.baseline_run_id, merged.concurrency), (None, Some(2)));
        assert_eq!((merged.strict, merged.timeout_ms), (Some(true), None));
    }

    #[test]
    fn an_invalid_variable_is_an_error() {
        let error = over(&Flags::default(), &[("KARAT_STRICT", "maybe")]).expect_err("no boolean");
        assert_eq!(error.message, "KARAT_STRICT must be true or false, found 'maybe'");
        assert!(over(&Flags::default(), &[("KARAT_CONCURRENCY", "many")]).is_err());
        assert!(over(&Flags::default(), &[("KARAT_CONCURRENCY", "0")]).is_err());
        assert!(over(&Flags::default(), &[("KARAT_REPLAY", "yes")]).is_err());
    }

    #[test]
    fn an_error_names_the_flag_and_the_place_in_its_json() {
        let mut flags = Flags::default();
        flags.text("gates", Some("{\"passRate\": \"high\"}"));
        let error = over(&flags, &[]).expect_err("a text is not a rate");
        assert!(error.message.starts_with("--gates/passRate: "), "{}", error.message);
        let mut flags = Flags::default();
        flags.text("gates", Some("{"));
        let error = over(&flags, &[]).expect_err("half a document");
        assert!(error.message.starts_with("--gates is not JSON: "), "{}", error.message);
    }

    #[test]
    fn a_model_may_be_named_alone() {
        let merged = over(&Flags::default(), &[("KARAT_JUDGE", "openai:x")]).expect("valid");
        assert_eq!(merged.judge.expect("a judge").model, "openai:x");
    }
}
