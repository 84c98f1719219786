//! Classes that describe data: pydantic's models, data classes, typed dictionaries and enumerations.

use ruff_python_ast::{Expr, Stmt, StmtAnnAssign, StmtClassDef};
use ruff_text_size::Ranged;
use serde_json::{Map, Value, json};

use super::annotation::{Beside, SchemaWriter, enumeration};
use super::program::{Spot, spot};
use super::text::clean_doc;
use super::world::{Meaning, Scope};

/// How many classes one may stand on.
const MOST_BASES: usize = 30;

/// What kind of data a class describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Model,
    DataClass,
    TypedDict { is_total: bool },
    Enum,
}

/// What a class describes: its properties and which of them must be there.
#[derive(Default)]
struct Fields {
    properties: Map<String, Value>,
    required: Vec<Value>,
}

impl SchemaWriter<'_, '_> {
    /// Returns the schema of a class: a reference to its definition, so that it may hold itself.
    pub(super) fn of_class(&mut self, at: Spot, module: usize, class: &StmtClassDef) -> Value {
        let home = spot(module, class.name.start());
        if let Some((name, _, _)) = self.definitions.iter().find(|(_, spot, _)| *spot == home) {
            return json!({"$ref": format!("#/$defs/{name}")});
        }
        if self.definitions.iter().any(|(name, _, _)| name == class.name.as_str()) {
            self.hole(at, format!("there are two classes of the name '{}'", class.name));
            return json!({});
        }
        let place = self.definitions.len();
        self.definitions.push((class.name.to_string(), home, json!({})));
        if let Some(schema) = self.class_schema(module, class) {
            self.definitions[place].2 = schema;
            json!({"$ref": format!("#/$defs/{}", class.name)})
        } else {
            self.definitions.remove(place);
            self.hole(at, format!("what the class '{}' is as JSON is not known", class.name));
            json!({})
        }
    }

    /// Returns the schema of a model that stands for all arguments of a tool.
    pub(super) fn of_model(&mut self, module: usize, class: &StmtClassDef) -> Option<Map<String, Value>> {
        match self.class_schema(module, class)? {
            Value::Object(schema) if schema.contains_key("properties") => Some(schema),
            _ => None,
        }
    }

    fn class_schema(&mut self, module: usize, class: &StmtClassDef) -> Option<Value> {
        let kind = self.kind(module, class, 0)?;
        let mut schema = Map::new();
        if kind == Kind::Enum {
            let is_plain = |statement: &Stmt| match statement {
                Stmt::FunctionDef(function) => !matches!(function.name.as_str(), "__new__" | "__init__"),
                Stmt::Assign(assign) => assign.targets.iter().all(Expr::is_name_expr),
                Stmt::AnnAssign(_) | Stmt::If(_) | Stmt::For(_) | Stmt::Try(_) | Stmt::With(_) => false,
                _ => true,
            };
            if !class.body.iter().all(is_plain) {
                return None;
            }
            let values = self.enum_values(module, class)?;
            if let Value::Object(values) = enumeration(values) {
                schema.extend(values);
            }
        } else {
            let mut fields = Fields::default();
            self.fields(module, class, kind, &mut fields, 0);
            schema.insert("type".to_owned(), "object".into());
            schema.insert("properties".to_owned(), Value::Object(fields.properties));
            if !fields.required.is_empty() {
                schema.insert("required".to_owned(), Value::Array(fields.required));
            }
        }
        if let Some(doc) = docstring(&class.body) {
            let doc = self.world.evaluate(Scope::of_module(module), doc);
            if let Some(text) = doc.text() {
                schema.insert("description".to_owned(), clean_doc(text).into());
            }
        }
        Some(Value::Object(schema))
    }

