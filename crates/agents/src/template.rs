//! Strings and JSON with placeholders such as `{{message}}`, and environment variables as `${NAME}`.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use karat_core::port::TrialContext;
use karat_json::text::text_form;
use karat_json::{Path, Problems, Subject, nearest, read_string};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::headers::{MissingVariable, is_variable_name};
use crate::selector::Alternatives;

/// The unreserved characters of RFC 3986 are not encoded.
const URL_ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Where a template is used, which decides what it may contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Request,
    /// The request after a decision.
    Resume,
    /// A message of the history.
    Item,
}

/// A value that is only known when a request is sent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Placeholder {
    Message,
    ConversationId,
    Uuid,
    CaseId,
    Turn,
    /// The messages before this one.
    Messages,
    /// The message in the form of the history.
    UserMessage,
    Reply(Alternatives),
    Decision,
    Approval(Alternatives),
    Content,
}

/// Why a template is not valid.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TemplateError {
    #[error("unknown placeholder '{{{{{name}}}}}'")]
    Unknown { name: String, help: String },
    #[error("the selector of '{{{{{name}}}}}' {reason}")]
    Selector { name: String, reason: String },
    #[error(transparent)]
    Variable(#[from] MissingVariable),
}

/// The source of environment variables. Collects the values that were used.
pub(crate) struct Environment<'l> {
    lookup: &'l dyn Fn(&str) -> Option<String>,
    pub(crate) secrets: Vec<String>,
}

/// The values of placeholders.
pub(crate) struct Values<'v> {
    pub(crate) message: &'v str,
    pub(crate) turn: usize,
    pub(crate) messages: &'v [Value],
    pub(crate) user_message: Option<&'v Value>,
    /// The reply to the previous request.
    pub(crate) reply: Option<&'v Value>,
    pub(crate) decision: Option<&'v Value>,
    pub(crate) approval: Option<&'v Value>,
    /// The text of a message of the history.
    pub(crate) content: Option<&'v str>,
    pub(crate) case_id: &'v str,
    /// The header `traceparent`, if the agent's spans are read.
    pub(crate) traceparent: Option<&'v str>,
    pub(crate) ids: &'v Ids<'v>,
}

/// The ids of a conversation.
pub(crate) struct Ids<'t> {
    trial: TrialContext<'t>,
    attempt: usize,
    /// Whether the agent assigns the id of the conversation.
    is_assigned: bool,
    assigned: Option<String>,
    /// karat's own id, generated on first use.
    generated: OnceLock<String>,
    count: AtomicUsize,
}

/// A string with placeholders.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Template(Vec<Piece>);

#[derive(Debug, Clone, PartialEq)]
enum Piece {
    Literal(String),
    Placeholder(Placeholder),
}

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

impl<'t> Ids<'t> {
    /// Creates the ids of an attempt. Every attempt has its own, so that an agent with memory never mixes them up. If the
    /// agent assigns the id of the conversation, there is none before its first reply.
    pub(crate) fn new(trial: TrialContext<'t>, is_assigned: bool, attempt: usize) -> Self {
        Self { trial, attempt, is_assigned, assigned: None, generated: OnceLock::new(), count: AtomicUsize::new(0) }
    }

    /// Creates ids of messages, which differ from those in requests.
    pub(crate) fn of_messages(trial: TrialContext<'t>) -> Self {
        Self::new(trial, false, usize::MAX)
    }

    pub(crate) fn set(&mut self, id: String) {
        self.assigned = Some(id);
    }

    fn generated(&self) -> &str {
        self.generated.get_or_init(|| match self.attempt {
            0 => self.trial.conversation_id(),
            attempt => {
                let run_id = format!("{}:{}:retry", self.trial.run_id, self.trial.number);
                TrialContext { run_id: &run_id, number: attempt, ..self.trial }.conversation_id()
            }
        })
    }

    fn conversation_id(&self) -> Option<&str> {
        match &self.assigned {
            None if self.is_assigned => None,
            None => Some(self.generated()),
            assigned => assigned.as_deref(),
        }
    }

    fn next_uuid(&self) -> String {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        TrialContext { run_id: self.generated(), number, ..self.trial }.conversation_id()
    }
}

impl Scope {
    fn names(self) -> &'static [&'static str] {
        match self {
            Self::Request => {
                &["message", "conversationId", "uuid", "caseId", "turn", "messages", "userMessage", "reply:"]
            }
            Self::Resume => &[
                "message",
                "conversationId",
                "uuid",
                "caseId",
                "turn",
                "messages",
                "userMessage",
                "reply:",
                "decision",
                "approval:",
            ],
            Self::Item => &["content", "uuid", "caseId"],
        }
    }
}

