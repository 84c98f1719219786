//! Tools that a source writes down: dictionaries, calls of a tool's constructor, classes.

use karat_core::registry::{Gap, Tool, ToolField};
use ruff_python_ast::{Expr, ExprCall, Stmt, StmtClassDef};
use ruff_text_size::Ranged;

use super::data::{Data, Datum, Hole};
use super::framework::Framework;
use super::function::ToolFunction;
use super::program::{Spot, spot};
use super::world::{Locals, Meaning, Scope, World};

/// Keys under which a schema stands.
const SCHEMAS: [&str; 6] =
    ["inputSchema", "input_schema", "parameters", "params_json_schema", "parameters_json_schema", "args_schema"];

/// Classes that stand for a tool.
const CONSTRUCTORS: [&str; 7] =
    ["Tool", "StructuredTool", "FunctionTool", "ToolParam", "BetaToolParam", "ToolDefinition", "FunctionDeclaration"];

/// Tells whether a dictionary has the shape of a tool; a vague one counts where the source calls it a tool.
pub(super) fn is_tool(datum: &Datum, is_called_tool: bool) -> bool {
    let Data::Dict(entries, _) = &datum.data else {
        return false;
    };
    let has = |name: &str| entries.iter().any(|(key, _)| key == name);
    let is_function = datum.entry("type").as_ref().and_then(Datum::text) == Some("function");
    // A call of a tool or the choice of one has the same shape, but says nothing about it.
    let says_something = |definition: &Datum| match &definition.data {
        Data::Dict(entries, rest) => {
            let has = |name: &str| entries.iter().any(|(key, _)| key == name);
            !has("arguments") && (rest.is_some() || has("parameters") || has("description"))
        }
        _ => false,
    };
    if let Some(function) = datum.entry("function").filter(|function| matches!(function.data, Data::Dict(..)))
        && is_function
    {
        return says_something(&function);
    }
    let is_function = is_function && says_something(datum);
    let is_name = datum.entry("name").is_some_and(|name| matches!(name.data, Data::Text(_) | Data::Unknown(_)));
    let is_schema = |key: &&str| {
        datum.entry(key).is_some_and(|schema| match &schema.data {
            Data::Dict(entries, rest) => {
                let is_schema = |(key, _): &(String, Datum)| matches!(key.as_str(), "type" | "properties" | "$ref");
                rest.is_some() || entries.is_empty() || entries.iter().any(is_schema)
            }
            Data::Unknown(_) => true,
            _ => false,
        })
    };
    let has_schema = SCHEMAS.iter().filter(|key| has(key)).any(is_schema);
    has("name") && is_name && (has_schema || is_function || is_called_tool && has("description"))
}

/// Returns what the arguments of a constructor are that have no names, and whether those are all that it has.
fn positions(framework: Framework, class: &str, method: Option<&str>) -> (&'static [&'static str], bool) {
    match (framework, class, method) {
        (Framework::LangChain, "Tool", None) => (&["name", "func", "description"], true),
        (Framework::LangChain, "Tool", Some(_)) => (&["func", "name", "description"], true),
        (Framework::LangChain, "StructuredTool", Some(_)) => (&["func", "coroutine", "name", "description"], true),
        (Framework::FastMcp | Framework::Mcp, _, Some(_)) => (&["func", "name", "title", "description"], true),
        _ => (&["func"], false),
    }
}

/// Tells whether a schema is one that a strict mode leaves alone.
fn is_strict(schema: Option<&serde_json::Value>) -> bool {
    let Some(schema) = schema else { return true };
    let properties = schema.get("properties").and_then(serde_json::Value::as_object);
    let required = schema.get("required").and_then(serde_json::Value::as_array).map_or(0, Vec::len);
    let is_flat =
        |property: &serde_json::Value| property.get("properties").is_none() && property.get("default").is_none();
    schema.get("additionalProperties") == Some(&serde_json::Value::Bool(false))
        && schema.get("$defs").is_none()
        && properties.is_some_and(|properties| properties.len() == required && properties.values().all(is_flat))
}

