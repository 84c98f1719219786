//! The tool lock: what the agent's tools were when somebody last looked, kept beside the eval files.
//!
//! It holds hashes and versions, no texts, so that it is short in a review and says at once that something changed.

mod diff;
mod effect;
mod read;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use karat_core::registry::{Registry, Tool, ToolField};

pub use diff::{FieldChange, LockDiff, NotComparable, Renamed, ToolChange};
pub use effect::{Effect, StaleFile, ToolsDiff, effects};

/// The only version of the format there is so far.
pub const LOCK_VERSION: u64 = 1;

/// The tools of an agent as they were at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(title = "karat tool lock")]
pub struct ToolsLock {
    /// Where this file's schema is, for editors.
    #[serde(rename = "$schema", skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// The version of this format.
    #[schemars(range(min = 1, max = 1))]
    pub lock_version: u64,
    /// The tools by their names.
    pub tools: BTreeMap<String, LockedTool>,
}

/// A tool as it was.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(extend("required" = ["descriptionHash", "schemaHash", "version"]))]
pub struct LockedTool {
    /// The first twelve hex digits of the description's SHA-256; null where there was none or it was unknown.
    #[schemars(regex(pattern = "^[0-9a-f]{12}$"))]
    pub description_hash: Option<String>,
    /// The same of the schema's canonical JSON.
    #[schemars(regex(pattern = "^[0-9a-f]{12}$"))]
    pub schema_hash: Option<String>,
    pub version: Option<String>,
    /// What was there but showed only when the source is run, so that it is compared with nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<LockedField>,
}

/// What of a tool is locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum LockedField {
    Description,
    InputSchema,
    Version,
}

impl LockedField {
    pub const ALL: [LockedField; 3] = [LockedField::Description, LockedField::InputSchema, LockedField::Version];

    /// Returns the name as the lock writes it.
    pub fn key(self) -> &'static str {
        match self {
            LockedField::Description => "description",
            LockedField::InputSchema => "inputSchema",
            LockedField::Version => "version",
        }
    }

    pub fn from_key(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|field| field.key() == key)
    }

    /// Returns the name as a sentence says it.
    pub fn name(self) -> &'static str {
        self.of_tool().name()
    }

    fn of_tool(self) -> ToolField {
        match self {
            LockedField::Description => ToolField::Description,
            LockedField::InputSchema => ToolField::InputSchema,
            LockedField::Version => ToolField::Version,
        }
    }
}

impl LockedTool {
    fn of(tool: &Tool) -> Self {
        let unknown: Vec<LockedField> =
            LockedField::ALL.into_iter().filter(|field| tool.unknown(field.of_tool()).is_some()).collect();
        Self {
            description_hash: tool.description_hash(),
            schema_hash: tool.schema_hash(),
            version: tool.version.get().cloned(),
            unknown,
        }
    }

    fn value(&self, field: LockedField) -> Option<&String> {
        match field {
            LockedField::Description => self.description_hash.as_ref(),
            LockedField::InputSchema => self.schema_hash.as_ref(),
            LockedField::Version => self.version.as_ref(),
        }
    }

    fn knows(&self, field: LockedField) -> bool {
        !self.unknown.contains(&field)
    }
}

impl ToolsLock {
    /// Makes the lock of a registry; whether the registry is whole is for the caller to ask.
    pub fn of(registry: &Registry) -> Self {
        let tools = registry.tools().iter().map(|tool| (tool.name.clone(), LockedTool::of(tool)));
        Self { schema: None, lock_version: LOCK_VERSION, tools: tools.collect() }
    }

    /// Keeps what was locked of what is unknown or hidden now, and returns of how many tools: to know less of a tool is
    /// no change of it.
    pub fn keep_hidden(&mut self, before: &Self, diff: &LockDiff) -> usize {
        let mut kept = 0;
        for hidden in &diff.not_comparable {
            let Some(old) = before.tools.get(&hidden.tool) else {
                continue;
            };
            let now = self.tools.get(&hidden.tool).cloned();
            let mut tool = now.clone().unwrap_or_else(|| old.clone());
            for &field in hidden.fields.iter().filter(|field| old.knows(**field)) {
                match field {
                    LockedField::Description => tool.description_hash.clone_from(&old.description_hash),
                    LockedField::InputSchema => tool.schema_hash.clone_from(&old.schema_hash),
                    LockedField::Version => tool.version.clone_from(&old.version),
                }
                tool.unknown.retain(|unknown| *unknown != field);
            }
            if now.as_ref() != Some(&tool) {
                kept += 1;
                self.tools.insert(hidden.tool.clone(), tool);
            }
        }
        kept
    }

    /// Returns the file's text: the same for the same tools.
    pub fn text(&self) -> Result<String, serde_json::Error> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// Tells whether both lock the same tools, wherever their schemas are.
    pub fn locks_the_same(&self, other: &Self) -> bool {
        self.tools == other.tools
    }
}

#[cfg(test)]
pub(crate) mod strategy {
    //! Locks of all kinds.

    use proptest::collection::{btree_map, btree_set};
    use proptest::option;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    fn locked_tool() -> impl Strategy<Value = LockedTool> {
        let hash = || option::of(select(vec!["0123456789ab", "ba9876543210"]).prop_map(str::to_owned));
        let version = option::of(select(vec!["1.0.0", "1.1.0", "2.0.0", "latest", ""]).prop_map(str::to_owned));
        let unknown = btree_set(select(LockedField::ALL.to_vec()), 0..3);
        (hash(), hash(), version, unknown).prop_map(|(description_hash, schema_hash, version, unknown)| {
            let known = |field| !unknown.contains(&field);
            LockedTool {
                description_hash: description_hash.filter(|_| known(LockedField::Description)),
                schema_hash: schema_hash.filter(|_| known(LockedField::InputSchema)),
                version: version.filter(|_| known(LockedField::Version)),
                unknown: unknown.into_iter().collect(),
            }
        })
    }

    pub(crate) fn lock() -> impl Strategy<Value = ToolsLock> {
        let name = prop_oneof![8 => "[ab][ab]?", 1 => ".{0,6}"];
        btree_map(name, locked_tool(), 0..6).prop_map(|tools| ToolsLock {
            schema: None,
            lock_version: LOCK_VERSION,
            tools,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use karat_core::registry::{Known, ToolPlace, Unknown};

    #[test]
    fn what_is_unknown_is_locked_as_such() {
        let place = ToolPlace { source: "tools.ts".to_owned(), position: None };
        let unknown = Unknown { place, why: "a call".to_owned() };
        let tools = [
            Tool { name: "b".to_owned(), description: Known::Unknown(unknown), ..Tool::default() },
            Tool {
                name: "a".to_owned(),
                description: Some("does it".to_owned()).into(),
                version: Some("1.0.0".to_owned()).into(),
                input_schema: Some(json!({"type": "object"})).into(),
                ..Tool::default()
            },
        ];
        let text = ToolsLock::of(&Registry::of(tools)).text().expect("JSON");
        insta::assert_snapshot!(text, @r#"
        {
          "lockVersion": 1,
          "tools": {
            "a": {
              "descriptionHash": "c3165c6305da",
              "schemaHash": "a2c799262a3c",
              "version": "1.0.0"
            },
            "b": {
              "descriptionHash": null,
              "schemaHash": null,
              "version": null,
              "unknown": [
                "description"
              ]
            }
          }
        }
        "#);
    }
}