    /// Finds out what a class is from what it stands on.
    fn kind(&self, module: usize, class: &StmtClassDef, depth: usize) -> Option<Kind> {
        if depth > MOST_BASES || !self.step() {
            return None;
        }
        let scope = Scope::of_module(module);
        let mut kind = None;
        for base in class.bases() {
            let found = match self.world.meaning(scope, base) {
                Meaning::External(dotted) => match dotted.as_str() {
                    "pydantic.BaseModel" | "pydantic.main.BaseModel" => Some(Kind::Model),
                    "typing.TypedDict" | "typing_extensions.TypedDict" => {
                        Some(Kind::TypedDict { is_total: self.is_total(scope, class) })
                    }
                    "enum.Enum" | "enum.StrEnum" | "enum.IntEnum" => Some(Kind::Enum),
                    _ => return None,
                },
                // A mix-in of an enumeration: `class Unit(str, Enum)`
                Meaning::Builtin(name) if matches!(name.as_str(), "str" | "int") => None,
                Meaning::Class { module, class: base } => {
                    let inherited = self.kind(module, base, depth + 1)?;
                    Some(match inherited {
                        Kind::TypedDict { .. } => Kind::TypedDict { is_total: self.is_total(scope, class) },
                        other => other,
                    })
                }
                _ => return None,
            };
            if let (Some(kind), Some(found)) = (kind, found)
                && kind != found
            {
                return None;
            }
            kind = kind.or(found);
        }
        let is_data_class = class.decorator_list.iter().any(|decorator| {
            let name = match &decorator.expression {
                Expr::Call(call) => &*call.func,
                name => name,
            };
            matches!(self.world.meaning(scope, name), Meaning::External(dotted)
                if matches!(dotted.as_str(), "dataclasses.dataclass" | "pydantic.dataclasses.dataclass"))
        });
        if is_data_class && kind.is_none_or(|kind| kind == Kind::DataClass) { Some(Kind::DataClass) } else { kind }
    }

    /// Tells whether a typed dictionary must have all its keys; `total=` says so.
    fn is_total(&self, scope: Scope<'_>, class: &StmtClassDef) -> bool {
        let total = class.arguments.as_ref().and_then(|arguments| arguments.find_keyword("total"));
        total.is_none_or(|total| self.plain(scope, &total.value) == Some(Value::Bool(true)))
    }

    /// Collects the fields of a class after those of the classes that it stands on.
    fn fields(&mut self, module: usize, class: &StmtClassDef, kind: Kind, fields: &mut Fields, depth: usize) {
        let scope = Scope::of_module(module);
        if !self.step() {
            return self.hole(spot(module, class.name.start()), "the class stands on more classes than karat follows");
        }
        for base in class.bases() {
            if let (Meaning::Class { module, class }, true) = (self.world.meaning(scope, base), depth < MOST_BASES) {
                let kind = self.kind(module, class, 0).unwrap_or(kind);
                self.fields(module, class, kind, fields, depth + 1);
            }
        }
        for keyword in class.keywords().iter().filter(|_| kind == Kind::Model) {
            self.hole(spot(module, keyword.start()), "what the class's arguments do to the schema is not known");
        }
        for statement in &class.body {
            match statement {
                Stmt::AnnAssign(field) => self.one_field(scope, field, kind, fields),
                Stmt::Assign(assign) => {
                    let is_config =
                        |target: &Expr| matches!(target, Expr::Name(name) if name.id.as_str() == "model_config");
                    if assign.targets.iter().any(is_config) {
                        let at = spot(module, statement.start());
                        self.hole(at, "what 'model_config' does to the schema is not known");
                    }
                }
                Stmt::ClassDef(inner) if inner.name.as_str() == "Config" => {
                    self.hole(spot(module, inner.name.start()), "what 'Config' does to the schema is not known");
                }
                Stmt::If(_) | Stmt::For(_) | Stmt::Try(_) => {
                    let at = spot(module, statement.start());
                    self.hole(at, format!("the fields of '{}' depend on a condition", class.name));
                }
                _ => {}
            }
        }
    }

