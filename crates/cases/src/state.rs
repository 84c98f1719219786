//! Expectations on the state of systems behind the agent.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Number, Value};

use super::expectation::is_false;
use super::read_predicate::Condition;
use super::{Case, Expectation, ParamCheck};
use karat_json::{ObjectReader, Path, Problems, Subject, read_array, read_pointer, read_string};

/// A condition on a part of a state source after the case. Types count: `5` is not `"5"`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(transform = super::shape::state_predicate)]
pub struct StatePredicate {
    /// The name of a source in `stateSources` of the configuration.
    pub source: String,
    /// A JSON pointer to the part to check (default: the whole state). One that leads nowhere is an absent value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    pub assertion: ParamCheck,
    /// The expected value; an array for `oneOf`, a pattern for `matches`, a number for `closeTo`, `lessThan`, `atMost`,
    /// `greaterThan`, `atLeast` and `hasLength`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// The maximum distance from `value` for `closeTo`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<Number>,
    /// Whether an absent value passes.
    #[serde(default, skip_serializing_if = "is_false")]
    pub optional: bool,
}

/// A state source that must be the same before and after the case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(transform = super::shape::unchanged_state)]
pub struct UnchangedState {
    /// The name of a source in `stateSources` of the configuration.
    pub source: String,
    /// JSON pointers of the parts that may change, with everything below them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<String>,
}

/// The keys of `expect` that are judged after the whole case only.
const STATE_KEYS: [&str; 2] = ["state", "stateUnchanged"];

impl Expectation {
    /// Returns the names of the state sources, with the locations of the entries below `expect`; a name may repeat.
    pub fn state_sources(&self) -> impl Iterator<Item = (String, &str)> {
        let state = self.state.iter().flatten().enumerate();
        let state = state.map(|(index, entry)| (format!("/state/{index}"), entry.source.as_str()));
        let unchanged = self.state_unchanged.iter().flatten().enumerate();
        state.chain(unchanged.map(|(index, entry)| (format!("/stateUnchanged/{index}"), entry.source.as_str())))
    }
}

impl Case {
    /// Whether the case names a state source.
    pub fn has_state(&self) -> bool {
        self.state_sources().next().is_some()
    }

    /// Returns the names of the state sources of the case; a name may repeat.
    pub fn state_sources(&self) -> impl Iterator<Item = &str> {
        self.final_expectations().flat_map(|expect| expect.state_sources().map(|(_, name)| name))
    }
}

pub(super) fn read_state(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Vec<StatePredicate>> {
    read_array(value, path, problems, |value, path, problems| {
        let mut object = ObjectReader::open(value, path, problems)?;
        let source = object.required("source", path, problems, read_source);
        let condition = Condition::read(&mut object, path, problems);
        object.close(path, problems);
        let (source, condition) = (source?, condition?);
        let Condition { assertion, path, value, tolerance, optional } = condition;
        Some(StatePredicate { source, path, assertion, value, tolerance, optional })
    })
}

pub(super) fn read_state_unchanged(
    value: &Value,
    path: &Path<'_>,
    problems: &mut Problems,
) -> Option<Vec<UnchangedState>> {
    read_array(value, path, problems, |value, path, problems| {
        let mut object = ObjectReader::open(value, path, problems)?;
        let source = object.required("source", path, problems, read_source);
        let except = object.optional("except", path, problems, |value, path, problems| {
            read_array(value, path, problems, read_pointer)
        });
        object.close(path, problems);
        Some(UnchangedState { source: source?, except: except.unwrap_or_default() })
    })
}

/// Rejects expectations on state in the `expect` of a turn.
pub(super) fn reject_state_of_turn(expect: &Value, path: &Path<'_>, problems: &mut Problems) {
    for key in STATE_KEYS.into_iter().filter(|key| expect.get(key).is_some()) {
        let message = format!("'{key}' does not belong in the 'expect' of a turn: state is captured after the case");
        let help = format!("move '{key}' to the 'expect' of the case");
        problems.push(&path.key(key), Subject::Key, message, Some(help));
    }
}

fn read_source(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<String> {
    let source = read_string(value, path, problems)?;
    if source.is_empty() {
        problems.at(path, "'source' is empty: it must be the name of a source in 'stateSources'");
        return None;
    }
    Some(source)
}
