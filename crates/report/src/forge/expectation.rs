//! The expectation of a case, as labelled lines.

use karat_cases::{Case, Expectation, NO_TOOL, ParamAssertion, ToolsCalledMatch};
use serde_json::Value;

use crate::style::Symbols;

/// The keys with dedicated lines.
const DEDICATED_KEYS: [&str; 8] = [
    "toolsCalled",
    "toolsCalledMatch",
    "toolsAcceptable",
    "toolsNotCalled",
    "toolParams",
    "responseContains",
    "responseContainsAny",
    "responseNotContains",
];

/// Returns the label and the text of each line.
pub(super) fn expectation_lines(case: &Case, symbols: Symbols) -> Vec<(&'static str, String)> {
    let expect = &*case.total_expectation();
    let mut lines = Vec::new();
    if let Some(tools) = &expect.tools_called {
        lines.push(("calls", called(tools, expect.tools_called_match.unwrap_or_default())));
    }
    if let Some(sets) = &expect.tools_acceptable {
        let sets: Vec<String> = sets.iter().map(|set| acceptable(set)).collect();
        lines.push(("calls", sets.join(", or ")));
    }
    if let Some(tools) = expect.tools_not_called.as_ref().filter(|tools| !tools.is_empty()) {
        lines.push(("not", tools.join(", ")));
    }
    for param in expect.tool_params.iter().flatten() {
        lines.push(("with", param_text(param)));
    }
    if let Some(texts) = expect.response_contains.as_ref().filter(|texts| !texts.is_empty()) {
        lines.push(("contains", quote_all(texts)));
    }
    for group in expect.response_contains_any.iter().flatten() {
        lines.push(("any of", group.join(" | ")));
    }
    if let Some(texts) = expect.response_not_contains.as_ref().filter(|texts| !texts.is_empty()) {
        lines.push(("excludes", quote_all(texts)));
    }
    if let Some(stubs) = &case.stubs {
        let names: Vec<&str> = stubs.keys().map(String::as_str).collect();
        lines.push(("stubs", if names.is_empty() { "none".to_owned() } else { names.join(", ") }));
    }
    let rest = rest(expect);
    if !rest.is_empty() {
        lines.push(("also", rest.join(", ")));
    }
    if lines.is_empty() {
        lines.push(("expects", format!("nothing {} it always passes", symbols.dash)));
    }
    lines
}

fn called(tools: &[String], match_mode: ToolsCalledMatch) -> String {
    let suffix = match match_mode {
        _ if tools.len() < 2 => "",
        ToolsCalledMatch::Exact => " (in this order)",
        ToolsCalledMatch::AnyOrder => " (in any order)",
        ToolsCalledMatch::InOrder => " (in this order, with others in between)",
        ToolsCalledMatch::Includes => " (and maybe others)",
    };
    match tools {
        [] => "no tool".to_owned(),
        tools => format!("{}{suffix}", tools.join(" + ")),
    }
}

fn acceptable(set: &[String]) -> String {
    match set {
        [] => "no tool".to_owned(),
        [only] if only == NO_TOOL => "no tool".to_owned(),
        set => set.join(" + "),
    }
}

fn param_text(param: &ParamAssertion) -> String {
    let word = param.assertion.name();
    let tolerance = param.tolerance.as_ref().map(|tolerance| format!(" ± {tolerance}")).unwrap_or_default();
    let value = param.value.as_ref().map(|value| format!(" {value}")).unwrap_or_default();
    let optional = if param.optional { " (if given)" } else { "" };
    format!("{}.{}{} {word}{value}{tolerance}{optional}", param.tool, param.param_name, param.path)
}

fn quote_all(texts: &[String]) -> String {
    texts.iter().map(|text| format!("'{text}'")).collect::<Vec<_>>().join(", ")
}

/// Formats a number without a trailing `.0`.
fn number_text(number: &serde_json::Number) -> String {
    let text = number.to_string();
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

/// Returns the other keys: flags by name, limits with values.
fn rest(expect: &Expectation) -> Vec<String> {
    let Ok(Value::Object(expect)) = serde_json::to_value(expect) else { return Vec::new() };
    let others = expect.into_iter().filter(|(key, _)| !DEDICATED_KEYS.contains(&key.as_str()));
    others
        .filter_map(|(key, value)| match value {
            Value::Bool(true) => Some(key),
            Value::Bool(false) | Value::Null => None,
            Value::Number(number) => Some(format!("{key} {}", number_text(&number))),
            value => Some(format!("{key} {value}")),
        })
        .collect()
}