impl World<'_> {
    /// Reads a tool that is a dictionary.
    pub(super) fn dictionary(&self, datum: &Datum) -> Result<Tool, Gap> {
        let inner = datum.entry("function").filter(|inner| matches!(inner.data, Data::Dict(..)));
        let definition = inner.as_ref().unwrap_or(datum);
        let mut tool = self.tool_named(definition, datum)?;
        self.texts(&mut tool, definition);
        let mut holes = Vec::new();
        let schema = SCHEMAS.iter().chain(["schema"].iter()).find_map(|key| definition.entry(key));
        if let Some(schema) = schema.filter(|schema| schema.data != Data::Null) {
            tool.input_schema = schema.schema(&mut holes);
            if tool.input_schema.is_none() && holes.is_empty() {
                holes.push(Hole { spot: schema.spot, why: "it is no schema".to_owned() });
            }
        }
        self.note_holes(&mut tool, &holes);
        Ok(tool)
    }

    fn tool_named(&self, definition: &Datum, whole: &Datum) -> Result<Tool, Gap> {
        let name = definition.entry("name");
        match name.as_ref().map(|name| &name.data) {
            Some(Data::Text(name)) if !name.is_empty() => {
                let place = Some(self.program.place(whole.spot));
                Ok(Tool { name: name.clone(), place, ..Tool::default() })
            }
            Some(Data::Unknown(hole)) => Err(self.nameless(hole)),
            _ => Err(self.nameless(&Hole { spot: whole.spot, why: "it is no text".to_owned() })),
        }
    }

    /// Fills in what is said of a tool beside its schema.
    fn texts(&self, tool: &mut Tool, definition: &Datum) {
        if let Some(description) = definition.entry("description") {
            tool.description_place = Some(self.program.place(description.spot));
        }
        tool.description = self.text(tool, definition, &["description"], ToolField::Description);
        tool.version = self.text(tool, definition, &["version"], ToolField::Version);
        tool.category = self.text(tool, definition, &["category"], ToolField::Category);
        tool.status = self.text(tool, definition, &["status"], ToolField::Status);
        tool.requires_confirmation = self.confirmation(tool, definition);
        let phrases = ["triggerPhrases", "trigger_phrases"].iter().find_map(|key| definition.entry(key));
        match phrases.as_ref().map(|phrases| (phrases, phrases.json())) {
            Some((_, Ok(serde_json::Value::Array(phrases)))) => {
                tool.trigger_phrases = phrases.iter().filter_map(|phrase| phrase.as_str().map(str::to_owned)).collect();
            }
            Some((phrases, Ok(_))) => self.unknown(tool, ToolField::TriggerPhrases, phrases.spot, "it is no list"),
            Some((_, Err(hole))) => self.unknown(tool, ToolField::TriggerPhrases, hole.spot, &hole.why),
            None => {}
        }
    }

    fn confirmation(&self, tool: &mut Tool, definition: &Datum) -> Option<bool> {
        let keys = ["requiresConfirmation", "requires_confirmation"];
        let found = keys.iter().find_map(|key| definition.entry(key))?;
        let (spot, why) = match found.data {
            Data::Bool(flag) => return Some(flag),
            Data::Null => return None,
            Data::Unknown(hole) => (hole.spot, hole.why),
            _ => (found.spot, "it is neither true nor false".to_owned()),
        };
        self.unknown(tool, ToolField::RequiresConfirmation, spot, &why);
        None
    }

    fn text(&self, tool: &mut Tool, definition: &Datum, keys: &[&str], field: ToolField) -> Option<String> {
        let found = keys.iter().find_map(|key| definition.entry(key))?;
        match found.data {
            Data::Text(text) => Some(text),
            Data::Null => None,
            Data::Unknown(hole) => {
                self.unknown(tool, field, hole.spot, &hole.why);
                None
            }
            _ => {
                self.unknown(tool, field, found.spot, "it is no text");
                None
            }
        }
    }

    /// Reads the tool that a call makes; none when it is a call of something else.
    pub(super) fn constructed(&self, scope: Scope<'_>, call: &ExprCall) -> Option<Result<Tool, Gap>> {
        let at = spot(scope.module, call.start());
        let (class, method) = match &*call.func {
            Expr::Attribute(outer) if matches!(outer.attr.as_str(), "from_function" | "from_defaults") => {
                (&*outer.value, Some(outer.attr.as_str()))
            }
            class => (class, None),
        };
        let class_name = self.last_name(scope, class)?;
        if !CONSTRUCTORS.contains(&class_name.as_str()) {
            return None;
        }
        let framework = Framework::of_meaning(self, &self.meaning(scope, class));
        let (order, is_known) = positions(framework, &class_name, method);
        let mut keywords = self.keyword_arguments(scope, at, &call.arguments.keywords);
        if call.arguments.args.len() > order.len() && !is_known {
            let why = "it may be given by its position".to_owned();
            return Some(Err(self.nameless(&Hole { spot: at, why })));
        }
        if let Data::Dict(entries, _) = &mut keywords.data {
            let given =
                order.iter().zip(&call.arguments.args).filter(|(key, _)| matches!(**key, "name" | "description"));
            entries.extend(given.map(|(key, value)| ((*key).to_owned(), self.evaluate(scope, value))));
        }
        let keywords = keywords;
        let function = ["func", "fn", "function", "coroutine", "async_fn"]
            .iter()
            .find_map(|key| call.arguments.find_keyword(key).map(|keyword| &keyword.value))
            .or_else(|| {
                let at = order.iter().position(|key| *key == "func")?;
                call.arguments.args.get(at)
            })
            .and_then(|function| match self.meaning(scope, function) {
                Meaning::Function { module, function } => {
                    Some(ToolFunction { scope: Scope::of_module(module), function, is_method: false })
                }
                _ => None,
            });
        let name = keywords.entry("name").filter(|name| name.data != Data::Null);
        if name.is_none() && (function.is_none() || method.is_none() && framework != Framework::PydanticAi) {
            let makes_tool = method.is_some() || class_name == "FunctionTool" && !call.arguments.is_empty();
            if makes_tool {
                let why = "it comes from a function".to_owned();
                return Some(Err(self.nameless(&Hole { spot: at, why })));
            }
            // `Tool(function_declarations=[…])` is a list of tools, which are looked for within it.
            return None;
        }
        let mut tool = match (name, &function) {
            (Some(_), _) => match self.tool_named(&keywords, &Datum::new(at, keywords.data.clone())) {
                Ok(tool) => tool,
                Err(gap) => return Some(Err(gap)),
            },
            (None, Some(function)) => self.at_function(function),
            (None, None) => return None,
        };
        self.texts(&mut tool, &keywords);
        let makes_of_function = method.is_some() || framework == Framework::PydanticAi;
        if method == Some("from_defaults") && tool.description.is_none() {
            let why = "the library writes the signature before the docstring";
            self.unknown(&mut tool, ToolField::Description, at, why);
        }
        if keywords.entry("prepare").is_some() {
            self.unknown(&mut tool, ToolField::Description, at, "'prepare' may change it");
            self.unknown(&mut tool, ToolField::InputSchema, at, "'prepare' may change it");
        }
        if makes_of_function {
            if let Some(description) = tool.description.take() {
                tool.description = Some(framework.given(&description));
            } else if let Some(function) = function.as_ref().filter(|_| tool.unknown(ToolField::Description).is_none())
            {
                self.describe(&mut tool, function, framework, None, false);
            } else if tool.unknown(ToolField::Description).is_none() {
                self.unknown(&mut tool, ToolField::Description, at, "it comes from a function that is not known");
            }
        }
        let schema = SCHEMAS.iter().find_map(|key| call.arguments.find_keyword(key));
        match (schema, function) {
            (Some(schema), _) => {
                self.given_schema(&mut tool, scope, &schema.value, framework);
                self.note_strict_mode(&mut tool, &keywords, framework, at);
            }
            (None, Some(function)) if makes_of_function => {
                let takes_context = keywords.entry("takes_ctx").is_some_and(|takes| takes.data == Data::Bool(true));
                self.signature(&mut tool, &function, framework, takes_context, false);
            }
            (None, _) if makes_of_function || call.arguments.find_keyword("func").is_some() => {
                self.unknown(&mut tool, ToolField::InputSchema, at, "it comes from a function");
            }
            (None, _) => {
                if let Data::Dict(_, Some(hole)) = &keywords.data {
                    self.unknown(&mut tool, ToolField::InputSchema, hole.spot, &hole.why);
                }
            }
        }
        Some(Ok(tool))
    }

    /// Takes note where the Agents SDK closes a schema that is given, which it does unless it is told not to.
    fn note_strict_mode(&self, tool: &mut Tool, keywords: &Datum, framework: Framework, at: Spot) {
        let is_open = keywords.entry("strict_json_schema").is_some_and(|strict| strict.data == Data::Bool(false));
        if framework == Framework::OpenAiAgents && !is_open && !is_strict(tool.input_schema.as_ref()) {
            self.unknown(tool, ToolField::InputSchema, at, "the library rewrites it for its strict mode");
        }
    }

    /// Returns the library's class that a class of the project stands on, if it is one of a tool.
    fn tool_base(&self, module: usize, class: &StmtClassDef, depth: usize) -> Option<String> {
        let bases = class.bases().iter().filter(|_| depth < 10);
        bases.into_iter().find_map(|base| match self.meaning(Scope::of_module(module), base) {
            Meaning::External(dotted) if dotted.ends_with(".BaseTool") || dotted == "smolagents.Tool" => Some(dotted),
            Meaning::Class { module, class } => self.tool_base(module, class, depth + 1),
            _ => None,
        })
    }

    /// Reads a class that is a tool: `class Search(BaseTool): name: str = "search"`; none when it is another class.
    pub(super) fn tool_class(&self, scope: Scope<'_>, class: &StmtClassDef) -> Option<Result<Tool, Gap>> {
        let base = class.bases().iter().find_map(|base| match self.meaning(scope, base) {
            Meaning::External(dotted) if dotted.ends_with(".BaseTool") || dotted == "smolagents.Tool" => Some(dotted),
            Meaning::Class { module, class } => self.tool_base(module, class, 0),
            _ => None,
        })?;
        let framework = Framework::of_meaning(self, &Meaning::External(base));
        let at = spot(scope.module, class.name.start());
        let value_of = |wanted: &str| {
            class.body.iter().rev().find_map(|statement| match statement {
                Stmt::AnnAssign(assign) => match &*assign.target {
                    Expr::Name(name) if name.id.as_str() == wanted => assign.value.as_deref(),
                    _ => None,
                },
                Stmt::Assign(assign) => match &assign.targets[..] {
                    [Expr::Name(name)] if name.id.as_str() == wanted => Some(&*assign.value),
                    _ => None,
                },
                _ => None,
            })
        };
        // What the class's body binds is seen in it before the module's names.
        let names = class.body.iter().flat_map(|statement| match statement {
            Stmt::Assign(assign) => assign.targets.iter().collect(),
            Stmt::AnnAssign(assign) => vec![&*assign.target],
            _ => Vec::new(),
        });
        let names = names.filter_map(|target| target.as_name_expr()).map(|name| name.id.to_string()).collect();
        let locals = Locals { names, outer: None };
        let inner = if scope.locals.is_some() { scope } else { Scope { locals: Some(&locals), ..scope } };
        let is_set_later = |key: &str| {
            let own = (class.name.start().to_usize(), key);
            self.names(scope.module).changes.is_touched(own)
        };
        let texts = ["name", "description", "version"].iter().filter_map(|key| {
            let value = match value_of(key) {
                _ if is_set_later(key) => Datum::unknown(at, "it is set when the tool is made"),
                Some(value) => self.evaluate(inner, value),
                None => return None,
            };
            Some(((*key).to_owned(), value))
        });
        let texts = Datum::new(at, Data::Dict(texts.collect(), None));
        // Without a name it is the base of other tools.
        texts.entry("name")?;
        let mut tool = match self.tool_named(&texts, &texts) {
            Ok(tool) => tool,
            Err(gap) => return Some(Err(gap)),
        };
        self.texts(&mut tool, &texts);
        if tool.description.is_none() && value_of("description").is_none() {
            self.unknown(&mut tool, ToolField::Description, at, "it comes from the class or the ones it stands on");
        }
        if framework == Framework::CrewAi && tool.description.take().is_some() {
            self.unknown(&mut tool, ToolField::Description, at, "CrewAI writes a description of its own around it");
        }
        match value_of("args_schema") {
            Some(schema) => self.given_schema(&mut tool, scope, schema, framework),
            None => self.unknown(&mut tool, ToolField::InputSchema, at, "it comes from a method"),
        }
        Some(Ok(tool))
    }
}
