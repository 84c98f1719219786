//! Strings with placeholders such as `{{message}}`, and environment variables as `${NAME}`.

use karat_json::text::text_form;
use karat_json::{Path, Problems, Subject, read_string};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::headers::{MissingVariable, is_variable_name};
use crate::placeholder::{Placeholder, Scope, TemplateError, Values};

/// The unreserved characters of RFC 3986 are not encoded.
const URL_ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The source of environment variables. Collects the values that were used.
pub(crate) struct Environment<'l> {
    lookup: &'l dyn Fn(&str) -> Option<String>,
    pub(crate) secrets: Vec<String>,
}

/// A string with placeholders.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Template(Vec<Piece>);

#[derive(Debug, Clone, PartialEq)]
enum Piece {
    Literal(String),
    Placeholder(Placeholder),
}

impl<'l> Environment<'l> {
    pub(crate) fn new(lookup: &'l dyn Fn(&str) -> Option<String>) -> Self {
        Self { lookup, secrets: Vec::new() }
    }

    fn get(&mut self, name: &str) -> Result<String, MissingVariable> {
        let value = (self.lookup)(name).ok_or_else(|| MissingVariable { name: name.to_owned() })?;
        self.secrets.push(value.clone());
        Ok(value)
    }
}

impl Template {
    pub(crate) fn parse(text: &str, scope: Scope, environment: &mut Environment<'_>) -> Result<Self, TemplateError> {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(start) = rest.find(['{', '$']) {
            literal.push_str(&rest[..start]);
            rest = &rest[start..];
            let inner = |open, close| rest.strip_prefix(open).and_then(|inner: &str| inner.split_once(close));
            if let Some((name, after)) = inner("${", "}").filter(|(name, _)| is_variable_name(name)) {
                literal.push_str(&environment.get(name)?);
                rest = after;
            } else if let Some((name, after)) = inner("{{", "}}").filter(|(name, _)| looks_like_placeholder(name)) {
                if !literal.is_empty() {
                    pieces.push(Piece::Literal(std::mem::take(&mut literal)));
                }
                pieces.push(Piece::Placeholder(Placeholder::parse(name, scope)?));
                rest = after;
            } else {
                literal.push_str(&rest[..1]);
                rest = &rest[1..];
            }
        }
        literal.push_str(rest);
        if !literal.is_empty() || pieces.is_empty() {
            pieces.push(Piece::Literal(literal));
        }
        Ok(Self(pieces))
    }

    /// Returns the string if it has no placeholders.
    pub(crate) fn as_constant(&self) -> Option<&str> {
        match &self.0[..] {
            [Piece::Literal(text)] => Some(text),
            _ => None,
        }
    }

    pub(crate) fn as_placeholder(&self) -> Option<&Placeholder> {
        match &self.0[..] {
            [Piece::Placeholder(placeholder)] => Some(placeholder),
            _ => None,
        }
    }

    /// Returns the string with `x` in place of each placeholder.
    pub(crate) fn render_dummy(&self) -> String {
        self.0.iter().map(|piece| if let Piece::Literal(text) = piece { text } else { "x" }).collect()
    }

    pub(crate) fn render(&self, values: &Values<'_>) -> Result<String, String> {
        self.render_with(values, |text, out| out.push_str(text))
    }

    /// Renders a URL: the values of placeholders are percent-encoded.
    pub(crate) fn render_url(&self, values: &Values<'_>) -> Result<String, String> {
        self.render_with(values, |text, out| out.extend(utf8_percent_encode(text, URL_ENCODED)))
    }

    /// Renders the template. Returns `None` if it is a single placeholder without a value.
    pub(crate) fn render_optional(&self, values: &Values<'_>) -> Result<Option<String>, String> {
        match self.as_placeholder() {
            Some(placeholder) => Ok(placeholder.value(values).map(|value| text_form(&value).into_owned())),
            None => self.render(values).map(Some),
        }
    }

    fn render_with(&self, values: &Values<'_>, push: impl Fn(&str, &mut String)) -> Result<String, String> {
        let mut out = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Literal(text) => out.push_str(text),
                Piece::Placeholder(placeholder) => push(&text_form(&placeholder.required(values)?), &mut out),
            }
        }
        Ok(out)
    }

    pub(crate) fn uses(&self, is_used: &dyn Fn(&Placeholder) -> bool) -> bool {
        self.0.iter().any(|piece| matches!(piece, Piece::Placeholder(placeholder) if is_used(placeholder)))
    }
}

/// Reports invalid placeholders in all strings of a value.
pub(crate) fn check_value(value: &Value, scope: Scope, path: &Path<'_>, problems: &mut Problems) {
    match value {
        Value::String(text) => check_text(text, scope, path, problems),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| check_value(item, scope, &path.index(index), problems));
        }
        Value::Object(map) => {
            map.iter().for_each(|(key, value)| check_value(value, scope, &path.key(key), problems));
        }
        _ => {}
    }
}

/// Reads a string with placeholders.
pub(crate) fn read_template(value: &Value, scope: Scope, path: &Path<'_>, problems: &mut Problems) -> Option<String> {
    let text = read_string(value, path, problems)?;
    check_text(&text, scope, path, problems);
    Some(text)
}

pub(crate) fn check_text(text: &str, scope: Scope, path: &Path<'_>, problems: &mut Problems) {
    // Variables are looked up when the agent is created.
    let lookup = |_: &str| Some(String::new());
    match Template::parse(text, scope, &mut Environment::new(&lookup)) {
        Err(TemplateError::Unknown { name, help }) => {
            problems.push(path, Subject::Value, format!("unknown placeholder '{{{{{name}}}}}'"), Some(help));
        }
        Err(error) => problems.at(path, error.to_string()),
        Ok(_) => {}
    }
}

/// Other text in double braces, such as JSON or code, is literal.
fn looks_like_placeholder(name: &str) -> bool {
    let word = name.trim();
    let word = word.split_once(':').map_or(word, |(word, _)| word);
    word.starts_with(|first: char| first.is_ascii_alphabetic())
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placeholder::testing::with_values;

    #[test]
    fn encodes_values_in_urls() {
        let lookup = |_: &str| Some("a b".to_owned());
        let mut environment = Environment::new(&lookup);
        let text = "/x/{{conversationId}}/?q={{message}}&k=${K}";
        let template = Template::parse(text, Scope::Request, &mut environment).expect("valid");
        let url = with_values(|values| template.render_url(values));
        assert_eq!(url.as_deref(), Ok("/x/c%2F1/?q=say%20%22hi%22%20%26%20go&k=a b"));
        assert_eq!(environment.secrets, ["a b"]);
    }
}
