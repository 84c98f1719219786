//! The tool lock: the agent's tools when last reviewed, stored next to the eval files.
//!
//! It contains hashes and versions only, so that a review is short and changes are detected quickly.

mod diff;
mod effect;
mod read;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use karat_cases::registry::{Registry, Tool, ToolField};

pub use diff::{FieldChange, IncomparableTool, LockDiff, RenamedTool, ToolChange};
pub use effect::{Effect, StaleFile, ToolsDiff, effects};

/// Version of the lock format.
pub const LOCK_VERSION: u64 = 1;

/// The tools of an agent at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(title = "karat tool lock")]
pub struct ToolsLock {
    /// JSON Schema of this file, for editors.
    #[serde(rename = "$schema", skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Version of this format.
    #[schemars(range(min = 1, max = 1))]
    pub lock_version: u64,
    /// Tools by name.
    pub tools: BTreeMap<String, LockedTool>,
}

/// A locked tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(extend("required" = ["descriptionHash", "schemaHash", "version"]))]
pub struct LockedTool {
    /// First twelve hex digits of the description's SHA-256; null if there was none or it was unknown.
    #[schemars(regex(pattern = "^[0-9a-f]{12}$"))]
    pub description_hash: Option<String>,
    /// First twelve hex digits of the SHA-256 of the schema's canonical JSON.
    #[schemars(regex(pattern = "^[0-9a-f]{12}$"))]
    pub schema_hash: Option<String>,
    pub version: Option<String>,
    /// Fields whose value was only known when the source is run; they are not compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<LockedField>,
}

/// A locked field of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum LockedField {
    Description,
    InputSchema,
    Version,
}

impl LockedField {
    pub const ALL: [LockedField; 3] = [LockedField::Description, LockedField::InputSchema, LockedField::Version];

    /// Returns the name in the lock file.
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

    /// Returns the name for messages.
    pub fn name(self) -> &'static str {
        self.tool_field().name()
    }

    fn tool_field(self) -> ToolField {
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
            LockedField::ALL.into_iter().filter(|field| tool.unknown(field.tool_field()).is_some()).collect();
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

    fn is_known(&self, field: LockedField) -> bool {
        !self.unknown.contains(&field)
    }
}

impl ToolsLock {
    /// Creates the lock of a registry. The caller checks that the registry is complete.
    pub fn of(registry: &Registry) -> Self {
        let tools = registry.tools().iter().map(|tool| (tool.name.clone(), LockedTool::of(tool)));
        Self { schema: None, lock_version: LOCK_VERSION, tools: tools.collect() }
    }

    /// Keeps the locked values of fields and tools that are unknown now, and returns the number of tools affected:
    /// knowing less of a tool is not a change of it.
    pub fn preserve_unknown(&mut self, before: &Self, diff: &LockDiff) -> usize {
        let mut preserved = 0;
        for hidden in &diff.not_comparable {
            let Some(old) = before.tools.get(&hidden.tool) else {
                continue;
            };
            let now = self.tools.get(&hidden.tool).cloned();
            let mut tool = now.clone().unwrap_or_else(|| old.clone());
            for &field in hidden.fields.iter().filter(|field| old.is_known(**field)) {
                match field {
                    LockedField::Description => tool.description_hash.clone_from(&old.description_hash),
                    LockedField::InputSchema => tool.schema_hash.clone_from(&old.schema_hash),
                    LockedField::Version => tool.version.clone_from(&old.version),
                }
                tool.unknown.retain(|unknown| *unknown != field);
            }
            if now.as_ref() != Some(&tool) {
                preserved += 1;
                self.tools.insert(hidden.tool.clone(), tool);
            }
        }
        preserved
    }

    /// Returns the file's text, which is deterministic.
    pub fn text(&self) -> Result<String, serde_json::Error> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// Whether both lock the same tools, ignoring `$schema`.
    pub fn has_same_tools(&self, other: &Self) -> bool {
        self.tools == other.tools
    }
}

#[cfg(test)]
pub(crate) mod strategy {
    //! Strategies for locks.

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
    use karat_cases::registry::{Known, ToolLocation, Unknown};

    #[test]
    fn locks_unknown_fields_as_unknown() {
        let location = ToolLocation { source: "tools.ts".to_owned(), position: None };
        let unknown = Unknown { location, reason: "a call".to_owned() };
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
        let text = ToolsLock::of(&Registry::from_tools(tools)).text().expect("JSON");
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
