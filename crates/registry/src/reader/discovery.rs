//! Collects the tools that are found in sources.

use std::collections::{BTreeSet, HashMap, HashSet};

use karat_cases::registry::{Gap, GapKind, Known, Tool, ToolLocation, Unknown};
use serde_json::{Value, json};

use super::evaluate::{LocatedExpr, ResolvedValue, UnknownReason};
use super::project::{ModuleId, Project};
use super::syntax::{ClassId, Entry, Export, Expr, ImportedItem, Kind, Statement};
use super::text::{clean_doc, is_listed};
use super::uses::Handlers;
use super::values::Entries;

/// Keys of the schema of a tool's arguments.
pub(crate) const SCHEMA_KEYS: [&str; 18] = [
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
    "argsShape",
    "inputShape",
    "paramsShape",
    "inputs",
    "input",
    "args",
    "params",
];

/// The unambiguous [`SCHEMA_KEYS`].
pub(crate) const PLAIN_SCHEMA_KEYS: &[&str] = SCHEMA_KEYS.split_at(13).0;

/// Keys of the function of a tool.
pub(crate) const FUNCTION_KEYS: [&str; 12] =
    ["execute", "handler", "run", "func", "fn", "function", "invoke", "call", "callback", "cb", "coroutine", "handle"];

/// Identifies a definition by its module and offset.
pub(crate) type Origin = (ModuleId, u32);

pub(crate) struct FoundTool {
    pub(crate) tool: Tool,
    pub(crate) origin: Origin,
    /// Names in its module that lead to it: the function, the variable, or the enclosing definitions.
    pub(crate) symbols: Vec<String>,
    /// The definition inside the function whose call creates the tool.
    template: Option<Origin>,
}

/// The tools and gaps of some modules.
#[derive(Default)]
pub(crate) struct Discovery {
    pub(crate) tools: Vec<FoundTool>,
    pub(crate) gaps: Vec<(Origin, Gap)>,
    /// Gaps of code that may only forward tools: it has no literal definition.
    vague_gaps: Vec<(Origin, Gap)>,
    /// Definitions that were already read, as a tool or as a part of one.
    pub(crate) seen: HashSet<Origin>,
    /// Objects that look like tools but are not.
    pub(crate) ignored: HashSet<Origin>,
    /// Modules with definitions that have no name.
    pub(crate) unnamed_modules: BTreeSet<ModuleId>,
    /// Functions and classes that implement tools.
    pub(crate) handlers: Handlers,
    /// By definition: the module of the server that it is registered at on import.
    pub(crate) servers: HashMap<Origin, ModuleId>,
    /// Objects that are spread into tools, with the names of these tools.
    bases: Vec<(Origin, String)>,
    /// The call that creates the tool being read.
    pub(crate) call_site: Option<(Origin, ToolLocation)>,
}

/// A tool definition before it is added.
pub(crate) struct Candidate {
    pub(crate) origin: Origin,
    pub(crate) location: ToolLocation,
    pub(crate) name: Result<String, UnknownReason>,
    pub(crate) description: Known<String>,
    pub(crate) description_location: Option<ToolLocation>,
    pub(crate) schema: Known<Value>,
    pub(crate) symbols: Vec<String>,
}

impl Discovery {
    /// Adds a tool. Without a known name it becomes a gap.
    pub(crate) fn add(&mut self, mut candidate: Candidate, more: impl FnOnce(&mut Tool)) {
        let mut template = None;
        if let Some((origin, location)) = &self.call_site {
            template = Some(std::mem::replace(&mut candidate.origin, *origin));
            candidate.location = location.clone();
        }
        if candidate.name.as_ref().is_ok_and(String::is_empty) || !self.seen.insert(candidate.origin) {
            return;
        }
        let name = match candidate.name {
            Ok(name) => name,
            Err(_) if template.is_some() => return,
            Err(reason) => {
                let is_vague = candidate.description.get().is_none() && candidate.schema.get().is_none();
                let gaps = if is_vague { &mut self.vague_gaps } else { &mut self.gaps };
                gaps.push((candidate.origin, unnamed(reason)));
                return;
            }
        };
        let mut tool = Tool {
            name,
            description: candidate.description,
            input_schema: candidate.schema,
            location: Some(candidate.location),
            description_location: candidate.description_location,
            ..Tool::default()
        };
        more(&mut tool);
        self.tools.push(FoundTool { tool, origin: candidate.origin, symbols: candidate.symbols, template });
    }

