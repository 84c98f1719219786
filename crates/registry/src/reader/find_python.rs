//! Tools in Python modules: decorated functions, functions in `tools=[…]`, dictionaries, calls that make a tool, and
//! classes.

use karat_core::registry::{Known, ToolPlace};
use serde_json::{Value, json};

use super::evaluate::{Entries, Located, Meaning, Why};
use super::found::{Draft, FUNCTION_KEYS, Findings, SCHEMA_KEYS, is_tool_name};
use super::library::Library;
use super::project::{ModuleId, Project};
use super::syntax::{Call, ClassId, Definition, Expr, FunctionId, Kind, Owner, ScopeId, Statement};
use super::text::Docstring;

/// Decorators whose name does not end with `tool`.
const DECORATORS: [&str; 9] = [
    "tool_plain",
    "kernel_function",
    "ai_function",
    "ai_callable",
    "register_for_llm",
    "tool_function",
    "tool_method",
    "tool_def",
    "tool_decorator",
];

/// Names that end with `tool` and do something with tools instead of defining one.
const NOT_DECORATORS: [&str; 12] = [
    "call_tool",
    "run_tool",
    "execute_tool",
    "before_tool",
    "after_tool",
    "get_tool",
    "use_tool",
    "test_tool",
    "on_tool",
    "list_tool",
    "invoke_tool",
    "remove_tool",
];

/// Calls that make a tool of the function that they get.
const WRAPPERS: [&str; 16] = [
    "tool",
    "tool_plain",
    "add_tool",
    "register_tool",
    "function_tool",
    "from_function",
    "from_defaults",
    "FunctionTool",
    "LongRunningFunctionTool",
    "Tool",
    "StructuredTool",
    "create_tool_from_function",
    "register_function",
    "add_function",
    "beta_tool",
    "kernel_function",
];

/// Calls that take a list of functions as one of their first arguments.
const LIST_TAKERS: [&str; 9] = [
    "create_react_agent",
    "create_agent",
    "create_tool_calling_agent",
    "create_openai_tools_agent",
    "bind_tools",
    "ToolNode",
    "FunctionToolset",
    "add_tools",
    "initialize_agent",
];

const NAME_KEYS: [&str; 4] = ["name", "name_override", "tool_name", "func_name"];
const DESCRIPTION_KEYS: [&str; 5] = ["description", "description_override", "tool_description", "desc", "summary"];
const METHODS: [&str; 8] = ["_run", "forward", "_arun", "run", "execute", "__call__", "call", "arun"];

impl Project {
    /// Finds the tools that a module defines.
    pub(crate) fn find_in_python(&self, module: ModuleId, findings: &mut Findings) {
        for scope in 0..self.module(module).scopes.len() {
            for statement in &self.module(module).scopes[scope].statements {
                self.next_statement();
                match statement {
                    Statement::Define { defined: Definition::Function(id), .. } => {
                        self.decorated_function(module, scope, *id, findings);
                    }
                    Statement::Define { defined: Definition::Class(id), .. } => {
                        self.tool_class(module, scope, *id, findings);
                    }
                    Statement::Assign { name, value: Some(value), .. } => {
                        self.expressions(module, scope, value, Some(name), findings);
                    }
                    Statement::SetMember { value, .. } | Statement::Return(value) | Statement::Expression(value) => {
                        self.expressions(module, scope, value, None, findings);
                    }
                    Statement::Assign { value: None, .. } | Statement::Rebind { .. } | Statement::Import(_) => {}
                }
            }
        }
    }

    fn decorated_function(&self, module: ModuleId, scope: ScopeId, id: FunctionId, findings: &mut Findings) {
        let function = &self.module(module).functions[id];
        let Some(decorator) = function.decorators.iter().find(|decorator| is_decorator(decorator)) else { return };
        let decorator = Located::new(module, scope, decorator);
        let library = self.library(&decorator);
        let settings = decorator.call().map(|call| Settings { call, located: &decorator, is_decorator: true });
        self.function_tool(module, id, library, settings.as_ref(), findings);
    }

