//! JSON Schemas of the formats that capabilities own.

use schemars::{Schema, schema_for};

/// Replies of a scripted agent.
pub fn agent_script() -> Schema {
    schema_for!(karat_agents::Script)
}

/// Replies of a scripted model.
pub fn model_script() -> Schema {
    schema_for!(karat_agents::ChatScript)
}

/// What a drafter is told about a tool.
pub fn forge_brief() -> Schema {
    schema_for!(karat_forge::BriefDocument)
}
