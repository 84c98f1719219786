//! Definitions that are given as arguments: `server.tool('name', 'description', {field: …}, handler)`.

use super::value::{Located, Object, Value};

/// Returns the definition as an object: a name, then a description and fields where they are given.
pub(super) fn positional(arguments: &[Located]) -> Object {
    let mut object = Object::default();
    let mut rest = arguments.iter().peekable();
    if let Some(name) = rest.next() {
        object.set("name".to_owned(), name.clone());
    }
    // A description that is unknown is one all the same, where something stands that is neither schema nor handler.
    let describes = |argument: &&Located| match &argument.value {
        Value::Text(_) | Value::Global(_) => true,
        Value::Unknown(unknown) => unknown.primitive,
        _ => false,
    };
    if let Some(description) = rest.next_if(describes) {
        object.set("description".to_owned(), description.clone());
    }
    let schema = rest.next_if(|argument| match &argument.value {
        Value::Object(fields) => {
            fields.len() == 0 && fields.open.is_none()
                || fields.entries().iter().any(|(_, field)| matches!(field.value, Value::Zod(_)))
                || fields.has("type")
        }
        Value::Zod(_) | Value::Unknown(_) | Value::Package(..) => true,
        _ => false,
    });
    if let Some(schema) = schema {
        object.set("inputSchema".to_owned(), as_fields(schema));
    }
    object
}

/// Takes an empty object for a schema without fields, as the MCP SDK does.
pub(super) fn as_fields(schema: &Located) -> Located {
    match &schema.value {
        Value::Object(fields) if fields.len() == 0 && fields.open.is_none() => {
            let place = schema.place;
            let entries = [("type", Value::text("object")), ("properties", Value::Object(Object::default().into()))];
            let object: Object = entries.into_iter().map(|(key, value)| (key.to_owned(), value.at(place))).collect();
            Value::Object(object.into()).at(place)
        }
        _ => schema.clone(),
    }
}