impl Placeholder {
    fn parse(name: &str, scope: Scope) -> Result<Self, TemplateError> {
        let trimmed = name.trim();
        let (keyword, argument) = trimmed.split_once(':').unwrap_or((trimmed, ""));
        let known = |candidate: &&&str| candidate.strip_suffix(':').unwrap_or(candidate) == keyword;
        let has_argument = trimmed.contains(':');
        let is_known = scope.names().iter().find(known).is_some_and(|known| known.ends_with(':') == has_argument);
        let selector = || {
            let fail = |reason| TemplateError::Selector { name: name.to_owned(), reason };
            Alternatives::parse(argument).map_err(fail)
        };
        match keyword {
            _ if !is_known || trimmed != name => {}
            "message" => return Ok(Self::Message),
            "conversationId" => return Ok(Self::ConversationId),
            "uuid" => return Ok(Self::Uuid),
            "caseId" => return Ok(Self::CaseId),
            "turn" => return Ok(Self::Turn),
            "messages" => return Ok(Self::Messages),
            "userMessage" => return Ok(Self::UserMessage),
            "reply" => return Ok(Self::Reply(selector()?)),
            "decision" => return Ok(Self::Decision),
            "approval" => return Ok(Self::Approval(selector()?)),
            "content" => return Ok(Self::Content),
            _ => {}
        }
        let quoted = |name: &str| match name {
            "reply:" | "approval:" => format!("'{{{{{name}SELECTOR}}}}'"),
            name => format!("'{{{{{name}}}}}'"),
        };
        let help = match nearest(keyword, scope.names()) {
            Some(known) => format!("did you mean {}?", quoted(known)),
            None => {
                format!(
                    "available placeholders: {}",
                    scope.names().iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ")
                )
            }
        };
        Err(TemplateError::Unknown { name: name.to_owned(), help })
    }

    fn value(&self, values: &Values<'_>) -> Option<Value> {
        Some(match self {
            Self::Message => values.message.into(),
            Self::ConversationId => values.ids.conversation_id()?.into(),
            Self::Uuid => values.ids.next_uuid().into(),
            Self::CaseId => values.case_id.into(),
            Self::Turn => values.turn.into(),
            Self::Messages => values.messages.into(),
            Self::UserMessage => values.user_message?.clone(),
            Self::Reply(selector) => selector.find_non_null(values.reply?)?.clone(),
            Self::Decision => values.decision?.clone(),
            Self::Approval(selector) => selector.find_non_null(values.approval?)?.clone(),
            Self::Content => values.content?.into(),
        })
    }

    fn name(&self) -> String {
        match self {
            Self::Reply(selector) => format!("reply:{}", selector.as_str()),
            Self::Approval(selector) => format!("approval:{}", selector.as_str()),
            other => format!("{other:?}").to_lowercase(),
        }
    }

    fn required(&self, values: &Values<'_>) -> Result<Value, String> {
        self.value(values).ok_or_else(|| match self {
            Self::Reply(selector) => {
                format!("the reply has no value at '{}', which the next request needs", selector.as_str())
            }
            Self::ConversationId => "the agent has not given a conversation id yet".to_owned(),
            other => format!("'{{{{{}}}}}' has no value", other.name()),
        })
    }

    /// Whether a request without the value would go to another conversation. A decision may refer to parts that only
    /// some agents send.
    fn is_required(&self, values: &Values<'_>) -> bool {
        matches!(self, Self::Reply(_)) && values.reply.is_some() && values.decision.is_none()
    }

    fn write_json(&self, values: &Values<'_>, out: &mut String) -> bool {
        match self {
            Self::Message => push_json(out, values.message),
            other => match other.value(values) {
                Some(value) => push_json(out, &value),
                None => return false,
            },
        }
        true
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

    fn as_placeholder(&self) -> Option<&Placeholder> {
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
                let is_written = placeholder.write_json(values, out);
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
    use karat_cases::{Case, CaseLocation, Expectation, Input};
    use karat_core::port::IgnoreWaits;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn with_values<T>(run: impl FnOnce(&Values<'_>) -> T) -> T {
        let case = Case {
            id: "gs-x-001".to_owned(),
            description: String::new(),
            difficulty: None,
            created_at: None,
            bug_ref: None,
            input: Some(Input { message: String::new() }),
            turns: None,
            on_turn_failure: None,
            stubs: None,
            max_turns: None,
            expect: Expectation::default(),
            tags: Vec::new(),
            skip: None,
            location: CaseLocation { line: 1, ..CaseLocation::default() },
        };
        let trial = TrialContext {
            run_id: "run",
            number: 0,
            case: &case,
            sample: 0,
            has_turns: true,
            wait_observer: &IgnoreWaits,
        };
        let mut ids = Ids::new(trial, false, 0);
        ids.set("c/1".to_owned());
        run(&Values {
            message: "say \"hi\" & go",
            turn: 1,
            messages: &[json!({"role": "user", "content": "a"}), json!({"role": "assistant", "content": "b"})],
            reply: Some(&json!({"id": 7, "list": [1, 2]})),
            decision: Some(&json!({"approved": true})),
            approval: None,
            user_message: None,
            content: None,
            case_id: &case.id,
            traceparent: None,
            ids: &ids,
        })
    }

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
    fn encodes_values_in_urls() {
        let lookup = |_: &str| Some("a b".to_owned());
        let mut environment = Environment::new(&lookup);
        let text = "/x/{{conversationId}}/?q={{message}}&k=${K}";
        let template = Template::parse(text, Scope::Request, &mut environment).expect("valid");
        let url = with_values(|values| template.render_url(values));
        assert_eq!(url.as_deref(), Ok("/x/c%2F1/?q=say%20%22hi%22%20%26%20go&k=a b"));
        assert_eq!(environment.secrets, ["a b"]);
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
