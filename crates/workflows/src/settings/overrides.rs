//! Flags and `KARAT_…` variables that override keys of `karat.json`.

use std::path::PathBuf;

use karat_core::redact::Redactor;
use karat_json::{Path, Problem, Problems, nearest, parse};
use serde_json::{Map, Value, json};

use super::config::{Config, Form};
use crate::error::Error;

/// Keys that exclude each other: a flag for one also overrides a variable for the other.
const EXCLUSIVE_KEYS: [[&str; 2]; 3] =
    [["agentEndpoint", "matrix"], ["baseline", "baselineRunId"], ["toolRegistry", "toolRegistryPath"]];

/// The values of flags, by configuration key.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    /// The configuration to read in place of the nearest `karat.json`.
    pub config: Option<PathBuf>,
    values: Vec<(&'static str, FlagValue)>,
    /// The values of `--set`, as `KEY=VALUE`. A flag of the key takes precedence.
    pub assignments: Vec<String>,
}

/// The value of a flag.
#[derive(Debug, Clone)]
pub enum FlagValue {
    /// In the text form of the key.
    Text(String),
    Value(Value),
}

impl Flags {
    /// Reads the flags of all keys. `get` returns the value of a flag by its name, which is the key in snake case.
    pub fn read(get: &dyn Fn(&str) -> Option<FlagValue>) -> Self {
        let keys = Config::KEYS.iter().map(|(key, _)| *key);
        let mut values: Vec<_> = keys.filter_map(|key| Some((key, get(&split_camel_case(key).join("_"))?))).collect();
        let text = |name: &str| match get(name) {
            Some(FlagValue::Text(text)) => Some(text),
            _ => None,
        };
        values.extend(text("snapshot_file").map(|file| ("snapshot", FlagValue::Value(json!({ "file": file })))));
        Self { config: text("config").map(PathBuf::from), values, assignments: Vec::new() }
    }

    /// Merges the flags with the variables; flags take precedence.
    pub(crate) fn merge_variables(
        &self,
        lookup: &dyn Fn(&str) -> Option<String>,
        redactor: &Redactor,
    ) -> Result<Config, Error> {
        let mut flags = Map::new();
        for assignment in &self.assignments {
            let (key, value) = parse_assignment(assignment)?;
            flags.insert(key.to_owned(), value);
        }
        for (key, value) in &self.values {
            let value = match value {
                FlagValue::Value(value) => value.clone(),
                FlagValue::Text(text) => parse_value(text, form_of(key), &flag_name(key))?,
            };
            flags.insert((*key).to_owned(), value);
        }
        let mut variables = read_variables(lookup)?;
        for keys in EXCLUSIVE_KEYS.iter().filter(|keys| keys.iter().any(|key| flags.contains_key(*key))) {
            for key in keys {
                variables.remove(*key);
            }
        }
        let mut all = validate(flags, flag_name, redactor)?;
        variables.retain(|key, _| !all.contains_key(key));
        all.extend(validate(variables, variable_name, redactor)?);
        // Cannot fail: flags and variables are valid.
        Ok(Config::read_value(&Value::Object(all), &Path::Root, &mut Problems::default()).unwrap_or_default())
    }
}

