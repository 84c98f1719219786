//! Finds tools in Python modules: decorated functions, functions in `tools=[…]`, dictionaries, calls that create a
//! tool, and classes.

use karat_cases::registry::Known;
use serde_json::Value;

use super::discovery::{
    Candidate, Discovery, FUNCTION_KEYS, PLAIN_SCHEMA_KEYS, SCHEMA_KEYS, is_tool_constructor, is_tool_name,
    mentions_tools, sanitise_function_name, single_string_schema, words,
};
use super::docstring::Docstring;
use super::evaluate::{LocatedExpr, ResolvedValue, UnknownReason};
use super::library::Library;
use super::project::{ModuleId, Project};
use super::syntax::{Call, Definition, Expr, FunctionId, Kind, Owner, ScopeId, Statement};
use super::text::{clean_doc, is_listed};
use super::values::Entries;

pub(super) const NAME_KEYS: [&str; 4] = ["name", "name_override", "tool_name", "func_name"];
pub(super) const DESCRIPTION_KEYS: [&str; 5] =
    ["description", "description_override", "tool_description", "desc", "summary"];

impl Project {
    /// Finds the tools that a module defines.
    pub(crate) fn find_python_tools(&self, module: ModuleId, discovery: &mut Discovery) {
        for scope in 0..self.module(module).scopes.len() {
            for statement in &self.module(module).scopes[scope].statements {
                self.reset_statement_steps();
                match statement {
                    Statement::Define { defined: Definition::Function(id), .. } => {
                        self.add_decorated_function(module, scope, *id, discovery);
                    }
                    Statement::Define { defined: Definition::Class(id), .. } => {
                        self.add_class_tool(module, scope, *id, discovery);
                    }
                    Statement::Assign { name, value: Some(value), .. } => {
                        self.visit_expressions(module, scope, value, Some(name), discovery);
                    }
                    Statement::SetMember { value, name, .. } => {
                        self.visit_expressions(module, scope, value, None, discovery);
                        if is_list_name(name) {
                            self.add_listed_tools(&LocatedExpr::new(module, scope, value), Library::Other, discovery);
                        }
                    }
                    Statement::Return(value) | Statement::Expression(value) => {
                        self.visit_expressions(module, scope, value, None, discovery);
                    }
                    Statement::Assign { value: None, .. } | Statement::Rebind { .. } | Statement::Import(_) => {}
                }
            }
        }
    }

    fn add_decorated_function(&self, module: ModuleId, scope: ScopeId, id: FunctionId, discovery: &mut Discovery) {
        let function = &self.module(module).functions[id];
        let Some(decorator) = function.decorators.iter().find(|decorator| is_decorator(decorator)) else { return };
        let decorator = LocatedExpr::new(module, scope, decorator);
        let library = self.library(&decorator);
        self.record_server((module, function.at), &decorator, discovery);
        let settings = decorator.call().map(|call| Settings { call, located: &decorator, is_decorator: true });
        self.add_function_tool(module, id, library, settings.as_ref(), discovery);
    }

