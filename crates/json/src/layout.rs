//! Detects the layout of a JSON document and formats new values in it.

use serde_json::Value;

/// Maximum length of a line with an inline array or object.
pub(super) const MAX_LINE_WIDTH: usize = 100;

/// The detected layout of a JSON document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) newline: &'static str,
    /// The indentation of one level.
    pub(super) unit: String,
    /// Text between a key and its value.
    colon: String,
    /// Text between two values on one line.
    pub(super) comma: &'static str,
    /// Text inside braces on one line.
    object_padding: &'static str,
    list_padding: &'static str,
    /// Whether arrays without objects are on one line.
    pub(super) inline_lists: bool,
    pub(super) inline_objects: bool,
}

/// An array or object whose end is not reached.
struct OpenContainer {
    bracket: u8,
    holds_object: bool,
    is_empty: bool,
    is_multi_line: bool,
    padding: &'static str,
}

impl OpenContainer {
    fn is_object(&self) -> bool {
        self.bracket == b'{'
    }
}

/// The observed layout; the pairs count inline and multi-line containers.
#[derive(Default)]
struct Observations {
    newline: Option<&'static str>,
    unit: Option<String>,
    colon: Option<String>,
    comma: Option<&'static str>,
    object_padding: Option<&'static str>,
    list_padding: Option<&'static str>,
    lists: (usize, usize),
    objects: (usize, usize),
}

impl Layout {
    /// Detects the layout of a valid JSON document.
    pub(super) fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut observed = Observations::default();
        let mut open: Vec<OpenContainer> = Vec::new();
        let mut string_end = 0;
        let mut at = 0;
        while at < bytes.len() {
            let byte = bytes[at];
            if !byte.is_ascii_whitespace()
                && !b"]}".contains(&byte)
                && let Some(top) = open.last_mut()
            {
                top.is_empty = false;
            }
            match byte {
                b'"' => {
                    at = end_of_string(bytes, at);
                    string_end = at;
                    continue;
                }
                b'{' | b'[' => {
                    let padding = if bytes.get(at + 1) == Some(&b' ') { " " } else { "" };
                    open.push(OpenContainer {
                        bracket: byte,
                        holds_object: false,
                        is_empty: true,
                        is_multi_line: false,
                        padding,
                    });
                    observed.unit = observed.unit.or_else(|| unit_after(text, at));
                }
                b'}' | b']' => {
                    if let Some(closed) = open.pop() {
                        if let Some(parent) = open.last_mut() {
                            parent.is_multi_line |= closed.is_multi_line;
                            parent.holds_object |= closed.is_object() || closed.holds_object;
                        }
                        observed.container(&closed, open.is_empty());
                    }
                }
                b'\n' => {
                    let newline = if at > 0 && bytes[at - 1] == b'\r' { "\r\n" } else { "\n" };
                    observed.newline.get_or_insert(newline);
                    if let Some(top) = open.last_mut() {
                        top.is_multi_line = true;
                    }
                }
                b':' => {
                    let end = at + 1 + bytes[at + 1..].iter().take_while(|&&byte| byte == b' ').count();
                    if !bytes.get(end).is_some_and(u8::is_ascii_whitespace) {
                        observed.colon.get_or_insert_with(|| text[string_end..end].to_owned());
                    }
                }
                b',' if !bytes.get(at + 1).is_some_and(|byte| b"\r\n".contains(byte)) => {
                    observed.comma.get_or_insert(if bytes.get(at + 1) == Some(&b' ') { ", " } else { "," });
                }
                _ => {}
            }
            at += 1;
        }
        observed.layout()
    }

    /// Formats a value, with its key if it has one, on one line.
    pub(super) fn one_line(&self, key: Option<&str>, value: &Value) -> String {
        let mut out = self.key(key);
        self.write_one_line(value, &mut out);
        out
    }

    /// Formats a value, with its key if it has one, on as many lines as needed; the first starts after `indent`.
    pub(super) fn lines(&self, key: Option<&str>, value: &Value, indent: &str) -> String {
        let mut out = self.key(key);
        let column = indent.chars().count() + out.chars().count();
        self.write_lines(value, indent, column, &mut out);
        out
    }

    fn key(&self, key: Option<&str>) -> String {
        key.map(|key| format!("{}{}", Value::from(key), self.colon)).unwrap_or_default()
    }

    fn write_one_line(&self, value: &Value, out: &mut String) {
        let separate = |first: bool, padding: &'static str, out: &mut String| {
            out.push_str(if first { padding } else { self.comma });
        };
        match value {
            Value::Array(items) if !items.is_empty() => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    separate(index == 0, self.list_padding, out);
                    self.write_one_line(item, out);
                }
                out.push_str(self.list_padding);
                out.push(']');
            }
            Value::Object(map) if !map.is_empty() => {
                out.push('{');
                for (index, (key, item)) in map.iter().enumerate() {
                    separate(index == 0, self.object_padding, out);
                    out.push_str(&self.key(Some(key)));
                    self.write_one_line(item, out);
                }
                out.push_str(self.object_padding);
                out.push('}');
            }
            other => out.push_str(&other.to_string()),
        }
    }

    fn write_lines(&self, value: &Value, indent: &str, column: usize, out: &mut String) {
        let inner = format!("{indent}{}", self.unit);
        match value {
            Value::Array(items) if !items.is_empty() => {
                if self.inline_lists && !holds_object(value) {
                    let line = self.one_line(None, value);
                    // A comma may follow.
                    if column + line.chars().count() < MAX_LINE_WIDTH {
                        out.push_str(&line);
                        return;
                    }
                }
                let lines = items.iter().map(|item| self.lines(None, item, &inner));
                out.push_str(&self.multi_line("[", lines, "]", indent));
            }
            Value::Object(map) if !map.is_empty() => {
                let lines = map.iter().map(|(key, item)| self.lines(Some(key), item, &inner));
                out.push_str(&self.multi_line("{", lines, "}", indent));
            }
            other => out.push_str(&other.to_string()),
        }
    }

    /// Formats a container with one child per line, between lines indented by `indent`.
    pub(super) fn multi_line(
        &self,
        opening: &str,
        children: impl Iterator<Item = impl AsRef<str>>,
        closing: &str,
        indent: &str,
    ) -> String {
        let mut out = opening.to_owned();
        for (index, child) in children.enumerate() {
            out.push_str(if index == 0 { "" } else { "," });
            out.push_str(self.newline);
            out.push_str(indent);
            out.push_str(&self.unit);
            out.push_str(child.as_ref());
        }
        out.push_str(self.newline);
        out.push_str(indent);
        out.push_str(closing);
        out
    }

    /// Returns the padding inside a container's brackets on one line.
    pub(super) fn padding(&self, is_object: bool) -> &'static str {
        if is_object { self.object_padding } else { self.list_padding }
    }
}

