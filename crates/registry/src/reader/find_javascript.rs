//! Tools in TypeScript and JavaScript modules: calls that register or make a tool, objects in the usual shapes, and
//! classes.

use karat_core::registry::{Gap, GapKind, Known};
use serde_json::{Value, json};

use super::evaluate::{Located, Meaning, Why};
use super::found::{
    FUNCTION_KEYS, Findings, PLAIN_SCHEMA_KEYS, SCHEMA_KEYS, function_name, is_tool_maker, is_tool_name, makes_tool,
    names_tool, one_text, says_tools, words,
};
use super::keys::Keys;
use super::project::{ModuleId, Project};
use super::syntax::{Call, ClassId, Definition, Export, Expr, FunctionId, Kind, Language, ScopeId, Statement};
use super::text::is_listed;
use super::values::Entries;

const NAME_KEYS: [&str; 4] = ["name", "id", "toolName", "tool_name"];
pub(super) const DESCRIPTION_KEYS: [&str; 4] = ["description", "toolDescription", "desc", "tool_description"];

impl Project {
    pub(crate) fn find_in_javascript(&self, module: ModuleId, keys: &Keys, findings: &mut Findings) {
        for scope in 0..self.module(module).scopes.len() {
            for statement in &self.module(module).scopes[scope].statements {
                self.next_statement();
                match statement {
                    Statement::Assign { name, value: Some(value), annotation } => {
                        let is_object = scope == 0 && matches!(value.kind, Kind::Object(_));
                        let is_tool =
                            annotation.as_ref().is_some_and(is_tool_type) || is_object && self.is_tool_file(module);
                        self.script_expressions(module, scope, value, Some(name), is_tool, keys, findings);
                    }
                    Statement::SetMember { value, .. } | Statement::Return(value) | Statement::Expression(value) => {
                        self.script_expressions(module, scope, value, None, false, keys, findings);
                    }
                    Statement::Define { defined: Definition::Class(id), .. } => {
                        self.script_class(module, *id, findings);
                    }
                    _ => {}
                }
            }
        }
        // `@Tool({ name, description, parameters }) async search() { … }`
        for function in &self.module(module).functions {
            let scope = self.module(module).scopes[function.scope].parent.unwrap_or(0);
            for decorator in &function.decorators {
                self.script_expressions(module, scope, decorator, None, false, keys, findings);
            }
        }
        for export in &self.module(module).exports {
            if let Export::Local { name, value } = export {
                if let Kind::Class(id) = value.kind {
                    self.script_class(module, id, findings);
                }
                let name = (name != "default").then_some(name.as_str());
                self.script_expressions(module, 0, value, name, false, keys, findings);
            }
        }
    }

    /// Tells whether a file says that it holds tools: `tools.ts`, `search.tool.ts`, `tools/search.ts`.
    pub(crate) fn is_tool_file(&self, module: ModuleId) -> bool {
        let path = &self.module(module).path;
        let names = path.components().rev().take(2).map(|part| part.as_os_str().to_string_lossy().to_lowercase());
        names.into_iter().any(|name| name.contains("tool"))
    }