    /// Adds a function as a tool, with the settings of its call or decorator.
    fn add_function_tool(
        &self,
        module: ModuleId,
        id: FunctionId,
        library: Library,
        settings: Option<&Settings<'_, '_>>,
        discovery: &mut Discovery,
    ) {
        let function = &self.module(module).functions[id];
        discovery.handlers.insert((module, function.scope));
        let mut origin = (module, function.at);
        let mut location = self.module(module).location(function.at);
        let texts = settings.map(|settings| settings.texts(self)).unwrap_or_default();
        if let Some(Settings { located, is_decorator: false, .. }) = settings
            && (settings.is_some_and(|settings| settings.named(&NAME_KEYS).is_some())
                || texts.first().is_some_and(|(_, text)| is_tool_name(text)))
        {
            // An explicit name makes it a different tool from the function itself.
            origin = (located.module, located.expr.at);
            location = self.location(located);
        }
        let name_setting = settings.and_then(|settings| settings.named(&NAME_KEYS));
        let name = match (&name_setting, texts.as_slice()) {
            (Some(name), _) if !is_none(name.expr) => self.text(name),
            (_, [first, ..]) if library.first_text_is_name() || is_tool_name(&first.1) => Ok(first.1.clone()),
            _ => self.assigned_text(module, id, "__name__").unwrap_or_else(|| Ok(function.name.clone())),
        };
        let description_setting = settings.and_then(|settings| settings.named(&DESCRIPTION_KEYS));
        let positional = match texts.as_slice() {
            [first, second, ..] if is_tool_name(&first.1) || library.first_text_is_name() => Some(&second.0),
            [only] if !is_tool_name(&only.1) && !library.first_text_is_name() => Some(&only.0),
            _ => None,
        };
        let description =
            description_setting.filter(|description| !is_none(description.expr)).or_else(|| positional.cloned());
        let (mut description, mut description_location) = self.description(description.as_ref());
        let is_missing = matches!(&description, Known::Absent) || description.as_deref() == Some("");
        let schema_setting = settings.and_then(|settings| settings.named(&SCHEMA_KEYS));
        let schema_setting =
            schema_setting.or_else(|| settings?.named(&["json_schema"])).filter(|schema| !is_none(schema.expr));
        let is_ignored = settings.is_some_and(|settings| settings.flag(self, "use_docstring_info") == Some(false));
        let docstring = self.docstring(module, id);
        if let (true, Some(Err(reason))) = (is_missing, &docstring) {
            description = Known::Unknown(reason.clone().into());
        } else if let (true, Some(Ok((doc, at)))) = (is_missing && !is_ignored, &docstring) {
            let is_parsed = settings.is_some_and(|settings| settings.flag(self, "parse_docstring") == Some(true));
            let text =
                if is_parsed { Docstring::read(doc).summary } else { self.docstring_description(module, library, doc) };
            if !text.is_empty() {
                description = Known::Known(text);
                description_location = Some(self.module(module).location(*at));
            }
        } else if is_missing
            && library == Library::LangChain
            && let Some((home, model)) = schema_setting.as_ref().and_then(|schema| self.model(schema))
            && let Some(doc) = &self.module(home).classes[model].docstring
        {
            description = Known::Known(clean_doc(&doc.text));
            description_location = Some(self.module(home).location(doc.at));
        }
        let schema = match schema_setting {
            Some(schema) => self.schema(Some(&schema)),
            None => self.function_schema(module, id, library, settings),
        };
        let symbols = self.symbols(module, function.scope, Some(&function.name));
        let candidate = Candidate { origin, location, name, description, description_location, schema, symbols };
        discovery.add(candidate, |_| ());
    }

    /// Returns the schema of a function's arguments, without those that the library injects.
    fn function_schema(
        &self,
        module: ModuleId,
        id: FunctionId,
        library: Library,
        settings: Option<&Settings<'_, '_>>,
    ) -> Known<Value> {
        if settings.is_some_and(|settings| self.takes_single_string(settings)) {
            return Known::Known(single_string_schema("__arg1"));
        }
        let set = [
            self.assigned_attributes(module, id, "__signature__"),
            self.assigned_attributes(module, id, "__annotations__"),
        ]
        .concat();
        if let Some(set) = set.first().or(self.changed_signature(module, id).as_ref()) {
            return Known::Unknown(
                self.unknown_reason(set, "the signature of the function changes at run time").into(),
            );
        }
        // Pydantic AI passes a context first to `@agent.tool`, but not to `@agent.tool_plain`.
        let is_pydantic_ai = library == Library::PydanticAi;
        let takes_context = is_pydantic_ai && self.module(module).functions[id].is_decorated_with("tool");
        let signature = self.signature_schema(module, id, takes_context);
        let model = self.single_model_schema(module, id, &signature).filter(|_| is_pydantic_ai);
        let mut schema = model.unwrap_or(signature);
        if library == Library::Strands {
            remove_parameter(&mut schema, "agent");
            let context = settings.and_then(|settings| settings.named(&["context"]));
            if let Some(Ok(context)) = context.map(|context| self.text(&context)) {
                remove_parameter(&mut schema, &context);
            }
        }
        let Some(excluded) =
            settings.and_then(|settings| settings.named(&["exclude_args"])).filter(|excluded| !is_none(excluded.expr))
        else {
            return Known::Known(schema);
        };
        for name in self.items(&excluded).unwrap_or_default() {
            match self.text(&name) {
                Ok(name) => remove_parameter(&mut schema, &name),
                Err(reason) => return Known::Unknown(reason.into()),
            }
        }
        Known::Known(schema)
    }

