//! Rules for tools, parameters and stubs that a case names.

use std::collections::{BTreeSet, HashMap};

use jsonschema::Validator;
use serde_json::Value;

use super::schema::{Properties, param_validator};
use super::{Linter, Rule};
use karat_cases::registry::{Registry, Tool, ToolField};
use karat_cases::token::TokenSources;
use karat_cases::{Expectation, ExpectedCall, ExpectedCalls, NO_TOOL, ParamAssertion, ParamCheck, ParamsMatch};
use karat_json::text::{shorten, text_form};
use karat_json::{nearest, pointer_key};

/// The result in the stub of a new project, which the user replaces.
pub const PLACEHOLDER_RESULT: &str = "replace this with the tool's result";

/// Caches lookups of tools and parameters.
pub(super) struct RegistryIndex<'r> {
    registry: Option<&'r Registry>,
    missing: HashMap<String, Option<(Rule, String)>>,
    params: HashMap<(String, String), Param>,
}

/// A parameter according to the tool's schema.
enum Param {
    /// The schema allows parameters that it does not list, or is unknown.
    Open,
    /// The schema has no such parameter; with a message.
    Unknown(String),
    Known(Validator),
}

impl<'r> RegistryIndex<'r> {
    pub(super) fn new(registry: Option<&'r Registry>) -> Self {
        Self { registry, missing: HashMap::new(), params: HashMap::new() }
    }

    pub(super) fn missing(&mut self, tool: &str) -> Option<&(Rule, String)> {
        let registry = self.registry?;
        if !self.missing.contains_key(tool) {
            self.missing.insert(tool.to_owned(), missing_tool(registry, tool));
        }
        self.missing[tool].as_ref()
    }

    fn param(&mut self, tool: &str, name: &str) -> &Param {
        let registry = self.registry;
        let find =
            || registry.and_then(|registry| registry.tool(tool)).map_or(Param::Open, |tool| Param::find(tool, name));
        self.params.entry((tool.to_owned(), name.to_owned())).or_insert_with(find)
    }
}

impl Param {
    fn find(tool: &Tool, name: &str) -> Self {
        let is_known = tool.unknown(ToolField::InputSchema).is_none();
        let Some(schema) = tool.input_schema.get().filter(|_| is_known) else {
            return Self::Open;
        };
        let properties = Properties::collect(schema);
        if let Some(alternatives) = properties.named.get(name) {
            return param_validator(schema, alternatives).map_or(Self::Open, Self::Known);
        }
        if properties.is_open {
            return Self::Open;
        }
        let names: Vec<&str> = properties.named.keys().copied().collect();
        let hint = match nearest(name, &names) {
            Some(near) => format!(" (did you mean '{near}'?)"),
            None if names.is_empty() => " (it has none)".to_owned(),
            None => String::new(),
        };
        Self::Unknown(format!("'{}' has no parameter '{}'{hint}", tool.name, shorten(name, 80)))
    }
}

impl Linter<'_, '_> {
    pub(super) fn names(&mut self, index: &mut RegistryIndex<'_>) {
        let case = self.case;
        for (pointer, tool) in named_tools(&case.expect) {
            if let Some((rule, message)) = index.missing(tool) {
                self.add(*rule, pointer, message.clone());
            }
        }
        for (position, assertion) in case.expect.tool_params.iter().flatten().enumerate() {
            self.param(&format!("/expect/toolParams/{position}"), assertion, index);
        }
        for (below, entry, _) in case.expect.calls.iter().flat_map(ExpectedCalls::entries) {
            self.expected_call(&format!("/expect/calls{below}"), entry, index);
        }
        self.stubs(index);
        let judges_response = judges_response(&case.expect);
        if self.is_routing_only() && judges_response {
            let message = "without 'stubs', only the model's routing is checked, so its response is not the final one";
            self.add(Rule::ResponseInRoutingOnly, "/expect", message);
        }
    }