    /// Adds a gap for a tool of which nothing is known.
    pub(crate) fn add_unnamed(&mut self, origin: Origin, reason: UnknownReason) {
        if self.seen.insert(origin) {
            self.gaps.push((origin, unnamed(reason)));
        }
    }

    /// Records the objects that are spread into a tool.
    pub(crate) fn add_bases(&mut self, entries: &Entries<'_>, name: &Result<String, UnknownReason>) {
        let Ok(name) = name else { return };
        self.bases.extend(entries.bases.iter().map(|base| (*base, name.clone())));
    }

    /// Removes objects that are spread into other tools: those with the same name, and those without another use.
    pub(crate) fn drop_bases(&mut self, project: &Project) {
        let is_base = |candidate: &&FoundTool| {
            self.bases.iter().any(|(base, name)| {
                let is_built = |other: &FoundTool| other.origin != *base && other.tool.name == *name;
                *base == candidate.origin
                    && self.tools.iter().any(is_built)
                    && (*name == candidate.tool.name || project.is_only_spread(candidate))
            })
        };
        let dropped: HashSet<Origin> = self.tools.iter().filter(is_base).map(|candidate| candidate.origin).collect();
        self.tools.retain(|candidate| !dropped.contains(&candidate.origin));
    }

    /// Chooses between definitions in functions and the calls of these functions: a definition that is fully known
    /// without a call is kept, others are replaced by what the calls create.
    pub(crate) fn resolve_templates(&mut self) {
        let is_whole = |candidate: &&FoundTool| candidate.tool.unknowns().next().is_none();
        let whole: HashSet<Origin> = self.tools.iter().filter(is_whole).map(|candidate| candidate.origin).collect();
        self.tools.retain(|candidate| candidate.template.is_none_or(|template| !whole.contains(&template)));
        let used: HashSet<Origin> = self.tools.iter().filter_map(|candidate| candidate.template).collect();
        self.tools.retain(|candidate| !used.contains(&candidate.origin));
        self.gaps.retain(|(origin, _)| !used.contains(origin));
        if self.tools.is_empty() && self.gaps.is_empty() {
            self.gaps.append(&mut self.vague_gaps);
        }
    }
}

fn unnamed(UnknownReason { location, reason }: UnknownReason) -> Gap {
    let message =
        format!("cannot determine the name of a tool: {reason}; export the tools with 'karat tools export-script'");
    Gap { kind: GapKind::Unknown, location, message }
}

impl From<UnknownReason> for Unknown {
    fn from(UnknownReason { location, reason }: UnknownReason) -> Self {
        Self { location, reason }
    }
}

