//! Converts zod types, and the similar `TypeBox` types, to JSON Schema. Unsupported types allow any value.

use serde_json::{Map, Value, json};

use super::annotation::ObjectSchema;
use super::evaluate::{LocatedExpr, ResolvedValue};
use super::project::Project;
use super::syntax::{Call, Entry, Kind};
use super::values::Entries;

const MAX_DEPTH: usize = 24;

/// A parsed type.
#[derive(Clone, Debug)]
pub(crate) struct Type {
    pub(crate) schema: Value,
    /// Whether a property of this type is optional.
    is_optional: bool,
    description: Option<String>,
    default: Option<Value>,
    /// Whether an object may have properties with unknown names.
    pub(crate) is_open: bool,
}

impl Type {
    fn new(schema: Value) -> Self {
        Self { schema, is_optional: false, description: None, default: None, is_open: false }
    }

    fn any() -> Self {
        Self::new(json!({}))
    }

    /// Whether the type can describe a tool's arguments: an object or a union.
    pub(crate) fn is_object(&self) -> bool {
        self.schema["type"].as_str().is_none_or(|kind| kind == "object")
    }

    /// Returns the schema with its description.
    pub(crate) fn into_schema(self) -> Value {
        let mut schema = ObjectSchema::default();
        schema.add("it", self.schema, self.description, self.default, false);
        let mut schema = schema.finish();
        schema["properties"]["it"].take()
    }
}

