//! Reads the parameters of a tool: JSON Schema literals and other forms.

use serde_json::{Map, Value, json};

use super::annotation::ObjectSchema;
use super::evaluate::{LocatedExpr, ResolvedValue, UnknownReason};
use super::project::Project;
use super::syntax::Kind;
use super::text::is_listed;
use crate::field_map::field_map_schema;

const MAX_DEPTH: usize = 40;

/// Calls that convert their first argument to a JSON Schema.
const CONVERTERS: &str = "zodToJsonSchema toJSONSchema toJsonSchema jsonSchema zodSchema zodToJson convertToJsonSchema \
    zodToMcpJsonSchema toMcpSchema getJsonSchema";

impl Project {
    /// Returns the schema of a tool's arguments.
    pub(crate) fn parameters<'p>(&'p self, located: &LocatedExpr<'p>) -> Result<Value, UnknownReason> {
        self.parameters_at(located, 0)
    }

    fn parameters_at<'p>(&'p self, located: &LocatedExpr<'p>, depth: usize) -> Result<Value, UnknownReason> {
        let unknown = || self.unknown_reason(located, "the schema is computed at run time");
        if depth > 8 {
            return Err(unknown());
        }
        // `Schema.shape` cannot be resolved as a member: it is read from the type.
        if matches!(&located.expr.kind, Kind::Member(_, name) if name == "shape")
            && let Some(shape) = self.shape(located)
        {
            return if shape.is_open { Err(unknown()) } else { Ok(shape.into_schema()) };
        }
        let resolved = match self.resolve(located) {
            ResolvedValue::Expr(resolved) => resolved,
            ResolvedValue::Class(module, class) => {
                let schema = self.model_schema(module, class);
                return if schema == json!({}) { Err(unknown()) } else { Ok(schema) };
            }
            ResolvedValue::Unknown(reason) => return Err(reason),
            _ => return Err(unknown()),
        };
        // `const { $schema, ...rest } = z.toJSONSchema(Type)`
        if let Kind::ObjectRest(inner, names) = &resolved.expr.kind
            && names.iter().all(|name| name.starts_with('$'))
        {
            return self.parameters_at(&resolved.with(inner), depth + 1);
        }
        if let Some(zod_type) = self.zod(&resolved) {
            let is_known =
                !zod_type.is_open && zod_type.schema["type"] == "object" || zod_type.schema.get("anyOf").is_some();
            return if is_known { Ok(zod_type.into_schema()) } else { Err(unknown()) };
        }
        if let Some(call) = resolved.call() {
            let name = call.callee.last_name().unwrap_or_default();
            // `Model.model_json_schema()`
            if let (Kind::Member(object, _), "model_json_schema" | "schema" | "json_schema" | "model_validate") =
                (&call.callee.kind, name)
            {
                return self.parameters_at(&resolved.with(object), depth + 1);
            }
            return match call.arguments.first() {
                Some(first) if is_listed(name, CONVERTERS) => self.parameters_at(&resolved.with(first), depth + 1),
                _ => Err(unknown()),
            };
        }
        let Some(entries) = self.entries(&resolved) else { return Err(unknown()) };
        // Strands and Bedrock: `{"json": {…}}`.
        if let ([(name, _, inner)], false) = (entries.list.as_slice(), entries.is_open)
            && name == "json"
        {
            return self.parameters_at(inner, depth + 1);
        }
        let kind = entries.get("type").and_then(|kind| self.text(kind).ok());
        let is_schema = kind.as_deref().is_some_and(|kind| kind.eq_ignore_ascii_case("object"))
            || entries.get("properties").is_some_and(|properties| self.entries(properties).is_some())
            || ["$schema", "$ref", "oneOf", "anyOf", "allOf"].iter().any(|name| entries.get(name).is_some())
            // `type: Type.OBJECT`
            || entries.get("type").is_some_and(|kind| kind.expr.last_name() == Some("OBJECT"));
        if is_schema {
            return self.schema_literal(&resolved, 0).ok_or_else(unknown);
        }
        if entries.list.is_empty() && !entries.is_open {
            return Ok(json!({"type": "object", "properties": {}}));
        }
        if entries.list.iter().any(|(.., value)| self.zod(value).is_some()) {
            let shape = self.shape(&resolved).filter(|shape| !shape.is_open);
            return shape.map(super::zod::Type::into_schema).ok_or_else(unknown);
        }
        self.json(&resolved).as_ref().and_then(field_map_schema).ok_or_else(unknown)
    }

    /// Whether a value is not a schema of arguments but the type of a single value, or other data.
    pub(crate) fn is_not_a_schema(&self, located: &LocatedExpr<'_>) -> bool {
        if let Some(schema) = self.zod(located) {
            return !schema.is_object();
        }
        let Some(entries) = self.entries(located) else { return false };
        let kind = entries.get("type").and_then(|kind| self.text(kind).ok());
        let is_value = kind.is_some_and(|kind| is_listed(&kind, "string number integer boolean array null"));
        let is_keyword = |name: &str| is_listed(name, "type description enum default items format title examples");
        is_value && entries.list.iter().all(|(name, ..)| is_keyword(name))
            || self.json(located).is_some() && self.parameters(located).is_err()
    }

    /// Reads smolagents' `inputs`, `{"city": {"type": "string", "description": "…", "nullable": True}}`, and lists of
    /// named parameters.
    pub(crate) fn inputs(&self, inputs: &LocatedExpr<'_>) -> Option<Value> {
        let mut schema = ObjectSchema::default();
        if let Some(items) = self.items(inputs) {
            for item in items {
                // `{"name": …, "type": …}`, or a call with the same names.
                let fields: Vec<(String, LocatedExpr<'_>)> = match item.call() {
                    Some(call) => call.named.iter().map(|(name, value)| (name.clone(), item.with(value))).collect(),
                    None => self.entries(&item)?.list.into_iter().map(|(name, _, value)| (name, value)).collect(),
                };
                let known = |value: &LocatedExpr<'_>| self.json(value);
                let mut members: Map<String, Value> =
                    fields.iter().filter_map(|(name, value)| Some((name.clone(), known(value)?))).collect();
                let name = members.shift_remove("name")?.as_str()?.to_owned();
                let is_optional = members.shift_remove("required") == Some(Value::Bool(false))
                    || item.call().is_none() && fields.iter().all(|(name, _)| name != "required");
                schema.add(&name, Value::Object(members), None, None, !is_optional);
            }
            return Some(schema.finish());
        }
        let entries = self.entries(inputs).filter(|entries| !entries.is_open)?;
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

    /// Reads a JSON Schema. Unknown parts are omitted, which allows more values. Returns `None` if the names of
    /// properties are unknown.
    fn schema_literal<'p>(&'p self, located: &LocatedExpr<'p>, depth: usize) -> Option<Value> {
        if depth > MAX_DEPTH {
            return Some(json!({}));
        }
        let entries = self.entries(located)?;
        let mut schema = Map::new();
        for (name, _, value) in &entries.list {
            match name.as_str() {
                "properties" | "$defs" | "definitions" | "patternProperties" => {
                    let inner = self.entries(value)?;
                    if inner.is_open {
                        return None;
                    }
                    let mut properties = Map::new();
                    for (name, _, property) in &inner.list {
                        let property = self.subschema(property, depth);
                        properties.insert(name.clone(), property);
                    }
                    schema.insert(name.clone(), Value::Object(properties));
                }
                "items" | "additionalProperties" | "not" | "if" | "then" | "else" => {
                    let inner = match self.json(value) {
                        Some(known @ (Value::Bool(_) | Value::Array(_))) => known,
                        _ => self.subschema(value, depth),
                    };
                    schema.insert(name.clone(), inner);
                }
                "anyOf" | "oneOf" | "allOf" => {
                    let inner = self.items(value).unwrap_or_default();
                    let inner: Vec<Value> = inner.iter().map(|schema| self.subschema(schema, depth)).collect();
                    if !inner.is_empty() {
                        schema.insert(name.clone(), Value::Array(inner));
                    }
                }
                "type" => {
                    // Gemini writes types in capitals: `Type.STRING`, `"STRING"`.
                    let kind = self.json(value).or_else(|| value.expr.last_name().map(|name| json!(name)));
                    let lower = |kind: Value| match kind {
                        Value::String(kind) if kind.bytes().all(|byte| byte.is_ascii_uppercase()) => {
                            json!(kind.to_lowercase())
                        }
                        other => other,
                    };
                    if let Some(kind) = kind {
                        schema.insert(name.clone(), lower(kind));
                    }
                }
                _ => {
                    if let Some(value) = self.json(value) {
                        schema.insert(name.clone(), value);
                    }
                }
            }
        }
        // An unknown spread may contain properties.
        let is_open_object = entries.is_open && depth == 0 && !schema.contains_key("properties");
        (!is_open_object).then_some(Value::Object(schema))
    }

    fn subschema<'p>(&'p self, located: &LocatedExpr<'p>, depth: usize) -> Value {
        if let Some(schema) = self.zod(located) {
            return schema.into_schema();
        }
        self.schema_literal(located, depth + 1).unwrap_or_else(|| json!({}))
    }
}