impl Project {
    /// Creates a candidate from an expression.
    pub(crate) fn candidate<'p>(
        &'p self,
        located: &LocatedExpr<'p>,
        name: Result<String, UnknownReason>,
        description: Option<&LocatedExpr<'p>>,
        schema: Known<Value>,
        variable: Option<&str>,
    ) -> Candidate {
        let (description, description_location) = self.description(description);
        Candidate {
            origin: (located.module, located.expr.at),
            location: self.location(located),
            name,
            description,
            description_location,
            schema,
            symbols: self.symbols(located.module, located.scope, variable),
        }
    }

    /// Ignores the parameters that a tool lists with names and descriptions.
    pub(crate) fn ignore_parameters(&self, entries: &Entries<'_>, discovery: &mut Discovery) {
        let parameters = entries.any(&SCHEMA_KEYS).or_else(|| entries.get("arguments"));
        let items = parameters.and_then(|list| self.items(list)).unwrap_or_default();
        discovery
            .ignored
            .extend(items.iter().filter_map(|item| self.resolve_expr(item)).map(|item| (item.module, item.expr.at)));
    }

    /// Marks absent fields as unknown if the object may have more entries.
    pub(crate) fn mark_unknown_fields(
        &self,
        located: &LocatedExpr<'_>,
        entries: &Entries<'_>,
        candidate: &mut Candidate,
    ) {
        if !entries.is_open {
            return;
        }
        let unknown = || self.unknown_reason(located, "a part of the object is computed at run time").into();
        if candidate.description == Known::Absent {
            candidate.description = Known::Unknown(unknown());
        }
        if candidate.schema == Known::Absent {
            candidate.schema = Known::Unknown(unknown());
        }
    }

    /// Records the server of a registration that runs on import: `@mcp.tool()`, `server.tool(…)`.
    pub(crate) fn record_server(&self, origin: Origin, callee: &LocatedExpr<'_>, discovery: &mut Discovery) {
        let callee = callee.call().map_or_else(|| callee.clone(), |call| callee.with(&call.callee));
        if let (Kind::Member(server, _), 0) = (&callee.expr.kind, callee.scope)
            && let Some(server) = self.resolve_expr(&callee.with(server)).filter(|server| server.call().is_some())
        {
            discovery.servers.insert(origin, server.module);
        }
    }

    /// Creates a candidate from a class.
    pub(crate) fn class_candidate(
        &self,
        module: ModuleId,
        id: ClassId,
        name: Result<String, UnknownReason>,
        description: Option<ResolvedValue<'_>>,
        schema: Known<Value>,
    ) -> Candidate {
        let class = &self.module(module).classes[id];
        let (description, description_location) = match description {
            Some(ResolvedValue::Expr(text)) => self.description(Some(&text)),
            Some(ResolvedValue::Unknown(reason)) => (Known::Unknown(reason.into()), None),
            _ => match &class.docstring {
                Some(doc) => (Known::Known(clean_doc(&doc.text)), Some(self.module(module).location(doc.at))),
                None => (Known::Absent, None),
            },
        };
        Candidate {
            origin: (module, class.at),
            location: self.module(module).location(class.at),
            name,
            description,
            description_location,
            schema,
            symbols: self.symbols(module, class.scope, Some(&class.name)),
        }
    }

    /// Reads the name from a class field.
    pub(crate) fn class_name(&self, name: Option<ResolvedValue<'_>>) -> Option<Result<String, UnknownReason>> {
        match name? {
            ResolvedValue::Expr(name) => Some(self.text(&name)),
            ResolvedValue::Unknown(reason) => Some(Err(reason)),
            _ => None,
        }
    }

    /// Reads the schema from a class field.
    pub(crate) fn class_schema(&self, schema: Option<ResolvedValue<'_>>) -> Known<Value> {
        match schema {
            Some(ResolvedValue::Expr(schema)) => self.schema(Some(&schema)),
            Some(ResolvedValue::Class(module, class)) => Known::Known(self.model_schema(module, class)),
            Some(ResolvedValue::Unknown(reason)) => Known::Unknown(reason.into()),
            _ => Known::Absent,
        }
    }

    /// Reads a description, with its location.
    pub(crate) fn description<'p>(&'p self, text: Option<&LocatedExpr<'p>>) -> (Known<String>, Option<ToolLocation>) {
        match text {
            None => (Known::Absent, None),
            Some(located) => match self.text(located) {
                Ok(text) => (Known::Known(text), Some(self.location(located))),
                Err(reason) => (Known::Unknown(reason.into()), None),
            },
        }
    }

    pub(crate) fn schema<'p>(&'p self, schema: Option<&LocatedExpr<'p>>) -> Known<Value> {
        schema.map_or(Known::Absent, |schema| match self.parameters(schema) {
            Ok(schema) => Known::Known(schema),
            Err(reason) => Known::Unknown(reason.into()),
        })
    }

    /// Whether the variable of an object is only spread into other objects.
    fn is_only_spread(&self, candidate: &FoundTool) -> bool {
        let module = self.module(candidate.origin.0);
        let Some(variable) = candidate.symbols.first() else { return false };
        let count = |expr: &Expr| {
            let mut count = 0;
            expr.walk(&mut |inner| count += usize::from(matches!(&inner.kind, Kind::Name(name) if name == variable)));
            count
        };
        let (mut used, mut spread) = (0, 0);
        for expr in module.scopes.iter().flat_map(|scope| &scope.statements).flat_map(Statement::expressions) {
            used += count(expr);
            expr.walk(&mut |inner| {
                let Kind::Object(entries) = &inner.kind else { return };
                spread += entries
                    .iter()
                    .map(|entry| if let Entry::Spread(base) = entry { count(base) } else { 0 })
                    .sum::<usize>();
            });
        }
        let is_exported =
            module.exports.iter().any(|export| matches!(export, Export::Local { value, .. } if count(value) > 0));
        let is_imported = |statement: &Statement| matches!(statement, Statement::Import(import) if import.item == ImportedItem::Name(variable.clone()));
        let mut statements = self.modules.iter().flat_map(|module| &module.scopes).flat_map(|scope| &scope.statements);
        used == spread && !is_exported && !statements.any(is_imported)
    }

    /// Reads the fields that only karat's own format has.
    pub(crate) fn read_extra_fields(&self, entries: &Entries<'_>, tool: &mut Tool) {
        let text = |name: &str| match entries.get(name).map(|value| self.text(value)) {
            None => Known::Absent,
            Some(Ok(text)) => Known::Known(text),
            Some(Err(reason)) => Known::Unknown(reason.into()),
        };
        (tool.version, tool.category, tool.status) = (text("version"), text("category"), text("status"));
        if let Some(flag) = entries.get("requiresConfirmation") {
            let unknown = || Known::Unknown(self.unknown_reason(flag, "it is decided at run time").into());
            tool.requires_confirmation = self.boolean(flag).map_or_else(unknown, Known::Known);
        }
        if let Some(list) = entries.get("triggerPhrases") {
            let phrases = self.items(list).and_then(|phrases| {
                phrases.iter().map(|phrase| self.text(phrase).ok()).collect::<Option<Vec<String>>>()
            });
            let unknown = || Known::Unknown(self.unknown_reason(list, "the list is computed at run time").into());
            tool.trigger_phrases = phrases.map_or_else(unknown, Known::Known);
        }
    }
}