    /// Whether a call creates a `LangChain` `Tool`, which takes a single string regardless of its function.
    fn takes_single_string(&self, settings: &Settings<'_, '_>) -> bool {
        self.foreign_name(&settings.located.with(&settings.call.callee)).is_some_and(|name| {
            name.starts_with("langchain") && name.trim_end_matches(".from_function").ends_with(".Tool")
        })
    }

    /// Returns where a decorator of the project changes the function's signature.
    fn changed_signature(&self, module: ModuleId, id: FunctionId) -> Option<LocatedExpr<'_>> {
        let function = &self.module(module).functions[id];
        let outside = self.module(module).scopes[function.scope].parent.unwrap_or(0);
        function.decorators.iter().filter(|decorator| !is_decorator(decorator)).find_map(|decorator| {
            let decorator = LocatedExpr::new(module, outside, decorator);
            let callee = decorator.call().map_or_else(|| decorator.clone(), |call| decorator.with(&call.callee));
            let ResolvedValue::Function(home, decorator) = self.resolve(&callee) else { return None };
            let source = self.module(home);
            let mut scopes = vec![source.functions[decorator].scope];
            while let Some(scope) = scopes.pop() {
                scopes.extend(&source.scopes[scope].inner);
                let mut statements = source.scopes[scope].statements.iter();
                let set = statements.find_map(|statement| match statement {
                    Statement::SetMember { name, value, .. } if name == "__signature__" => Some(value),
                    _ => None,
                });
                if let Some(set) = set {
                    return Some(LocatedExpr::new(home, scope, set));
                }
            }
            None
        })
    }

    /// Returns the values assigned to an attribute of a function before it becomes a tool: `f.__name__ = …`.
    fn assigned_attributes(&self, module: ModuleId, id: FunctionId, name: &str) -> Vec<LocatedExpr<'_>> {
        let source = self.module(module);
        // A decorator has already read the attributes.
        if source.functions[id].decorators.iter().any(is_decorator) {
            return Vec::new();
        }
        let is_same_function = |object: &LocatedExpr<'_>| matches!(self.resolve(object), ResolvedValue::Function(home, function) if (home, function) == (module, id));
        let mut values = Vec::new();
        for (scope, statements) in source.scopes.iter().map(|scope| &scope.statements).enumerate() {
            for statement in statements {
                if let Statement::SetMember { object, name: set, value } = statement
                    && set == name
                    && is_same_function(&LocatedExpr::new(module, scope, object))
                {
                    values.push(LocatedExpr::new(module, scope, value));
                }
            }
        }
        values
    }

    fn assigned_text(&self, module: ModuleId, id: FunctionId, name: &str) -> Option<Result<String, UnknownReason>> {
        match self.assigned_attributes(module, id, name).as_slice() {
            [] => None,
            [only] => Some(self.text(only)),
            [first, ..] => Some(Err(self.unknown_reason(first, format!("'{name}' is assigned more than once")))),
        }
    }

    /// Returns the docstring of a function when it becomes a tool, with its offset.
    fn docstring(&self, module: ModuleId, id: FunctionId) -> Option<Result<(String, u32), UnknownReason>> {
        let function = &self.module(module).functions[id];
        match self.assigned_text(module, id, "__doc__") {
            Some(text) => Some(text.map(|text| (text, function.at))),
            None => function.docstring.as_ref().map(|doc| Ok((doc.text.clone(), doc.at))),
        }
    }

    fn visit_expressions(
        &self,
        module: ModuleId,
        scope: ScopeId,
        expr: &Expr,
        variable: Option<&str>,
        discovery: &mut Discovery,
    ) {
        expr.walk(&mut |inner| {
            let located = LocatedExpr::new(module, scope, inner);
            self.visit_expression(&located, variable, discovery);
            // A function or method of the project may create the tool.
            if let Some(result) = self.resolve_call_result(&located) {
                discovery.call_site = Some(((module, inner.at), self.location(&located)));
                self.visit_expression(&result, variable, discovery);
                discovery.call_site = None;
            }
        });
    }

    fn visit_expression<'p>(&'p self, located: &LocatedExpr<'p>, variable: Option<&str>, discovery: &mut Discovery) {
        match &located.expr.kind {
            Kind::Call(call) => self.visit_call(located, call, variable, discovery),
            Kind::Object(_) => self.visit_dictionary(located, variable, discovery),
            _ => {}
        }
    }

    fn visit_call<'p>(
        &'p self,
        located: &LocatedExpr<'p>,
        call: &'p Call,
        variable: Option<&str>,
        discovery: &mut Discovery,
    ) {
        let settings = Settings { call, located, is_decorator: false };
        // `mcp.tool(name="x")(function)`
        if let (Kind::Call(inner), [argument]) = (&call.callee.kind, call.arguments.as_slice())
            && is_decorator(&call.callee)
            && let Some((home, id)) = self.function(&located.with(argument))
        {
            let inner_located = located.with(&call.callee);
            let settings = Settings { call: inner, located: &inner_located, is_decorator: false };
            self.add_function_tool(home, id, self.library(&inner_located), Some(&settings), discovery);
            return;
        }
        let name = call.callee.last_name().unwrap_or_default();
        if name == "as_tool" {
            self.add_agent_as_tool(&settings, discovery);
            return;
        }
        if creates_tool(name) {
            let first = settings.positional(0).or_else(|| settings.named(&["model"]));
            if let Some((home, model)) = first.as_ref().and_then(|first| self.model(first)) {
                self.add_model_tool(home, model, Some(&settings), discovery);
                return;
            }
            let function = settings.named(&["func", "fn", "function", "coroutine", "callable", "handler"]);
            let function = match function {
                Some(function) => self.function(&function),
                None => call.arguments.iter().take(2).find_map(|argument| self.function(&located.with(argument))),
            };
            if let Some((home, id)) = function {
                let has_name = settings.named(&NAME_KEYS).is_some();
                // `Tool(name="x", func=f, description="…")` takes only the parameters from the function.
                let library = self.library(located);
                let is_wrapped = self.module(home).functions[id].decorators.iter().any(is_decorator);
                if !is_wrapped || has_name {
                    self.add_function_tool(home, id, library, Some(&settings), discovery);
                }
                return;
            }
        }
        if let Some(agent) = settings.named(&["agent"]).filter(|_| name == "AgentTool") {
            self.add_agent_tool(located, &agent, discovery);
            return;
        }
        if self.add_instance_tool(located, call, discovery) {
            return;
        }
        if is_constructor_name(name) && settings.named(&["name"]).is_some() {
            self.add_constructed_tool(&settings, variable, discovery);
            return;
        }
        let lists = call.named.iter().filter(|(name, _)| is_list_name(name)).map(|(_, list)| list);
        let positional = call.arguments.iter().take(3).filter(|_| is_listed(name, TOOL_LIST_CALLS));
        for list in lists.chain(positional) {
            self.add_listed_tools(&located.with(list), self.library(located), discovery);
        }
    }

    /// Adds the functions and models in a list of tools.
    fn add_listed_tools<'p>(&'p self, list: &LocatedExpr<'p>, library: Library, discovery: &mut Discovery) {
        for item in self.known_items(list) {
            if let Some((home, id)) = self.function(&item) {
                if !self.module(home).functions[id].decorators.iter().any(is_decorator) {
                    self.add_function_tool(home, id, library, None, discovery);
                }
            } else if let Some((home, model)) = self.model(&item) {
                self.add_model_tool(home, model, None, discovery);
            }
        }
    }

    fn function<'p>(&'p self, located: &LocatedExpr<'p>) -> Option<(ModuleId, FunctionId)> {
        match self.resolve(located) {
            ResolvedValue::Function(module, id) => {
                // A decorator's wrapper has the name of the wrapped function.
                let is_wrapper = self.module(module).functions[id].is_decorated_with("wraps");
                (!is_wrapper).then_some((module, id))
            }
            _ => None,
        }
    }

    /// Adds `agent.as_tool(tool_name=…, tool_description=…)`.
    fn add_agent_as_tool(&self, settings: &Settings<'_, '_>, discovery: &mut Discovery) {
        let located = settings.located;
        let name = settings.named(&NAME_KEYS).or_else(|| settings.positional(0));
        let name = match name.filter(|name| !is_none(name.expr)) {
            Some(name) => self.text(&name),
            None => match self.agent_name(settings) {
                Some(name) => name.map(|name| sanitise_function_name(&name).to_lowercase()),
                None => return,
            },
        };
        let text = settings.named(&DESCRIPTION_KEYS).or_else(|| settings.positional(1));
        let schema = match settings.named(&["parameters", "args_schema", "input_type"]) {
            Some(schema) => self.schema(Some(&schema)),
            None => Known::Known(single_string_schema("input")),
        };
        discovery.add(self.candidate(located, name, text.as_ref(), schema, None), |_| ());
    }

    /// Returns the name of the agent in `agent.as_tool(…)`.
    fn agent_name(&self, settings: &Settings<'_, '_>) -> Option<Result<String, UnknownReason>> {
        let Kind::Member(agent, _) = &settings.call.callee.kind else { return None };
        let agent = self.resolve_expr(&settings.located.with(agent))?;
        Some(self.text(&agent.with(agent.call()?.named("name")?)))
    }

    /// Adds `AgentTool(agent=researcher)`, which takes the name and description of the agent.
    fn add_agent_tool<'p>(&'p self, located: &LocatedExpr<'p>, agent: &LocatedExpr<'p>, discovery: &mut Discovery) {
        let Some(agent) = self.resolve_expr(agent) else { return };
        let Some(call) = agent.call() else { return };
        let settings = Settings { call, located: &agent, is_decorator: false };
        let Some(name) = settings.named(&["name"]) else { return };
        let description = settings.named(&["description"]);
        let schema = match settings.named(&["input_schema"]) {
            Some(schema) => self.schema(Some(&schema)),
            None => Known::Known(single_string_schema("request")),
        };
        discovery.add(self.candidate(located, self.text(&name), description.as_ref(), schema, None), |_| ());
    }

    /// Adds `Tool(name=…, description=…, inputSchema=…)`.
    fn add_constructed_tool(&self, settings: &Settings<'_, '_>, variable: Option<&str>, discovery: &mut Discovery) {
        let located = settings.located;
        let (Some(name), description) = (settings.named(&["name"]), settings.named(&DESCRIPTION_KEYS)) else { return };
        let schema = settings.named(&SCHEMA_KEYS);
        let is_function = settings.named(&FUNCTION_KEYS).is_some();
        if description.is_none() && schema.is_none() && !is_function {
            return;
        }
        let schema = match self.schema(schema.as_ref()) {
            Known::Absent if self.takes_single_string(settings) => Known::Known(single_string_schema("__arg1")),
            Known::Absent if settings.call.callee.last_name() == Some("create_retriever_tool") => {
                Known::Known(single_string_schema("query"))
            }
            Known::Absent if is_function => {
                Known::Unknown(self.unknown_reason(located, "cannot determine the signature of its function").into())
            }
            schema => schema,
        };
        discovery.add(self.candidate(located, self.text(&name), description.as_ref(), schema, variable), |_| ());
    }

    /// Adds a dictionary in the format of OpenAI, Anthropic, MCP, Bedrock or karat.
    fn visit_dictionary<'p>(&'p self, located: &LocatedExpr<'p>, variable: Option<&str>, discovery: &mut Discovery) {
        let Some(entries) = self.entries(located) else { return };
        self.ignore_parameters(&entries, discovery);
        if discovery.ignored.contains(&(located.module, located.expr.at)) {
            return;
        }
        for wrapper in ["function", "toolSpec"] {
            if let Some(inner) = entries.get(wrapper)
                && self.entries(inner).is_some_and(|inner| inner.get("name").is_some())
            {
                // The inner object is visited again on its own: mark it as seen.
                let origin = (inner.module, inner.expr.at);
                if let Some(inner) = self.resolve_expr(inner) {
                    self.add_object_tool(&inner, true, variable, discovery);
                }
                discovery.seen.insert(origin);
                return;
            }
        }
        let is_among_tools = variable.is_some_and(mentions_tools)
            || entries.get("type").and_then(|kind| self.text(kind).ok()).as_deref() == Some("function");
        self.add_object_tool(located, is_among_tools, variable, discovery);
    }

    /// Adds an object as a tool if it has a name, a description and a schema, or less where tools are expected.
    pub(crate) fn add_object_tool<'p>(
        &'p self,
        located: &LocatedExpr<'p>,
        is_among_tools: bool,
        variable: Option<&str>,
        discovery: &mut Discovery,
    ) {
        let Some(entries) = self.entries(located) else { return };
        let Some(name) = entries.get("name") else { return };
        let schema = object_schema(self, &entries);
        let described = entries.any(&DESCRIPTION_KEYS);
        let is_tool =
            schema.is_some() && described.is_some() || is_among_tools && (described.is_some() || schema.is_some());
        let name = self.text(name);
        let is_value = schema.as_ref().is_some_and(|schema| self.is_not_a_schema(schema));
        if !is_tool || is_value || name.as_ref().is_ok_and(|name| !is_tool_name(name)) {
            return;
        }
        discovery.add_bases(&entries, &name);
        let candidate = self.candidate(located, name, described, self.schema(schema.as_ref()), variable);
        discovery.add(candidate, |tool| self.read_extra_fields(&entries, tool));
    }

    /// Returns the names that lead to a definition: its own and those of the enclosing functions and classes.
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
pub(super) struct Settings<'s, 'p> {
    pub(super) call: &'p Call,
    pub(super) located: &'s LocatedExpr<'p>,
    pub(super) is_decorator: bool,
}

