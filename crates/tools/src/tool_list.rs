//! The tool list of `karat tools`, with token costs.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use karat_cases::registry::{Gap, GapKind, Registry, Tool, ToolField, ToolLocation, Unknown};
use karat_core::tokenizer::Tokenizer;

/// All or selected tools.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "karat tools")]
pub struct ToolList {
    /// In source order.
    pub tools: Vec<ToolEntry>,
    /// Parts of the registry that could not be read and may contain more tools.
    pub gaps: Vec<GapEntry>,
    pub totals: ToolTotals,
    /// The tokenizer that tokens are counted with.
    pub tokenizer: Tokenizer,
}

/// A tool. A null field is absent, or listed in `unknown`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolEntry {
    pub name: String,
    pub version: Option<String>,
    pub description: Option<String>,
    /// First twelve hex digits of the description's SHA-256.
    pub description_hash: Option<String>,
    /// Tokens of the description, spent whenever the tool is offered to a model.
    pub description_tokens: Option<usize>,
    /// JSON Schema of the arguments; unknown parts allow everything.
    pub input_schema: Option<Value>,
    /// First twelve hex digits of the SHA-256 of the schema's canonical JSON.
    pub schema_hash: Option<String>,
    /// Tokens of the schema as compact JSON.
    pub schema_tokens: Option<usize>,
    /// Declared category.
    pub category: Option<String>,
    /// Whether the tool declares that a person must confirm calls.
    pub requires_confirmation: Option<bool>,
    /// Declared lifecycle status.
    pub status: Option<String>,
    /// Example requests for this tool.
    pub trigger_phrases: Vec<String>,
    /// Source location.
    #[serde(rename = "place")]
    pub location: Option<ToolLocation>,
    pub unknown: Vec<UnknownEntry>,
}

/// A field whose value is only known when the source is run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnknownEntry {
    pub field: ToolField,
    #[serde(rename = "place")]
    pub location: ToolLocation,
    #[serde(rename = "why")]
    pub reason: String,
}

/// A part of the registry that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GapEntry {
    pub kind: GapKind,
    #[serde(rename = "place")]
    pub location: ToolLocation,
    #[serde(rename = "what")]
    pub message: String,
}

/// Totals of the listed tools, as far as known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolTotals {
    pub tools: usize,
    pub description_tokens: usize,
    pub schema_tokens: usize,
}

impl ToolList {
    /// Lists the selected tools of a registry, and all its gaps.
    pub fn of(registry: &Registry, is_selected: impl Fn(&Tool) -> bool, tokenizer: Tokenizer) -> Self {
        let selected: Vec<&Tool> = registry.tools().iter().filter(|tool| is_selected(tool)).collect();
        let tools = list_tools(&selected, tokenizer);
        let sum = |tokens: fn(&ToolEntry) -> Option<usize>| tools.iter().filter_map(tokens).sum();
        let totals = ToolTotals {
            tools: tools.len(),
            description_tokens: sum(|tool| tool.description_tokens),
            schema_tokens: sum(|tool| tool.schema_tokens),
        };
        Self { tools, gaps: registry.gaps().iter().map(GapEntry::of).collect(), totals, tokenizer }
    }
}

fn list_tools(tools: &[&Tool], tokenizer: Tokenizer) -> Vec<ToolEntry> {
    tools.iter().map(|tool| ToolEntry::of(tool, tokenizer)).collect()
}

impl ToolEntry {
    fn of(tool: &Tool, tokenizer: Tokenizer) -> Self {
        Self {
            name: tool.name.clone(),
            version: tool.version.get().cloned(),
            description: tool.description.get().cloned(),
            description_hash: tool.description_hash(),
            description_tokens: tool.description.get().map(|text| tokenizer.count(text)),
            input_schema: tool.input_schema.get().cloned(),
            schema_hash: tool.schema_hash(),
            schema_tokens: tool.input_schema.get().map(|schema| tokenizer.count(&schema.to_string())),
            category: tool.category.get().cloned(),
            requires_confirmation: tool.requires_confirmation.get().copied(),
            status: tool.status.get().cloned(),
            trigger_phrases: tool.trigger_phrases().to_vec(),
            location: tool.location.clone(),
            unknown: tool.unknowns().map(UnknownEntry::of).collect(),
        }
    }

    /// Whether a field exists but its value is unknown.
    pub fn is_unknown(&self, field: ToolField) -> bool {
        self.unknown.iter().any(|unknown| unknown.field == field)
    }
}

impl UnknownEntry {
    fn of((field, unknown): (ToolField, &Unknown)) -> Self {
        Self { field, location: unknown.location.clone(), reason: unknown.reason.clone() }
    }
}

impl GapEntry {
    fn of(gap: &Gap) -> Self {
        Self { kind: gap.kind, location: gap.location.clone(), message: gap.message.clone() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use karat_cases::registry::Known;

    #[test]
    fn unknown_fields_are_not_counted() {
        let location = ToolLocation { source: "tools.ts".to_owned(), position: None };
        let unknown = Unknown { location, reason: "a call".to_owned() };
        let known = Tool {
            name: "known".to_owned(),
            description: Some("Says hello.".to_owned()).into(),
            input_schema: Some(json!({"type": "object"})).into(),
            ..Tool::default()
        };
        let partly = Tool { name: "partly".to_owned(), input_schema: Known::Unknown(unknown), ..known.clone() };
        let list = ToolList::of(&Registry::from_tools([known, partly]), |_| true, Tokenizer::O200kBase);
        let [known, partly] = &list.tools[..] else { panic!("two tools") };
        assert_eq!((known.description_tokens, known.schema_tokens), (Some(4), Some(5)));
        assert_eq!((partly.schema_hash.as_ref(), partly.schema_tokens), (None, None));
        assert!(partly.input_schema.is_none() && partly.is_unknown(ToolField::InputSchema));
        assert_eq!(list.totals, ToolTotals { tools: 2, description_tokens: 8, schema_tokens: 5 });
        let none = ToolList::of(&Registry::default(), |_| true, Tokenizer::O200kBase);
        assert_eq!(none.totals, ToolTotals::default());
    }
}
