//! Finds tools that Python classes define: subclasses of a library's or the project's own `Tool`, their instances, and
//! models whose fields are the arguments.

use karat_cases::registry::Known;
use serde_json::Value;

use super::discovery::{Candidate, Discovery, SCHEMA_KEYS, is_tool_name, mentions_tools};
use super::docstring::Docstring;
use super::evaluate::{LocatedExpr, ResolvedValue};
use super::find_python::{DESCRIPTION_KEYS, NAME_KEYS, Settings, is_decorator};
use super::library::Library;
use super::project::{ModuleId, Project};
use super::syntax::{Call, ClassId, Expr, ScopeId, Statement};

const CLASS_NAME_KEYS: [&str; 2] = ["name", "tool_name"];
/// Methods that run a tool. The parameters of the first one that exists are the arguments.
const RUN_METHODS: [&str; 8] = ["_run", "forward", "_arun", "run", "execute", "__call__", "call", "arun"];

impl Project {
    /// Adds a class that derives from a tool class and has a name, or that has all fields of a tool.
    pub(super) fn add_class_tool(&self, module: ModuleId, scope: ScopeId, id: ClassId, discovery: &mut Discovery) {
        let class = &self.module(module).classes[id];
        let decorator = class.decorators.iter().find(|decorator| is_decorator(decorator));
        if let Some(decorator) = decorator {
            self.add_decorated_class(module, scope, id, decorator, discovery);
            return;
        }
        let is_tool = self.is_tool_class(module, scope, id, 0);
        // Other classes must define a name themselves.
        let defines_name = self.method(module, id, "__init__").is_some()
            || self.module(module).scopes[class.scope].statements.iter().any(|statement| match statement {
                Statement::Assign { name, .. } | Statement::Define { name, .. } => name.ends_with("name"),
                _ => false,
            });
        if !is_tool && !defines_name {
            return;
        }
        if let Some(candidate) = self.class_tool(module, id, None, None, is_tool) {
            discovery.handlers.insert((module, class.scope));
            discovery.add(candidate, |_| ());
        }
    }

    /// Adds `@tool class Search(BaseModel)`: the fields of a model are the arguments; other classes must define them.
    fn add_decorated_class(
        &self,
        module: ModuleId,
        scope: ScopeId,
        id: ClassId,
        decorator: &Expr,
        discovery: &mut Discovery,
    ) {
        let decorator = LocatedExpr::new(module, scope, decorator);
        let settings = decorator.call().map(|call| Settings { call, located: &decorator, is_decorator: true });
        let has_fields =
            !self.is_tool_class(module, scope, id, 0) && self.model_schema(module, id).get("properties").is_some();
        let defines_name = self.class_field(module, id, None, &CLASS_NAME_KEYS).is_some();
        let candidate = self.class_tool(module, id, None, settings.as_ref(), true);
        let is_named = candidate.as_ref().is_some_and(|candidate| candidate.name.is_ok());
        if has_fields && (!defines_name || !is_named || self.library(&decorator) == Library::LangChain) {
            self.add_model_tool(module, id, settings.as_ref(), discovery);
        } else if let Some(candidate) = candidate {
            discovery.handlers.insert((module, self.module(module).classes[id].scope));
            discovery.add(candidate, |_| ());
        } else {
            let reason =
                self.unknown_reason(&decorator, "the decorator's effect on the class is known only at run time");
            discovery.add_unnamed((module, self.module(module).classes[id].at), reason);
        }
    }

