//! A tool that was found, field by field.

use std::collections::HashSet;

use karat_core::registry::{Gap, GapKind, Known, Tool, ToolPlace, Unknown};
use serde_json::Value;

use super::evaluate::{Entries, Located, Why};
use super::project::{ModuleId, Project};

/// Keys under which the schema of a tool's arguments stands.
pub(crate) const SCHEMA_KEYS: [&str; 15] = [
    "inputSchema",
    "input_schema",
    "parameters",
    "schema",
    "args_schema",
    "argsSchema",
    "params_json_schema",
    "paramsSchema",
    "parametersSchema",
    "parameters_json_schema",
    "parametersJsonSchema",
    "inputs",
    "input",
    "args",
    "params",
];

/// Keys under which the function of a tool stands.
pub(crate) const FUNCTION_KEYS: [&str; 12] =
    ["execute", "handler", "run", "func", "fn", "function", "invoke", "call", "callback", "cb", "coroutine", "handle"];

/// What tells definitions apart: where each begins.
pub(crate) type Origin = (ModuleId, u32);

pub(crate) struct Found {
    pub(crate) tool: Tool,
    pub(crate) origin: Origin,
    /// Names of its module that lead to it: the function, the variable, or what encloses the definition.
    pub(crate) symbols: Vec<String>,
}

/// The tools and gaps of some modules.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) tools: Vec<Found>,
    pub(crate) gaps: Vec<(ModuleId, Gap)>,
    /// Definitions that were read, as a tool or as a part of one.
    pub(crate) seen: HashSet<Origin>,
}

/// What is known of a tool while it is read.
pub(crate) struct Draft {
    pub(crate) origin: Origin,
    pub(crate) place: ToolPlace,
    pub(crate) name: Result<String, Why>,
    pub(crate) description: Known<String>,
    pub(crate) description_place: Option<ToolPlace>,
    pub(crate) schema: Known<Value>,
    pub(crate) symbols: Vec<String>,
}

impl Findings {
    /// Adds a tool; one whose name is not known is a gap.
    pub(crate) fn add(&mut self, draft: Draft, more: impl FnOnce(&mut Tool)) {
        if !self.seen.insert(draft.origin) {
            return;
        }
        let name = match draft.name {
            Ok(name) => name,
            Err(Why { place, why }) => {
                let what = format!(
                    "the name of a tool is not known: {why}; an MCP server, a JSON export or 'toolRegistry.command' \
                     would give it"
                );
                self.gaps.push((draft.origin.0, Gap { kind: GapKind::Unknown, place, what }));
                return;
            }
        };
        let mut tool = Tool {
            name,
            description: draft.description,
            input_schema: draft.schema,
            place: Some(draft.place),
            description_place: draft.description_place,
            ..Tool::default()
        };
        more(&mut tool);
        self.tools.push(Found { tool, origin: draft.origin, symbols: draft.symbols });
    }
}

impl From<Why> for Unknown {
    fn from(Why { place, why }: Why) -> Self {
        Self { place, why }
    }
}

impl Project {
    /// Reads a description, with its place.
    pub(crate) fn description<'p>(&'p self, text: Option<&Located<'p>>) -> (Known<String>, Option<ToolPlace>) {
        match text {
            None => (Known::Absent, None),
            Some(located) => match self.text(located) {
                Ok(text) => (Known::Known(text), Some(self.place(located))),
                Err(why) => (Known::Unknown(why.into()), None),
            },
        }
    }

    pub(crate) fn schema<'p>(&'p self, schema: Option<&Located<'p>>) -> Known<Value> {
        schema.map_or(Known::Absent, |schema| match self.parameters(schema) {
            Ok(schema) => Known::Known(schema),
            Err(why) => Known::Unknown(why.into()),
        })
    }

    /// Reads the fields that only karat's own shape of a tool has.
    pub(crate) fn extras(&self, entries: &Entries<'_>, tool: &mut Tool) {
        let text = |name: &str| match entries.get(name).map(|value| self.text(value)) {
            None => Known::Absent,
            Some(Ok(text)) => Known::Known(text),
            Some(Err(why)) => Known::Unknown(why.into()),
        };
        (tool.version, tool.category, tool.status) = (text("version"), text("category"), text("status"));
        if let Some(flag) = entries.get("requiresConfirmation") {
            let unknown = || Known::Unknown(self.why(flag, "it is decided at run time").into());
            tool.requires_confirmation = self.boolean(flag).map_or_else(unknown, Known::Known);
        }
        if let Some(list) = entries.get("triggerPhrases") {
            let phrases = self.items(list).and_then(|phrases| {
                phrases.iter().map(|phrase| self.text(phrase).ok()).collect::<Option<Vec<String>>>()
            });
            let unknown = || Known::Unknown(self.why(list, "the list is made at run time").into());
            tool.trigger_phrases = phrases.map_or_else(unknown, Known::Known);
        }
    }
}

/// Tells whether a text can be a tool's name.
pub(crate) fn is_tool_name(name: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || "_-./:".contains(letter);
    !name.is_empty() && name.len() <= 128 && name.chars().all(is_part)
}
