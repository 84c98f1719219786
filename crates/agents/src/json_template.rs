//! JSON with placeholders.

use serde_json::Value;

use crate::placeholder::{Placeholder, Scope, TemplateError, Values};
use crate::template::{Environment, Template};

/// JSON with placeholders. Parts without any are serialised once.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Node {
    Constant(String),
    Text(Template),
    /// A string that is a single placeholder; it takes the JSON type of its value.
    Placeholder(Placeholder),
    List(Vec<Node>),
    /// The keys are serialised.
    Object(Vec<(String, Node)>),
}

impl Node {
    pub(crate) fn compile(
        value: &Value,
        scope: Scope,
        environment: &mut Environment<'_>,
    ) -> Result<Self, TemplateError> {
        Ok(match value {
            Value::String(text) => {
                let template = Template::parse(text, scope, environment)?;
                match (template.as_constant(), template.as_placeholder()) {
                    (Some(text), _) => Self::Constant(json_text(text)),
                    (None, Some(placeholder)) => Self::Placeholder(placeholder.clone()),
                    (None, None) => Self::Text(template),
                }
            }
            Value::Array(items) => {
                let nodes = items.iter().map(|item| Self::compile(item, scope, environment));
                let nodes = nodes.collect::<Result<Vec<_>, _>>()?;
                let is_constant = nodes.iter().all(Self::is_constant);
                let list = Self::List(nodes);
                if is_constant { list.into_constant() } else { list }
            }
            Value::Object(map) => {
                let members =
                    map.iter().map(|(key, value)| Ok((json_text(key), Self::compile(value, scope, environment)?)));
                let members = members.collect::<Result<Vec<_>, TemplateError>>()?;
                let is_constant = members.iter().all(|(_, node)| node.is_constant());
                let object = Self::Object(members);
                if is_constant { object.into_constant() } else { object }
            }
            other => Self::Constant(other.to_string()),
        })
    }

    fn is_constant(&self) -> bool {
        matches!(self, Self::Constant(_))
    }

    /// Serialises a list or object of constants.
    fn into_constant(self) -> Self {
        let mut out = String::new();
        let join = |out: &mut String, index: usize, node: &Node| {
            if index > 0 {
                out.push(',');
            }
            if let Self::Constant(text) = node {
                out.push_str(text);
            }
        };
        match &self {
            Self::List(nodes) => {
                out.push('[');
                nodes.iter().enumerate().for_each(|(index, node)| join(&mut out, index, node));
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                for (index, (key, node)) in members.iter().enumerate() {
                    join(&mut out, index, &Self::Constant(format!("{key}:")));
                    join(&mut out, 0, node);
                }
                out.push('}');
            }
            _ => return self,
        }
        Self::Constant(out)
    }

    pub(crate) fn render(&self, values: &Values<'_>) -> Result<String, String> {
        let mut out = String::new();
        if !self.write(values, &mut out)? {
            out.push_str("null");
        }
        Ok(out)
    }

    /// Appends the JSON; returns whether there is a value.
    fn write(&self, values: &Values<'_>, out: &mut String) -> Result<bool, String> {
        match self {
            Self::Constant(json) => out.push_str(json),
            Self::Text(template) => push_json(out, template.render(values)?.as_str()),
            Self::Placeholder(placeholder) => {
                let is_written = write_value(placeholder, values, out);
                if !is_written && placeholder.is_required(values) {
                    return placeholder.required(values).map(|_| true);
                }
                return Ok(is_written);
            }
            Self::List(nodes) => {
                out.push('[');
                for node in nodes {
                    match node {
                        // The messages become elements of the surrounding list.
                        Self::Placeholder(Placeholder::Messages) => {
                            for message in values.messages {
                                push_json(out, message);
                                out.push(',');
                            }
                        }
                        node => {
                            if node.write(values, out)? {
                                out.push(',');
                            }
                        }
                    }
                }
                close(out, ']');
            }
            Self::Object(members) => {
                out.push('{');
                for (key, node) in members {
                    let start = out.len();
                    out.push_str(key);
                    out.push(':');
                    if node.write(values, out)? {
                        out.push(',');
                    } else {
                        out.truncate(start);
                    }
                }
                close(out, '}');
            }
        }
        Ok(true)
    }

    pub(crate) fn uses(&self, is_used: &dyn Fn(&Placeholder) -> bool) -> bool {
        match self {
            Self::Constant(_) => false,
            Self::Text(template) => template.uses(is_used),
            Self::Placeholder(placeholder) => is_used(placeholder),
            Self::List(nodes) => nodes.iter().any(|node| node.uses(is_used)),
            Self::Object(members) => members.iter().any(|(_, node)| node.uses(is_used)),
        }
    }
}

/// Appends the JSON of a value; returns whether there is one.
fn write_value(placeholder: &Placeholder, values: &Values<'_>, out: &mut String) -> bool {
    match placeholder {
        Placeholder::Message => push_json(out, values.message),
        other => match other.value(values) {
            Some(value) => push_json(out, &value),
            None => return false,
        },
    }
    true
}

