//! Finds tools in TypeScript and JavaScript modules: calls that register or create a tool, objects in the usual
//! formats, and classes.

use karat_cases::registry::{Gap, GapKind, Known};
use serde_json::{Value, json};

use super::discovery::{
    Discovery, FUNCTION_KEYS, PLAIN_SCHEMA_KEYS, SCHEMA_KEYS, ends_with_tool, is_tool_constructor, is_tool_name,
    may_create_tool, mentions_tools, sanitise_function_name, single_string_schema, words,
};
use super::evaluate::{LocatedExpr, ResolvedValue, UnknownReason};
use super::keys::Keys;
use super::project::{ModuleId, Project};
use super::syntax::{Call, ClassId, Definition, Export, Expr, FunctionId, Kind, Language, ScopeId, Statement};
use super::text::is_listed;
use super::values::Entries;

const NAME_KEYS: [&str; 4] = ["name", "id", "toolName", "tool_name"];
pub(super) const DESCRIPTION_KEYS: [&str; 4] = ["description", "toolDescription", "desc", "tool_description"];

impl Project {
    pub(crate) fn find_javascript_tools(&self, module: ModuleId, keys: &Keys, discovery: &mut Discovery) {
        for scope in 0..self.module(module).scopes.len() {
            for statement in &self.module(module).scopes[scope].statements {
                self.reset_statement_steps();
                match statement {
                    Statement::Assign { name, value: Some(value), annotation } => {
                        let is_object = scope == 0 && matches!(value.kind, Kind::Object(_));
                        let is_tool =
                            annotation.as_ref().is_some_and(is_tool_type) || is_object && self.is_tool_file(module);
                        self.visit_script_expressions(module, scope, value, Some(name), is_tool, keys, discovery);
                    }
                    Statement::SetMember { value, .. } | Statement::Return(value) | Statement::Expression(value) => {
                        self.visit_script_expressions(module, scope, value, None, false, keys, discovery);
                    }
                    Statement::Define { defined: Definition::Class(id), .. } => {
                        self.add_script_class(module, *id, discovery);
                    }
                    _ => {}
                }
            }
        }
        // `@Tool({ name, description, parameters }) async search() { … }`
        for function in &self.module(module).functions {
            let scope = self.module(module).scopes[function.scope].parent.unwrap_or(0);
            for decorator in &function.decorators {
                self.visit_script_expressions(module, scope, decorator, None, false, keys, discovery);
            }
        }
        for export in &self.module(module).exports {
            if let Export::Local { name, value } = export {
                if let Kind::Class(id) = value.kind {
                    self.add_script_class(module, id, discovery);
                }
                let name = (name != "default").then_some(name.as_str());
                self.visit_script_expressions(module, 0, value, name, false, keys, discovery);
            }
        }
    }

    /// Whether a file contains tools, by its name: `tools.ts`, `search.tool.ts`, `tools/search.ts`.
    pub(crate) fn is_tool_file(&self, module: ModuleId) -> bool {
        let path = &self.module(module).path;
        let names = path.components().rev().take(2).map(|part| part.as_os_str().to_string_lossy().to_lowercase());
        names.into_iter().any(|name| name.contains("tool"))
    }

