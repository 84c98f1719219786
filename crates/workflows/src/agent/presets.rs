//! Shows the presets for agents of popular products.

use std::collections::BTreeMap;

pub use karat_agents::Reported;
use karat_agents::{Preset, PresetEndpoint};
use karat_json::nearest;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::error::Error;

/// The kinds of agents with a preset.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PresetList {
    pub presets: Vec<PresetSummary>,
}

/// A preset, and what karat reads from the replies of its product.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PresetSummary {
    pub kind: String,
    /// The product or protocol.
    pub product: String,
    pub description: String,
    /// A typical value of `agentEndpoint`.
    pub example: String,
    /// Whether replies report tool calls.
    pub calls: Reported,
    /// Whether replies report which calls failed.
    pub failures: Reported,
    /// Whether conversations with several turns are supported.
    pub turns: bool,
    /// Whether requests for approval can be answered.
    pub approvals: bool,
}

/// A preset as configuration.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PresetDetails {
    #[serde(flatten)]
    pub summary: PresetSummary,
    /// Parameters of the URL's query with their defaults; null if one is required.
    pub parameters: BTreeMap<String, Value>,
    /// The equivalent configuration for `karat.json`.
    pub config: PresetConfig,
}

/// The keys of `karat.json` that are equivalent to a preset.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PresetConfig {
    pub agent_endpoint: String,
    pub agent: Value,
}

/// Lists all presets.
pub fn list() -> PresetList {
    PresetList { presets: Preset::kinds().filter_map(Preset::by_name).map(|preset| summary(&preset)).collect() }
}

/// Shows the preset of `KIND` or `KIND:URL`.
pub fn show(name: &str) -> Result<PresetDetails, Error> {
    let (preset, url) = if let Some((preset, url)) = Preset::split(name) {
        (preset, url.to_owned())
    } else {
        let preset = Preset::by_name(name).ok_or_else(|| unknown(name))?;
        let url = preset.example.clone();
        (preset, url)
    };
    let endpoint = preset.endpoint(&url, &json!({})).map_err(|error| Error::invalid(error.to_string()))?;
    let PresetEndpoint { url, agent, .. } = endpoint;
    let config = PresetConfig { agent_endpoint: url, agent };
    Ok(PresetDetails { summary: summary(&preset), parameters: preset.parameters, config })
}

fn summary(preset: &Preset) -> PresetSummary {
    PresetSummary {
        kind: preset.kind.to_owned(),
        product: preset.product.clone(),
        description: preset.description.clone(),
        example: format!("{}:{}", preset.kind, preset.example),
        calls: preset.reads.calls,
        failures: preset.reads.failures,
        turns: true,
        approvals: preset.agent.get("resume").is_some(),
    }
}

fn unknown(name: &str) -> Error {
    let kinds: Vec<&str> = Preset::kinds().collect();
    let error = Error::not_found(format!("no preset named '{name}'"));
    match nearest(name, &kinds) {
        Some(near) => error.hint(format!("did you mean '{near}'?")),
        None => error.hint(format!("presets: {}", kinds.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use karat_agents::HttpConfig;
    use karat_json::{Path, Problems};

    use super::*;

    #[test]
    fn a_shown_preset_is_the_same_agent() {
        for kind in Preset::kinds() {
            let preset = Preset::by_name(kind).expect(kind);
            let expected = preset.endpoint(&preset.example, &json!({})).expect(kind);
            let shown = serde_json::to_value(show(kind).expect(kind)).expect("JSON");
            let mut problems = Problems::default();
            let config = HttpConfig::read(&shown["config"]["agent"], &Path::Root, &mut problems).expect(kind);
            assert!(problems.is_empty(), "{kind}");
            assert_eq!((config, &shown["config"]["agentEndpoint"]), (expected.config, &json!(expected.url)), "{kind}");
        }
    }

    #[test]
    fn shows_a_preset_for_a_url() {
        let shown = show("adk:http://host?app=shop").expect("valid");
        assert_eq!(shown.config.agent_endpoint, "http://host/");
        assert_eq!(shown.config.agent["request"]["body"]["appName"], "shop");
        assert_eq!(show("adk:http://host").expect_err("no app").message, "'adk' needs 'app': add ?app=NAME to the URL");
        assert_eq!(show("langraph").expect_err("unknown").message, "no preset named 'langraph'");
    }
}
