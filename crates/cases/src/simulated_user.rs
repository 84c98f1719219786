//! Simulated users: a model writes the messages of a conversation.

use karat_json::{ObjectReader, Path, Problems, read_object_map, read_positive_count, read_strings, type_name};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::Case;
use super::read::read_non_empty_string;

/// The user of a conversation, played by a model.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(transform = super::shape::simulated_user)]
pub struct SimulatedUser {
    /// What the user wants from the agent.
    #[schemars(regex(pattern = r"\S"))]
    pub goal: String,
    /// What the user knows: values by name, or sentences. The user mentions no other numbers, ids, dates and names than
    /// those of the goal, the facts and the agent's answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facts: Option<Facts>,
    /// Maximum number of the user's messages (default: 8).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_turns: Option<u64>,
    /// The model that plays the user, in place of `simulatedUser` of the configuration: `PROVIDER:MODEL`,
    /// `command:PROGRAM` or `scripted:FILE`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"\S"))]
    pub model: Option<String>,
}

/// What a simulated user knows.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Facts {
    Sentences(Vec<String>),
    Values(Map<String, Value>),
}

impl SimulatedUser {
    pub const DEFAULT_MAX_TURNS: u64 = 8;

    pub fn max_turns(&self) -> u64 {
        self.max_turns.unwrap_or(Self::DEFAULT_MAX_TURNS)
    }

    /// Returns what the messages depend on, as JSON.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    pub(super) fn read(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        let mut object = ObjectReader::open(value, path, problems)?;
        let goal = object.required("goal", path, problems, read_non_empty_string);
        let has_facts = object.raw("facts").is_some();
        let facts = object.optional("facts", path, problems, read_facts);
        let max_turns = object.optional("maxTurns", path, problems, read_positive_count);
        let model = object.optional("model", path, problems, read_non_empty_string);
        object.close(path, problems);
        (facts.is_some() == has_facts).then_some(())?;
        Some(Self { goal: goal?, facts, max_turns, model })
    }
}

fn read_facts(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Facts> {
    match value {
        Value::Array(_) => read_strings(value, path, problems).map(Facts::Sentences),
        Value::Object(_) => read_object_map(value, path, problems).map(Facts::Values),
        other => {
            problems.at(path, format!("'facts' must be an object or an array of strings, found {}", type_name(other)));
            None
        }
    }
}

impl Case {
    /// Returns everything that the user says by itself: the messages of the case, or the simulated user.
    pub fn script(&self) -> Value {
        match &self.user {
            Some(user) => user.to_value(),
            None => self.messages().map(Value::from).collect(),
        }
    }
}
