//! Converts Python annotations, models and signatures to JSON Schema. Unsupported types allow any value.

use serde_json::{Map, Value, json};

use super::docstring::Docstring;
use super::evaluate::{LocatedExpr, ResolvedValue};
use super::project::{ModuleId, Project};
use super::syntax::{ClassId, Expr, FunctionId, Kind, Parameter, ParameterKind, Statement};
use super::text::{clean_doc, is_listed};

/// Maximum nesting of types.
const MAX_DEPTH: usize = 12;

/// Types of parameters that a library injects.
const INJECTED_TYPES: &str = "Context RunContext RunContextWrapper ToolContext ReadonlyContext CallbackContext InvocationContext \
    RunnableConfig ToolRuntime CallbackManagerForToolRun AsyncCallbackManagerForToolRun InjectedToolArg \
    InjectedToolCallId InjectedState InjectedStore BaseStore KernelArguments Kernel CancellationToken \
    Request HttpRequest Depends";

/// Names of parameters that a library injects.
const INJECTED_NAMES: [&str; 4] = ["tool_context", "context_variables", "run_manager", "callbacks"];

/// The schema and field settings of a parameter or field.
#[derive(Default)]
struct FieldType {
    schema: Value,
    description: Option<String>,
    default: Option<Value>,
    /// A `Field` without a default.
    is_required: bool,
    /// A `Field` with a default, known or not.
    is_optional: bool,
    alias: Option<String>,
}

impl Project {
    /// Returns the schema of a function's arguments.
    pub(crate) fn signature_schema(&self, module: ModuleId, function: FunctionId, takes_context: bool) -> Value {
        let definition = &self.module(module).functions[function];
        let scope = self.module(module).scopes[definition.scope].parent.unwrap_or(0);
        let doc = definition.docstring.as_ref().map(|doc| Docstring::read(&doc.text)).unwrap_or_default();
        let is_method = definition.class.is_some() && !definition.is_decorated_with("staticmethod");
        let mut schema = ObjectSchema::default();
        for (number, parameter) in definition.parameters.iter().enumerate() {
            let is_receiver = number == 0
                && (["self", "cls"].contains(&parameter.name.as_str()) || (is_method && parameter.name == "_self"));
            let is_context = takes_context && number == usize::from(is_method);
            if parameter.kind != ParameterKind::Plain || is_receiver || is_context {
                continue;
            }
            if self.is_injected(module, scope, parameter) {
                continue;
            }
            let field_type = self.parameter_type(module, scope, parameter);
            let described = field_type.description.or_else(|| doc.parameters.get(&parameter.name).cloned());
            let is_required = parameter.default.is_none() && !field_type.is_optional || field_type.is_required;
            let name = field_type.alias.as_ref().unwrap_or(&parameter.name);
            schema.add(name, field_type.schema, described, field_type.default, is_required);
        }
        schema.finish()
    }

    /// Returns the schema of the model that is a function's only argument.
    pub(crate) fn single_model_schema(
        &self,
        module: ModuleId,
        function: FunctionId,
        signature: &Value,
    ) -> Option<Value> {
        let mut names = signature["properties"].as_object()?.keys();
        let (Some(only), None) = (names.next(), names.next()) else { return None };
        let definition = &self.module(module).functions[function];
        let annotation = definition.parameters.iter().find(|parameter| parameter.name == *only)?.annotation.as_ref()?;
        let scope = self.module(module).scopes[definition.scope].parent.unwrap_or(0);
        let ResolvedValue::Class(home, class) = self.resolve(&LocatedExpr::new(module, scope, annotation)) else {
            return None;
        };
        Some(self.model_schema(home, class)).filter(|schema| schema.get("properties").is_some())
    }

    fn is_injected(&self, module: ModuleId, scope: usize, parameter: &Parameter) -> bool {
        if INJECTED_NAMES.contains(&parameter.name.as_str()) {
            return true;
        }
        let mut injected = false;
        let mut names = |expr: &Expr| {
            let name = match &expr.kind {
                Kind::Name(name) | Kind::Member(_, name) => name.as_str(),
                // `"Context"`
                Kind::Text(text) => text.split(['[', '.']).next().unwrap_or_default(),
                _ => return,
            };
            injected |= is_listed(name, INJECTED_TYPES);
        };
        if let Some(annotation) = &parameter.annotation {
            // Exclude classes of the project with the same name.
            let is_own = matches!(self.resolve(&LocatedExpr::new(module, scope, annotation)), ResolvedValue::Class(..));
            if !is_own {
                annotation_names(annotation, &mut names);
            }
        }
        if let Some(Expr { kind: Kind::Call(call), .. }) = &parameter.default {
            names(&call.callee);
        }
        injected
    }