    /// Adds a function as a tool, with what the call or decorator says of it.
    fn function_tool(
        &self,
        module: ModuleId,
        id: FunctionId,
        library: Library,
        settings: Option<&Settings<'_, '_>>,
        findings: &mut Findings,
    ) {
        let function = &self.module(module).functions[id];
        let mut origin = (module, function.at);
        let mut place = self.module(module).place(function.at);
        if let Some(Settings { located, is_decorator: false, .. }) = settings
            && settings.is_some_and(|settings| settings.named(&NAME_KEYS).is_some())
        {
            // A name of its own makes it another tool than the function itself.
            origin = (located.module, located.expr.at);
            place = self.place(located);
        }
        let texts = settings.map(|settings| settings.texts(self)).unwrap_or_default();
        let name_given = settings.and_then(|settings| settings.named(&NAME_KEYS));
        let name = match (&name_given, texts.as_slice()) {
            (Some(given), _) if !is_none(given.expr) => self.text(given),
            (_, [first, ..]) if library.first_text_is_name() || is_tool_name(&first.1) => Ok(first.1.clone()),
            _ => Ok(function.name.clone()),
        };
        let described = settings.and_then(|settings| settings.named(&DESCRIPTION_KEYS));
        let positional = match texts.as_slice() {
            [first, second, ..] if is_tool_name(&first.1) || library.first_text_is_name() => Some(&second.0),
            [only] if !is_tool_name(&only.1) && !library.first_text_is_name() => Some(&only.0),
            _ => None,
        };
        let given = described.filter(|given| !is_none(given.expr)).or_else(|| positional.cloned());
        let (mut description, mut description_place) = self.description(given.as_ref());
        let is_missing = matches!(&description, Known::Absent) || description.as_deref() == Some("");
        if let (true, Some(doc)) = (is_missing, &function.docstring) {
            let read = Docstring::read(&doc.text);
            let has_sections =
                library.cuts_sections() || settings.is_some_and(|settings| settings.is_true(self, "parse_docstring"));
            let text = if has_sections { read.summary } else { read.whole };
            if !text.is_empty() {
                description = Known::Known(text);
                description_place = Some(self.module(module).place(doc.at));
            }
        }
        let given = settings.and_then(|settings| settings.named(&SCHEMA_KEYS));
        let schema = if let Some(given) = given.filter(|given| !is_none(given.expr)) {
            self.schema(Some(&given))
        } else {
            // Pydantic AI gives `@agent.tool` a context first, and `@agent.tool_plain` none.
            let takes_context = library == Library::PydanticAi && function.is_decorated_with("tool");
            Known::Known(self.signature_schema(module, id, takes_context))
        };
        let symbols = self.symbols(module, function.scope, Some(&function.name));
        let draft = Draft { origin, place, name, description, description_place, schema, symbols };
        findings.add(draft, |_| ());
    }

    fn expressions(
        &self,
        module: ModuleId,
        scope: ScopeId,
        expr: &Expr,
        variable: Option<&str>,
        findings: &mut Findings,
    ) {
        expr.walk(&mut |inner| {
            let located = Located::new(module, scope, inner);
            match &inner.kind {
                Kind::Call(call) => self.tool_call(&located, call, variable, findings),
                Kind::Object(_) => self.tool_dictionary(&located, variable, findings),
                _ => {}
            }
        });
    }

