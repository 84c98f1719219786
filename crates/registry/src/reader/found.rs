//! A tool that was found, field by field.

use std::collections::{BTreeSet, HashMap, HashSet};

use karat_core::registry::{Gap, GapKind, Known, Tool, ToolPlace, Unknown};
use serde_json::{Value, json};

use super::evaluate::{Located, Meaning, Why};
use super::project::{ModuleId, Project};
use super::syntax::{ClassId, Entry, Export, Expr, Imported, Kind, Statement};
use super::text::{clean_doc, is_listed};
use super::uses::Handlers;
use super::values::Entries;

/// Keys under which the schema of a tool's arguments stands.
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

/// The keys of these that say by themselves that a schema follows.
pub(crate) const PLAIN_SCHEMA_KEYS: &[&str] = SCHEMA_KEYS.split_at(13).0;

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
    /// Where the function defines it whose call makes it.
    template: Option<Origin>,
}

/// The tools and gaps of some modules.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) tools: Vec<Found>,
    pub(crate) gaps: Vec<(Origin, Gap)>,
    /// Gaps of what may only pass tools on: nothing is written down there.
    vague_gaps: Vec<(Origin, Gap)>,
    /// Definitions that were read, as a tool or as a part of one.
    pub(crate) seen: HashSet<Origin>,
    /// Objects that are no tools, whatever they say.
    pub(crate) passed_over: HashSet<Origin>,
    /// Modules with definitions that have no name of their own.
    pub(crate) nameless: BTreeSet<ModuleId>,
    /// What runs as a tool.
    pub(crate) handlers: Handlers,
    /// By definition: the module whose server gets it as soon as its own module is loaded.
    pub(crate) servers: HashMap<Origin, ModuleId>,
    /// Objects that tools of these names are built on.
    bases: Vec<(Origin, String)>,
    /// The call of a function that makes what is being read.
    pub(crate) call_site: Option<(Origin, ToolPlace)>,
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
    pub(crate) fn add(&mut self, mut draft: Draft, more: impl FnOnce(&mut Tool)) {
        let mut template = None;
        if let Some((origin, place)) = &self.call_site {
            template = Some(std::mem::replace(&mut draft.origin, *origin));
            draft.place = place.clone();
        }
        if draft.name.as_ref().is_ok_and(String::is_empty) || !self.seen.insert(draft.origin) {
            return;
        }
        let name = match draft.name {
            Ok(name) => name,
            Err(_) if template.is_some() => return,
            Err(why) => {
                let is_vague = draft.description.get().is_none() && draft.schema.get().is_none();
                let gaps = if is_vague { &mut self.vague_gaps } else { &mut self.gaps };
                gaps.push((draft.origin, unnamed(why)));
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
        self.tools.push(Found { tool, origin: draft.origin, symbols: draft.symbols, template });
    }

    /// Adds a tool of which nothing is known.
    pub(crate) fn add_unnamed(&mut self, origin: Origin, why: Why) {
        if self.seen.insert(origin) {
            self.gaps.push((origin, unnamed(why)));
        }
    }

    /// Notes which objects a tool of this name is built on.
    pub(crate) fn add_bases(&mut self, entries: &Entries<'_>, name: &Result<String, Why>) {
        let Ok(name) = name else { return };
        self.bases.extend(entries.bases.iter().map(|base| (*base, name.clone())));
    }

    /// Leaves out objects that other tools are built on: those of the same name, and those that serve for nothing else.
    pub(crate) fn drop_bases(&mut self, project: &Project) {
        let is_base = |found: &&Found| {
            self.bases.iter().any(|(base, name)| {
                let is_built = |other: &Found| other.origin != *base && other.tool.name == *name;
                *base == found.origin
                    && self.tools.iter().any(is_built)
                    && (*name == found.tool.name || project.is_only_spread(found))
            })
        };
        let dropped: HashSet<Origin> = self.tools.iter().filter(is_base).map(|found| found.origin).collect();
        self.tools.retain(|found| !dropped.contains(&found.origin));
    }

    /// Decides between definitions in functions and the calls of these functions: a definition that is known without a
    /// call stands for itself, and the others are what the calls make of them.
    pub(crate) fn settle(&mut self) {
        let is_whole = |found: &&Found| found.tool.unknowns().next().is_none();
        let whole: HashSet<Origin> = self.tools.iter().filter(is_whole).map(|found| found.origin).collect();
        self.tools.retain(|found| found.template.is_none_or(|template| !whole.contains(&template)));
        let used: HashSet<Origin> = self.tools.iter().filter_map(|found| found.template).collect();
        self.tools.retain(|found| !used.contains(&found.origin));
        self.gaps.retain(|(origin, _)| !used.contains(origin));
        if self.tools.is_empty() && self.gaps.is_empty() {
            self.gaps.append(&mut self.vague_gaps);
        }
    }
}

fn unnamed(Why { place, why }: Why) -> Gap {
    let what =
        format!("the name of a tool is not known: {why}; the script of 'karat tools export-script' would show it");
    Gap { kind: GapKind::Unknown, place, what }
}

impl From<Why> for Unknown {
    fn from(Why { place, why }: Why) -> Self {
        Self { place, why }
    }
}

impl Project {
    /// Begins a tool that an expression defines.
    pub(crate) fn draft<'p>(
        &'p self,
        located: &Located<'p>,
        name: Result<String, Why>,
        description: Option<&Located<'p>>,
        schema: Known<Value>,
        variable: Option<&str>,
    ) -> Draft {
        let (description, description_place) = self.description(description);
        Draft {
            origin: (located.module, located.expr.at),
            place: self.place(located),
            name,
            description,
            description_place,
            schema,
            symbols: self.symbols(located.module, located.scope, variable),
        }
    }

    /// Passes over the parameters that a tool lists with their names and descriptions.
    pub(crate) fn pass_over_parameters(&self, entries: &Entries<'_>, findings: &mut Findings) {
        let listed = entries.any(&SCHEMA_KEYS).or_else(|| entries.get("arguments"));
        let items = listed.and_then(|list| self.items(list)).unwrap_or_default();
        findings
            .passed_over
            .extend(items.iter().filter_map(|item| self.resolve(item)).map(|item| (item.module, item.expr.at)));
    }

    /// Marks what an object does not say as unknown where it may have more entries than are known.
    pub(crate) fn leave_open(&self, located: &Located<'_>, entries: &Entries<'_>, draft: &mut Draft) {
        if !entries.is_open {
            return;
        }
        let unknown = || self.why(located, "a part of the object is made at run time").into();
        if draft.description == Known::Absent {
            draft.description = Known::Unknown(unknown());
        }
        if draft.schema == Known::Absent {
            draft.schema = Known::Unknown(unknown());
        }
    }

    /// Notes the server of a registration that runs when the module is loaded: `@mcp.tool()`, `server.tool(…)`.
    pub(crate) fn note_server(&self, origin: Origin, callee: &Located<'_>, findings: &mut Findings) {
        let callee = callee.call().map_or_else(|| callee.clone(), |call| callee.with(&call.callee));
        if let (Kind::Member(server, _), 0) = (&callee.expr.kind, callee.scope)
            && let Some(server) = self.resolve(&callee.with(server)).filter(|server| server.call().is_some())
        {
            findings.servers.insert(origin, server.module);
        }
    }

    /// Begins a tool that a class defines.
    pub(crate) fn class_draft(
        &self,
        module: ModuleId,
        id: ClassId,
        name: Result<String, Why>,
        description: Option<Meaning<'_>>,
        schema: Known<Value>,
    ) -> Draft {
        let class = &self.module(module).classes[id];
        let (description, description_place) = match description {
            Some(Meaning::Expr(text)) => self.description(Some(&text)),
            Some(Meaning::Unknown(why)) => (Known::Unknown(why.into()), None),
            _ => match &class.docstring {
                Some(doc) => (Known::Known(clean_doc(&doc.text)), Some(self.module(module).place(doc.at))),
                None => (Known::Absent, None),
            },
        };
        Draft {
            origin: (module, class.at),
            place: self.module(module).place(class.at),
            name,
            description,
            description_place,
            schema,
            symbols: self.symbols(module, class.scope, Some(&class.name)),
        }
    }

    /// Reads a name that a class says.
    pub(crate) fn class_name(&self, name: Option<Meaning<'_>>) -> Option<Result<String, Why>> {
        match name? {
            Meaning::Expr(name) => Some(self.text(&name)),
            Meaning::Unknown(why) => Some(Err(why)),
            _ => None,
        }
    }

    /// Reads a schema that a class says.
    pub(crate) fn class_schema(&self, schema: Option<Meaning<'_>>) -> Known<Value> {
        match schema {
            Some(Meaning::Expr(schema)) => self.schema(Some(&schema)),
            Some(Meaning::Class(module, class)) => Known::Known(self.model_schema(module, class)),
            Some(Meaning::Unknown(why)) => Known::Unknown(why.into()),
            _ => Known::Absent,
        }
    }

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

    /// Tells whether the variable of an object is used for nothing but to build other objects.
    fn is_only_spread(&self, found: &Found) -> bool {
        let module = self.module(found.origin.0);
        let Some(variable) = found.symbols.first() else { return false };
        let count = |expr: &Expr| {
            let mut found = 0;
            expr.walk(&mut |inner| found += usize::from(matches!(&inner.kind, Kind::Name(name) if name == variable)));
            found
        };
        let (mut used, mut spread) = (0, 0);
        for expr in module.scopes.iter().flat_map(|scope| &scope.statements).flat_map(Statement::expressions) {
            used += count(expr);
            expr.walk(&mut |inner| {
                let Kind::Object(entries) = &inner.kind else { return };
                spread += entries
                    .iter()
                    .map(|one| if let Entry::Spread(base) = one { count(base) } else { 0 })
                    .sum::<usize>();
            });
        }
        let is_exported =
            module.exports.iter().any(|export| matches!(export, Export::Local { value, .. } if count(value) > 0));
        let is_imported = |statement: &Statement| matches!(statement, Statement::Import(import) if import.what == Imported::Name(variable.clone()));
        let mut statements = self.modules.iter().flat_map(|module| &module.scopes).flat_map(|scope| &scope.statements);
        used == spread && !is_exported && !statements.any(is_imported)
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

/// First words of names that do something with a tool instead of making one.
const USES: &str = "call run execute invoke use get list find has is remove handle format before after on test instrument \
    trace track log with require validate";

/// Tells whether a call of this name may make or register a tool, if its arguments describe one.
pub(crate) fn makes_tool(name: &str) -> bool {
    let words = words(name);
    words.iter().any(|word| word == "tool") && !words.first().is_some_and(|word| is_listed(word, USES))
}

/// Words of names that speak of a run of a tool, not of the tool.
const RUN_WORDS: &str = "call calls return result results use message output response event error exception";

/// Tells whether a variable or class of this name holds or is a tool.
pub(crate) fn says_tools(name: &str) -> bool {
    let words = words(name);
    words.iter().any(|word| word == "tool" || word == "tools") && !words.iter().any(|word| is_listed(word, RUN_WORDS))
}

/// Tells whether something of this name makes a tool and nothing else: `tool`, `createTool`, `function_tool`, `BaseTool`.
pub(crate) fn is_tool_maker(name: &str) -> bool {
    makes_tool(name) && names_tool(name)
}

/// Tells whether the last word of a name is "tool".
pub(crate) fn names_tool(name: &str) -> bool {
    words(name).last().is_some_and(|word| word == "tool")
}

/// Returns the words of a name in lower case, as capitals and underscores divide it.
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

/// Returns the name of the tool that the OpenAI Agents SDK makes of an agent or function without one.
pub(crate) fn function_name(name: &str) -> String {
    name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect()
}

/// Returns the schema of an object with one text.
pub(crate) fn one_text(name: &str) -> Value {
    json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]})
}

/// Tells whether a text can be a tool's name.
pub(crate) fn is_tool_name(name: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || "_-./:".contains(letter);
    !name.is_empty() && name.len() <= 128 && name.chars().all(is_part) && !name.contains("://")
}