fn read_variables(lookup: &dyn Fn(&str) -> Option<String>) -> Result<Map<String, Value>, Error> {
    // CI systems set unused variables to an empty string.
    let get = |name: &str| lookup(name).filter(|value| !value.is_empty());
    let mut values = Map::new();
    for (key, form) in Config::KEYS.iter().filter(|(key, _)| *key != "$schema") {
        let name = variable_name(key);
        if let Some(text) = get(&name) {
            values.insert((*key).to_owned(), parse_value(&text, *form, &name)?);
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

/// Prefix of the variables that karat reads.
pub(crate) const VARIABLE_PREFIX: &str = "KARAT_";

/// The variables that are not named after a key.
const OTHER_VARIABLES: [&str; 4] = ["KARAT_CONFIG", "KARAT_GUEST", "KARAT_LOG", "KARAT_SNAPSHOT_FILE"];

/// Returns the known variable with the most similar name, if karat does not read this one. Variables without a similar
/// name may be for the agent.
pub(crate) fn suggested_variable(name: &str) -> Option<String> {
    let keys = Config::KEYS.iter().filter(|(key, _)| *key != "$schema").map(|(key, _)| variable_name(key));
    let known: Vec<String> = keys.chain(OTHER_VARIABLES.map(str::to_owned)).collect();
    if known.iter().any(|known| known == name) {
        return None;
    }
    // Compared without the prefix, which all of them share.
    let words: Vec<&str> = known.iter().filter_map(|known| known.strip_prefix(VARIABLE_PREFIX)).collect();
    let near = nearest(name.strip_prefix(VARIABLE_PREFIX)?, &words)?;
    Some(format!("{VARIABLE_PREFIX}{near}"))
}

fn form_of(key: &str) -> Form {
    Config::KEYS.iter().find(|(known, _)| *known == key).map_or(Form::Text, |(_, form)| *form)
}

/// Validates values. An error has the name of the flag or variable.
fn validate(
    values: Map<String, Value>,
    name: impl Fn(&str) -> String,
    redactor: &Redactor,
) -> Result<Map<String, Value>, Error> {
    values.iter().for_each(|(key, value)| redactor.add_secrets_in(key, value));
    let values = Value::Object(values);
    let mut problems = Problems::default();
    Config::read_value(&values, &Path::Root, &mut problems);
    match (problems.into_list().into_iter().next(), values) {
        (Some(problem), _) => Err(to_error(problem, name)),
        (None, Value::Object(values)) => Ok(values),
        (None, _) => Ok(Map::new()),
    }
}

fn to_error(problem: Problem, name: impl Fn(&str) -> String) -> Error {
    let pointer = problem.pointer.trim_start_matches('/');
    let (key, rest) = pointer.split_at(pointer.find('/').unwrap_or(pointer.len()));
    let name = name(key);
    let message = match problem.message.strip_prefix(&format!("'{key}'")) {
        Some(message) if rest.is_empty() => format!("{name}{message}"),
        // The message names the last key.
        _ if rest.matches('/').count() <= 1 => format!("{name}: {}", problem.message),
        _ => format!("{name} at {rest}: {}", problem.message),
    };
    let error = Error::invalid(message);
    match problem.help {
        Some(help) => error.hint(help),
        None => error,
    }
}

/// Parses `KEY=VALUE`. The value is JSON, or text as in the flag of the key.
fn parse_assignment(text: &str) -> Result<(&'static str, Value), Error> {
    let Some((name, value)) = text.split_once('=') else {
        return Err(Error::invalid(format!("invalid --set '{text}': expected KEY=JSON"))
            .hint("for example --set concurrency=2"));
    };
    let keys: Vec<&str> = Config::KEYS.iter().map(|(key, _)| *key).filter(|key| *key != "$schema").collect();
    let Some((key, form)) = Config::KEYS.iter().find(|(key, _)| *key == name && *key != "$schema") else {
        let error = Error::invalid(format!("unknown key '{name}' in --set"));
        return Err(match nearest(name, &keys) {
            Some(near) => error.hint(format!("did you mean '{near}'?")),
            None => error.hint("run 'karat schema config' to show the keys"),
        });
    };
    let has_form = |value: &Value| match form {
        Form::Text => value.is_string(),
        Form::Bool => value.is_boolean(),
        _ => true,
    };
    let json = parse(value).ok().filter(has_form);
    Ok((*key, json.map_or_else(|| parse_value(value, *form, &format!("--set {key}")), Ok)?))
}

/// Parses the text of a flag or variable.
fn parse_value(text: &str, form: Form, name: &str) -> Result<Value, Error> {
    let json = || {
        parse(text).map_err(|error| {
            let error = Error::invalid(format!("{name} is not valid JSON: {}", error.message));
            match json_of_pairs(text) {
                Some(json) => error.hint(format!("write it as JSON: '{json}'")),
                None => error,
            }
        })
    };
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

/// Converts `KEY=VALUE,KEY=VALUE` to a JSON object, if the values are numbers or booleans: a string may be a secret.
fn json_of_pairs(text: &str) -> Option<Value> {
    let member = |pair: &str| {
        let (key, value) = pair.split_once('=')?;
        let is_key = !key.trim().is_empty() && key.trim().chars().all(char::is_alphanumeric);
        let value = parse(value).ok().filter(|value| value.is_number() || value.is_boolean())?;
        is_key.then(|| (key.trim().to_owned(), value))
    };
    text.split(',').map(member).collect::<Option<Map<_, _>>>().map(Value::Object)
}

fn flag_name(key: &str) -> String {
    match key {
        // Named like in other commands.
        "concurrency" => "--jobs".to_owned(),
        _ => format!("--{}", split_camel_case(key).join("-")),
    }
}

fn variable_name(key: &str) -> String {
    format!("KARAT_{}", split_camel_case(key).join("_").to_uppercase())
}

/// Splits `camelCase` into lower-case words.
fn split_camel_case(key: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for letter in key.chars() {
        if letter.is_uppercase() {
            words.push(String::new());
        }
        words.last_mut().expect("words is not empty").extend(letter.to_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hint::Hint;

    fn merge(flags: &Flags, variables: &[(&str, &str)]) -> Result<Config, Error> {
        let lookup = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        flags.merge_variables(&lookup, &Redactor::default())
    }

    #[test]
    fn suggests_names_for_misspelt_variables() {
        assert_eq!(suggested_variable("KARAT_CONCURENCY").as_deref(), Some("KARAT_CONCURRENCY"));
        assert_eq!(suggested_variable("KARAT_CONCURRENCY"), None);
        assert_eq!(suggested_variable("KARAT_LOG"), None);
        assert_eq!(suggested_variable("KARAT_SHOP_TOKEN"), None);
    }

    #[test]
    fn assignments_set_any_key() {
        let set = |assignments: &[&str]| {
            let assignments = assignments.iter().map(|text| (*text).to_owned()).collect();
            merge(&Flags { assignments, ..Flags::default() }, &[("KARAT_CONCURRENCY", "9")])
        };
        let config = set(&["concurrency=2", "agentEndpoint=http://a=b", r#"gates={"passRate": 0.5}"#, "strict=1"])
            .expect("valid");
        assert_eq!((config.concurrency, config.agent_endpoint.as_deref()), (Some(2), Some("http://a=b")));
        assert_eq!(config.gates.and_then(|gates| gates.pass_rate), Some(0.5));
        let text = set(&[r#"baselineRunId="7""#]).expect("valid").baseline_run_id;
        assert_eq!(text.as_deref(), Some("7"));
        assert_eq!(set(&["baselineRunId=7"]).expect("valid").baseline_run_id.as_deref(), Some("7"));
        let error = set(&["concurency=2"]).expect_err("an unknown key");
        assert_eq!(error.message, "unknown key 'concurency' in --set");
        assert_eq!(error.hints, [Hint::from("did you mean 'concurrency'?")]);
        assert!(set(&["concurrency"]).expect_err("no value").message.contains("expected KEY=JSON"));
        assert!(set(&["concurrency=many"]).is_err());
    }

    fn flags_of(values: &[(&str, FlagValue)]) -> Flags {
        Flags::read(&|name| values.iter().find(|(flag, _)| *flag == name).map(|(_, value)| value.clone()))
    }

    #[test]
    fn a_flag_overrides_its_variable_and_exclusive_keys() {
        let flags =
            flags_of(&[("baseline", FlagValue::Text("file".to_owned())), ("concurrency", FlagValue::Value(json!(2)))]);
        let variables = [
            ("KARAT_BASELINE_RUN_ID", "x"),
            ("KARAT_CONCURRENCY", "9"),
            ("KARAT_STRICT", "1"),
            ("KARAT_TIMEOUT_MS", ""),
        ];
        let merged = merge(&flags, &variables).expect("valid");
        assert_eq!((merged.baseline_run_id, merged.concurrency), (None, Some(2)));
        assert_eq!((merged.strict, merged.timeout_ms), (Some(true), None));
    }

    #[test]
    fn rejects_invalid_variables() {
        let error = merge(&Flags::default(), &[("KARAT_STRICT", "maybe")]).expect_err("invalid boolean");
        assert_eq!(error.message, "KARAT_STRICT must be true or false, found 'maybe'");
        assert!(merge(&Flags::default(), &[("KARAT_CONCURRENCY", "many")]).is_err());
        assert!(merge(&Flags::default(), &[("KARAT_CONCURRENCY", "0")]).is_err());
        assert!(merge(&Flags::default(), &[("KARAT_REPLAY", "yes")]).is_err());
    }

    #[test]
    fn an_error_has_the_flag_and_the_json_pointer() {
        let flags = flags_of(&[("gates", FlagValue::Text("{\"passRate\": \"high\"}".to_owned()))]);
        let error = merge(&flags, &[]).expect_err("invalid rate");
        assert!(error.message.starts_with("--gates: 'passRate' must be "), "{}", error.message);
        let flags = flags_of(&[("gates", FlagValue::Text("{".to_owned()))]);
        let error = merge(&flags, &[]).expect_err("invalid JSON");
        assert!(error.message.starts_with("--gates is not valid JSON: "), "{}", error.message);
    }

    #[test]
    fn suggests_json_for_pairs() {
        let flags = flags_of(&[("gates", FlagValue::Text("passRate=0.9,maxRegressions=0".to_owned()))]);
        let error = merge(&flags, &[]).expect_err("not JSON");
        let hint = Hint::from(r#"write it as JSON: '{"passRate":0.9,"maxRegressions":0}'"#);
        assert_eq!(error.hints, [hint]);
        assert_eq!((json_of_pairs("{\"a\": 1"), json_of_pairs("key=s3cr3t")), (None, None));
    }

    #[test]
    fn accepts_a_model_name_without_json() {
        let merged = merge(&Flags::default(), &[("KARAT_JUDGE", "openai:x")]).expect("valid");
        assert_eq!(merged.judge.expect("a judge").model, "openai:x");
    }
}