    /// Adds an instance of a tool class with another name than the class: `Search(name="search_docs")`.
    pub(super) fn add_instance_tool<'p>(
        &'p self,
        located: &LocatedExpr<'p>,
        call: &'p Call,
        discovery: &mut Discovery,
    ) -> bool {
        let ResolvedValue::Class(module, id) = self.resolve(&located.with(&call.callee)) else { return false };
        let scope = self.module(module).scopes[self.module(module).classes[id].scope].parent.unwrap_or(0);
        if call.arguments.is_empty() && call.named.is_empty() || !self.is_tool_class(module, scope, id, 0) {
            return false;
        }
        let Some(mut candidate) = self.class_tool(module, id, Some(located), None, true) else { return false };
        let class_name = self.class_tool(module, id, None, None, true).map(|class_tool| class_tool.name);
        if candidate.name.is_err() || class_name.as_ref() == Some(&candidate.name) {
            return false;
        }
        let site = (located.module, located.expr.at);
        if matches!(class_name, Some(Err(_))) {
            discovery.call_site = Some((site, self.location(located)));
            discovery.add(candidate, |_| ());
            discovery.call_site = None;
        } else {
            (candidate.origin, candidate.location) = (site, self.location(located));
            discovery.add(candidate, |_| ());
        }
        true
    }

    /// Reads a tool class, or an instance of it that a call creates.
    fn class_tool<'p>(
        &'p self,
        module: ModuleId,
        id: ClassId,
        call: Option<&LocatedExpr<'p>>,
        decorator: Option<&Settings<'_, 'p>>,
        is_tool: bool,
    ) -> Option<Candidate> {
        // A library's base class takes the fields from the constructor.
        let super_call = self.super_call_in(module, id, call);
        let field = |keys: &[&str]| {
            let from_decorator = decorator.and_then(|settings| settings.named(keys)).map(ResolvedValue::Expr);
            from_decorator.or_else(|| self.class_field(module, id, call, keys)).or_else(|| {
                let located = super_call.as_ref()?;
                let settings = Settings { call: located.call()?, located, is_decorator: true };
                settings.named(keys).map(ResolvedValue::Expr)
            })
        };
        let registered_name = decorator.and_then(|settings| settings.first_text(self));
        let name = registered_name.map(Ok).or_else(|| self.class_name(field(&CLASS_NAME_KEYS)))?;
        let (description, schema) = (field(&DESCRIPTION_KEYS), field(&SCHEMA_KEYS));
        let is_valid = |name: &String| is_tool_name(name);
        if !is_tool && (description.is_none() || schema.is_none() || !name.as_ref().is_ok_and(is_valid)) {
            return None;
        }
        // Classes of tool results have similar names, but no other fields of a tool.
        if description.is_none() && schema.is_none() && decorator.is_none() && !self.has_run_method(module, id) {
            return None;
        }
        let inputs = match &schema {
            Some(ResolvedValue::Expr(schema)) => self.inputs(schema),
            _ => None,
        };
        let schema = match (inputs, schema) {
            (Some(inputs), _) => Known::Known(inputs),
            (None, Some(schema)) => self.class_schema(Some(schema)),
            (None, None) => self.method_schema(module, id),
        };
        // Other classes can have parameters too, so require a valid schema.
        (is_tool || schema.get().is_some()).then(|| self.class_candidate(module, id, name, description, schema))
    }

    /// Whether a class has or inherits a method that runs a tool.
    fn has_run_method(&self, module: ModuleId, id: ClassId) -> bool {
        RUN_METHODS.iter().any(|name| matches!(self.attribute(module, id, name), Some(ResolvedValue::Function(..))))
    }

    /// Returns the schema of the method that runs a tool.
    fn method_schema(&self, module: ModuleId, id: ClassId) -> Known<Value> {
        let method = RUN_METHODS.iter().find_map(|name| match self.attribute(module, id, name)? {
            ResolvedValue::Function(home, method) => Some(self.signature_schema(home, method, false)),
            _ => None,
        });
        method.map_or(Known::Absent, Known::Known)
    }

    fn is_tool_class(&self, module: ModuleId, scope: ScopeId, id: ClassId, depth: usize) -> bool {
        let class = &self.module(module).classes[id];
        depth < 10
            && class.bases.iter().any(|base| match self.resolve(&LocatedExpr::new(module, scope, base)) {
                ResolvedValue::Class(home, base) => {
                    let base_scope =
                        self.module(home).scopes[self.module(home).classes[base].scope].parent.unwrap_or(0);
                    mentions_tools(&self.module(home).classes[base].name)
                        || self.is_tool_class(home, base_scope, base, depth + 1)
                }
                _ => base.last_name().is_some_and(mentions_tools),
            })
    }

    /// Returns the pydantic model that an expression refers to.
    pub(super) fn model<'p>(&'p self, located: &LocatedExpr<'p>) -> Option<(ModuleId, ClassId)> {
        match self.resolve(located) {
            ResolvedValue::Class(module, id) => self.is_model(module, id, 0).then_some((module, id)),
            _ => None,
        }
    }

    /// Adds a model whose fields are the arguments: `pydantic_function_tool(Search)`, `bind_tools([Search])`, `@tool`.
    pub(super) fn add_model_tool(
        &self,
        module: ModuleId,
        id: ClassId,
        settings: Option<&Settings<'_, '_>>,
        discovery: &mut Discovery,
    ) {
        let class = &self.module(module).classes[id];
        // Tool classes are found separately.
        if self.is_tool_class(module, self.module(module).scopes[class.scope].parent.unwrap_or(0), id, 0) {
            return;
        }
        let setting = |keys: &[&str]| settings.and_then(|settings| settings.named(keys));
        let registered_name =
            settings.filter(|settings| settings.is_decorator).and_then(|settings| settings.first_text(self));
        let name = match setting(&NAME_KEYS) {
            Some(name) => self.text(&name),
            None => Ok(registered_name.unwrap_or_else(|| class.name.clone())),
        };
        let mut schema = self.model_schema(module, id);
        if let Some(members) = schema.as_object_mut() {
            members.shift_remove("description");
        }
        let description = setting(&DESCRIPTION_KEYS).map(ResolvedValue::Expr);
        let mut candidate = self.class_candidate(module, id, name, description, Known::Known(schema));
        let parses_docstring = settings.is_some_and(|settings| settings.flag(self, "parse_docstring") == Some(true));
        if let (true, None, Some(doc)) = (parses_docstring, setting(&DESCRIPTION_KEYS), &class.docstring) {
            candidate.description = Known::Known(Docstring::read(&doc.text).summary);
        }
        if let (Some(settings @ Settings { is_decorator: false, .. }), Some(_)) = (settings, setting(&NAME_KEYS)) {
            // An explicit name makes it a different tool from the model itself.
            candidate.origin = (settings.located.module, settings.located.expr.at);
        }
        discovery.add(candidate, |_| ());
    }
}