impl<'p> Settings<'_, 'p> {
    pub(super) fn named(&self, keys: &[&str]) -> Option<LocatedExpr<'p>> {
        keys.iter().find_map(|key| self.call.named(key)).map(|value| self.located.with(value))
    }

    fn positional(&self, number: usize) -> Option<LocatedExpr<'p>> {
        self.call.arguments.get(number).map(|value| self.located.with(value))
    }

    /// Returns the leading strings among the positional arguments, skipping functions.
    pub(super) fn texts(&self, project: &'p Project) -> Vec<(LocatedExpr<'p>, String)> {
        let mut texts = Vec::new();
        for argument in &self.call.arguments {
            let argument = self.located.with(argument);
            match project.text(&argument) {
                Ok(text) => texts.push((argument, text)),
                // `Tool("name", function, "description")`
                Err(_) if texts.is_empty() || project.function(&argument).is_some() => {}
                Err(_) => break,
            }
        }
        texts
    }

    /// Returns the first text among the positional arguments.
    pub(super) fn first_text(&self, project: &'p Project) -> Option<String> {
        Some(self.texts(project).into_iter().next()?.1)
    }

    pub(super) fn flag(&self, project: &'p Project, name: &str) -> Option<bool> {
        self.named(&[name]).and_then(|flag| project.boolean(&flag))
    }
}