    fn one_field(&mut self, scope: Scope<'_>, field: &StmtAnnAssign, kind: Kind, fields: &mut Fields) {
        let Expr::Name(name) = &*field.target else {
            return;
        };
        let name = name.id.as_str();
        let outer = match &*field.annotation {
            Expr::Subscript(subscript) => self.world.meaning(scope, &subscript.value),
            annotation => self.world.meaning(scope, annotation),
        };
        let wrapper = match &outer {
            Meaning::External(dotted) => dotted.rsplit('.').next().unwrap_or_default(),
            _ => "",
        };
        if name.starts_with('_') && kind == Kind::Model || wrapper == "ClassVar" {
            return;
        }
        let at = spot(scope.module, field.annotation.start());
        let schema = self.of_type(scope, &field.annotation);
        let mut beside = Beside::default();
        if let Some(value) = &field.value {
            self.field_value(scope, value, &mut beside);
        }
        let has_inner_default = self.take_inner_default();
        let schema = self.apply(at, schema, &beside);
        let is_required = match (kind, wrapper) {
            (Kind::TypedDict { .. }, "Required") => true,
            (Kind::TypedDict { .. }, "NotRequired") => false,
            (Kind::TypedDict { is_total }, _) => is_total,
            _ => !beside.has_default && !has_inner_default,
        };
        fields.required.retain(|required| required != name);
        if is_required {
            fields.required.push(name.into());
        }
        fields.properties.insert(name.to_owned(), schema);
    }

    /// Reads what a field or parameter is set to: a default, or a `Field(…)` that may hold one.
    pub(super) fn field_value(&mut self, scope: Scope<'_>, value: &Expr, beside: &mut Beside) {
        let Expr::Call(call) = value else {
            return self.default(scope, value, beside);
        };
        if self.is_field(scope, call) {
            return self.field(scope, call, beside);
        }
        let is_data_class_field =
            matches!(self.world.meaning(scope, &call.func), Meaning::External(name) if name == "dataclasses.field");
        if !is_data_class_field {
            return self.default(scope, value, beside);
        }
        for keyword in &call.arguments.keywords {
            match keyword.arg.as_ref().map(ruff_python_ast::Identifier::as_str) {
                Some("default") => self.default(scope, &keyword.value, beside),
                Some("default_factory") => beside.has_default = true,
                Some("repr" | "compare" | "hash" | "kw_only") => {}
                _ => self.hole(spot(scope.module, keyword.start()), "what the arguments of 'field' are"),
            }
        }
    }

    /// Returns the value of an enumeration's member: `Unit.METRIC`
    pub(super) fn enum_member(&self, scope: Scope<'_>, expression: &Expr) -> Option<Value> {
        let Meaning::ClassMember { module, class, member } = self.world.meaning(scope, expression) else {
            return None;
        };
        if self.kind(module, class, 0) != Some(Kind::Enum) {
            return None;
        }
        let (_, value) = members(class).find(|(name, _)| *name == member)?;
        self.plain(Scope::of_module(module), value)
    }

    fn enum_values(&self, module: usize, class: &StmtClassDef) -> Option<Vec<Value>> {
        let mut values = Vec::new();
        for (_, value) in members(class) {
            let value = self.plain(Scope::of_module(module), value)?;
            if !values.contains(&value) {
                values.push(value);
            }
        }
        (!values.is_empty()).then_some(values)
    }
}

fn members(class: &StmtClassDef) -> impl Iterator<Item = (&str, &Expr)> {
    class.body.iter().filter_map(|statement| match statement {
        Stmt::Assign(assign) => match &assign.targets[..] {
            [Expr::Name(name)] if !name.id.starts_with('_') => Some((name.id.as_str(), &*assign.value)),
            _ => None,
        },
        _ => None,
    })
}

/// Returns the docstring of a function or class: a text that stands first in it.
pub(super) fn docstring(body: &[Stmt]) -> Option<&Expr> {
    match body.first()? {
        Stmt::Expr(statement) if statement.value.is_string_literal_expr() => Some(&statement.value),
        _ => None,
    }
}
