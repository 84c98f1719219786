//! Strict parser of `expect`.

use serde_json::Value;

use super::read_predicate::{Condition, read_calls, read_predicates};
use super::read_response::{read_patterns_with_tokens, read_similar};
use super::state::{read_state, read_state_unchanged};
use super::{CallSelector, EvalEntry, Expectation, JsonFrom, NO_TOOL, ParamAssertion, TextMatch, ToolsCalledMatch};
use karat_json::text::shorten;
use karat_json::{
    ObjectReader, Path, Problems, Subject, read_array, read_bool, read_count, read_enum, read_object_map,
    read_positive_count, read_positive_number, read_string, read_strings, type_name,
};
use karat_pattern::Pattern;

pub(super) fn read_expectation(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Expectation> {
    let mut object = ObjectReader::open(value, path, problems)?;
    let expectation = Expectation {
        tools_called: object.optional("toolsCalled", path, problems, read_tools),
        tools_called_match: object.optional("toolsCalledMatch", path, problems, read_match),
        tools_acceptable: object.optional("toolsAcceptable", path, problems, read_acceptable),
        tools_not_called: object.optional("toolsNotCalled", path, problems, read_tools),
        tool_params: object.optional("toolParams", path, problems, |value, path, problems| {
            read_array(value, path, problems, read_param)
        }),
        calls: object.optional("calls", path, problems, read_calls),
        no_tool_errors: object.optional("noToolErrors", path, problems, read_bool),
        response_non_empty: object.optional("responseNonEmpty", path, problems, read_bool),
        text_match: object.optional("textMatch", path, problems, |value, path, problems| {
            read_enum(value, path, problems, &TextMatch::NAMES, TextMatch::from_name)
        }),
        response_contains: object.optional("responseContains", path, problems, read_strings),
        response_contains_any: object.optional("responseContainsAny", path, problems, |value, path, problems| {
            read_array(value, path, problems, read_strings)
        }),
        response_not_contains: object.optional("responseNotContains", path, problems, read_strings),
        response_matches: object.optional("responseMatches", path, problems, |value, path, problems| {
            read_array(value, path, problems, |value, path, problems| {
                let pattern = read_string(value, path, problems)?;
                check_pattern(&pattern, path, problems)?;
                Some(pattern)
            })
        }),
        max_latency_ms: object.optional("maxLatencyMs", path, problems, read_positive_number),
        max_tokens: object.optional("maxTokens", path, problems, read_positive_count),
        tool_order: object.optional("toolOrder", path, problems, |value, path, problems| {
            read_array(value, path, problems, read_pair)
        }),
        min_tool_calls: object.optional("minToolCalls", path, problems, read_count),
        max_tool_calls: object.optional("maxToolCalls", path, problems, read_count),
        tool_args_valid: object.optional("toolArgsValid", path, problems, read_bool),
        response_json_schema: object.optional("responseJsonSchema", path, problems, |value, path, problems| {
            let schema = read_object_map(value, path, problems)?;
            if let Err(error) = crate::json_schema::compile_schema(value) {
                problems.at(path, format!("{} is not a valid JSON Schema: {}", path.name(), shorten(&error, 300)));
                return None;
            }
            Some(schema)
        }),
        min_length: object.optional("minLength", path, problems, read_count),
        max_length: object.optional("maxLength", path, problems, read_count),
        max_cost_usd: object.optional("maxCostUsd", path, problems, read_positive_number),
        max_first_token_ms: object.optional("maxFirstTokenMs", path, problems, read_positive_number),
        numbers_grounded: object.optional("numbersGrounded", path, problems, read_bool),
        response_equals: object.optional("responseEquals", path, problems, read_string),
        response_starts_with: object.optional("responseStartsWith", path, problems, read_string),
        response_ends_with: object.optional("responseEndsWith", path, problems, read_string),
        response_not_matches: object.optional("responseNotMatches", path, problems, read_patterns_with_tokens),
        response_json: object.optional("responseJson", path, problems, read_predicates),
        response_json_from: object.optional("responseJsonFrom", path, problems, |value, path, problems| {
            read_enum(value, path, problems, &JsonFrom::NAMES, JsonFrom::from_name)
        }),
        min_steps: object.optional("minSteps", path, problems, read_count),
        max_steps: object.optional("maxSteps", path, problems, read_count),
        response_similar: object.optional("responseSimilar", path, problems, |value, path, problems| {
            read_array(value, path, problems, read_similar)
        }),
        evals: object.optional("evals", path, problems, read_evals),
        state: object.optional("state", path, problems, read_state),
        state_unchanged: object.optional("stateUnchanged", path, problems, read_state_unchanged),
    };
    let has_unused_match = expectation.tools_called_match.is_some() && object.raw("toolsCalled").is_none();
    let has_json = ["responseJson", "responseJsonSchema"].into_iter().any(|key| object.raw(key).is_some());
    object.close(path, problems);
    if expectation.response_json_from.is_some() && !has_json {
        let message = "'responseJsonFrom' needs 'responseJson' or 'responseJsonSchema', which are missing".to_owned();
        problems.push(&path.key("responseJsonFrom"), Subject::Key, message, None);
    }
    if has_unused_match {
        let message = "'toolsCalledMatch' needs 'toolsCalled', which is missing".to_owned();
        problems.push(&path.key("toolsCalledMatch"), Subject::Key, message, None);
    }
    Some(expectation)
}

pub(super) fn check_pattern(pattern: &str, path: &Path<'_>, problems: &mut Problems) -> Option<()> {
    match Pattern::compile(pattern) {
        Ok(_) => Some(()),
        Err(error) => {
            problems.at(path, format!("{} is not a valid regular expression: {error}", path.name()));
            None
        }
    }
}

fn read_match(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<ToolsCalledMatch> {
    read_enum(value, path, problems, &ToolsCalledMatch::NAMES, ToolsCalledMatch::from_name)
}

/// Reads tool names, of which none may be `NO_TOOL`.
fn read_tools(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Vec<String>> {
    let tools = read_strings(value, path, problems)?;
    for (index, tool) in tools.iter().enumerate() {
        check_tool_name(tool, &path.index(index), problems);
    }
    Some(tools)
}

pub(super) fn check_tool_name(tool: &str, path: &Path<'_>, problems: &mut Problems) {
    if tool.is_empty() {
        problems.at(path, format!("{} is empty: it must be the name of a tool", path.name()));
    }
    if tool == NO_TOOL {
        let help = "for no tool at all, write \"toolsCalled\": [] or \"toolsAcceptable\": [[\"__none__\"]]".to_owned();
        let message = format!("{}: '{NO_TOOL}' is only allowed in 'toolsAcceptable'", path.name());
        problems.push(path, Subject::Value, message, Some(help));
    }
}

/// Reads the entries of eval functions; the caller checks that the functions exist.
fn read_evals(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Vec<EvalEntry>> {
    let entries = read_array(value, path, problems, EvalEntry::read);
    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
    for (index, item) in items.iter().enumerate().filter(|(index, item)| items[..*index].contains(item)) {
        if let Some(name) = EvalEntry::name_in(item) {
            let path = path.index(index);
            problems.at(&path, format!("{}: '{name}' is listed twice", path.name()));
        }
    }
    entries
}

fn read_acceptable(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Vec<Vec<String>>> {
    let sets = read_array(value, path, problems, |value, path, problems| {
        let set = read_strings(value, path, problems)?;
        if set.len() > 1 && set.iter().any(|tool| tool == NO_TOOL) {
            let name = path.name();
            problems
                .at(path, format!("{name}: '{NO_TOOL}' means that no tool is called, so it must be alone in its set"));
            return None;
        }
        if let Some(index) = set.iter().position(String::is_empty) {
            check_tool_name("", &path.index(index), problems);
        }
        Some(set)
    })?;
    if sets.is_empty() {
        let help = "for no tool at all, write [[\"__none__\"]]".to_owned();
        let message = "'toolsAcceptable' needs at least one set".to_owned();
        problems.push(path, Subject::Value, message, Some(help));
        return None;
    }
    Some(sets)
}

fn read_pair(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<(String, String)> {
    let tools = read_tools(value, path, problems)?;
    let count = tools.len();
    let Ok([before, after]) = <[String; 2]>::try_from(tools) else {
        problems.at(path, format!("{} must be a pair of tools, found {count}", path.name()));
        return None;
    };
    Some((before, after))
}

fn read_param(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<ParamAssertion> {
    let mut object = ObjectReader::open(value, path, problems)?;
    let tool = object.required("tool", path, problems, read_string);
    let param_name = object.required("paramName", path, problems, read_string);
    let condition = Condition::read(&mut object, path, problems);
    let call = object.optional("call", path, problems, read_call).unwrap_or_default();
    object.close(path, problems);
    let (tool, param_name) = (tool?, param_name?);
    check_tool_name(&tool, &path.key("tool"), problems);
    let Condition { assertion, path, value, tolerance, optional } = condition?;
    Some(ParamAssertion { tool, param_name, path, assertion, value, tolerance, call, optional })
}

fn read_call(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<CallSelector> {
    if value.is_number() {
        let number = read_count(value, path, problems)?;
        return usize::try_from(number).ok().map(CallSelector::Number);
    }
    if value.is_string() {
        return read_enum(value, path, problems, &CallSelector::NAMES, CallSelector::from_name);
    }
    problems.at(
        path,
        format!(
            "'call' must be one of {} or an integer of at least 0, found {}",
            CallSelector::NAMES.join(", "),
            type_name(value)
        ),
    );
    None
}