    /// Reports exports of a registry file that may be tools but are computed at run time.
    pub(crate) fn report_hidden_tools(&self, module: ModuleId, discovery: &mut Discovery) {
        let source = self.module(module);
        let exported = source.exports.iter().filter_map(|export| match export {
            Export::Local { value, .. } if source.language == Language::JavaScript => Some(value),
            _ => None,
        });
        let named = source.scopes[0].statements.iter().filter_map(|statement| match statement {
            Statement::Assign { name, value: Some(value), .. } if source.language == Language::Python => {
                name.to_lowercase().ends_with("tools").then_some(value)
            }
            _ => None,
        });
        for value in exported.filter(|_| self.is_tool_file(module)).chain(named) {
            self.reset_statement_steps();
            let Some(value) = self.resolve_expr(&LocatedExpr::new(module, 0, value)) else { continue };
            let Some(call) = value.call() else { continue };
            if discovery.seen.contains(&(value.module, value.expr.at)) || self.zod(&value).is_some() {
                continue;
            }
            let name = call.callee.dotted().unwrap_or_else(|| "a function".to_owned());
            let message = format!("'{name}(…)' may return tools that are known only at run time");
            discovery.gaps.push((
                (module, value.expr.at),
                Gap { kind: GapKind::Unknown, location: self.location(&value), message },
            ));
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the context of the expression")]
    fn visit_script_expressions(
        &self,
        module: ModuleId,
        scope: ScopeId,
        expr: &Expr,
        variable: Option<&str>,
        is_tool_type: bool,
        keys: &Keys,
        discovery: &mut Discovery,
    ) {
        let is_tool_variable = variable.is_some_and(mentions_tools);
        let read = |located: &LocatedExpr<'_>, discovery: &mut Discovery| match &located.expr.kind {
            Kind::Call(call) => self.visit_script_call(located, call, variable, keys, discovery),
            Kind::Object(_) => self.visit_script_object(located, is_tool_type || is_tool_variable, variable, discovery),
            Kind::Class(id) => self.add_script_class(located.module, *id, discovery),
            _ => {}
        };
        expr.walk(&mut |inner| {
            let located = LocatedExpr::new(module, scope, inner);
            read(&located, discovery);
            // A function or method of the project may create the tool.
            if let Some(result) = self.resolve_call_result(&located) {
                discovery.call_site = Some(((module, inner.at), self.location(&located)));
                read(&result, discovery);
                discovery.call_site = None;
            }
        });
    }

    fn visit_script_call<'p>(
        &'p self,
        located: &LocatedExpr<'p>,
        call: &'p Call,
        variable: Option<&str>,
        keys: &Keys,
        discovery: &mut Discovery,
    ) {
        let Some(name) = call.callee.last_name() else { return };
        if !may_create_tool(name) && !ends_with_tool(name) {
            self.ignore_arguments(located, call, discovery);
            return;
        }
        let arguments: Vec<LocatedExpr<'p>> = call.arguments.iter().map(|argument| located.with(argument)).collect();
        // `registerTool(server, "name", …)` takes the server first.
        let skipped =
            usize::from(arguments.len() > 1 && self.may_be_server(&arguments[0]) && self.is_text(&arguments[1]));
        let arguments = &arguments[skipped..];
        let Some(first) = arguments.first() else { return };
        if self.is_text(first) {
            // `withTool("name", { description, inputSchema }, …)` is a definition by its arguments.
            let is_whole = |entries: Entries<'_>| {
                entries.any(&DESCRIPTION_KEYS).is_some() && entries.any(PLAIN_SCHEMA_KEYS).is_some()
            };
            if is_tool_constructor(name)
                || arguments.iter().any(|argument| self.entries(argument).is_some_and(is_whole))
            {
                self.add_positional_tool(located, arguments, variable, discovery);
            }
            return;
        }
        if !may_create_tool(name) {
            return;
        }
        if name == "asTool" {
            self.add_script_agent_as_tool(located, call, first, variable, discovery);
        }
        let objects =
            arguments.iter().filter_map(|argument| Some((self.resolve_expr(argument)?, self.entries(argument)?)));
        for (object, entries) in objects {
            let schema = entries.any(&SCHEMA_KEYS);
            let has_more = schema.is_some() || entries.any(&FUNCTION_KEYS).is_some() || arguments.len() > 1;
            let is_described = entries.any(&DESCRIPTION_KEYS).is_some() && has_more;
            let is_runnable = entries.any(PLAIN_SCHEMA_KEYS).is_some() && entries.any(&FUNCTION_KEYS).is_some();
            // `defineTool({ schema: { name, description, inputSchema }, handle })` has the tool in its schema.
            let contains_tool = schema
                .and_then(|schema| self.entries(schema))
                .is_some_and(|inner| inner.get("name").is_some() && inner.any(PLAIN_SCHEMA_KEYS).is_some());
            if contains_tool || !is_described && !is_runnable {
                continue;
            }
            // A server or an agent that has tools.
            if entries.get("tools").is_some() && schema.is_none() {
                continue;
            }
            let origin = (located.module, located.expr.at);
            let site = discovery.call_site.as_ref().map_or(origin, |(site, _)| *site);
            let is_constructor = is_tool_constructor(name);
            let key = keys.key(site).or_else(|| keys.key(origin)).cloned();
            let target_variable =
                keys.variable(site).or_else(|| keys.variable(origin)).map(String::as_str).or(variable);
            let mut named = entries.any(&NAME_KEYS).map(|name| self.text(name));
            if self.is_agents_sdk(located, call) {
                named = named.map(|name| name.map(|name| sanitise_function_name(&name)));
            }
            let key = self.function_of_agents_sdk(located, call, &entries).or(key.filter(|_| is_constructor));
            let is_mastra = self.is_mastra(&located.with(&call.callee));
            let offered = keys.agent_key(origin).filter(|_| is_mastra).cloned();
            if is_constructor && (named.is_none() && key.is_none() || is_mastra && offered.is_none()) {
                discovery.unnamed_modules.insert(located.module);
            }
            let name = match (
                offered.map(Ok).or(named),
                key.or_else(|| target_variable.filter(|_| is_constructor).map(str::to_owned)),
            ) {
                (Some(name), _) => name,
                (None, Some(key)) => Ok(key),
                (None, None) if skipped == 0 && is_constructor => Err(self.missing_name_reason(located, keys)),
                (None, None) => return,
            };
            discovery.seen.insert((object.module, object.expr.at));
            self.add_described_tool(located, name, &entries, variable, discovery);
            return;
        }
    }

    /// Ignores objects that are passed to a library function unrelated to tools:
    /// `createStep({ name, description, inputSchema })`.
    fn ignore_arguments(&self, located: &LocatedExpr<'_>, call: &Call, discovery: &mut Discovery) {
        let is_other = |name: &String| !words(name).iter().any(|word| is_listed(word, "function action"));
        let is_name = matches!(&call.callee.kind, Kind::Name(name) if is_other(name));
        if !is_name || self.foreign_name(&located.with(&call.callee)).is_none_or(|name| !name.contains('.')) {
            return;
        }
        let objects = call.arguments.iter().filter(|argument| matches!(argument.kind, Kind::Object(_)));
        discovery.ignored.extend(objects.map(|object| (located.module, object.at)));
    }

    /// Explains why a tool has no name, and what to read instead.
    fn missing_name_reason(&self, located: &LocatedExpr<'_>, keys: &Keys) -> UnknownReason {
        let names = keys.importer_names((located.module, located.expr.at));
        let names = names.map(|(name, module)| format!("'{name}' in {}", self.module(*module).display_path));
        let names = names.collect::<Vec<_>>().join(", ");
        let reason = if names.is_empty() {
            "the tool is registered without a name; read the file that adds it to 'tools' instead".to_owned()
        } else {
            format!("other files give it different names ({names}); read one of them instead")
        };
        self.unknown_reason(located, reason)
    }

    /// Adds `agent.asTool({ toolName, toolDescription })`.
    fn add_script_agent_as_tool<'p>(
        &'p self,
        located: &LocatedExpr<'p>,
        call: &'p Call,
        settings: &LocatedExpr<'p>,
        variable: Option<&str>,
        discovery: &mut Discovery,
    ) {
        let Some(entries) = self.entries(settings).filter(|entries| entries.any(&SCHEMA_KEYS).is_none()) else {
            return;
        };
        let agent_name = || {
            let Kind::Member(agent, _) = &call.callee.kind else { return None };
            let agent = self.resolve_expr(&located.with(agent))?;
            let name = self.entry(&agent.with(agent.call()?.arguments.first()?), "name")?;
            Some(self.text(&name).map(|name| sanitise_function_name(&name)))
        };
        let Some(name) = entries.any(&NAME_KEYS).map(|name| self.text(name)).or_else(agent_name) else { return };
        let schema = Known::Known(single_string_schema("input"));
        let candidate = self.candidate(located, name, entries.any(&DESCRIPTION_KEYS), schema, variable);
        discovery.add(candidate, |_| ());
    }

    /// Returns the name of the function that runs a tool: the default tool name in the OpenAI Agents SDK.
    fn function_of_agents_sdk<'p>(
        &'p self,
        located: &LocatedExpr<'p>,
        call: &'p Call,
        entries: &Entries<'p>,
    ) -> Option<String> {
        if !self.is_agents_sdk(located, call) {
            return None;
        }
        let ResolvedValue::Function(module, id) = self.resolve(entries.get("execute")?) else { return None };
        let name = &self.module(module).functions[id].name;
        (!name.is_empty()).then(|| sanitise_function_name(name))
    }

    fn is_agents_sdk<'p>(&'p self, located: &LocatedExpr<'p>, call: &'p Call) -> bool {
        self.foreign_name(&located.with(&call.callee)).is_some_and(|name| name.starts_with("@openai/agents"))
    }

    fn add_described_tool<'p>(
        &'p self,
        located: &LocatedExpr<'p>,
        name: Result<String, UnknownReason>,
        entries: &Entries<'p>,
        variable: Option<&str>,
        discovery: &mut Discovery,
    ) {
        let mut schema = self.schema(entries.any(&SCHEMA_KEYS));
        if schema == Known::Absent {
            match located.call().and_then(|call| call.callee.last_name()) {
                Some("DynamicTool") => schema = Known::Known(optional_input()),
                Some("createRetrieverTool") => schema = Known::Known(single_string_schema("query")),
                _ if !entries.is_open
                    && located.call().is_some_and(|call| self.is_mastra(&located.with(&call.callee))) =>
                {
                    schema = Known::Known(json!({ "type": "object", "properties": {} }));
                }
                _ => {}
            }
        }
        self.record_handlers(located, entries.list.iter().map(|(.., value)| value), discovery);
        discovery.add_bases(entries, &name);
        let mut candidate = self.candidate(located, name, entries.any(&DESCRIPTION_KEYS), schema, variable);
        self.mark_unknown_fields(located, entries, &mut candidate);
        discovery.add(candidate, |tool| self.read_extra_fields(entries, tool));
    }

    fn visit_script_object<'p>(
        &'p self,
        located: &LocatedExpr<'p>,
        is_among_tools: bool,
        variable: Option<&str>,
        discovery: &mut Discovery,
    ) {
        let origin = (located.module, located.expr.at);
        if discovery.seen.contains(&origin) {
            return;
        }
        let Some(entries) = self.entries(located) else { return };
        let is_function = entries.get("type").and_then(|kind| self.text(kind).ok()).as_deref() == Some("function");
        if let Some(inner) = entries.get("function").filter(|_| is_function) {
            if let (Some(object), Some(inner)) = (self.resolve_expr(inner), self.entries(inner)) {
                discovery.seen.insert((object.module, object.expr.at));
                // A tool call has arguments instead of a schema.
                let is_call = inner.get("arguments").is_some() && inner.any(PLAIN_SCHEMA_KEYS).is_none();
                if let Some(name) = inner.get("name").filter(|_| !is_call) {
                    self.add_described_tool(located, self.text(name), &inner, variable, discovery);
                }
            }
            return;
        }
        self.add_keyed_tools(&entries, is_among_tools, discovery);
        self.ignore_parameters(&entries, discovery);
        if discovery.ignored.contains(&origin) {
            return;
        }
        // An `id` with a description is not specific to tools.
        let is_runnable = entries.any(PLAIN_SCHEMA_KEYS).is_some() || entries.any(&FUNCTION_KEYS).is_some();
        let id = || entries.get("id").filter(|_| is_among_tools && is_runnable);
        let Some(name) = entries.get("name").or_else(id) else { return };
        let schema = entries.any(PLAIN_SCHEMA_KEYS);
        let has_function = entries.any(&FUNCTION_KEYS).is_some();
        let described = entries.any(&DESCRIPTION_KEYS).is_some();
        if schema.is_none() && !described && (has_function || is_among_tools) {
            self.add_split_tool(located, name, &entries, variable, discovery);
            return;
        }
        // Exclude fields of a type, parameters and prompts.
        let is_value = |schema| self.is_not_a_schema(schema);
        let is_prompt = !is_among_tools && entries.get("argsSchema").is_some() && !self.is_tool_file(located.module);
        if self.zod(name).is_some() || schema.is_some_and(is_value) || is_prompt {
            return;
        }
        // Prompts have a list of arguments, commands a list of parameters.
        let has_list = schema.is_some_and(|schema| self.items(schema).is_some());
        let is_tool = !has_list
            && (described && (schema.is_some() || is_among_tools)
                || schema.is_some() && (has_function || is_among_tools || is_function));
        let is_other = schema.is_none()
            && (entries.any(&["tools", "instructions", "command"]).is_some()
                || !is_among_tools && entries.get("version").is_some());
        let name = self.text(name);
        if !is_tool || is_other || name.as_ref().is_ok_and(|name| !is_tool_name(name)) {
            return;
        }
        // Without a known name, an object is a tool only on stronger evidence.
        if name.is_err() && !(schema.is_some() && (has_function || is_among_tools)) {
            return;
        }
        self.add_described_tool(located, name, &entries, variable, discovery);
    }

    /// Adds `{ name: "…", definition: { description: "…", inputSchema }, handler }`.
    fn add_split_tool<'p>(
        &'p self,
        located: &LocatedExpr<'p>,
        name: &LocatedExpr<'p>,
        entries: &Entries<'p>,
        variable: Option<&str>,
        discovery: &mut Discovery,
    ) {
        let parts = entries.list.iter().filter_map(|(.., value)| Some((value, self.entries(value)?)));
        let mut whole = parts.filter(|(_, part)| {
            part.any(&DESCRIPTION_KEYS).is_some() && part.any(PLAIN_SCHEMA_KEYS).is_some() && part.get("name").is_none()
        });
        let (Some((part, definition)), None) = (whole.next(), whole.next()) else { return };
        let name = self.text(name);
        if name.as_ref().is_ok_and(|name| is_tool_name(name)) {
            discovery.seen.extend(self.resolve_expr(part).map(|part| (part.module, part.expr.at)));
            self.add_described_tool(located, name, &definition, variable, discovery);
        }
    }

    /// Adds `tools: { weather: { description: "…", inputSchema, execute } }`.
    fn add_keyed_tools(&self, entries: &Entries<'_>, is_among_tools: bool, discovery: &mut Discovery) {
        let tools = entries.get("tools").and_then(|tools| self.entries(tools));
        let own = is_among_tools.then_some(entries);
        for (is_listed, tools) in tools.iter().map(|tools| (true, tools)).chain(own.map(|tools| (false, tools))) {
            // Next to `tool({…})`, an object without a function is a tool too: the client runs it.
            let has_calls = tools.list.iter().any(|(.., value)| self.call_origin(value).is_some());
            for (key, _, value) in &tools.list {
                let Some(object) =
                    self.resolve_expr(value).filter(|object| matches!(object.expr.kind, Kind::Object(_)))
                else {
                    continue;
                };
                let Some(tool) = self.entries(&object) else { continue };
                let is_whole = tool.any(&DESCRIPTION_KEYS).is_some() && tool.any(PLAIN_SCHEMA_KEYS).is_some();
                let is_runnable = is_listed || has_calls || tool.any(&FUNCTION_KEYS).is_some();
                if is_whole && is_runnable && tool.any(&NAME_KEYS).is_none() {
                    self.add_described_tool(&object, Ok(key.clone()), &tool, None, discovery);
                }
            }
        }
    }

    fn add_script_class(&self, module: ModuleId, id: ClassId, discovery: &mut Discovery) {
        let class = &self.module(module).classes[id];
        let extends_tool = class.bases.iter().any(|base| base.last_name().is_some_and(|name| name.contains("Tool")));
        // A library's base class takes the fields from the constructor: `super({ name: … })`.
        let super_object = self.super_call(module, id).and_then(|located| {
            let object = located.call()?.arguments.iter().find(|argument| matches!(argument.kind, Kind::Object(_)))?;
            Some(located.with(object))
        });
        let field = |keys: &[&str]| {
            let from_super = || self.entries(super_object.as_ref()?)?.any(keys).cloned().map(ResolvedValue::Expr);
            self.class_field(module, id, None, keys).or_else(from_super)
        };
        let Some(name) = self.class_name(field(&["name", "toolName"])) else { return };
        let (description, schema) = (field(&DESCRIPTION_KEYS), field(PLAIN_SCHEMA_KEYS));
        let is_tool =
            extends_tool && (description.is_some() || schema.is_some()) || description.is_some() && schema.is_some();
        if !is_tool || name.as_ref().is_ok_and(|name| !is_tool_name(name)) {
            return;
        }
        let scope = self.module(module).scopes[class.scope].parent.unwrap_or(0);
        let is_langchain = |base: &Expr| {
            let name = self.foreign_name(&LocatedExpr::new(module, scope, base)).unwrap_or_default();
            name.contains("langchain") && name.ends_with(".Tool")
        };
        let schema = match self.class_schema(schema) {
            Known::Absent if class.bases.iter().any(is_langchain) => Known::Known(optional_input()),
            schema => schema,
        };
        discovery.handlers.insert((module, class.scope));
        discovery.add(self.class_candidate(module, id, name, description, schema), |_| ());
    }

    /// Records the functions of a tool: those inside its definition and those passed by name.
    pub(super) fn record_handlers<'s>(
        &self,
        located: &LocatedExpr<'_>,
        handlers: impl Iterator<Item = &'s LocatedExpr<'s>>,
        discovery: &mut Discovery,
    ) {
        let mut add = |module: ModuleId, id: FunctionId| {
            discovery.handlers.insert((module, self.module(module).functions[id].scope))
        };
        located.expr.walk(&mut |inner| {
            if let Kind::Function(id) = inner.kind {
                add(located.module, id);
            }
        });
        for value in handlers {
            if let ResolvedValue::Function(module, id) = self.resolve(value) {
                add(module, id);
            }
        }
    }

    /// Whether an expression is a string, known or not: a literal, a template or a constant.
    pub(super) fn is_text(&self, located: &LocatedExpr<'_>) -> bool {
        self.text(located).is_ok()
            || matches!(located.expr.kind, Kind::Template(_))
            || self
                .resolve_expr(located)
                .is_some_and(|resolved| matches!(resolved.expr.kind, Kind::Template(_) | Kind::Add(..)))
    }

    /// Whether an expression may be a server: it is neither a string nor an object nor a function.
    fn may_be_server(&self, located: &LocatedExpr<'_>) -> bool {
        !self.is_text(located)
            && self.entries(located).is_none()
            && !matches!(self.resolve(located), ResolvedValue::Function(..))
    }
}

/// Returns the schema of `LangChain` tools that take a string.
fn optional_input() -> Value {
    json!({"type": "object", "properties": {"input": {"type": "string"}}})
}

fn is_tool_type(annotation: &Expr) -> bool {
    match &annotation.kind {
        Kind::List(items) => items.iter().any(is_tool_type),
        Kind::Name(name) => {
            name.ends_with("Tool")
                || name.ends_with("ToolDefinition")
                || name.ends_with("ToolConfig")
                || name == "FunctionDeclaration"
                || name.ends_with("ChatCompletionTool")
        }
        _ => false,
    }
}
