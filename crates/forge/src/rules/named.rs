//! What a draft names exists: tools, parameters and their values, stubs.

use std::collections::BTreeSet;

use karat_core::case::{NO_TOOL, ParamAssertion, ParamCheck};
use karat_core::lint::{self, missing_tool};
use karat_core::registry::{Tool, ToolField};
use karat_core::source::{nearest, pointer_key};
use karat_core::text::{shorten, text_form};
use karat_core::token::Resolved;

use super::schema::{Properties, allowed_values};
use super::{DraftRule, Examination};

/// A list of allowed values is shown up to so many.
const MOST_SHOWN: usize = 6;

impl Examination<'_> {
    /// Looks at what the lints of eval files do not: those know the tools of an expectation by name.
    pub(super) fn names(&mut self) {
        self.stubs();
        let assertions = self.case.expect.tool_params.as_deref().unwrap_or_default();
        for (index, assertion) in assertions.iter().enumerate() {
            self.param(&format!("/expect/toolParams/{index}"), assertion);
        }
        for (index, name) in self.case.expect.evals.iter().flatten().enumerate() {
            let what = format!("whether there is an eval function '{}' is not known here", shorten(name, 80));
            self.warning(DraftRule::EvalFunction, format!("/expect/evals/{index}"), what);
        }
    }

    fn stubs(&mut self) {
        let Some(stubs) = &self.case.stubs else {
            return;
        };
        for name in stubs.keys() {
            let pointer = format!("/stubs/{}", pointer_key(name));
            match missing_tool(&self.brief.registry, name) {
                Some((lint::Rule::UnknownTool, message)) => self.error(DraftRule::UnknownTool, pointer, message),
                Some((_, message)) => self.warning(DraftRule::ToolNotKnown, pointer, message),
                None => {}
            }
        }
        if stubs.is_empty() {
            return;
        }
        let expect = &self.case.expect;
        let called = expect.tools_called.iter().flatten().chain(expect.tools_acceptable.iter().flatten().flatten());
        let missing: BTreeSet<&String> = called.filter(|name| *name != NO_TOOL && !stubs.contains_key(*name)).collect();
        for name in missing {
            let what =
                format!("there is no stub for '{}', so that its call is answered with an error", shorten(name, 80));
            self.warning(DraftRule::MissingStub, "/stubs", what);
        }
    }

    fn param(&mut self, pointer: &str, assertion: &ParamAssertion) {
        let registry = &self.brief.registry;
        let tool = registry.tool(&assertion.tool).filter(|tool| tool.unknown(ToolField::InputSchema).is_none());
        let Some((tool, schema)) = tool.and_then(|tool| Some((tool, tool.input_schema.get()?))) else {
            return;
        };
        let properties = Properties::of(schema);
        let Some(kinds) = properties.named.get(assertion.param_name.as_str()) else {
            // That something made up is not there is no mistake.
            if !properties.is_open && assertion.assertion != ParamCheck::NotExists {
                let what = unknown_param(tool, &assertion.param_name, &properties);
                self.error(DraftRule::UnknownParam, format!("{pointer}/paramName"), what);
            }
            return;
        };
        let Some(allowed) = allowed_values(schema, kinds) else {
            return;
        };
        let allowed: Vec<String> = allowed.into_iter().map(|value| text_form(value).into_owned()).collect();
        for text in self.compared(assertion) {
            let fits = match assertion.assertion {
                ParamCheck::Contains => allowed.iter().any(|value| value.contains(&text)),
                _ => allowed.contains(&text),
            };
            if !fits {
                let what = wrong_value(tool, &assertion.param_name, &text, &allowed);
                self.error(DraftRule::ParamValue, format!("{pointer}/value"), what);
            }
        }
    }

    /// Returns what an argument is compared with, as far as that is known now.
    fn compared(&self, assertion: &ParamAssertion) -> Vec<String> {
        let sources = &self.brief.sources;
        match (assertion.assertion, &assertion.value) {
            (ParamCheck::Equals | ParamCheck::Contains, Some(value)) => match sources.resolve_value(value) {
                Resolved::Text(text) => vec![text],
                Resolved::Unresolved(_) => Vec::new(),
            },
            (ParamCheck::OneOf, Some(value)) => sources.resolve_list(value).texts,
            _ => Vec::new(),
        }
    }
}

fn unknown_param(tool: &Tool, name: &str, properties: &Properties<'_>) -> String {
    let known: Vec<&str> = properties.named.keys().copied().collect();
    let shown = shorten(name, 80);
    let hint = match nearest(name, &known) {
        Some(near) => format!(" (did you mean '{near}'?)"),
        None if known.is_empty() => " (it takes none)".to_owned(),
        None => String::new(),
    };
    format!("'{}' has no parameter '{shown}'{hint}", tool.name)
}

fn wrong_value(tool: &Tool, param: &str, text: &str, allowed: &[String]) -> String {
    let known: Vec<&str> = allowed.iter().map(String::as_str).collect();
    let hint = if let Some(near) = nearest(text, &known) {
        format!("did you mean '{near}'?")
    } else {
        let shown: Vec<String> =
            known.iter().take(MOST_SHOWN).map(|value| format!("'{}'", shorten(value, 40))).collect();
        let more = if known.len() > MOST_SHOWN { ", …" } else { "" };
        format!("allowed: {}{more}", shown.join(", "))
    };
    format!("'{}' is no value of '{param}' of '{}' ({hint})", shorten(text, 60), tool.name)
}
