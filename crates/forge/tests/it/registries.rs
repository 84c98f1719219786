//! Registries of different sizes, and briefs of their first tool.

use karat_cases::registry::{Registry, Tool};
use karat_cases::token::TokenSources;
use karat_forge::{Brief, Overlap};
use serde_json::json;

/// The subjects of the tools, each with its object.
const SUBJECTS: [(&str, &str); 40] = [
    ("weather", "a city"),
    ("forecast", "the coming days"),
    ("climate", "a region over many years"),
    ("invoice", "a customer's last purchase"),
    ("order", "a shipment under way"),
    ("refund", "a returned parcel"),
    ("calendar", "a colleague's week"),
    ("meeting", "a project group"),
    ("flight", "an airline's schedule"),
    ("hotel", "a travel destination"),
    ("ticket", "the support desk"),
    ("portfolio", "an investor's account"),
    ("stock", "a listed company"),
    ("currency", "an exchange market"),
    ("contact", "the address book"),
    ("document", "the shared drive"),
    ("employee", "the personnel files"),
    ("vacation", "a staff member"),
    ("inventory", "a warehouse"),
    ("supplier", "the purchasing list"),
    ("campaign", "the marketing plan"),
    ("newsletter", "a subscriber group"),
    ("survey", "last month's visitors"),
    ("dashboard", "the operations room"),
    ("incident", "the on-call rotation"),
    ("deployment", "a release train"),
    ("repository", "a source code host"),
    ("backup", "a database server"),
    ("certificate", "a web domain"),
    ("firewall", "an office network"),
    ("recipe", "a seasonal menu"),
    ("restaurant", "a neighbourhood"),
    ("workout", "an athlete's routine"),
    ("prescription", "a patient's chart"),
    ("appointment", "a doctor's practice"),
    ("course", "a university term"),
    ("grade", "a student's transcript"),
    ("library", "a reading room"),
    ("museum", "an art collection"),
    ("concert", "a music festival"),
];

/// Returns a registry with this number of tools; the first is `get_weather`, which only reads.
pub(crate) fn registry(tools: usize) -> Registry {
    Registry::from_tools((0..tools).map(tool))
}

fn tool(index: usize) -> Tool {
    let (subject, of) = SUBJECTS[index % SUBJECTS.len()];
    let round = index / SUBJECTS.len();
    let (name, description, category) = match round {
        0 => (
            format!("get_{subject}"),
            format!(
                "Fetches the {subject} of {of}. Use when the user asks about the {subject} of {of}, or wants to see {subject} figures."
            ),
            "read",
        ),
        1 => (
            format!("update_{subject}"),
            format!("Changes the {subject} for {of}. Use when the user wants to modify their {subject}."),
            "write",
        ),
        _ => (
            format!("analyze_{subject}_{round}"),
            format!("Analyzes trends in {subject} data of {of}. Use when the user needs a {subject} trend."),
            "analysis",
        ),
    };
    let schema = json!({
        "type": "object",
        "properties": {
            format!("{subject}Id"): {"type": "string"},
            "unit": {"type": "string", "enum": ["metric", "imperial"], "default": "metric"},
            "limit": {"type": "integer", "default": 25},
        },
        "required": [format!("{subject}Id")],
    });
    Tool {
        name,
        description: Some(description).into(),
        category: Some(category.to_owned()).into(),
        input_schema: Some(schema).into(),
        trigger_phrases: Some(if index.is_multiple_of(3) {
            vec![format!("Show me the {subject} of {of}")]
        } else {
            Vec::new()
        })
        .into(),
        ..Tool::default()
    }
}

/// Returns the brief of the first tool, with this number of overlaps and, with enough tools, a cluster of four.
pub(crate) fn brief(tools: usize, overlaps: usize) -> Brief {
    let registry = registry(tools);
    let names: Vec<String> = registry.names().into_iter().map(str::to_owned).collect();
    let neighbours = names.iter().skip(1).take(overlaps);
    let clusters = if tools >= 4 { vec![names[..4].to_vec()] } else { Vec::new() };
    let triggers = ["What's the weather in Paris?", "Is it raining in Tokyo right now?", "Temperature in Lima please"];
    Brief {
        tool: registry.tools()[0].clone(),
        triggers: triggers.map(str::to_owned).to_vec(),
        overlaps: neighbours.map(|tool| Overlap { tool: tool.clone(), reasons: Vec::new() }).collect(),
        clusters,
        sources: TokenSources::default(),
        silenced: Vec::new(),
        golden: Vec::new(),
        labeled: Vec::new(),
        registry,
    }
}

/// Returns the brief of a tool that changes something.
pub(crate) fn write_brief(tools: usize) -> Brief {
    let mut brief = brief(tools, tools.saturating_sub(1).min(2));
    let cancel = Tool {
        name: "cancel_order".to_owned(),
        description: Some("Cancels an order. Use when the user wants to cancel their order.".to_owned()).into(),
        category: Some("write".to_owned()).into(),
        ..Tool::default()
    };
    let others = brief.registry.tools().iter().skip(1).cloned();
    brief.registry = Registry::from_tools(std::iter::once(cancel.clone()).chain(others));
    brief.clusters.clear();
    brief.tool = cancel;
    brief.triggers =
        ["Cancel my order 4711", "I want to call off my purchase", "Stop that shipment"].map(str::to_owned).to_vec();
    brief
}