impl Project {
    /// Parses a zod type. Returns `None` for other expressions.
    pub(crate) fn zod<'p>(&'p self, located: &LocatedExpr<'p>) -> Option<Type> {
        self.zod_at(located, 0)
    }

    fn zod_at<'p>(&'p self, located: &LocatedExpr<'p>, depth: usize) -> Option<Type> {
        if depth > MAX_DEPTH || !self.take_step() {
            return Some(Type::any());
        }
        let resolved = self.resolve_expr(located)?;
        let call = resolved.call()?;
        if let Kind::Member(object, method) = &call.callee.kind {
            let object = resolved.with(object);
            if self.is_namespace(&object) {
                return self.constructor_type(&resolved, call, method, depth);
            }
            let inner = self.zod_at(&object, depth + 1)?;
            return Some(self.apply_method(inner, &resolved, call, method, depth));
        }
        // `import { object, string } from "zod"`.
        let name = self.foreign_name(&resolved.with(&call.callee))?;
        let (package, name) = name.rsplit_once('.')?;
        if is_zod_package(package) { self.constructor_type(&resolved, call, name, depth) } else { None }
    }

    /// Whether an expression is `z`, `z.coerce`, `z.iso` or `Type`.
    fn is_namespace<'p>(&'p self, located: &LocatedExpr<'p>) -> bool {
        match &located.expr.kind {
            Kind::Name(name) => match self.resolve(located) {
                ResolvedValue::Foreign(dotted) if dotted == *name => name == "z" || name == "zod",
                ResolvedValue::Foreign(dotted) => {
                    let package = dotted.strip_suffix(".z").or(dotted.strip_suffix(".default"));
                    let package = package.or(dotted.strip_suffix(".Type")).or(dotted.strip_suffix(".zod"));
                    is_zod_package(package.unwrap_or(&dotted))
                }
                // A module that re-exports zod.
                ResolvedValue::Unknown(_) | ResolvedValue::Module(_) => name == "z",
                _ => false,
            },
            Kind::Member(object, name) => {
                ["coerce", "iso", "z", "string", "schema"].contains(&name.as_str())
                    && self.is_namespace(&located.with(object))
            }
            _ => false,
        }
    }

    fn constructor_type<'p>(
        &'p self,
        located: &LocatedExpr<'p>,
        call: &'p Call,
        name: &str,
        depth: usize,
    ) -> Option<Type> {
        let argument = |number: usize| call.arguments.get(number).map(|argument| located.with(argument));
        let inner =
            |number: usize| argument(number).and_then(|value| self.zod_at(&value, depth + 1)).unwrap_or_else(Type::any);
        let schema = match name {
            "string" | "String" | "nanoid" | "cuid" | "cuid2" | "ulid" | "base64" | "jwt" | "emoji"
            | "templateLiteral" => {
                json!({"type": "string"})
            }
            "email" | "uuid" | "guid" => {
                json!({"type": "string", "format": if name == "guid" { "uuid" } else { name }})
            }
            "url" | "httpUrl" => json!({"type": "string", "format": "uri"}),
            "datetime" => json!({"type": "string", "format": "date-time"}),
            "date" if is_iso(call) => json!({"type": "string", "format": "date"}),
            "number" | "Number" | "float32" | "float64" => json!({"type": "number"}),
            "int" | "int32" | "uint32" | "Integer" | "bigint" => json!({"type": "integer"}),
            "boolean" | "Boolean" | "stringbool" => json!({"type": "boolean"}),
            "null" | "Null" => json!({"type": "null"}),
            "literal" | "Literal" => match argument(0).and_then(|value| self.json(&value)) {
                Some(Value::Array(values)) => json!({"enum": values}),
                Some(value) => json!({"const": value}),
                None => json!({}),
            },
            "enum" | "nativeEnum" | "Enum" | "picklist" => self.enum_schema(argument(0).as_ref()),
            "array" | "Array" | "set" => {
                let items = inner(0).into_schema();
                if items == json!({}) { json!({"type": "array"}) } else { json!({"type": "array", "items": items}) }
            }
            "tuple" | "Tuple" => json!({"type": "array"}),
            "record" | "Record" | "map" | "partialRecord" => {
                let value = inner(call.arguments.len().saturating_sub(1)).into_schema();
                if value == json!({}) {
                    json!({"type": "object"})
                } else {
                    json!({"type": "object", "additionalProperties": value})
                }
            }
            "union" | "discriminatedUnion" | "Union" | "xor" => {
                let list = argument(call.arguments.len().saturating_sub(1).min(1));
                let list = if name == "union" || name == "Union" { argument(0) } else { list };
                let members = list.and_then(|list| self.items(&list))?;
                let members: Vec<Value> = members
                    .iter()
                    .map(|member| self.zod_at(member, depth + 1).unwrap_or_else(Type::any).into_schema())
                    .collect();
                any_of(members)
            }
            "intersection" | "Intersect" => {
                let (left, right) = (inner(0), inner(1));
                return Some(merge(&left, &right).unwrap_or_else(Type::any));
            }
            "optional" | "Optional" => return Some(Type { is_optional: true, ..inner(0) }),
            "nullable" => any_of(vec![inner(0).into_schema(), json!({"type": "null"})]),
            "nullish" => {
                let schema = any_of(vec![inner(0).into_schema(), json!({"type": "null"})]);
                return Some(Type { is_optional: true, ..Type::new(schema) });
            }
            "preprocess" => return Some(inner(1)),
            "toJSONSchema" => return Some(inner(0)),
            "object" | "strictObject" | "looseObject" | "interface" | "Object" => {
                let shape = argument(0).and_then(|shape| self.shape_at(&shape, depth + 1));
                let mut object =
                    shape.unwrap_or_else(|| Type { is_open: true, ..Type::new(json!({"type": "object"})) });
                if name == "strictObject" {
                    object.schema["additionalProperties"] = json!(false);
                }
                if let Some(options) = argument(1) {
                    object.description = self.entry(&options, "description").and_then(|text| self.text(&text).ok());
                }
                return Some(object);
            }
            // Types without a JSON Schema, and unknown types.
            _ => json!({}),
        };
        let mut constructed = Type::new(schema);
        // TypeBox: `Type.String({ description: "…" })`.
        let options = call.arguments.last().map(|options| located.with(options));
        if let Some(options) = options.filter(|options| matches!(options.expr.kind, Kind::Object(_))) {
            constructed.description = self.entry(&options, "description").and_then(|text| self.text(&text).ok());
        }
        Some(constructed)
    }

    fn enum_schema<'p>(&'p self, values: Option<&LocatedExpr<'p>>) -> Value {
        let Some(values) = values else { return json!({}) };
        if let Some(items) = self.items(values) {
            let values: Option<Vec<Value>> = items.iter().map(|item| self.json(item)).collect();
            return values.map_or_else(|| json!({}), |values| json!({"enum": values}));
        }
        match self.entries(values) {
            Some(entries) if !entries.is_open => {
                let values: Option<Vec<Value>> = entries.list.iter().map(|(.., value)| self.json(value)).collect();
                values.map_or_else(|| json!({}), |values| json!({"enum": values}))
            }
            _ => json!({}),
        }
    }

    /// Applies a method of a type.
    fn apply_method<'p>(
        &'p self,
        mut inner: Type,
        located: &LocatedExpr<'p>,
        call: &'p Call,
        method: &str,
        depth: usize,
    ) -> Type {
        let argument = || call.arguments.first().map(|argument| located.with(argument));
        match method {
            "optional" | "exactOptional" => inner.is_optional = true,
            "nullish" | "nullable" => {
                inner.is_optional |= method == "nullish";
                inner.schema = any_of(vec![inner.schema, json!({"type": "null"})]);
            }
            "default" | "prefault" | "catch" => {
                inner.is_optional = true;
                inner.default = argument().and_then(|value| self.json(&value));
            }
            "describe" | "title" => {
                if let Some(Ok(text)) = argument().map(|text| self.text(&text)) {
                    inner.description = Some(text);
                }
            }
            "meta" | "openapi" => {
                let text = argument().and_then(|meta| self.entry(&meta, "description"));
                if let Some(Ok(text)) = text.map(|text| self.text(&text)) {
                    inner.description = Some(text);
                }
            }
            "array" => inner = Type::new(json!({"type": "array", "items": inner.into_schema()})),
            "or" => {
                let other = argument().and_then(|other| self.zod_at(&other, depth + 1)).unwrap_or_else(Type::any);
                inner = Type::new(any_of(vec![inner.into_schema(), other.into_schema()]));
            }
            "and" | "merge" | "extend" | "safeExtend" | "augment" => {
                let other = argument()
                    .and_then(|other| self.zod_at(&other, depth + 1).or_else(|| self.shape_at(&other, depth + 1)));
                let other = other.unwrap_or_else(|| Type { is_open: true, ..Type::new(json!({"type": "object"})) });
                let description = inner.description.take();
                inner = merge(&inner, &other).unwrap_or_else(Type::any);
                inner.description = description;
            }
            "pick" | "omit" => {
                let names = argument().and_then(|names| self.entries(&names)).unwrap_or_default();
                retain_properties(&mut inner, |name| names.get(name).is_some() == (method == "pick"));
            }
            "partial" | "required" => {
                let names = argument().and_then(|names| self.entries(&names));
                let is_selected =
                    |name: &str| names.as_ref().is_none_or(|names: &Entries<'_>| names.get(name).is_some());
                update_required(
                    &mut inner.schema,
                    |name, was| if is_selected(name) { method == "required" } else { was },
                );
            }
            "strict" => inner.schema["additionalProperties"] = json!(false),
            "unwrap" | "removeDefault" => (inner.is_optional, inner.default) = (false, None),
            "min" | "max" | "length" | "gte" | "lte" | "gt" | "lt" | "positive" | "nonnegative" | "negative"
            | "nonpositive" | "int" | "email" | "url" | "uuid" | "datetime" | "multipleOf" | "step" => {
                let value = argument().and_then(|value| self.json(&value)).filter(Value::is_number);
                constrain(&mut inner.schema, method, value);
            }
            // `.refine()`, `.transform()`, `.regex()`, `.trim()`, …: the schema of the inner type still holds.
            _ => {}
        }
        inner
    }

    /// Parses an object of types: `{ city: z.string() }`.
    pub(crate) fn shape<'p>(&'p self, located: &LocatedExpr<'p>) -> Option<Type> {
        self.shape_at(located, 0)
    }

    fn shape_at<'p>(&'p self, located: &LocatedExpr<'p>, depth: usize) -> Option<Type> {
        // `Schema.shape` is the shape of another type.
        if let Kind::Member(object, name) = &located.expr.kind
            && name == "shape"
            && self.resolve_expr(located).is_none()
        {
            return self.zod_at(&located.with(object), depth + 1);
        }
        let entries = self.shape_entries(located, depth)?;
        let mut schema = ObjectSchema::default();
        for (name, property) in entries.list {
            let is_required = !property.is_optional;
            schema.add(&name, property.schema, property.description, property.default, is_required);
        }
        Some(Type { is_open: entries.is_open, ..Type::new(schema.finish()) })
    }

    /// Returns the object that defines the properties of a type: `Schema.shape`.
    pub(super) fn zod_shape<'p>(&'p self, located: &LocatedExpr<'p>) -> Option<LocatedExpr<'p>> {
        let mut shape = located.clone();
        while let Some(call) = shape.call() {
            let Kind::Member(object, method) = &call.callee.kind else { return None };
            match method.as_str() {
                "object" | "strictObject" | "looseObject" => {
                    return call.arguments.first().map(|argument| shape.with(argument));
                }
                "strict" | "passthrough" | "loose" | "describe" | "meta" | "openapi" | "refine" | "superRefine" => {
                    shape = self.resolve_expr(&shape.with(object))?;
                }
                _ => return None,
            }
        }
        None
    }

    fn shape_entries<'p>(&'p self, located: &LocatedExpr<'p>, depth: usize) -> Option<Shape> {
        let entries = self.entries(located)?;
        let mut shape = Shape { list: Vec::new(), is_open: false };
        let resolved = self.resolve_expr(located)?;
        let (Kind::Object(written), true) = (&resolved.expr.kind, entries.is_open) else {
            shape.is_open = entries.is_open;
            for (name, _, value) in entries.list {
                shape.set(name, self.zod_at(&value, depth + 1).unwrap_or_else(Type::any));
            }
            return Some(shape);
        };
        // A spread is not an object literal: `...Base.shape`.
        for entry in written {
            let inner = match entry {
                Entry::Value { key, value } => {
                    let property = self.zod_at(&resolved.with(value), depth + 1).unwrap_or_else(Type::any);
                    match self.text(&resolved.with(key)) {
                        Ok(name) => shape.set(name, property),
                        Err(_) => shape.is_open = true,
                    }
                    continue;
                }
                Entry::Spread(inner) => self.shape_at(&resolved.with(inner), depth + 1),
            };
            let Some(object) = inner.filter(|object| !object.is_open) else {
                shape.is_open = true;
                continue;
            };
            let required: Vec<&Value> = object.schema["required"].as_array().into_iter().flatten().collect();
            for (name, schema) in object.schema["properties"].as_object().into_iter().flatten() {
                let is_optional = !required.iter().any(|required| *required == name);
                shape.set(name.clone(), Type { is_optional, ..Type::new(schema.clone()) });
            }
        }
        Some(shape)
    }
}