/// First words of names that use a tool instead of creating one.
const ACTION_WORDS: &str = "call run execute invoke use get list find has is remove handle format before after on test instrument \
    trace track log with require validate";

/// Whether a call of this name may create or register a tool, if its arguments describe one.
pub(crate) fn may_create_tool(name: &str) -> bool {
    let words = words(name);
    words.iter().any(|word| word == "tool") && !words.first().is_some_and(|word| is_listed(word, ACTION_WORDS))
}

/// Words in names that refer to a tool call rather than a tool.
const RUN_WORDS: &str = "call calls return result results use message output response event error exception";

/// Whether a variable or class of this name contains or is a tool.
pub(crate) fn mentions_tools(name: &str) -> bool {
    let words = words(name);
    words.iter().any(|word| word == "tool" || word == "tools") && !words.iter().any(|word| is_listed(word, RUN_WORDS))
}

/// Whether a function or class of this name creates a tool: `tool`, `createTool`, `function_tool`, `BaseTool`.
pub(crate) fn is_tool_constructor(name: &str) -> bool {
    may_create_tool(name) && ends_with_tool(name)
}

/// Whether the last word of a name is "tool".
pub(crate) fn ends_with_tool(name: &str) -> bool {
    words(name).last().is_some_and(|word| word == "tool")
}

/// Splits a camel-case or snake-case name into lower-case words.
pub(crate) fn words(name: &str) -> Vec<String> {
    let letters: Vec<char> = name.chars().collect();
    let mut words = vec![String::new()];
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| letters[before]);
        let is_last_capital = letters.get(at + 1).is_some_and(|next| next.is_lowercase());
        let begins = letter.is_uppercase() && before.is_some_and(|before| !before.is_uppercase() || is_last_capital);
        if begins || *letter == '_' {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut()
            && letter.is_alphanumeric()
        {
            word.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns the tool name that the OpenAI Agents SDK derives from the name of an agent or function.
pub(crate) fn sanitise_function_name(name: &str) -> String {
    name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect()
}

/// Returns the schema of an object with one string property.
pub(crate) fn single_string_schema(name: &str) -> Value {
    json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]})
}

/// Whether a string can be a tool's name.
pub(crate) fn is_tool_name(name: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || "_-./:".contains(letter);
    !name.is_empty() && name.len() <= 128 && name.chars().all(is_part) && !name.contains("://")
}