impl Observations {
    /// Records a container. The root is ignored: its layout is not that of its children.
    fn container(&mut self, closed: &OpenContainer, is_root: bool) {
        if closed.is_empty {
            return;
        }
        if !closed.is_multi_line {
            let padding = if closed.is_object() { &mut self.object_padding } else { &mut self.list_padding };
            padding.get_or_insert(closed.padding);
        }
        if is_root || (!closed.is_object() && closed.holds_object) {
            return;
        }
        let counts = if closed.is_object() { &mut self.objects } else { &mut self.lists };
        *(if closed.is_multi_line { &mut counts.1 } else { &mut counts.0 }) += 1;
    }

    fn layout(self) -> Layout {
        let is_compact = self.newline.is_none() && self.colon.as_deref() == Some(":");
        Layout {
            newline: self.newline.unwrap_or("\n"),
            unit: self.unit.unwrap_or_else(|| "  ".to_owned()),
            colon: self.colon.unwrap_or_else(|| ": ".to_owned()),
            comma: self.comma.unwrap_or(if is_compact { "," } else { ", " }),
            object_padding: self.object_padding.unwrap_or(""),
            list_padding: self.list_padding.unwrap_or(""),
            inline_lists: self.lists.0 >= self.lists.1,
            inline_objects: self.objects.0 > self.objects.1,
        }
    }
}

pub(super) fn holds_object(value: &Value) -> bool {
    match value {
        Value::Object(_) => true,
        Value::Array(items) => items.iter().any(holds_object),
        _ => false,
    }
}

/// Returns the indentation of the line that contains `at`.
pub(super) fn indent_at(text: &str, at: usize) -> &str {
    let line = &text[line_start(text, at)..];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

pub(super) fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |end| end + 1)
}

/// Returns the additional indentation of the line after an opening bracket.
fn unit_after(text: &str, at: usize) -> Option<String> {
    let following = text[at + 1..].trim_start_matches([' ', '\t', '\r']).strip_prefix('\n')?;
    let rest = following.trim_start_matches([' ', '\t']);
    let unit = following[..following.len() - rest.len()].strip_prefix(indent_at(text, at))?;
    (!unit.is_empty() && !rest.starts_with(['}', ']', '\r', '\n'])).then(|| unit.to_owned())
}

fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}