    /// Reports what a registry file exports and only a run would show: it may be tools.
    pub(crate) fn hidden_tools(&self, module: ModuleId, findings: &mut Findings) {
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
            self.next_statement();
            let Some(found) = self.resolve(&Located::new(module, 0, value)) else { continue };
            let Some(call) = found.call() else { continue };
            if findings.seen.contains(&(found.module, found.expr.at)) || self.zod(&found).is_some() {
                continue;
            }
            let name = call.callee.dotted().unwrap_or_else(|| "a function".to_owned());
            let what = format!("there may be tools in what '{name}(…)' returns, which shows only at run time");
            findings
                .gaps
                .push(((module, found.expr.at), Gap { kind: GapKind::Unknown, place: self.place(&found), what }));
        }
    }

    #[expect(clippy::too_many_arguments, reason = "what is known of the place that the expression stands in")]
    fn script_expressions(
        &self,
        module: ModuleId,
        scope: ScopeId,
        expr: &Expr,
        variable: Option<&str>,
        is_tool_type: bool,
        keys: &Keys,
        findings: &mut Findings,
    ) {
        let says_tool = variable.is_some_and(says_tools);
        let read = |located: &Located<'_>, findings: &mut Findings| match &located.expr.kind {
            Kind::Call(call) => self.script_call(located, call, variable, keys, findings),
            Kind::Object(_) => self.script_object(located, is_tool_type || says_tool, variable, findings),
            Kind::Class(id) => self.script_class(located.module, *id, findings),
            _ => {}
        };
        expr.walk(&mut |inner| {
            let located = Located::new(module, scope, inner);
            read(&located, findings);
            // A function or method of the project may make the tool.
            if let Some(found) = self.made_by_call(&located) {
                findings.call_site = Some(((module, inner.at), self.place(&located)));
                read(&found, findings);
                findings.call_site = None;
            }
        });
    }

    fn script_call<'p>(
        &'p self,
        located: &Located<'p>,
        call: &'p Call,
        variable: Option<&str>,
        keys: &Keys,
        findings: &mut Findings,
    ) {
        let Some(name) = call.callee.last_name() else { return };
        if !makes_tool(name) && !names_tool(name) {
            self.pass_over_arguments(located, call, findings);
            return;
        }
        let arguments: Vec<Located<'p>> = call.arguments.iter().map(|argument| located.with(argument)).collect();
        // `registerTool(server, "name", …)` gets the server first.
        let skipped = usize::from(arguments.len() > 1 && self.is_other(&arguments[0]) && self.is_text(&arguments[1]));
        let arguments = &arguments[skipped..];
        let Some(first) = arguments.first() else { return };
        if self.is_text(first) {
            // `withTool("name", { description, inputSchema }, …)` says by its arguments that it is a definition.
            let is_whole = |entries: Entries<'_>| {
                entries.any(&DESCRIPTION_KEYS).is_some() && entries.any(PLAIN_SCHEMA_KEYS).is_some()
            };
            if is_tool_maker(name) || arguments.iter().any(|one| self.entries(one).is_some_and(is_whole)) {
                self.positional_tool(located, arguments, variable, findings);
            }
            return;
        }
        if !makes_tool(name) {
            return;
        }
        if name == "asTool" {
            self.agent_as_script_tool(located, call, first, variable, findings);
        }
        let objects = arguments.iter().filter_map(|argument| Some((self.resolve(argument)?, self.entries(argument)?)));
        for (object, entries) in objects {
            let schema = entries.any(&SCHEMA_KEYS);
            let has_more = schema.is_some() || entries.any(&FUNCTION_KEYS).is_some() || arguments.len() > 1;
            let is_described = entries.any(&DESCRIPTION_KEYS).is_some() && has_more;
            let is_run = entries.any(PLAIN_SCHEMA_KEYS).is_some() && entries.any(&FUNCTION_KEYS).is_some();
            // `defineTool({ schema: { name, description, inputSchema }, handle })` holds the tool in its schema.
            let holds_tool = schema
                .and_then(|schema| self.entries(schema))
                .is_some_and(|inner| inner.get("name").is_some() && inner.any(PLAIN_SCHEMA_KEYS).is_some());
            if holds_tool || !is_described && !is_run {
                continue;
            }
            // A server or an agent that has tools.
            if entries.get("tools").is_some() && schema.is_none() {
                continue;
            }
            let origin = (located.module, located.expr.at);
            let site = findings.call_site.as_ref().map_or(origin, |(site, _)| *site);
            let is_only = is_tool_maker(name);
            let key = keys.key(site).or_else(|| keys.key(origin)).cloned();
            let held = keys.variable(site).or_else(|| keys.variable(origin)).map(String::as_str).or(variable);
            let mut named = entries.any(&NAME_KEYS).map(|name| self.text(name));
            if self.is_agents_sdk(located, call) {
                named = named.map(|name| name.map(|name| function_name(&name)));
            }
            let key = self.function_of_agents_sdk(located, call, &entries).or(key.filter(|_| is_only));
            let is_mastra = self.is_mastra(&located.with(&call.callee));
            let offered = keys.agent_key(origin).filter(|_| is_mastra).cloned();
            if is_only && (named.is_none() && key.is_none() || is_mastra && offered.is_none()) {
                findings.nameless.insert(located.module);
            }
            let name = match (offered.map(Ok).or(named), key.or_else(|| held.filter(|_| is_only).map(str::to_owned))) {
                (Some(name), _) => name,
                (None, Some(key)) => Ok(key),
                (None, None) if skipped == 0 && is_only => Err(self.without_name(located, keys)),
                (None, None) => return,
            };
            findings.seen.insert((object.module, object.expr.at));
            self.described_tool(located, name, &entries, variable, findings);
            return;
        }
    }

    /// Passes over the objects that a library's function is given whose name does not speak of tools:
    /// `createStep({ name, description, inputSchema })`.
    fn pass_over_arguments(&self, located: &Located<'_>, call: &Call, findings: &mut Findings) {
        let is_other = |name: &String| !words(name).iter().any(|word| is_listed(word, "function action"));
        let is_name = matches!(&call.callee.kind, Kind::Name(name) if is_other(name));
        if !is_name || self.foreign_name(&located.with(&call.callee)).is_none_or(|name| !name.contains('.')) {
            return;
        }
        let objects = call.arguments.iter().filter(|argument| matches!(argument.kind, Kind::Object(_)));
        findings.passed_over.extend(objects.map(|object| (located.module, object.at)));
    }

    /// Says why a tool has no name, and what to read instead.
    fn without_name(&self, located: &Located<'_>, keys: &Keys) -> Why {
        let names = keys.importer_names((located.module, located.expr.at));
        let names = names.map(|(name, module)| format!("'{name}' in {}", self.module(*module).shown));
        let names = names.collect::<Vec<_>>().join(", ");
        let why = if names.is_empty() {
            "the tool is registered without a name of its own; read the file that puts it into 'tools' instead"
                .to_owned()
        } else {
            format!("other files give it several ({names}); read one of them instead")
        };
        self.why(located, why)
    }

    /// `agent.asTool({ toolName, toolDescription })`
    fn agent_as_script_tool<'p>(
        &'p self,
        located: &Located<'p>,
        call: &'p Call,
        settings: &Located<'p>,
        variable: Option<&str>,
        findings: &mut Findings,
    ) {
        let Some(entries) = self.entries(settings).filter(|entries| entries.any(&SCHEMA_KEYS).is_none()) else {
            return;
        };
        let agent_name = || {
            let Kind::Member(agent, _) = &call.callee.kind else { return None };
            let agent = self.resolve(&located.with(agent))?;
            let name = self.entry(&agent.with(agent.call()?.arguments.first()?), "name")?;
            Some(self.text(&name).map(|name| function_name(&name)))
        };
        let Some(name) = entries.any(&NAME_KEYS).map(|name| self.text(name)).or_else(agent_name) else { return };
        let schema = Known::Known(one_text("input"));
        let draft = self.draft(located, name, entries.any(&DESCRIPTION_KEYS), schema, variable);
        findings.add(draft, |_| ());
    }

    /// Returns the name of the function that runs a tool: the OpenAI Agents SDK takes it where no other is given.
    fn function_of_agents_sdk<'p>(
        &'p self,
        located: &Located<'p>,
        call: &'p Call,
        entries: &Entries<'p>,
    ) -> Option<String> {
        if !self.is_agents_sdk(located, call) {
            return None;
        }
        let Meaning::Function(module, id) = self.meaning(entries.get("execute")?) else { return None };
        let name = &self.module(module).functions[id].name;
        (!name.is_empty()).then(|| function_name(name))
    }

    fn is_agents_sdk<'p>(&'p self, located: &Located<'p>, call: &'p Call) -> bool {
        self.foreign_name(&located.with(&call.callee)).is_some_and(|name| name.starts_with("@openai/agents"))
    }

    fn described_tool<'p>(
        &'p self,
        located: &Located<'p>,
        name: Result<String, Why>,
        entries: &Entries<'p>,
        variable: Option<&str>,
        findings: &mut Findings,
    ) {
        let mut schema = self.schema(entries.any(&SCHEMA_KEYS));
        if schema == Known::Absent {
            match located.call().and_then(|call| call.callee.last_name()) {
                Some("DynamicTool") => schema = Known::Known(optional_input()),
                Some("createRetrieverTool") => schema = Known::Known(one_text("query")),
                _ if !entries.is_open
                    && located.call().is_some_and(|call| self.is_mastra(&located.with(&call.callee))) =>
                {
                    schema = Known::Known(json!({ "type": "object", "properties": {} }));
                }
                _ => {}
            }
        }
        self.note_handlers(located, entries.list.iter().map(|(.., value)| value), findings);
        findings.add_bases(entries, &name);
        let mut draft = self.draft(located, name, entries.any(&DESCRIPTION_KEYS), schema, variable);
        self.leave_open(located, entries, &mut draft);
        findings.add(draft, |tool| self.extras(entries, tool));
    }

    fn script_object<'p>(
        &'p self,
        located: &Located<'p>,
        is_among_tools: bool,
        variable: Option<&str>,
        findings: &mut Findings,
    ) {
        let origin = (located.module, located.expr.at);
        if findings.seen.contains(&origin) {
            return;
        }
        let Some(entries) = self.entries(located) else { return };
        let is_function = entries.get("type").and_then(|kind| self.text(kind).ok()).as_deref() == Some("function");
        if let Some(inner) = entries.get("function").filter(|_| is_function) {
            if let (Some(object), Some(inner)) = (self.resolve(inner), self.entries(inner)) {
                findings.seen.insert((object.module, object.expr.at));
                // A call of a tool has arguments instead.
                let is_call = inner.get("arguments").is_some() && inner.any(PLAIN_SCHEMA_KEYS).is_none();
                if let Some(name) = inner.get("name").filter(|_| !is_call) {
                    self.described_tool(located, self.text(name), &inner, variable, findings);
                }
            }
            return;
        }
        self.keyed_tools(&entries, is_among_tools, findings);
        self.pass_over_parameters(&entries, findings);
        if findings.passed_over.contains(&origin) {
            return;
        }
        // Much else has an `id` and a description.
        let is_run = entries.any(PLAIN_SCHEMA_KEYS).is_some() || entries.any(&FUNCTION_KEYS).is_some();
        let id = || entries.get("id").filter(|_| is_among_tools && is_run);
        let Some(name) = entries.get("name").or_else(id) else { return };
        let schema = entries.any(PLAIN_SCHEMA_KEYS);
        let has_function = entries.any(&FUNCTION_KEYS).is_some();
        let described = entries.any(&DESCRIPTION_KEYS).is_some();
        if schema.is_none() && !described && (has_function || is_among_tools) {
            self.divided_tool(located, name, &entries, variable, findings);
            return;
        }
        // Fields of a type, a parameter of something else, and a prompt.
        let is_value = |schema| self.is_no_schema(schema);
        let is_prompt = !is_among_tools && entries.get("argsSchema").is_some() && !self.is_tool_file(located.module);
        if self.zod(name).is_some() || schema.is_some_and(is_value) || is_prompt {
            return;
        }
        // A prompt has a list of arguments, a command a list of parameters.
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
        // An object without a name that is known is a tool only where it says so.
        if name.is_err() && !(schema.is_some() && (has_function || is_among_tools)) {
            return;
        }
        self.described_tool(located, name, &entries, variable, findings);
    }

    /// `{ name: "…", definition: { description: "…", inputSchema }, handler }`
    fn divided_tool<'p>(
        &'p self,
        located: &Located<'p>,
        name: &Located<'p>,
        entries: &Entries<'p>,
        variable: Option<&str>,
        findings: &mut Findings,
    ) {
        let parts = entries.list.iter().filter_map(|(.., value)| Some((value, self.entries(value)?)));
        let mut whole = parts.filter(|(_, part)| {
            part.any(&DESCRIPTION_KEYS).is_some() && part.any(PLAIN_SCHEMA_KEYS).is_some() && part.get("name").is_none()
        });
        let (Some((part, definition)), None) = (whole.next(), whole.next()) else { return };
        let name = self.text(name);
        if name.as_ref().is_ok_and(|name| is_tool_name(name)) {
            findings.seen.extend(self.resolve(part).map(|part| (part.module, part.expr.at)));
            self.described_tool(located, name, &definition, variable, findings);
        }
    }

    /// `tools: { weather: { description: "…", inputSchema, execute } }`
    fn keyed_tools(&self, entries: &Entries<'_>, is_among_tools: bool, findings: &mut Findings) {
        let listed = entries.get("tools").and_then(|tools| self.entries(tools));
        let own = is_among_tools.then_some(entries);
        for (is_listed, tools) in listed.iter().map(|tools| (true, tools)).chain(own.map(|tools| (false, tools))) {
            // Beside `tool({…})` even what has no function is a tool: the client runs it.
            let has_calls = tools.list.iter().any(|(.., value)| self.call_origin(value).is_some());
            for (key, _, value) in &tools.list {
                let Some(object) = self.resolve(value).filter(|one| matches!(one.expr.kind, Kind::Object(_))) else {
                    continue;
                };
                let Some(tool) = self.entries(&object) else { continue };
                let is_whole = tool.any(&DESCRIPTION_KEYS).is_some() && tool.any(PLAIN_SCHEMA_KEYS).is_some();
                let is_run = is_listed || has_calls || tool.any(&FUNCTION_KEYS).is_some();
                if is_whole && is_run && tool.any(&NAME_KEYS).is_none() {
                    self.described_tool(&object, Ok(key.clone()), &tool, None, findings);
                }
            }
        }
    }

    fn script_class(&self, module: ModuleId, id: ClassId, findings: &mut Findings) {
        let class = &self.module(module).classes[id];
        let extends_tool = class.bases.iter().any(|base| base.last_name().is_some_and(|name| name.contains("Tool")));
        // A base class of a library gets the fields from the constructor: `super({ name: … })`.
        let super_object = self.super_call(module, id).and_then(|located| {
            let object = located.call()?.arguments.iter().find(|argument| matches!(argument.kind, Kind::Object(_)))?;
            Some(located.with(object))
        });
        let field = |keys: &[&str]| {
            let given = || self.entries(super_object.as_ref()?)?.any(keys).cloned().map(Meaning::Expr);
            self.class_field(module, id, None, keys).or_else(given)
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
            let name = self.foreign_name(&Located::new(module, scope, base)).unwrap_or_default();
            name.contains("langchain") && name.ends_with(".Tool")
        };
        let schema = match self.class_schema(schema) {
            Known::Absent if class.bases.iter().any(is_langchain) => Known::Known(optional_input()),
            schema => schema,
        };
        findings.handlers.insert((module, class.scope));
        findings.add(self.class_draft(module, id, name, description, schema), |_| ());
    }

    /// Notes the functions of a tool: those that are written in its definition, and those that are given by name.
    pub(super) fn note_handlers<'s>(
        &self,
        located: &Located<'_>,
        given: impl Iterator<Item = &'s Located<'s>>,
        findings: &mut Findings,
    ) {
        let mut add = |module: ModuleId, id: FunctionId| {
            findings.handlers.insert((module, self.module(module).functions[id].scope))
        };
        located.expr.walk(&mut |inner| {
            if let Kind::Function(id) = inner.kind {
                add(located.module, id);
            }
        });
        for value in given {
            if let Meaning::Function(module, id) = self.meaning(value) {
                add(module, id);
            }
        }
    }

    /// Tells whether an expression is a text, known or not: a literal, a template, or a constant.
    pub(super) fn is_text(&self, located: &Located<'_>) -> bool {
        self.text(located).is_ok()
            || matches!(located.expr.kind, Kind::Template(_))
            || self.resolve(located).is_some_and(|found| matches!(found.expr.kind, Kind::Template(_) | Kind::Add(..)))
    }

    /// Tells whether an expression is neither a text nor an object nor a function: a server.
    fn is_other(&self, located: &Located<'_>) -> bool {
        !self.is_text(located)
            && self.entries(located).is_none()
            && !matches!(self.meaning(located), Meaning::Function(..))
    }
}

/// Returns the schema of `LangChain`'s tools that take a text.
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