/// Returns the schema of an object, unless it is a list, which is not a schema of arguments.
fn object_schema<'p>(project: &'p Project, entries: &Entries<'p>) -> Option<LocatedExpr<'p>> {
    let value = entries.any(PLAIN_SCHEMA_KEYS)?;
    let is_list = project.items(value).is_some();
    (!is_list).then(|| value.clone())
}

pub(super) fn is_decorator(decorator: &Expr) -> bool {
    decorator.last_name().is_some_and(creates_tool)
}

/// Decorators and calls that turn a function into a tool and whose names do not end with `tool`.
const OTHER_TOOL_CONSTRUCTORS: &str = "tool_plain tool_function kernel_function ai_function ai_callable register_for_llm from_function \
    from_schema from_defaults register_function add_function";

/// Whether a decorator or call turns a function into a tool.
fn creates_tool(name: &str) -> bool {
    is_tool_constructor(name) || is_listed(name, OTHER_TOOL_CONSTRUCTORS)
}

/// Calls that take a list of tools as one of their first arguments.
const TOOL_LIST_CALLS: &str = "create_react_agent create_agent create_tool_calling_agent create_openai_tools_agent bind_tools ToolNode \
    FunctionToolset add_tools initialize_agent";

/// Whether a list of this name contains tools.
fn is_list_name(name: &str) -> bool {
    name == "tools" || name == "functions"
}

fn is_constructor_name(name: &str) -> bool {
    let words = words(name);
    let is_definition = words.last().is_some_and(|word| is_listed(word, "definition declaration spec param"));
    is_tool_constructor(name) || is_definition && words.iter().any(|word| word == "tool" || word == "function")
}

fn remove_parameter(schema: &mut Value, name: &str) {
    let Some(members) = schema.as_object_mut() else { return };
    if let Some(properties) = members.get_mut("properties").and_then(Value::as_object_mut) {
        properties.shift_remove(name);
    }
    if let Some(required) = members.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|required| required != name);
        if required.is_empty() {
            members.shift_remove("required");
        }
    }
}

fn is_none(expr: &Expr) -> bool {
    matches!(expr.kind, Kind::Null)
}