fn push_json<T: serde::Serialize + ?Sized>(out: &mut String, value: &T) {
    // Serialising strings and values cannot fail.
    out.push_str(&serde_json::to_string(value).unwrap_or_default());
}

fn json_text(text: &str) -> String {
    let mut out = String::new();
    push_json(&mut out, text);
    out
}

/// Closes a list or object after its last member, which ends with a comma.
fn close(out: &mut String, bracket: char) {
    if out.ends_with(',') {
        out.pop();
    }
    out.push(bracket);
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::placeholder::testing::with_values;

    fn compile(value: &Value) -> Result<Node, TemplateError> {
        let lookup = |name: &str| (name == "TOKEN").then(|| "s{{message}}".to_owned());
        Node::compile(value, Scope::Resume, &mut Environment::new(&lookup))
    }

    fn render(value: &Value) -> Result<Value, String> {
        let node = compile(value).map_err(|error| error.to_string())?;
        with_values(|values| node.render(values)).map(|text| serde_json::from_str(&text).expect(&text))
    }

    #[rstest]
    #[case(json!({"a": [1, {"b": null}], "c": "x"}), json!({"a": [1, {"b": null}], "c": "x"}))]
    #[case(json!("{{message}}"), json!("say \"hi\" & go"))]
    #[case(json!("<{{message}}> {{turn}}"), json!("<say \"hi\" & go> 1"))]
    #[case(json!({"turn": "{{turn}}", "id": "{{reply:/id}}"}), json!({"turn": 1, "id": 7}))]
    #[case(json!({"l": "{{reply:$.list}}", "t": "{{reply:$.list}}!"}), json!({"l": [1, 2], "t": "[1,2]!"}))]
    #[case(json!({"a": 1, "gone": "{{reply:/none}}", "b": "{{approval:/id}}"}), json!({"a": 1}))]
    #[case(json!(["{{reply:/none}}", 5]), json!([5]))]
    #[case(json!(["{{reply:/none}}"]), json!([]))]
    #[case(
        json!({"messages": [{"role": "system"}, "{{messages}}", "{{message}}"]}),
        json!({"messages": [
            {"role": "system"}, {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
            "say \"hi\" & go",
        ]})
    )]
    #[case(json!({"decision": "{{decision}}", "case": "{{caseId}}"}), json!({"decision": {"approved": true}, "case": "gs-x-001"}))]
    #[case(json!("${TOKEN} $5 ${} ${a b} ${"), json!("s{{message}} $5 ${} ${a b} ${"))]
    #[case(json!("{{1}} {{ }} {{a b}} {{\"a\": {}}} {{"), json!("{{1}} {{ }} {{a b}} {{\"a\": {}}} {{"))]
    #[case(json!({"{{message}}": {}}), json!({"{{message}}": {}}))]
    fn renders_json(#[case] template: Value, #[case] expected: Value) {
        assert_eq!(render(&template), Ok(expected));
    }

    #[rstest]
    #[case("{{mesage}}", "unknown placeholder '{{mesage}}'")]
    #[case("{{ message }}", "unknown placeholder '{{ message }}'")]
    #[case("{{message:/a}}", "unknown placeholder '{{message:/a}}'")]
    #[case("{{reply}}", "unknown placeholder '{{reply}}'")]
    #[case("{{content}}", "unknown placeholder '{{content}}'")]
    #[case("{{reply:id}}", "the selector of '{{reply:id}}' must be a JSON pointer that starts with '/'")]
    #[case("x ${OTHER}", "the environment variable OTHER is not set")]
    #[case("x{{reply:/none}}", "the reply has no value at '/none', which the next request needs")]
    fn rejects_invalid_templates(#[case] template: &str, #[case] message: &str) {
        let error = render(&json!({"a": [template]})).expect_err(template);
        assert!(error.starts_with(message), "{error}");
    }

    #[test]
    fn suggests_the_nearest_placeholder() {
        let help = |text: &str| match compile(&json!(text)) {
            Err(TemplateError::Unknown { help, .. }) => help,
            other => panic!("{other:?}"),
        };
        assert_eq!(help("{{mesage}}"), "did you mean '{{message}}'?");
        assert_eq!(help("{{ message }}"), "did you mean '{{message}}'?");
        assert_eq!(help("{{replay:/x}}"), "did you mean '{{reply:SELECTOR}}'?");
        assert!(help("{{zebra}}").starts_with("available placeholders: '{{message}}', '{{conversationId}}'"));
    }

    #[test]
    fn uuids_differ_and_are_repeatable() {
        let uuids = || render(&json!(["{{uuid}}", "{{uuid}}"])).expect("valid");
        let first = uuids();
        assert_eq!(first, uuids());
        assert_ne!(first[0], first[1]);
        assert_eq!(first[0].as_str().map(str::len), Some(36));
    }

    #[test]
    fn parts_without_placeholders_are_serialised_once() {
        let node = compile(&json!({"a": {"b": [1, "x"]}, "m": "{{message}}"})).expect("valid");
        let Node::Object(members) = node else { panic!("{node:?}") };
        assert_eq!(members[0], ("\"a\"".to_owned(), Node::Constant("{\"b\":[1,\"x\"]}".to_owned())));
    }
}
