//! The `agent` section.

use std::borrow::Cow;

use karat_agents::HttpConfig;
use karat_json::{Path, Problems};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};
use serde_json::Value;

/// The parsed `agent` section and its original JSON, since a preset has other defaults.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentSection {
    pub config: HttpConfig,
    pub source: Value,
}

impl AgentSection {
    pub(crate) fn read(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        Some(Self { config: HttpConfig::read(value, path, problems)?, source: value.clone() })
    }
}

impl Serialize for AgentSection {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.config.serialize(serializer)
    }
}

impl JsonSchema for AgentSection {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        HttpConfig::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<HttpConfig>()
    }
}