    fn tool_call<'p>(&'p self, located: &Located<'p>, call: &'p Call, variable: Option<&str>, findings: &mut Findings) {
        let settings = Settings { call, located, is_decorator: false };
        // `mcp.tool(name="x")(function)`
        if let (Kind::Call(inner), [argument]) = (&call.callee.kind, call.arguments.as_slice())
            && is_decorator(&call.callee)
            && let Some((home, id)) = self.function(&located.with(argument))
        {
            let inner_located = located.with(&call.callee);
            let settings = Settings { call: inner, located: &inner_located, is_decorator: false };
            self.function_tool(home, id, self.library(&inner_located), Some(&settings), findings);
            return;
        }
        let name = call.callee.last_name().unwrap_or_default();
        if name == "as_tool" {
            self.agent_as_tool(&settings, findings);
            return;
        }
        if WRAPPERS.contains(&name) || name.ends_with("Tool") {
            let function = settings.named(&["func", "fn", "function", "coroutine", "callable", "handler"]);
            let function = function.or_else(|| settings.positional(0)).and_then(|one| self.function(&one));
            if let Some((home, id)) = function {
                let has_name = settings.named(&NAME_KEYS).is_some();
                // `Tool(name="x", func=f, description="…")` has nothing of the function but its parameters.
                let library = self.library(located);
                let is_wrapped = self.module(home).functions[id].decorators.iter().any(is_decorator);
                if !is_wrapped || has_name {
                    self.function_tool(home, id, library, Some(&settings), findings);
                }
                return;
            }
        }
        if let Some(agent) = settings.named(&["agent"]).filter(|_| name == "AgentTool") {
            self.agent_tool(located, &agent, findings);
            return;
        }
        if is_constructor_name(name) && settings.named(&["name"]).is_some() {
            self.constructed_tool(&settings, variable, findings);
            return;
        }
        let lists = call.named.iter().filter(|(name, _)| name == "tools" || name == "functions").map(|(_, list)| list);
        let positional = call.arguments.iter().take(3).filter(|_| LIST_TAKERS.contains(&name));
        for list in lists.chain(positional) {
            for item in self.known_items(&located.with(list)) {
                if let Some((home, id)) = self.function(&item)
                    && !self.module(home).functions[id].decorators.iter().any(is_decorator)
                {
                    self.function_tool(home, id, self.library(located), None, findings);
                }
            }
        }
    }

    /// Returns the items of a list that are known, whatever else is in it.
    fn known_items<'p>(&'p self, located: &Located<'p>) -> Vec<Located<'p>> {
        let Some(found) = self.resolve(located) else { return Vec::new() };
        match &found.expr.kind {
            Kind::List(items) => items
                .iter()
                .flat_map(|item| match &item.kind {
                    Kind::Spread(inner) => self.known_items(&found.with(inner)),
                    _ => vec![found.with(item)],
                })
                .collect(),
            Kind::Add(left, right) => {
                let mut items = self.known_items(&found.with(left));
                items.extend(self.known_items(&found.with(right)));
                items
            }
            _ => Vec::new(),
        }
    }

    fn function<'p>(&'p self, located: &Located<'p>) -> Option<(ModuleId, FunctionId)> {
        match self.meaning(located) {
            Meaning::Function(module, id) => {
                let function = &self.module(module).functions[id];
                // What a decorator returns has the name of the function that it wraps.
                let has_name = !function.name.is_empty() && !function.is_decorated_with("wraps");
                has_name.then_some((module, id))
            }
            _ => None,
        }
    }

    /// `agent.as_tool(tool_name=…, tool_description=…)`
    fn agent_as_tool(&self, settings: &Settings<'_, '_>, findings: &mut Findings) {
        let located = settings.located;
        let Some(name) = settings.named(&NAME_KEYS).or_else(|| settings.positional(0)) else { return };
        let text = settings.named(&DESCRIPTION_KEYS).or_else(|| settings.positional(1));
        let (description, description_place) = self.description(text.as_ref());
        let input = json!({"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]});
        let schema = match settings.named(&["parameters", "args_schema", "input_type"]) {
            Some(given) => self.schema(Some(&given)),
            None => Known::Known(input),
        };
        let draft = Draft {
            origin: (located.module, located.expr.at),
            place: self.place(located),
            name: self.text(&name),
            description,
            description_place,
            schema,
            symbols: self.symbols(located.module, located.scope, None),
        };
        findings.add(draft, |_| ());
    }

    /// `AgentTool(agent=researcher)` has the name and description of the agent.
    fn agent_tool<'p>(&'p self, located: &Located<'p>, agent: &Located<'p>, findings: &mut Findings) {
        let Some(agent) = self.resolve(agent) else { return };
        let Some(call) = agent.call() else { return };
        let settings = Settings { call, located: &agent, is_decorator: false };
        let Some(name) = settings.named(&["name"]) else { return };
        let (description, description_place) = self.description(settings.named(&["description"]).as_ref());
        let schema = match settings.named(&["input_schema"]) {
            Some(given) => self.schema(Some(&given)),
            None => Known::Known(
                json!({"type": "object", "properties": {"request": {"type": "string"}}, "required": ["request"]}),
            ),
        };
        let draft = Draft {
            origin: (located.module, located.expr.at),
            place: self.place(located),
            name: self.text(&name),
            description,
            description_place,
            schema,
            symbols: self.symbols(located.module, located.scope, None),
        };
        findings.add(draft, |_| ());
    }

    /// `Tool(name=…, description=…, inputSchema=…)`
    fn constructed_tool(&self, settings: &Settings<'_, '_>, variable: Option<&str>, findings: &mut Findings) {
        let located = settings.located;
        let (Some(name), description) = (settings.named(&["name"]), settings.named(&DESCRIPTION_KEYS)) else { return };
        let schema = settings.named(&SCHEMA_KEYS);
        let is_function = settings.named(&FUNCTION_KEYS).is_some();
        if description.is_none() && schema.is_none() && !is_function {
            return;
        }
        let (description, description_place) = self.description(description.as_ref());
        let draft = Draft {
            origin: (located.module, located.expr.at),
            place: self.place(located),
            name: self.text(&name),
            description,
            description_place,
            schema: self.schema(schema.as_ref()),
            symbols: self.symbols(located.module, located.scope, variable),
        };
        findings.add(draft, |_| ());
    }

    /// A dictionary in the shape of OpenAI, Anthropic, MCP, Bedrock or karat.
    fn tool_dictionary<'p>(&'p self, located: &Located<'p>, variable: Option<&str>, findings: &mut Findings) {
        let Some(entries) = self.entries(located) else { return };
        for wrapper in ["function", "toolSpec"] {
            if let Some(inner) = entries.get(wrapper)
                && self.entries(inner).is_some_and(|inner| inner.get("name").is_some())
            {
                // It is met again on its own, with a name and a description at least.
                let origin = (inner.module, inner.expr.at);
                if let Some(inner) = self.resolve(inner) {
                    self.tool_object(&inner, true, variable, findings);
                }
                findings.seen.insert(origin);
                return;
            }
        }
        let is_among_tools = variable.is_some_and(|name| name.to_lowercase().contains("tool"))
            || entries.get("type").and_then(|kind| self.text(kind).ok()).as_deref() == Some("function");
        self.tool_object(located, is_among_tools, variable, findings);
    }

    /// Reads an object as a tool where it has a name and a schema, or a description where tools are expected.
    pub(crate) fn tool_object<'p>(
        &'p self,
        located: &Located<'p>,
        is_among_tools: bool,
        variable: Option<&str>,
        findings: &mut Findings,
    ) {
        let Some(entries) = self.entries(located) else { return };
        let Some(name) = entries.get("name") else { return };
        let schema = object_schema(self, &entries);
        let described = entries.any(&DESCRIPTION_KEYS);
        let has_function = entries.any(&FUNCTION_KEYS).is_some();
        let is_tool = (schema.is_some() && described.is_some())
            || (is_among_tools && (described.is_some() || schema.is_some()))
            || (has_function && described.is_some() && is_among_tools);
        let name = self.text(name);
        if !is_tool || name.as_ref().is_ok_and(|name| !is_tool_name(name)) {
            return;
        }
        let (description, description_place) = self.description(described);
        let draft = Draft {
            origin: (located.module, located.expr.at),
            place: self.place(located),
            name,
            description,
            description_place,
            schema: self.schema(schema.as_ref()),
            symbols: self.symbols(located.module, located.scope, variable),
        };
        findings.add(draft, |tool| self.extras(&entries, tool));
    }

    /// A class that stands on a class of tools and says its name.
    fn tool_class(&self, module: ModuleId, scope: ScopeId, id: ClassId, findings: &mut Findings) {
        let class = &self.module(module).classes[id];
        let decorator = class.decorators.iter().find(|decorator| is_decorator(decorator));
        if !self.is_tool_class(module, scope, id, 0) && decorator.is_none() {
            return;
        }
        let decorator = decorator.map(|decorator| Located::new(module, scope, decorator));
        let settings =
            decorator.as_ref().and_then(|one| Some(Settings { call: one.call()?, located: one, is_decorator: true }));
        let super_call = self.super_call(module, id);
        let super_settings =
            super_call.as_ref().and_then(|one| Some(Settings { call: one.call()?, located: one, is_decorator: true }));
        let field = |keys: &[&str]| -> Option<Result<Located<'_>, Why>> {
            if let Some(given) = super_settings.as_ref().and_then(|settings| settings.named(keys)) {
                return Some(Ok(given));
            }
            keys.iter().find_map(|key| match self.attribute(module, id, key, 0)? {
                Meaning::Expr(value) => Some(Ok(value)),
                Meaning::Unknown(why) => Some(Err(why)),
                _ => None,
            })
        };
        let registered =
            settings.as_ref().and_then(|settings| settings.texts(self).first().map(|(_, text)| text.clone()));
        let name = match (registered, field(&["name", "tool_name"])) {
            (Some(name), _) => Ok(name),
            (None, Some(Ok(name))) if !is_none(name.expr) => self.text(&name),
            (None, Some(Err(why))) => Err(why),
            // A base class.
            _ => return,
        };
        let (description, description_place) = match field(&DESCRIPTION_KEYS) {
            Some(Ok(text)) => self.description(Some(&text)),
            Some(Err(why)) => (Known::Unknown(why.into()), None),
            None => match &class.docstring {
                Some(doc) => (Known::Known(Docstring::read(&doc.text).whole), Some(self.module(module).place(doc.at))),
                None => (Known::Absent, None),
            },
        };
        let schema = self.class_schema(module, id, field(&SCHEMA_KEYS));
        let symbols = self.symbols(module, class.scope, Some(&class.name));
        let place: ToolPlace = self.module(module).place(class.at);
        findings.add(
            Draft { origin: (module, class.at), place, name, description, description_place, schema, symbols },
            |_| (),
        );
    }

    fn class_schema(&self, module: ModuleId, id: ClassId, given: Option<Result<Located<'_>, Why>>) -> Known<Value> {
        // `args_schema: Type[BaseModel] = Input` is a class, not an expression.
        let model = SCHEMA_KEYS.iter().find_map(|key| match self.attribute(module, id, key, 0)? {
            Meaning::Class(home, model) => Some(self.model_schema(home, model)),
            _ => None,
        });
        if let Some(model) = model.filter(|model| *model != json!({})) {
            return Known::Known(model);
        }
        match given {
            Some(Ok(given)) if !is_none(given.expr) => {
                if let Some(schema) = self.inputs(&given) {
                    return Known::Known(schema);
                }
                self.schema(Some(&given))
            }
            Some(Err(why)) => Known::Unknown(why.into()),
            _ => {
                let method = METHODS.iter().find_map(|name| self.method(module, id, name));
                method.map_or(Known::Absent, |(home, method)| Known::Known(self.signature_schema(home, method, false)))
            }
        }
    }

    /// smolagents' `inputs`, `{"city": {"type": "string", "description": "…", "nullable": True}}`, and lists of parameters
    /// with names.
    fn inputs(&self, given: &Located<'_>) -> Option<Value> {
        let mut schema = super::annotation::ObjectSchema::default();
        if let Some(items) = self.items(given) {
            for item in items {
                let entries = self.entries(&item)?;
                let name = self.text(entries.get("name")?).ok()?;
                let mut property = self.json(&item)?;
                let members = property.as_object_mut()?;
                members.shift_remove("name");
                let is_required = members.shift_remove("required") == Some(Value::Bool(true));
                schema.add(&name, property, None, None, is_required);
            }
            return Some(schema.finish());
        }
        let entries = self.entries(given).filter(|entries| !entries.is_open)?;
        if entries.get("type").is_some_and(|kind| self.text(kind).is_ok()) || entries.get("properties").is_some() {
            return None;
        }
        for (name, _, value) in &entries.list {
            let mut property = self.json(value)?;
            let members = property.as_object_mut()?;
            members.get("type")?;
            let is_optional = members.shift_remove("nullable") == Some(Value::Bool(true));
            if members.get("type") == Some(&json!("any")) {
                members.shift_remove("type");
            }
            schema.add(name, property, None, None, !is_optional);
        }
        Some(schema.finish())
    }

    fn is_tool_class(&self, module: ModuleId, scope: ScopeId, id: ClassId, depth: usize) -> bool {
        let class = &self.module(module).classes[id];
        depth < 10
            && class.bases.iter().any(|base| {
                let is_named =
                    |name: &str| name.ends_with("Tool") || name.ends_with("ToolBase") || name == "ToolInterface";
                match self.meaning(&Located::new(module, scope, base)) {
                    Meaning::Class(home, base) => {
                        let outside =
                            self.module(home).scopes[self.module(home).classes[base].scope].parent.unwrap_or(0);
                        is_named(&self.module(home).classes[base].name)
                            || self.is_tool_class(home, outside, base, depth + 1)
                    }
                    _ => base.last_name().is_some_and(is_named),
                }
            })
    }

    /// Returns the call of the base class's constructor: `super().__init__(…)`.
    fn super_call(&self, module: ModuleId, id: ClassId) -> Option<Located<'_>> {
        let (home, constructor) = self.method(module, id, "__init__")?;
        let scope = self.module(home).functions[constructor].scope;
        self.module(home).scopes[scope].statements.iter().find_map(|statement| match statement {
            Statement::Expression(expr) => match &expr.kind {
                Kind::Call(call) if call.callee.last_name() == Some("__init__") => {
                    Some(Located::new(home, scope, expr))
                }
                _ => None,
            },
            _ => None,
        })
    }

    /// Returns the names that lead to something: its own and those of what encloses it.
    pub(crate) fn symbols(&self, module: ModuleId, scope: ScopeId, own: Option<&str>) -> Vec<String> {
        let mut symbols: Vec<String> = own.map(str::to_owned).into_iter().collect();
        let source = self.module(module);
        let mut scope = Some(scope);
        while let Some(id) = scope {
            match source.scopes[id].owner {
                Owner::Function(function) => symbols.push(source.functions[function].name.clone()),
                Owner::Class(class) => symbols.push(source.classes[class].name.clone()),
                Owner::Module | Owner::Block => {}
            }
            scope = source.scopes[id].parent;
        }
        symbols.retain(|symbol| !symbol.is_empty());
        symbols
    }
}

