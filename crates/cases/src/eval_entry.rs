//! Entries of `expect.evals`.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use karat_json::text::shorten;
use karat_json::{ObjectReader, Path, Problems, Subject, read_object_map, read_string, type_name};

/// The prefix of every eval function's name.
const FUNCTION_PREFIX: &str = "eval_";

/// A Python eval function that must pass, with the context that it receives.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EvalEntry {
    /// The function's full name.
    pub name: String,
    /// `context.params` of the function.
    pub params: Map<String, Value>,
    /// `context.reference` of the function.
    pub reference: Option<Value>,
}

impl EvalEntry {
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Whether the entry is only a name.
    fn is_name(&self) -> bool {
        self.params.is_empty() && self.reference.is_none()
    }

    /// Whether the function must take a context.
    pub fn needs_context(&self) -> bool {
        !self.is_name()
    }

    /// Returns the valid name in an entry.
    pub(super) fn name_in(value: &Value) -> Option<&str> {
        value.as_str().or_else(|| value.get("name")?.as_str()).filter(|name| is_function_name(name))
    }

    /// Reads a name, or an object; the caller checks that the function exists.
    pub(super) fn read(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        match value {
            Value::String(name) => check_name(name, path, problems).map(|()| Self::new(name)),
            Value::Object(_) => {
                let mut object = ObjectReader::open(value, path, problems)?;
                let name = object.required("name", path, problems, |value, path, problems| {
                    let name = read_string(value, path, problems)?;
                    check_name(&name, path, problems).map(|()| name)
                });
                let params = object.optional("params", path, problems, read_object_map).unwrap_or_default();
                let reference = object.raw("reference").cloned();
                object.close(path, problems);
                Some(Self { name: name?, params, reference })
            }
            other => {
                let found = type_name(other);
                let message = format!(
                    "{} must be the name of an eval function or an object with its 'name', found {found}",
                    path.name()
                );
                problems.at(path, message);
                None
            }
        }
    }
}

fn check_name(name: &str, path: &Path<'_>, problems: &mut Problems) -> Option<()> {
    if is_function_name(name) {
        return Some(());
    }
    let message = format!("{}: '{}' is not the name of an eval function", path.name(), shorten(name, 80));
    problems.push(path, Subject::Value, message, Some(name_hint(name)));
    None
}

fn is_function_name(name: &str) -> bool {
    let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_';
    name.strip_prefix(FUNCTION_PREFIX).is_some_and(|rest| !rest.is_empty() && rest.chars().all(is_letter))
}

/// Suggests a full name for a part of it or for the name of a file.
fn name_hint(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let stem = last.strip_suffix(".py").unwrap_or(last).replace('-', "_");
    let full_name = if stem.starts_with(FUNCTION_PREFIX) { stem } else { format!("{FUNCTION_PREFIX}{stem}") };
    if is_function_name(&full_name) {
        format!("did you mean '{}'?", shorten(&full_name, 80))
    } else {
        "use the name of the function, such as 'eval_tone'".to_owned()
    }
}

impl Serialize for EvalEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.is_name() {
            return serializer.serialize_str(&self.name);
        }
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &self.name)?;
        if !self.params.is_empty() {
            map.serialize_entry("params", &self.params)?;
        }
        if let Some(reference) = &self.reference {
            map.serialize_entry("reference", reference)?;
        }
        map.end()
    }
}

impl JsonSchema for EvalEntry {
    fn schema_name() -> Cow<'static, str> {
        "EvalEntry".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let name = json_schema!({
            "description": "The full name of the function.",
            "type": "string",
            "pattern": r"^eval_[\p{Alphabetic}\p{N}_]+$",
        });
        json_schema!({
            "description": "A Python eval function by name, or with the context that it receives.",
            "anyOf": [
                name,
                {
                    "type": "object",
                    "properties": {
                        "name": name,
                        "params": {
                            "description": "`context.params` of the function; tokens are resolved.",
                            "type": "object",
                        },
                        "reference": {
                            "description": "`context.reference` of the function: any value; tokens are resolved.",
                        },
                    },
                    "required": ["name"],
                    "additionalProperties": false,
                },
            ],
        })
    }
}