    fn parameter_type(&self, module: ModuleId, scope: usize, parameter: &Parameter) -> FieldType {
        let mut field_type = match &parameter.annotation {
            Some(annotation) => self.annotated(&LocatedExpr::new(module, scope, annotation), 0),
            None => FieldType { schema: json!({}), ..FieldType::default() },
        };
        if let Some(default) = &parameter.default {
            self.default(&LocatedExpr::new(module, scope, default), &mut field_type);
        }
        field_type
    }

    /// Applies a default: a value, or a `Field(…)`.
    fn default<'p>(&'p self, default: &LocatedExpr<'p>, field_type: &mut FieldType) {
        if is_field(default.expr) {
            self.field(default, field_type);
        } else if let Some(value) = self.json(default) {
            field_type.default = Some(value);
        }
    }

    fn field<'p>(&'p self, field: &LocatedExpr<'p>, field_type: &mut FieldType) {
        let Some(call) = field.call() else { return };
        let alias = call.named("validation_alias").or_else(|| call.named("alias"));
        if let Some(Ok(alias)) = alias.map(|alias| self.text(&field.with(alias))) {
            field_type.alias = Some(alias);
        }
        if let Some(description) = call.named("description").or_else(|| call.named("desc")) {
            field_type.description = self.text(&field.with(description)).ok().or(field_type.description.take());
        }
        let default = call.named("default").or_else(|| call.arguments.first());
        let is_ellipsis = |default: &Expr| matches!(&default.kind, Kind::Other(parts) if parts.is_empty());
        match default {
            Some(default) if is_ellipsis(default) => field_type.is_required = true,
            Some(default) => field_type.default = self.json(&field.with(default)),
            None => field_type.is_required = call.named("default_factory").is_none(),
        }
        field_type.is_optional = !field_type.is_required;
        for (name, keyword) in [
            ("ge", "minimum"),
            ("le", "maximum"),
            ("gt", "exclusiveMinimum"),
            ("lt", "exclusiveMaximum"),
            ("min_length", "minLength"),
            ("max_length", "maxLength"),
            ("pattern", "pattern"),
        ] {
            let value = call.named(name).and_then(|value| self.json(&field.with(value)));
            let is_list = field_type.schema["type"] == "array";
            let keyword = match keyword {
                "minLength" if is_list => "minItems",
                "maxLength" if is_list => "maxItems",
                other => other,
            };
            if let (Some(value), Value::Object(schema)) = (value, &mut field_type.schema)
                && schema.contains_key("type")
            {
                schema.insert(keyword.to_owned(), value);
            }
        }
    }

    fn annotated<'p>(&'p self, annotation: &LocatedExpr<'p>, depth: usize) -> FieldType {
        if let Kind::Index(base, arguments) = &annotation.expr.kind
            && base.last_name() == Some("Annotated")
            && let Kind::List(arguments) = &arguments.kind
            && let Some((inner, rest)) = arguments.split_first()
        {
            let mut field_type = self.annotated(&annotation.with(inner), depth + 1);
            for more in rest {
                let more = annotation.with(more);
                if is_field(more.expr) {
                    self.field(&more, &mut field_type);
                    // The parameter's own default takes precedence.
                    field_type.is_required = false;
                } else if let Some(call) = more.call() {
                    if call.callee.last_name() == Some("Doc") {
                        field_type.description =
                            call.arguments.first().and_then(|text| self.text(&more.with(text)).ok());
                    }
                } else if let Ok(text) = self.text(&more) {
                    field_type.description = Some(text);
                }
            }
            return field_type;
        }
        FieldType { schema: self.annotation_schema(annotation, depth), ..FieldType::default() }
    }

    fn annotation_schema<'p>(&'p self, annotation: &LocatedExpr<'p>, depth: usize) -> Value {
        if depth > MAX_DEPTH || !self.take_step() {
            return json!({});
        }
        let of = |expr: &'p Expr| self.annotated(&annotation.with(expr), depth + 1).schema;
        match &annotation.expr.kind {
            Kind::Null => json!({"type": "null"}),
            // A quoted name is a forward reference.
            Kind::Text(text) => self.forward_reference(annotation, text, depth),
            Kind::Or(left, right) => union(vec![of(left), of(right)]),
            Kind::Index(base, arguments) => {
                let arguments: Vec<&'p Expr> = match &arguments.kind {
                    Kind::List(items) => items.iter().collect(),
                    _ => vec![arguments],
                };
                match (base.last_name().unwrap_or_default(), arguments.as_slice()) {
                    ("Optional", [only]) => union(vec![of(only), json!({"type": "null"})]),
                    ("Union", many) => union(many.iter().map(|member| of(member)).collect()),
                    (
                        "list" | "List" | "Sequence" | "Iterable" | "Collection" | "set" | "Set" | "frozenset"
                        | "FrozenSet",
                        [item],
                    ) => json!({"type": "array", "items": of(item)}),
                    ("tuple" | "Tuple", _) => json!({"type": "array"}),
                    ("dict" | "Dict" | "Mapping" | "MutableMapping" | "defaultdict", [_, value]) => {
                        let value = of(value);
                        if value == json!({}) {
                            json!({"type": "object"})
                        } else {
                            json!({"type": "object", "additionalProperties": value})
                        }
                    }
                    ("Literal", values) => {
                        let values: Option<Vec<Value>> =
                            values.iter().map(|value| self.json(&annotation.with(value))).collect();
                        values.map_or_else(|| json!({}), |values| json!({"enum": values}))
                    }
                    ("Annotated" | "Required" | "NotRequired" | "Final" | "ClassVar", [only]) => of(only),
                    _ => json!({}),
                }
            }
            Kind::Name(_) | Kind::Member(..) => match self.resolve(annotation) {
                ResolvedValue::Foreign(name) => named_type(name.rsplit('.').next().unwrap_or_default()),
                ResolvedValue::Class(module, class) => self.model_schema_at(module, class, depth + 1),
                // An alias: `City = Literal["a", "b"]`.
                ResolvedValue::Expr(alias) if !matches!(alias.expr.kind, Kind::Name(_) | Kind::Member(..)) => {
                    self.annotated(&alias, depth + 1).schema
                }
                _ => json!({}),
            },
            _ => json!({}),
        }
    }

    fn forward_reference<'p>(&'p self, annotation: &LocatedExpr<'p>, text: &str, depth: usize) -> Value {
        match self.resolve_export(annotation.module, text, 0) {
            Some(ResolvedValue::Class(module, class)) => self.model_schema_at(module, class, depth + 1),
            _ => named_type(text),
        }
    }

    /// Returns the schema of a model: a pydantic model, a data class, a typed dictionary or an enum.
    pub(crate) fn model_schema(&self, module: ModuleId, class: ClassId) -> Value {
        self.model_schema_at(module, class, 0)
    }

    fn model_schema_at(&self, module: ModuleId, class: ClassId, depth: usize) -> Value {
        if depth > MAX_DEPTH {
            return json!({});
        }
        let definition = &self.module(module).classes[class];
        let bases: Vec<&str> = definition.bases.iter().filter_map(Expr::last_name).collect();
        if bases.iter().any(|base| ["Enum", "StrEnum", "IntEnum"].contains(base)) {
            let members = self.module(module).scopes[definition.scope].statements.iter();
            let values: Option<Vec<Value>> = members
                .filter_map(|statement| match statement {
                    Statement::Assign { name, value: Some(value), .. } if !name.starts_with('_') => {
                        Some(self.json(&LocatedExpr::new(module, definition.scope, value)))
                    }
                    _ => None,
                })
                .collect();
            return values.filter(|values| !values.is_empty()).map_or(json!({}), |values| json!({"enum": values}));
        }
        let is_data = definition.decorators.iter().any(|decorator| decorator.last_name() == Some("dataclass"));
        let is_typed = bases.iter().any(|base| ["TypedDict", "NamedTuple"].contains(base));
        if !is_data && !is_typed && !self.is_model(module, class, 0) {
            return json!({});
        }
        let mut schema = ObjectSchema::default();
        self.fields(module, class, &mut schema, depth);
        let mut schema = schema.finish();
        if let (Some(doc), Value::Object(members)) = (&definition.docstring, &mut schema) {
            members.insert("description".to_owned(), Value::String(clean_doc(&doc.text)));
        }
        schema
    }

    pub(crate) fn is_model(&self, module: ModuleId, class: ClassId, depth: usize) -> bool {
        let definition = &self.module(module).classes[class];
        let scope = self.module(module).scopes[definition.scope].parent.unwrap_or(0);
        depth < MAX_DEPTH
            && definition.bases.iter().any(|base| match self.resolve(&LocatedExpr::new(module, scope, base)) {
                ResolvedValue::Foreign(name) => name.ends_with("BaseModel") || name.ends_with("SQLModel"),
                ResolvedValue::Class(home, base) => self.is_model(home, base, depth + 1),
                _ => base.last_name().is_some_and(|name| name.ends_with("BaseModel")),
            })
    }

    fn fields(&self, module: ModuleId, class: ClassId, schema: &mut ObjectSchema, depth: usize) {
        if depth > MAX_DEPTH || !self.take_step() {
            return;
        }
        let definition = &self.module(module).classes[class];
        let outside = self.module(module).scopes[definition.scope].parent.unwrap_or(0);
        for base in &definition.bases {
            if let ResolvedValue::Class(home, base) = self.resolve(&LocatedExpr::new(module, outside, base)) {
                self.fields(home, base, schema, depth + 1);
            }
        }
        for statement in &self.module(module).scopes[definition.scope].statements {
            let Statement::Assign { name, value, annotation: Some(annotation) } = statement else { continue };
            let is_constant = matches!(annotation.last_name(), Some("ClassVar" | "PrivateAttr"));
            if name.starts_with('_') || name == "model_config" || is_constant {
                continue;
            }
            let mut field_type = self.annotated(&LocatedExpr::new(module, definition.scope, annotation), depth + 1);
            if let Some(value) = value {
                self.default(&LocatedExpr::new(module, definition.scope, value), &mut field_type);
            }
            let is_optional = matches!(annotation.last_name(), Some("NotRequired"));
            let is_required = !is_optional && (value.is_none() && !field_type.is_optional || field_type.is_required);
            schema.add(
                field_type.alias.as_ref().unwrap_or(name),
                field_type.schema,
                field_type.description,
                field_type.default,
                is_required,
            );
        }
    }
}