/// The arguments of a call or decorator.
struct Settings<'s, 'p> {
    call: &'p Call,
    located: &'s Located<'p>,
    is_decorator: bool,
}

impl<'p> Settings<'_, 'p> {
    fn named(&self, keys: &[&str]) -> Option<Located<'p>> {
        keys.iter().find_map(|key| self.call.named(key)).map(|value| self.located.with(value))
    }

    fn positional(&self, number: usize) -> Option<Located<'p>> {
        self.call.arguments.get(number).map(|value| self.located.with(value))
    }

    /// Returns the leading texts among the positional arguments.
    fn texts(&self, project: &'p Project) -> Vec<(Located<'p>, String)> {
        let mut texts = Vec::new();
        for argument in &self.call.arguments {
            let argument = self.located.with(argument);
            match project.text(&argument) {
                Ok(text) => texts.push((argument, text)),
                Err(_) if texts.is_empty() => {}
                Err(_) => break,
            }
        }
        texts
    }

    fn is_true(&self, project: &'p Project, name: &str) -> bool {
        self.named(&[name]).is_some_and(|flag| project.boolean(&flag) == Some(true))
    }
}

/// Returns what an object says of its schema: an object or a call, not a list of parameters of something else.
fn object_schema<'p>(project: &'p Project, entries: &Entries<'p>) -> Option<Located<'p>> {
    let value = entries.any(&SCHEMA_KEYS[..10])?;
    let is_list = project.items(value).is_some();
    (!is_list).then(|| value.clone())
}

fn is_decorator(decorator: &Expr) -> bool {
    let Some(name) = decorator.last_name() else { return false };
    let is_tool = name == "tool" || name.ends_with("_tool");
    DECORATORS.contains(&name) || (is_tool && !NOT_DECORATORS.contains(&name))
}

fn is_constructor_name(name: &str) -> bool {
    name.ends_with("Tool")
        || ["FunctionDeclaration", "FunctionDefinition", "ToolDefinition", "ToolSpec", "ToolParam", "FunctionToolParam"]
            .contains(&name)
        || name.ends_with("_tool")
}

fn is_none(expr: &Expr) -> bool {
    matches!(expr.kind, Kind::Null)
}