    fn param(&mut self, pointer: &str, assertion: &ParamAssertion, index: &mut RegistryIndex<'_>) {
        match index.param(&assertion.tool, &assertion.param_name) {
            Param::Open => {}
            // An assertion that an unknown parameter is absent is valid.
            Param::Unknown(_) if assertion.assertion == ParamCheck::NotExists => {}
            Param::Unknown(message) => self.add(Rule::UnknownParam, format!("{pointer}/paramName"), message.clone()),
            Param::Known(validator) => {
                let values = self.compared_values(assertion);
                let wrong = values.into_iter().find_map(|value| {
                    let error = validator.validate(&value).err()?.to_string();
                    // Arguments are compared in their text form, so "5" matches 5.
                    let alternative = match value.as_str() {
                        Some(text) => serde_json::from_str::<Value>(text).ok(),
                        None => Some(Value::from(text_form(&value).into_owned())),
                    };
                    (!alternative.is_some_and(|value| validator.is_valid(&value))).then_some(error)
                });
                if let Some(error) = wrong {
                    let message = format!(
                        "'{}' of '{}' does not accept this value: {}",
                        assertion.param_name,
                        assertion.tool,
                        shorten(&error, 200)
                    );
                    self.add(Rule::ParamValue, format!("{pointer}/value"), message);
                }
            }
        }
    }

    fn expected_call(&mut self, pointer: &str, entry: &ExpectedCall, index: &mut RegistryIndex<'_>) {
        // Without sources, a value with tokens is unknown.
        let no_sources = TokenSources::default();
        let sources = self.context.tokens.unwrap_or(&no_sources);
        for (name, value) in entry.params.iter().flatten() {
            let pointer = format!("{pointer}/params/{}", pointer_key(name));
            // A part that is ignored, or a part of an object that may have more keys, is not the whole argument.
            let is_whole = entry.params_match() == ParamsMatch::Equal && entry.ignore.is_empty();
            match index.param(&entry.tool, name) {
                Param::Open => {}
                Param::Unknown(message) => self.add(Rule::UnknownParam, pointer, message.clone()),
                Param::Known(validator) => {
                    let value = sources.resolve_value(value).ok().filter(|_| is_whole);
                    if let Some(error) = value.and_then(|value| Some(validator.validate(&value).err()?.to_string())) {
                        let (tool, error) = (&entry.tool, shorten(&error, 200));
                        self.add(
                            Rule::ParamValue,
                            pointer,
                            format!("'{name}' of '{tool}' does not accept this value: {error}"),
                        );
                    }
                }
            }
        }
    }

    /// Returns the known values that an argument is compared with as a whole.
    fn compared_values(&self, assertion: &ParamAssertion) -> Vec<Value> {
        let items = match (assertion.assertion, &assertion.value) {
            // The schema is that of the whole argument.
            _ if !assertion.path.is_empty() => Vec::new(),
            (ParamCheck::Equals, Some(value)) => vec![value],
            (ParamCheck::OneOf, Some(Value::Array(items))) => items.iter().collect(),
            _ => Vec::new(),
        };
        // Without sources, a value with tokens is unknown.
        let no_sources = TokenSources::default();
        let sources = self.context.tokens.unwrap_or(&no_sources);
        items.into_iter().filter_map(|value| sources.resolve_value(value).ok()).collect()
    }

    /// Whether the case has a single model call, which nothing follows.
    pub(super) fn is_routing_only(&self) -> bool {
        self.context.routing_only && self.case.stubs.is_none() && !self.case.has_turns() && !self.is_turn()
    }

    fn stubs(&mut self, index: &mut RegistryIndex<'_>) {
        if let Some(stubs) = self.own_stubs {
            if stubs.is_empty() && !self.is_turn() {
                return self.add(Rule::EmptyStubs, "/stubs", "'stubs' is empty, so every tool call returns an error");
            }
            for (name, stub) in stubs {
                let pointer = format!("/stubs/{}", pointer_key(name));
                if let Some((rule, message)) = index.missing(name) {
                    self.add(*rule, pointer.clone(), message.clone());
                }
                if stub.as_str().or(stub["result"].as_str()) == Some(PLACEHOLDER_RESULT) {
                    let message =
                        format!("the stub of '{}' is a placeholder: write what the tool returns", shorten(name, 80));
                    self.add(Rule::PlaceholderStub, pointer, message);
                }
            }
        }
        let case = self.case;
        if !case.has_stubs() {
            return;
        }
        let all_stubs = case.stubs.iter().chain(case.turns().iter().filter_map(|turn| turn.stubs.as_ref()));
        let stubbed: BTreeSet<&str> = all_stubs.flat_map(|stubs| stubs.keys()).map(String::as_str).collect();
        let expect = &case.expect;
        let called = expect.tools_called.iter().flatten().chain(expect.tools_acceptable.iter().flatten().flatten());
        let expected = expect.calls.iter().flat_map(ExpectedCalls::tools);
        let called = called.map(String::as_str).chain(expected);
        let missing: BTreeSet<&str> = called.filter(|name| *name != NO_TOOL && !stubbed.contains(name)).collect();
        let pointer = if self.own_stubs.is_some() { "/stubs" } else { "/expect" };
        for name in missing {
            let message = format!("no stub for '{}', so its call returns an error", shorten(name, 80));
            self.add(Rule::MissingStub, pointer, message);
        }
    }
}