/// Whether a call is one of `z.iso`.
fn is_iso(call: &Call) -> bool {
    matches!(&call.callee.kind, Kind::Member(object, _) if object.last_name() == Some("iso"))
}

struct Shape {
    list: Vec<(String, Type)>,
    is_open: bool,
}

impl Shape {
    /// Adds a property, or replaces it in place.
    fn set(&mut self, name: String, property: Type) {
        match self.list.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = property,
            None => self.list.push((name, property)),
        }
    }
}

fn is_zod_package(package: &str) -> bool {
    let package = package.split('/').next().unwrap_or(package);
    package == "zod"
        || package.starts_with("zod@")
        || package == "npm:zod"
        || package.starts_with("@sinclair")
        || package == "typebox"
        || package == "@hono"
}

fn any_of(members: Vec<Value>) -> Value {
    if members.iter().any(|member| *member == json!({})) {
        return json!({});
    }
    let mut members = members;
    if members.len() == 1 { members.remove(0) } else { json!({"anyOf": members}) }
}

/// Merges the properties of two objects. Returns `None` if one of them is not an object.
fn merge(left: &Type, right: &Type) -> Option<Type> {
    let mut schema = ObjectSchema::default();
    for object in [left, right] {
        if object.schema["type"] != "object" {
            return None;
        }
        let required: Vec<&Value> = object.schema["required"].as_array().into_iter().flatten().collect();
        for (name, property) in object.schema["properties"].as_object().into_iter().flatten() {
            let is_required = required.iter().any(|required| *required == name);
            schema.add(name, property.clone(), None, None, is_required);
        }
    }
    Some(Type { is_open: left.is_open || right.is_open, ..Type::new(schema.finish()) })
}

