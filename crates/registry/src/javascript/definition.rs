//! What a definition says of its tool.

use std::rc::Rc;

use karat_core::registry::{Tool, ToolField, Unknown as UnknownField};

use super::modules::Modules;
use super::schema::whole_schema;
use super::value::{Located, Object, Place, Unknown, Value};

/// The keys under which a schema is found, the first one counts.
pub(super) const SCHEMA_KEYS: [&str; 4] = ["inputSchema", "input_schema", "parameters", "schema"];

/// The keys under which a tool's function is found.
pub(super) const FUNCTION_KEYS: [&str; 6] = ["execute", "handler", "run", "func", "invoke", "call"];

pub(super) fn has_schema(object: &Object) -> bool {
    SCHEMA_KEYS.iter().any(|key| object.get(key).is_some_and(is_there))
}

fn is_there(value: &Located) -> bool {
    !matches!(value.value, Value::Undefined | Value::Null)
}

pub(super) fn has_function(object: &Object) -> bool {
    FUNCTION_KEYS.iter().any(|key| object.has(key))
}

/// Tells whether an object looks like a tool's definition, its name aside.
pub(super) fn has_marks(object: &Object) -> bool {
    object.has("description") || has_schema(object) || has_function(object)
}

/// Returns the definition inside the wrapper of `OpenAI`'s chat API.
pub(super) fn unwrapped(object: &Object) -> Option<(&Rc<Object>, Place)> {
    let is_wrapper = object.get("type").and_then(Located::to_text).is_some_and(|kind| kind == "function");
    match object.get("function").map(|inner| (&inner.value, inner.place)) {
        Some((Value::Object(inner), place)) if is_wrapper => Some((inner, place)),
        _ => None,
    }
}

/// Reads a definition whose name is known.
pub(super) fn read(name: String, object: &Object, place: Place, modules: &Modules) -> Tool {
    let mut fields = Fields { object, modules, unknown: Vec::new() };
    let description = fields.text("description", ToolField::Description);
    let version = fields.text("version", ToolField::Version);
    let input_schema = fields.schema();
    let category = fields.text("category", ToolField::Category);
    let requires_confirmation = fields.flag("requiresConfirmation", ToolField::RequiresConfirmation);
    let status = fields.text("status", ToolField::Status);
    let trigger_phrases = fields.texts("triggerPhrases", ToolField::TriggerPhrases);
    let description_place = match (&description, object.get("description")) {
        (Some(_), Some(value)) => Some(modules.place(value.place)),
        _ => None,
    };
    Tool {
        name,
        description,
        version,
        input_schema,
        category,
        requires_confirmation,
        status,
        trigger_phrases,
        place: Some(modules.place(place)),
        description_place,
        unknown: fields.unknown,
    }
}

struct Fields<'a> {
    object: &'a Object,
    modules: &'a Modules,
    unknown: Vec<UnknownField>,
}

impl Fields<'_> {
    fn note(&mut self, field: ToolField, unknown: &Unknown) {
        let noted = UnknownField { field, place: self.modules.place(unknown.place), why: unknown.why.to_string() };
        if !self.unknown.contains(&noted) {
            self.unknown.push(noted);
        }
    }

    fn text(&mut self, key: &str, field: ToolField) -> Option<String> {
        let value = self.object.read(key)?;
        match &value.value {
            Value::Undefined | Value::Null => None,
            Value::Text(text) => {
                let text = text.to_text();
                if text.is_none() {
                    self.no(field, &value, "it holds half of a character");
                }
                text
            }
            // Versions are also written as numbers.
            Value::Number(_) | Value::Bool(_) => value.value.to_js_text()?.to_text(),
            _ => {
                self.no(field, &value, "it is no text that karat can read");
                None
            }
        }
    }

    fn flag(&mut self, key: &str, field: ToolField) -> Option<bool> {
        let value = self.object.read(key)?;
        match &value.value {
            Value::Undefined | Value::Null => None,
            Value::Bool(flag) => Some(*flag),
            _ => {
                self.no(field, &value, "it is neither true nor false");
                None
            }
        }
    }

    fn texts(&mut self, key: &str, field: ToolField) -> Vec<String> {
        let Some(value) = self.object.read(key) else { return Vec::new() };
        let array = match &value.value {
            Value::Undefined | Value::Null => return Vec::new(),
            Value::Array(array) => array,
            _ => {
                self.no(field, &value, "it is no list that karat can read");
                return Vec::new();
            }
        };
        if let Some(unknown) = &array.open {
            self.note(field, unknown);
        }
        let mut texts = Vec::with_capacity(array.items.len());
        for item in &array.items {
            match item.to_text() {
                Some(text) => texts.push(text),
                None => self.no(field, item, "it is no text that karat can read"),
            }
        }
        texts
    }

    fn schema(&mut self) -> Option<serde_json::Value> {
        let value = match SCHEMA_KEYS.iter().filter_map(|key| self.object.get(key)).find(|value| is_there(value)) {
            Some(value) => value.clone(),
            None => Located::from(self.object.open.clone()?),
        };
        let mut unknown = Vec::new();
        let schema = whole_schema(&value, &mut unknown);
        for unknown in &unknown {
            self.note(ToolField::InputSchema, unknown);
        }
        schema
    }

    fn no(&mut self, field: ToolField, value: &Located, why: &str) {
        let unknown = super::evaluate::why_not(value, why);
        self.note(field, &unknown);
    }
}