/// Visits the names of a type: `Annotated[X, Y()]` has `X` and `Y`.
fn annotation_names(annotation: &Expr, visit: &mut dyn FnMut(&Expr)) {
    match &annotation.kind {
        Kind::Index(base, arguments) => {
            visit(base);
            // `Optional[Context]` is a context, `list[Context]` is not.
            if matches!(base.last_name(), Some("Annotated" | "Optional" | "Union")) {
                annotation_names(arguments, visit);
            }
        }
        Kind::List(items) => items.iter().for_each(|item| annotation_names(item, visit)),
        Kind::Or(left, right) => {
            annotation_names(left, visit);
            annotation_names(right, visit);
        }
        Kind::Call(call) => visit(&call.callee),
        _ => visit(annotation),
    }
}

fn is_field(expr: &Expr) -> bool {
    matches!(&expr.kind, Kind::Call(call) if matches!(call.callee.last_name(), Some("Field" | "FieldInfo" | "field")))
}

fn named_type(name: &str) -> Value {
    match name {
        "str" | "Path" | "HttpUrl" | "AnyUrl" | "EmailStr" => json!({"type": "string"}),
        "int" => json!({"type": "integer"}),
        "float" => json!({"type": "number"}),
        "bool" => json!({"type": "boolean"}),
        "list" | "List" | "set" | "Set" | "tuple" | "Tuple" | "frozenset" | "Sequence" => json!({"type": "array"}),
        "dict" | "Dict" | "Mapping" => json!({"type": "object"}),
        "None" | "NoneType" => json!({"type": "null"}),
        "datetime" => json!({"type": "string", "format": "date-time"}),
        "date" => json!({"type": "string", "format": "date"}),
        "UUID" => json!({"type": "string", "format": "uuid"}),
        _ => json!({}),
    }
}