/// Returns a message with a suggestion if a tool is certainly not in the registry.
pub fn unknown_tool(registry: &Registry, tool: &str) -> Option<String> {
    missing_tool(registry, tool).filter(|(rule, _)| *rule == Rule::UnknownTool).map(|(_, message)| message)
}

/// Returns why a tool is unknown, if it is, with a suggestion.
fn missing_tool(registry: &Registry, tool: &str) -> Option<(Rule, String)> {
    if registry.tool(tool).is_some() {
        return None;
    }
    let near = nearest(tool, &registry.names()).map_or_else(String::new, |name| format!(" (did you mean '{name}'?)"));
    if registry.gaps().is_empty() {
        return Some((Rule::UnknownTool, format!("the registry has no tool '{tool}'{near}")));
    }
    let message = format!(
        "no tool '{tool}' in the readable part of the registry{near}; it may be in a part that could not be read"
    );
    Some((Rule::ToolNotKnown, message))
}

fn judges_response(expect: &Expectation) -> bool {
    fn is_filled<T>(list: Option<&Vec<T>>) -> bool {
        list.is_some_and(|list| !list.is_empty())
    }
    expect.response_non_empty == Some(true)
        || is_filled(expect.response_contains.as_ref())
        || is_filled(expect.response_contains_any.as_ref())
        || is_filled(expect.response_not_contains.as_ref())
        || is_filled(expect.response_matches.as_ref())
        || is_filled(expect.response_not_matches.as_ref())
        || is_filled(expect.response_json.as_ref())
        || is_filled(expect.response_similar.as_ref())
        || expect.response_equals.is_some()
        || expect.response_starts_with.is_some()
        || expect.response_ends_with.is_some()
        || expect.max_tokens.is_some()
        || expect.response_json_schema.is_some()
        || expect.min_length.is_some()
        || expect.max_length.is_some()
        || expect.numbers_grounded == Some(true)
}

/// Lists all tools that an expectation names, with JSON pointers.
pub fn named_tools(expect: &Expectation) -> Vec<(String, &str)> {
    let mut named: Vec<(String, &str)> = Vec::new();
    let lists = [("toolsCalled", &expect.tools_called), ("toolsNotCalled", &expect.tools_not_called)];
    for (key, list) in lists {
        let tools = list.iter().flatten().enumerate();
        named.extend(tools.map(|(index, tool)| (format!("/expect/{key}/{index}"), tool.as_str())));
    }
    for (set_index, set) in expect.tools_acceptable.iter().flatten().enumerate() {
        let tools = set.iter().enumerate().filter(|(_, tool)| *tool != NO_TOOL);
        named
            .extend(tools.map(|(index, tool)| (format!("/expect/toolsAcceptable/{set_index}/{index}"), tool.as_str())));
    }
    for (index, assertion) in expect.tool_params.iter().flatten().enumerate() {
        named.push((format!("/expect/toolParams/{index}/tool"), &assertion.tool));
    }
    for (below, entry, _) in expect.calls.iter().flat_map(ExpectedCalls::entries) {
        named.push((format!("/expect/calls{below}/tool"), &entry.tool));
    }
    for (index, (before, after)) in expect.tool_order.iter().flatten().enumerate() {
        named.push((format!("/expect/toolOrder/{index}/0"), before));
        named.push((format!("/expect/toolOrder/{index}/1"), after));
    }
    named
}