fn retain_properties(object: &mut Type, is_retained: impl Fn(&str) -> bool) {
    if let Some(Value::Object(properties)) = object.schema.get_mut("properties") {
        let retained: Map<String, Value> =
            std::mem::take(properties).into_iter().filter(|(name, _)| is_retained(name)).collect();
        *properties = retained;
    }
    update_required(&mut object.schema, |name, was| was && is_retained(name));
}

/// Recomputes which properties are required.
fn update_required(schema: &mut Value, is_required: impl Fn(&str, bool) -> bool) {
    let was: Vec<Value> = schema["required"].as_array().cloned().unwrap_or_default();
    let names: Vec<String> =
        schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
    let required: Vec<Value> = names
        .into_iter()
        .filter(|name| is_required(name, was.iter().any(|known| known == name.as_str())))
        .map(Value::String)
        .collect();
    let Value::Object(members) = schema else { return };
    if required.is_empty() {
        members.shift_remove("required");
    } else {
        members.insert("required".to_owned(), Value::Array(required));
    }
}

/// Applies a constraint on a number, text or list.
fn constrain(schema: &mut Value, method: &str, value: Option<Value>) {
    let kind = schema["type"].as_str().unwrap_or_default().to_owned();
    let (lower, upper) = match kind.as_str() {
        "string" => ("minLength", "maxLength"),
        "array" => ("minItems", "maxItems"),
        "number" | "integer" => ("minimum", "maximum"),
        _ => return,
    };
    let is_number = lower == "minimum";
    let mut set = |keyword: &str, value: Value| schema[keyword] = value;
    match (method, value) {
        ("min" | "gte", Some(value)) => set(lower, value),
        ("max" | "lte", Some(value)) => set(upper, value),
        ("length", Some(value)) => {
            set(lower, value.clone());
            set(upper, value);
        }
        ("gt", Some(value)) if is_number => set("exclusiveMinimum", value),
        ("lt", Some(value)) if is_number => set("exclusiveMaximum", value),
        ("multipleOf" | "step", Some(value)) if is_number => set("multipleOf", value),
        ("positive", _) if is_number => set("exclusiveMinimum", json!(0)),
        ("nonnegative", _) if is_number => set("minimum", json!(0)),
        ("negative", _) if is_number => set("exclusiveMaximum", json!(0)),
        ("nonpositive", _) if is_number => set("maximum", json!(0)),
        ("int", _) if is_number => set("type", json!("integer")),
        ("email" | "uuid", _) if kind == "string" => set("format", json!(method)),
        ("url", _) if kind == "string" => set("format", json!("uri")),
        ("datetime", _) if kind == "string" => set("format", json!("date-time")),
        _ => {}
    }
}
