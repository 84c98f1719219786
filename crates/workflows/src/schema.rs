//! JSON Schemas of formats that other crates define.

use schemars::{Schema, schema_for};

/// Replies of a scripted agent.
pub fn agent_script() -> Schema {
    schema_for!(karat_agents::Script)
}

/// Replies of a scripted model.
pub fn model_script() -> Schema {
    schema_for!(karat_agents::ChatScript)
}

/// The brief that a drafter gets for a tool.
pub fn forge_brief() -> Schema {
    schema_for!(karat_forge::BriefDocument)
}
