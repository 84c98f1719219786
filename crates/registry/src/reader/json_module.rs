//! Converts a JSON file that a JavaScript module imports to a [`Module`].

use std::path::Path;

use serde_json::Value;

use super::parse_error::ParseError;
use super::syntax::{Entry, Export, Expr, Kind, Language, Module};

pub(super) fn parse(path: &Path, display_path: &str, text: String) -> Result<Module, ParseError> {
    let value: Value =
        serde_json::from_str(&text).map_err(|error| ParseError::new(format!("syntax error: {error}")))?;
    let mut module = Module::new(path.to_owned(), display_path.to_owned(), Language::JavaScript, text);
    if let Value::Object(members) = &value {
        for (name, member) in members {
            module.exports.push(Export::Local { name: name.clone(), value: expression(member) });
        }
    }
    module.exports.push(Export::Local { name: "default".to_owned(), value: expression(&value) });
    Ok(module)
}

fn expression(value: &Value) -> Expr {
    let kind = match value {
        Value::Null => Kind::Null,
        Value::Bool(value) => Kind::Bool(*value),
        Value::Number(number) => Kind::Number(number.clone()),
        Value::String(text) => Kind::Text(text.clone()),
        Value::Array(items) => Kind::List(items.iter().map(expression).collect()),
        Value::Object(members) => {
            let entry = |(key, value): (&String, &Value)| Entry::Value {
                key: Expr::new(0, Kind::Text(key.clone())),
                value: expression(value),
            };
            Kind::Object(members.iter().map(entry).collect())
        }
    };
    Expr::new(0, kind)
}
