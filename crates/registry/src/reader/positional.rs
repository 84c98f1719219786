//! Calls that define a tool by positional arguments: `server.tool("name", "description", { … }, handler)`.

use karat_cases::registry::Known;
use serde_json::{Value, json};

use super::discovery::{Discovery, PLAIN_SCHEMA_KEYS, SCHEMA_KEYS, is_tool_name, words};
use super::evaluate::{LocatedExpr, ResolvedValue};
use super::find_javascript::DESCRIPTION_KEYS;
use super::project::Project;
use super::syntax::Kind;
use super::text::is_listed;
use super::values::Entries;

/// Keys of an MCP tool's annotations, which may take the position of a schema.
const ANNOTATIONS: [&str; 5] = ["title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];

impl Project {
    /// Adds `server.tool("name", "description", { … }, handler)` and `server.registerTool("name", { … }, handler)`.
    pub(super) fn add_positional_tool<'p>(
        &'p self,
        located: &LocatedExpr<'p>,
        arguments: &[LocatedExpr<'p>],
        variable: Option<&str>,
        discovery: &mut Discovery,
    ) {
        let name = self.text(&arguments[0]);
        if arguments.len() < 2 || name.as_ref().is_ok_and(|name| !is_tool_name(name)) {
            return;
        }
        let callee = located.call().and_then(|call| call.callee.last_name()).unwrap_or_default();
        let Positional { description, mut schema, configuration, is_defined } =
            self.parse_positional_arguments(callee, &arguments[1..], discovery);
        if !is_defined && schema.get().is_none() {
            return;
        }
        // `registerTool("name", settings, handler)`: the settings have both description and schema.
        let unread = match (&schema, &description, &configuration) {
            (Known::Unknown(unknown), None, None) if callee != "tool" => Some(Known::Unknown(unknown.clone())),
            _ => None,
        };
        // Only a handler: the tool has no parameters.
        if schema == Known::Absent && configuration.as_ref().is_none_or(|entries| !entries.is_open) {
            schema = Known::Known(json!({"type": "object", "properties": {}}));
        }
        self.record_handlers(located, arguments.iter(), discovery);
        self.record_server((located.module, located.expr.at), located, discovery);
        let mut candidate = self.candidate(located, name, description.as_ref(), schema, variable);
        candidate.description = unread.unwrap_or(candidate.description);
        if let Some(entries) = &configuration {
            self.mark_unknown_fields(located, entries, &mut candidate);
        }
        discovery.add(candidate, |tool| {
            if let Some(entries) = &configuration {
                self.read_extra_fields(entries, tool);
            }
        });
    }

    /// Reads the arguments after the name: a description, a schema and a handler. They decide whether the call is a
    /// definition.
    fn parse_positional_arguments<'p>(
        &'p self,
        callee: &str,
        arguments: &[LocatedExpr<'p>],
        discovery: &mut Discovery,
    ) -> Positional<'p> {
        let has_handler = arguments.last().is_some_and(|last| {
            let is_literal = matches!(last.expr.kind, Kind::Bool(_) | Kind::Number(_) | Kind::Null | Kind::List(_));
            !is_literal && !self.is_text(last) && self.entries(last).is_none()
        });
        let is_defined = has_handler && is_registrar(callee);
        let mut positional = Positional { description: None, schema: Known::Absent, configuration: None, is_defined };
        let mut rest = arguments.iter().peekable();
        if let Some(text) = rest.peek().filter(|text| self.is_text(text)) {
            positional.description = Some((*text).clone());
            positional.is_defined |= has_handler || arguments.len() > 1;
            rest.next();
        }
        for argument in rest {
            let Some(entries) = self.entries(argument) else {
                // `Schema.shape`, a zod type, or a variable from elsewhere; functions are handlers.
                let is_handler = matches!(self.resolve(argument), ResolvedValue::Function(..));
                if !is_handler && positional.schema == Known::Absent && !self.is_handler_name(argument) {
                    positional.schema = self.schema(Some(argument));
                }
                continue;
            };
            if let Some(object) = self.resolve_expr(argument) {
                discovery.seen.insert((object.module, object.expr.at));
            }
            let is_configuration = entries.any(&DESCRIPTION_KEYS).is_some()
                || entries.any(&["inputSchema", "input_schema", "parameters", "schema", "outputSchema"]).is_some();
            let is_shape = !entries.list.is_empty() && entries.list.iter().all(|(.., value)| self.zod(value).is_some());
            let is_annotations =
                !entries.list.is_empty() && entries.list.iter().all(|(name, ..)| ANNOTATIONS.contains(&name.as_str()));
            positional.is_defined |=
                is_shape || is_configuration && (has_handler || entries.any(PLAIN_SCHEMA_KEYS).is_some());
            if is_configuration && !is_shape {
                if let Some(text) = entries.any(&DESCRIPTION_KEYS) {
                    positional.description = Some(text.clone());
                }
                if let Some(schema) = entries.any(&SCHEMA_KEYS) {
                    positional.schema = self.schema(Some(schema));
                }
                positional.configuration = Some(entries);
            } else if !is_annotations && positional.schema == Known::Absent {
                positional.schema = self.schema(Some(argument));
            }
        }
        positional
    }

    /// Whether an unknown variable is a handler rather than a schema, by its name.
    fn is_handler_name(&self, located: &LocatedExpr<'_>) -> bool {
        let name = located.expr.last_name().unwrap_or_default().to_lowercase();
        ["handler", "callback", "handle", "execute", "fn", "run"].iter().any(|word| name.contains(word))
            || matches!(&located.expr.kind, Kind::Call(_)) && self.zod(located).is_none() && !name.contains("schema")
    }
}

/// The arguments after the name in a call that defines a tool.
struct Positional<'p> {
    description: Option<LocatedExpr<'p>>,
    schema: Known<Value>,
    configuration: Option<Entries<'p>>,
    is_defined: bool,
}

/// Whether a call of this name registers a tool, regardless of its arguments: `tool`, `registerTool`, `addTool`.
fn is_registrar(name: &str) -> bool {
    let words = words(name);
    let (last, before) = words.split_last().map_or(("", [].as_slice()), |(last, before)| (last.as_str(), before));
    last == "tool"
        && before.iter().all(|word| is_listed(word, "register add define create make declare mcp app server"))
}