/// Combines the schemas of a union. If one allows any value, so does the union.
fn union(members: Vec<Value>) -> Value {
    let mut flat: Vec<Value> = Vec::new();
    for member in members {
        match member.get("anyOf") {
            Some(Value::Array(inner)) => flat.extend(inner.iter().cloned()),
            _ => flat.push(member),
        }
    }
    if flat.contains(&json!({})) {
        return json!({});
    }
    let mut unique: Vec<Value> = Vec::new();
    for member in flat {
        if !unique.contains(&member) {
            unique.push(member);
        }
    }
    if unique.len() == 1 { unique.remove(0) } else { json!({"anyOf": unique}) }
}

/// Builds the schema of an object.
#[derive(Default)]
pub(crate) struct ObjectSchema {
    properties: Map<String, Value>,
    required: Vec<Value>,
}

impl ObjectSchema {
    pub(crate) fn add(
        &mut self,
        name: &str,
        schema: Value,
        description: Option<String>,
        default: Option<Value>,
        is_required: bool,
    ) {
        let mut members = match schema {
            Value::Object(members) => members,
            _ => Map::new(),
        };
        if let Some(description) = description {
            members.insert("description".to_owned(), Value::String(description));
        }
        if let Some(default) = default {
            members.insert("default".to_owned(), default);
        }
        self.required.retain(|required| required != name);
        if is_required {
            self.required.push(Value::String(name.to_owned()));
        }
        self.properties.insert(name.to_owned(), Value::Object(members));
    }

    pub(crate) fn finish(self) -> Value {
        let mut schema = Map::new();
        schema.insert("type".to_owned(), json!("object"));
        schema.insert("properties".to_owned(), Value::Object(self.properties));
        if !self.required.is_empty() {
            schema.insert("required".to_owned(), Value::Array(self.required));
        }
        Value::Object(schema)
    }
}
