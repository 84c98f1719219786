//! Calls that define a tool by the order of their arguments: `server.tool("name", "description", { … }, handler)`.

use karat_core::registry::Known;
use serde_json::{Value, json};

use super::evaluate::{Located, Meaning};
use super::find_javascript::DESCRIPTION_KEYS;
use super::found::{Findings, PLAIN_SCHEMA_KEYS, SCHEMA_KEYS, is_tool_name, words};
use super::project::Project;
use super::syntax::Kind;
use super::text::is_listed;
use super::values::Entries;

/// Keys of an MCP tool's annotations, which stand where a shape may stand.
const ANNOTATIONS: [&str; 5] = ["title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];

impl Project {
    /// `server.tool("name", "description", { … }, handler)` and `server.registerTool("name", { … }, handler)`
    pub(super) fn positional_tool<'p>(
        &'p self,
        located: &Located<'p>,
        arguments: &[Located<'p>],
        variable: Option<&str>,
        findings: &mut Findings,
    ) {
        let name = self.text(&arguments[0]);
        if arguments.len() < 2 || name.as_ref().is_ok_and(|name| !is_tool_name(name)) {
            return;
        }
        let callee = located.call().and_then(|call| call.callee.last_name()).unwrap_or_default();
        let Positional { description, mut schema, configuration, is_defined } =
            self.positional_arguments(callee, &arguments[1..], findings);
        if !is_defined && schema.get().is_none() {
            return;
        }
        // `registerTool("name", settings, handler)`: the settings say both.
        let unread = match (&schema, &description, &configuration) {
            (Known::Unknown(unknown), None, None) if callee != "tool" => Some(Known::Unknown(unknown.clone())),
            _ => None,
        };
        // Without parameters the handler is all that is left.
        if schema == Known::Absent && configuration.as_ref().is_none_or(|entries| !entries.is_open) {
            schema = Known::Known(json!({"type": "object", "properties": {}}));
        }
        self.note_handlers(located, arguments.iter(), findings);
        self.note_server((located.module, located.expr.at), located, findings);
        let mut draft = self.draft(located, name, description.as_ref(), schema, variable);
        draft.description = unread.unwrap_or(draft.description);
        if let Some(entries) = &configuration {
            self.leave_open(located, entries, &mut draft);
        }
        findings.add(draft, |tool| {
            if let Some(entries) = &configuration {
                self.extras(entries, tool);
            }
        });
    }

    /// Reads what follows the name of a tool, which says whether this is a definition: a description, a schema and a
    /// handler.
    fn positional_arguments<'p>(
        &'p self,
        callee: &str,
        arguments: &[Located<'p>],
        findings: &mut Findings,
    ) -> Positional<'p> {
        let has_handler = arguments.last().is_some_and(|last| {
            let is_literal = matches!(last.expr.kind, Kind::Bool(_) | Kind::Number(_) | Kind::Null | Kind::List(_));
            !is_literal && !self.is_text(last) && self.entries(last).is_none()
        });
        let is_defined = has_handler && is_registrar(callee);
        let mut given = Positional { description: None, schema: Known::Absent, configuration: None, is_defined };
        let mut rest = arguments.iter().peekable();
        if let Some(text) = rest.peek().filter(|text| self.is_text(text)) {
            given.description = Some((*text).clone());
            given.is_defined |= has_handler || arguments.len() > 1;
            rest.next();
        }
        for argument in rest {
            let Some(entries) = self.entries(argument) else {
                // `Schema.shape`, a zod type, or a variable from elsewhere; functions are handlers.
                let is_handler = matches!(self.meaning(argument), Meaning::Function(..));
                if !is_handler && given.schema == Known::Absent && !self.is_handler_name(argument) {
                    given.schema = self.schema(Some(argument));
                }
                continue;
            };
            if let Some(object) = self.resolve(argument) {
                findings.seen.insert((object.module, object.expr.at));
            }
            let is_configuration = entries.any(&DESCRIPTION_KEYS).is_some()
                || entries.any(&["inputSchema", "input_schema", "parameters", "schema", "outputSchema"]).is_some();
            let is_shape = !entries.list.is_empty() && entries.list.iter().all(|(.., value)| self.zod(value).is_some());
            let is_annotations =
                !entries.list.is_empty() && entries.list.iter().all(|(name, ..)| ANNOTATIONS.contains(&name.as_str()));
            given.is_defined |=
                is_shape || is_configuration && (has_handler || entries.any(PLAIN_SCHEMA_KEYS).is_some());
            if is_configuration && !is_shape {
                if let Some(text) = entries.any(&DESCRIPTION_KEYS) {
                    given.description = Some(text.clone());
                }
                if let Some(schema) = entries.any(&SCHEMA_KEYS) {
                    given.schema = self.schema(Some(schema));
                }
                given.configuration = Some(entries);
            } else if !is_annotations && given.schema == Known::Absent {
                given.schema = self.schema(Some(argument));
            }
        }
        given
    }

    /// Tells whether a variable that is not known is a handler rather than a schema, by its name.
    fn is_handler_name(&self, located: &Located<'_>) -> bool {
        let name = located.expr.last_name().unwrap_or_default().to_lowercase();
        ["handler", "callback", "handle", "execute", "fn", "run"].iter().any(|word| name.contains(word))
            || matches!(&located.expr.kind, Kind::Call(_)) && self.zod(located).is_none() && !name.contains("schema")
    }
}

/// What stands after the name in a call that defines a tool.
struct Positional<'p> {
    description: Option<Located<'p>>,
    schema: Known<Value>,
    configuration: Option<Entries<'p>>,
    is_defined: bool,
}

/// Tells whether a call of this name registers a tool, whatever its arguments are: `tool`, `registerTool`, `addTool`.
fn is_registrar(name: &str) -> bool {
    let words = words(name);
    let (last, before) = words.split_last().map_or(("", [].as_slice()), |(last, before)| (last.as_str(), before));
    last == "tool"
        && before.iter().all(|word| is_listed(word, "register add define create make declare mcp app server"))
}
