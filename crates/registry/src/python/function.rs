//! A function that a decorator makes a tool of.

use karat_core::registry::{Gap, GapKind, Tool, ToolField, Unknown};
use ruff_python_ast::{Decorator, Expr, Parameter, StmtFunctionDef};
use ruff_text_size::Ranged;
use serde_json::{Map, Value, json};

use super::annotation::{Beside, SchemaWriter};
use super::data::{Data, Datum, Hole};
use super::framework::{Framework, is_tool_decorator};
use super::injected::is_injected;
use super::model::docstring;
use super::program::spot;
use super::text::clean_doc;
use super::world::{Meaning, Scope, World};

/// A function with what is around it.
pub(super) struct ToolFunction<'f> {
    pub(super) scope: Scope<'f>,
    pub(super) function: &'f StmtFunctionDef,
    /// It stands in a class, so that its first parameter is the object.
    pub(super) is_method: bool,
}

fn properties_of(schema: &Map<String, Value>) -> usize {
    schema.get("properties").and_then(Value::as_object).map_or(0, Map::len)
}

impl World<'_> {
    /// Returns the decorators that make tools, with their arguments if they have any, and where something else is done
    /// to the function before.
    pub(super) fn tool_decorators<'d>(
        &self,
        scope: Scope<'_>,
        decorators: &'d [Decorator],
    ) -> Vec<(&'d Expr, Option<&'d Expr>)> {
        let (mut found, mut before) = (Vec::new(), None);
        for expression in decorators.iter().rev().map(|decorator| &decorator.expression) {
            let name = match expression {
                Expr::Call(call) => &*call.func,
                name => name,
            };
            if is_tool_decorator(self, scope, name) {
                found.push((expression, before));
            } else if !self.keeps_function(scope, name) {
                before = before.or(Some(expression));
            }
        }
        found
    }

    /// Tells whether a decorator leaves a function's name, docstring and parameters as they are.
    fn keeps_function(&self, scope: Scope<'_>, decorator: &Expr) -> bool {
        const KEEPING: [&str; 9] = [
            "staticmethod",
            "classmethod",
            "cache",
            "lru_cache",
            "override",
            "traceable",
            "retry",
            "observe",
            "deprecated",
        ];
        const REWRITING: [&str; 4] = ["__doc__", "__name__ =", "__signature__", "__annotations__"];
        match self.meaning(scope, decorator) {
            Meaning::Builtin(name) => KEEPING.contains(&name.as_str()),
            Meaning::External(dotted) => dotted.rsplit('.').next().is_some_and(|name| KEEPING.contains(&name)),
            // One of the project that says so itself.
            Meaning::Function { module, function } => {
                let range = function.range();
                let text = self.source(module).text.get(range.start().to_usize()..range.end().to_usize());
                let text = text.unwrap_or_default();
                (text.contains("@wraps(") || text.contains("@functools.wraps("))
                    && !REWRITING.iter().any(|rewriting| text.contains(rewriting))
            }
            _ => false,
        }
    }

    /// Reads the tool that a decorator makes of a function.
    pub(super) fn decorated(
        &self,
        tool: &ToolFunction<'_>,
        decorator: &Expr,
        before: Option<&Expr>,
    ) -> Result<Tool, Gap> {
        let scope = tool.scope;
        let at = spot(scope.module, decorator.start());
        let (name_of, arguments) = match decorator {
            Expr::Call(call) => (&*call.func, Some(&call.arguments)),
            name => (name, None),
        };
        let framework = Framework::of_meaning(self, &self.meaning(scope, name_of));
        let keywords = arguments.map(|arguments| self.keyword_arguments(scope, at, &arguments.keywords));
        let keywords = keywords.unwrap_or_else(|| Datum::new(at, Data::Dict(Vec::new(), None)));
        let positional = arguments.map(|arguments| &arguments.args[..]).unwrap_or_default();
        let first = positional.first().map(|first| self.evaluate(scope, first));
        if let Some(first) = first.as_ref().filter(|_| framework == Framework::Other) {
            let why = "it is not clear what the decorator takes its first argument for".to_owned();
            return Err(self.nameless(&Hole { spot: first.spot, why }));
        }
        let name = first
            .or_else(|| keywords.entry("name_or_callable").filter(|name| name.data != Data::Null))
            .or_else(|| keywords.entry("name_override").filter(|name| name.data != Data::Null))
            .or_else(|| keywords.entry("name").filter(|name| name.data != Data::Null));
        let why_before = before.map(|before| {
            let shown = self.shown(scope.module, before);
            (spot(scope.module, before.start()), format!("'{shown}' may change the function before it is made a tool"))
        });
        let name = match name.map(|name| name.data) {
            None if why_before.is_some() => {
                let (spot, why) = why_before.unwrap_or((at, String::new()));
                return Err(self.nameless(&Hole { spot, why }));
            }
            None => tool.function.name.to_string(),
            Some(Data::Text(name)) if !name.is_empty() => name,
            Some(Data::Unknown(hole)) => return Err(self.nameless(&hole)),
            Some(_) => return Err(self.nameless(&Hole { spot: at, why: "it is no text".to_owned() })),
        };
        let mut made = Tool { name, ..self.at_function(tool) };
        if let Some(version) = keywords.entry("version").as_ref().and_then(Datum::text) {
            made.version = Some(version.to_owned());
        }
        let flag =
            |key: &str, expected: bool| keywords.entry(key).is_some_and(|value| value.data == Data::Bool(expected));
        let given = match positional {
            [] | [_] => keywords
                .entry("description_override")
                .or_else(|| keywords.entry("description"))
                .filter(|given| given.data != Data::Null),
            [_, second, ..] => Some(Datum::unknown(spot(scope.module, second.start()), "it is given by its position")),
        };
        let is_given = given.is_some();
        self.describe(&mut made, tool, framework, given, flag("parse_docstring", true));
        let forget = |made: &mut Tool, field, spot, why: &str| self.forget(made, field, spot, why);
        if let Some((spot, why)) = why_before.as_ref().filter(|_| !is_given) {
            forget(&mut made, ToolField::Description, *spot, why);
        }
        if keywords.entry("prepare").is_some_and(|prepare| prepare.data != Data::Null) {
            forget(&mut made, ToolField::Description, at, "'prepare' may change it");
        }
        if flag("use_docstring_info", false) {
            made.unknown.retain(|unknown| unknown.field != ToolField::Description);
            self.unknown(
                &mut made,
                ToolField::Description,
                spot(scope.module, decorator.start()),
                "'use_docstring_info' is off",
            );
            made.description = None;
        }
        let schema = ["args_schema", "input_schema"].iter().find_map(|key| arguments?.find_keyword(key));
        match schema {
            Some(schema) => {
                self.given_schema(&mut made, scope, &schema.value, framework);
                if framework == Framework::LangChain && !is_given && docstring(&tool.function.body).is_none() {
                    forget(&mut made, ToolField::Description, at, "it comes from the class of the arguments");
                }
            }
            None if flag("infer_schema", false) => {
                self.unknown(&mut made, ToolField::InputSchema, at, "'infer_schema' is off");
            }
            None => {
                // Of pydantic-ai's two decorators, one gives the context to a function's first parameter.
                let takes_context = framework == Framework::PydanticAi
                    && matches!(name_of, Expr::Attribute(attribute) if attribute.attr.as_str() == "tool");
                self.signature(&mut made, tool, framework, takes_context, flag("parse_docstring", true));
                if framework == Framework::OpenAiAgents {
                    self.make_strict(&mut made, &keywords, at);
                }
            }
        }
        if let Some((spot, why)) = why_before.as_ref().filter(|_| schema.is_none()) {
            forget(&mut made, ToolField::InputSchema, *spot, why);
        }
        for key in ["prepare", "exclude_args"] {
            if keywords.entry(key).is_some_and(|value| value.data != Data::Null) {
                forget(&mut made, ToolField::InputSchema, at, &format!("'{key}' may change it"));
            }
        }
        Ok(made)
    }

    /// Takes away a description or schema that may be another one in the end.
    fn forget(&self, tool: &mut Tool, field: ToolField, spot: super::program::Spot, why: &str) {
        tool.unknown.retain(|unknown| unknown.field != field);
        match field {
            ToolField::Description => tool.description = None,
            _ => tool.input_schema = None,
        }
        self.unknown(tool, field, spot, why);
    }

    /// Returns a tool that has nothing but its name and place.
    pub(super) fn at_function(&self, tool: &ToolFunction<'_>) -> Tool {
        let place = self.program.place(spot(tool.scope.module, tool.function.name.start()));
        Tool { name: tool.function.name.to_string(), place: Some(place), ..Tool::default() }
    }

    /// Returns the gap of a tool whose name shows only at run time.
    pub(super) fn nameless(&self, hole: &Hole) -> Gap {
        let what = format!("the name of a tool is not known: {}", hole.why);
        Gap { kind: GapKind::Unknown, place: self.program.place(hole.spot), what }
    }

    pub(super) fn unknown(&self, tool: &mut Tool, field: ToolField, spot: super::program::Spot, why: &str) {
        if tool.unknown(field).is_none() {
            tool.unknown.push(Unknown { field, place: self.program.place(spot), why: why.to_owned() });
        }
    }

    /// Fills in the description: the one that is given, or else what the library makes of the docstring.
    pub(super) fn describe(
        &self,
        tool: &mut Tool,
        function: &ToolFunction<'_>,
        framework: Framework,
        given: Option<Datum>,
        parses_docstring: bool,
    ) {
        if let Some(given) = given {
            match &given.data {
                Data::Text(text) if !(text.is_empty() && framework.passes_over_empty()) => {
                    tool.description_place = Some(self.program.place(given.spot));
                    if framework == Framework::CrewAi {
                        let why = "CrewAI writes a description of its own around it";
                        return self.unknown(tool, ToolField::Description, given.spot, why);
                    }
                    tool.description = Some(framework.given(text));
                    return;
                }
                Data::Text(_) => {}
                Data::Unknown(hole) => return self.unknown(tool, ToolField::Description, hole.spot, &hole.why),
                _ => return self.unknown(tool, ToolField::Description, given.spot, "it is no text"),
            }
        }
        let Some(doc) = docstring(&function.function.body) else {
            // The official SDK lists an empty text, others none or refuse the function.
            let is_empty = matches!(framework, Framework::Mcp | Framework::Anthropic);
            tool.description = is_empty.then(String::new);
            return;
        };
        let at = spot(function.scope.module, doc.start());
        tool.description_place = Some(self.program.place(at));
        let doc = self.evaluate(Scope::of_module(function.scope.module), doc);
        let described = match doc.text() {
            None => Err("the docstring is not known"),
            Some(_) if parses_docstring => Err("the library takes the docstring apart"),
            Some(doc) => framework.description(doc, self.source(function.scope.module).docstrings),
        };
        match described {
            Ok(description) => tool.description = Some(description),
            Err(why) => self.unknown(tool, ToolField::Description, at, why),
        }
    }

    /// Fills in a schema that is given: a class of the project, or a dictionary.
    pub(super) fn given_schema(&self, tool: &mut Tool, scope: Scope<'_>, schema: &Expr, framework: Framework) {
        let at = spot(scope.module, schema.start());
        let mut holes = Vec::new();
        // `Model.model_json_schema()` is as good as the model.
        let named = match schema {
            Expr::Call(call) if call.arguments.is_empty() => match &*call.func {
                Expr::Attribute(method) if method.attr.as_str() == "model_json_schema" => &*method.value,
                _ => schema,
            },
            other => other,
        };
        if let Meaning::Class { module, class } = self.meaning(scope, named) {
            let mut writer = SchemaWriter::new(self, framework);
            match writer.of_model(module, class) {
                Some(schema) => {
                    tool.input_schema = Some(writer.finish(schema));
                }
                None => writer.hole(at, format!("what the class '{}' is as JSON is not known", class.name)),
            }
            holes = writer.holes;
        } else {
            let datum = self.evaluate(scope, schema);
            if datum.data == Data::Null {
                return;
            }
            tool.input_schema = datum.schema(&mut holes);
            if tool.input_schema.is_none() && holes.is_empty() {
                holes.push(Hole { spot: at, why: "it is no schema".to_owned() });
            }
        }
        if let (Framework::LangChain, Some(Value::Object(schema))) = (framework, &mut tool.input_schema) {
            // It shows the tool's own description alone.
            schema.shift_remove("description");
        }
        self.note_holes(tool, &holes);
    }

    pub(super) fn note_holes(&self, tool: &mut Tool, holes: &[Hole]) {
        for hole in holes {
            let place = self.program.place(hole.spot);
            let unknown = Unknown { field: ToolField::InputSchema, place, why: hole.why.clone() };
            if !tool.unknown.contains(&unknown) {
                tool.unknown.push(unknown);
            }
        }
    }

    /// Fills in the schema of the arguments from a function's parameters.
    pub(super) fn signature(
        &self,
        tool: &mut Tool,
        function: &ToolFunction<'_>,
        framework: Framework,
        takes_context: bool,
        parses_docstring: bool,
    ) {
        let ToolFunction { scope, function: definition, is_method } = *function;
        let parameters = &definition.parameters;
        let mut writer = SchemaWriter::new(self, framework);
        let (mut properties, mut required) = (Map::new(), Vec::new());
        let is_static = definition
            .decorator_list
            .iter()
            .any(|decorator| matches!(&decorator.expression, Expr::Name(name) if name.id.as_str() == "staticmethod"));
        let given = usize::from(is_method && !is_static) + usize::from(takes_context);
        for parameter in parameters.iter_non_variadic_params().skip(given) {
            let Parameter { name, annotation, .. } = &parameter.parameter;
            let is_passed_over =
                framework == Framework::LangChain && matches!(name.as_str(), "run_manager" | "callbacks");
            if is_passed_over || annotation.as_deref().is_some_and(|annotation| is_injected(self, scope, annotation)) {
                continue;
            }
            let at = spot(scope.module, parameter.start());
            let mut schema = match annotation {
                Some(annotation) => writer.of_type(scope, annotation),
                // The official SDK takes what has no type for a text.
                None if framework == Framework::Mcp => json!({"type": "string"}),
                None => json!({}),
            };
            let has_inner_default = writer.take_inner_default();
            let mut beside = Beside::default();
            if let Some(default) = parameter.default() {
                writer.field_value(scope, default, &mut beside);
                if beside.has_default && beside.default.is_none() && default.is_call_expr() {
                    // What a call gives may be the library's own way to fill the parameter in.
                    schema = json!({});
                }
            }
            let schema = writer.apply(at, schema, &beside);
            if !beside.has_default && !has_inner_default {
                required.push(Value::from(name.as_str()));
            }
            properties.insert(name.to_string(), schema);
        }
        for parameter in [&parameters.vararg, &parameters.kwarg].into_iter().flatten() {
            writer.hole(spot(scope.module, parameter.start()), "libraries differ in what they make of '*' parameters");
        }
        if framework.reads_sections() || parses_docstring {
            self.note_sections(function, framework, &mut writer);
        }
        let is_open = parameters.vararg.is_some() || parameters.kwarg.is_some();
        let mut schema =
            Map::from_iter([("type".to_owned(), "object".into()), ("properties".to_owned(), properties.into())]);
        if !required.is_empty() {
            schema.insert("required".to_owned(), required.into());
        }
        if framework.closes_objects() && !is_open {
            schema.insert("additionalProperties".to_owned(), false.into());
        }
        let has_classes = !writer.definitions.is_empty();
        let only_one = properties_of(&schema) == 1;
        if has_classes && framework == Framework::FastMcp {
            let why = "the library writes classes where they are used";
            writer.hole(spot(scope.module, definition.name.start()), why);
        }
        if has_classes && only_one && framework == Framework::PydanticAi {
            let why = "the library takes the fields of a single class for the parameters";
            writer.hole(spot(scope.module, definition.name.start()), why);
        }
        tool.input_schema = Some(writer.finish(schema));
        self.note_holes(tool, &writer.holes);
    }

    /// Closes a schema as the Agents SDK does unless it is told not to: every property is required.
    fn make_strict(&self, tool: &mut Tool, keywords: &Datum, at: super::program::Spot) {
        match keywords.entry("strict_mode").map(|strict| strict.data) {
            None | Some(Data::Bool(true)) => {}
            Some(Data::Bool(false)) => return,
            Some(_) => return self.unknown(tool, ToolField::InputSchema, at, "it depends on 'strict_mode'"),
        }
        let Some(Value::Object(schema)) = &mut tool.input_schema else {
            return;
        };
        if schema.contains_key("$defs") {
            return self.unknown(tool, ToolField::InputSchema, at, "the library rewrites classes for its strict mode");
        }
        let Some(Value::Object(properties)) = schema.get_mut("properties") else {
            return;
        };
        for property in properties.values_mut().filter_map(Value::as_object_mut) {
            if property.get("default").is_some_and(Value::is_null) {
                property.shift_remove("default");
            }
        }
        let required: Vec<Value> = properties.keys().map(|name| name.as_str().into()).collect();
        schema.insert("required".to_owned(), required.into());
        schema.insert("additionalProperties".to_owned(), false.into());
    }

    /// Takes note where a docstring may describe parameters.
    fn note_sections(&self, function: &ToolFunction<'_>, framework: Framework, writer: &mut SchemaWriter<'_, '_>) {
        let Some(doc) = docstring(&function.function.body) else {
            return;
        };
        let at = spot(function.scope.module, doc.start());
        let text = self.evaluate(Scope::of_module(function.scope.module), doc);
        let is_prose = text.text().is_some_and(|text| super::framework::is_prose(&clean_doc(text)));
        if !is_prose {
            let whose = if framework == Framework::Other { "a library may take" } else { "the library takes" };
            writer.hole(at, format!("{whose} the parameters' descriptions from the docstring"));
        }
    }
}
