//! The state of systems behind the agent, captured around a case.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The states that were captured before and after the messages of a case, by source.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CapturedStates {
    /// Only of the sources that `stateUnchanged` names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub before: BTreeMap<String, Value>,
    pub after: BTreeMap<String, Value>,
}

/// What changed in a state source, although `stateUnchanged` excludes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StateChanges {
    pub source: String,
    /// The first changes in the order of the document, at most five.
    pub changes: Vec<StateChange>,
    /// The number of all changes.
    pub total: usize,
}

/// A changed part of a state source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StateChange {
    /// A JSON pointer; empty for the whole state.
    pub pointer: String,
    /// The value as JSON text, or its size if it is long; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The same after the case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}
