//! An expected call with its tokens resolved, and its comparison with calls made.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::Value;

use super::call_alignment::{CallDifference, CallPart};
use super::json_difference::{JsonComparison, count_leaves};
use super::predicate::Predicate;
use super::tally::Tally;
use crate::trace::ToolCall;
use karat_cases::token::TokenSources;
use karat_cases::{ExpectedCall, JsonPredicate, ParamsMatch};

/// A call made, prepared for comparison.
pub(super) struct CallRecord<'t> {
    call: &'t ToolCall,
    /// `None` if the arguments are not JSON.
    arguments: Option<Value>,
    /// The result; a string that contains JSON is parsed.
    result: Option<Cow<'t, Value>>,
}

impl<'t> CallRecord<'t> {
    pub(super) fn new(call: &'t ToolCall) -> Self {
        let parse = |value: &'t Value| match value.as_str().map(karat_json::parse) {
            Some(Ok(parsed)) => Cow::Owned(parsed),
            Some(Err(_)) | None => Cow::Borrowed(value),
        };
        let arguments = call.raw_params.is_none().then(|| Value::Object(call.params.clone()));
        Self { call, arguments, result: call.result.as_ref().map(parse) }
    }
}

/// An expected call with its tokens resolved.
pub(super) struct ResolvedCall<'e> {
    spec: &'e ExpectedCall,
    params: Option<Value>,
    conditions: Vec<ResolvedPredicate<'e>>,
    result: Vec<ResolvedPredicate<'e>>,
}

struct ResolvedPredicate<'e> {
    spec: &'e JsonPredicate,
    predicate: Predicate,
}

/// The reason why an expected call cannot be compared.
pub(super) enum Unresolved {
    /// A token has no value.
    Token,
    /// The value of a token has the wrong type.
    Invalid(String),
}

impl<'e> ResolvedCall<'e> {
    pub(super) fn resolve(
        spec: &'e ExpectedCall,
        tokens: &TokenSources,
        tally: &mut Tally,
    ) -> Result<Self, Unresolved> {
        let params = spec.params.as_ref().map(|params| tokens.resolve_value(&Value::Object(params.clone())));
        let params = params.transpose().map_err(|unresolved| {
            tally.record_unresolved(unresolved);
            Unresolved::Token
        });
        // Resolve all parts, so that every token without a value is reported.
        let conditions = resolve_all(&spec.conditions, tokens, tally);
        let result = resolve_all(&spec.result, tokens, tally);
        Ok(Self { spec, params: params?, conditions: conditions?, result: result? })
    }

    /// Whether a call matches this one. Returns an error if a pattern exceeds its step budget.
    pub(super) fn is_match(&self, made: &CallRecord<'_>) -> Result<bool, String> {
        if self.spec.tool != made.call.name || !self.has_same_success(made) || !self.has_same_step(made) {
            return Ok(false);
        }
        if let Some(params) = &self.params {
            let Some(arguments) = &made.arguments else { return Ok(false) };
            if !self.comparison().differences(params, arguments).is_empty() {
                return Ok(false);
            }
        }
        if !self.conditions.is_empty() && made.arguments.is_none() {
            return Ok(false);
        }
        for condition in &self.conditions {
            if !condition.holds(made.arguments.as_ref())? {
                return Ok(false);
            }
        }
        for condition in &self.result {
            if !condition.holds(made.result.as_deref())? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the differences of a call of the same tool; `None` for another tool.
    pub(super) fn differences(&self, made: &CallRecord<'_>) -> Option<Vec<CallDifference>> {
        if self.spec.tool != made.call.name {
            return None;
        }
        let mut found = Vec::new();
        match &made.arguments {
            None if self.params.is_some() || !self.conditions.is_empty() => found.push(CallDifference {
                part: CallPart::Arguments,
                pointer: String::new(),
                expected: Some(self.params.as_ref().map_or_else(|| "JSON".to_owned(), ToString::to_string)),
                actual: made.call.raw_params.clone(),
            }),
            None => {}
            Some(arguments) => {
                let params = self.params.iter().flat_map(|params| self.comparison().differences(params, arguments));
                found.extend(params.map(|difference| CallDifference {
                    part: CallPart::Arguments,
                    pointer: difference.pointer,
                    expected: difference.expected.map(ToString::to_string),
                    actual: difference.actual.map(ToString::to_string),
                }));
                let conditions = self.conditions.iter();
                found.extend(conditions.filter_map(|each| each.difference(CallPart::Arguments, Some(arguments))));
            }
        }
        let result = made.result.as_deref();
        found.extend(self.result.iter().filter_map(|condition| condition.difference(CallPart::Result, result)));
        if !self.has_same_success(made) {
            found.push(CallDifference {
                part: CallPart::Success,
                pointer: String::new(),
                expected: self.spec.success.map(|success| success.to_string()),
                actual: made.call.success.map(|success| success.to_string()),
            });
        }
        if !self.has_same_step(made) {
            found.push(CallDifference {
                part: CallPart::Step,
                pointer: String::new(),
                expected: self.spec.step.map(|step| step.to_string()),
                actual: made.call.step.map(|step| step.to_string()),
            });
        }
        Some(found)
    }

    /// Returns the number of parts in which a call can differ.
    pub(super) fn count_parts(&self) -> usize {
        self.params.as_ref().map_or(0, count_leaves)
            + self.conditions.len()
            + self.result.len()
            + usize::from(self.spec.success.is_some())
            + usize::from(self.spec.step.is_some())
    }

    pub(super) fn has_step(&self) -> bool {
        self.spec.step.is_some()
    }

    /// Returns the call as text: `name {arguments}` and the conditions.
    pub(super) fn text(&self) -> String {
        let mut text = self.spec.tool.clone();
        if let Some(params) = &self.params {
            let more = if self.spec.params_match() == ParamsMatch::Includes { " and more" } else { "" };
            let _ = write!(text, " {params}{more}");
        }
        for (label, conditions) in [("where", &self.conditions), ("with result", &self.result)] {
            let conditions: Vec<String> = conditions.iter().map(ResolvedPredicate::text).collect();
            if !conditions.is_empty() {
                let _ = write!(text, " {label} {}", conditions.join(" and "));
            }
        }
        match self.spec.success {
            Some(true) => text.push_str(" that succeeds"),
            Some(false) => text.push_str(" that fails"),
            None => {}
        }
        if let Some(step) = self.spec.step {
            let _ = write!(text, " in step {step}");
        }
        text
    }

    fn comparison(&self) -> JsonComparison<'_> {
        let allows_more_keys = self.spec.params_match() == ParamsMatch::Includes;
        JsonComparison { allows_more_keys, arrays_by_index: false, ignore: &self.spec.ignore }
    }

    fn has_same_success(&self, made: &CallRecord<'_>) -> bool {
        self.spec.success.is_none() || self.spec.success == made.call.success
    }

    fn has_same_step(&self, made: &CallRecord<'_>) -> bool {
        self.spec.step.is_none() || self.spec.step == made.call.step
    }
}

fn resolve_all<'e>(
    specs: &'e [JsonPredicate],
    tokens: &TokenSources,
    tally: &mut Tally,
) -> Result<Vec<ResolvedPredicate<'e>>, Unresolved> {
    let resolved: Vec<_> = specs.iter().map(|spec| (spec, Predicate::resolve(spec, tokens, tally))).collect();
    let checked = resolved.into_iter().map(|(spec, resolved)| match resolved {
        Ok(Some(predicate)) => Ok(ResolvedPredicate { spec, predicate }),
        Ok(None) => Err(Unresolved::Token),
        Err(message) => Err(Unresolved::Invalid(message)),
    });
    checked.collect()
}

impl ResolvedPredicate<'_> {
    fn actual<'v>(&self, whole: Option<&'v Value>) -> Option<&'v Value> {
        whole.and_then(|value| value.pointer(&self.spec.path))
    }

    fn holds(&self, whole: Option<&Value>) -> Result<bool, String> {
        let actual = self.actual(whole);
        if actual.is_none() && self.spec.optional { Ok(true) } else { self.predicate.holds(actual) }
    }

    fn difference(&self, part: CallPart, whole: Option<&Value>) -> Option<CallDifference> {
        if self.holds(whole).unwrap_or(false) {
            return None;
        }
        Some(CallDifference {
            part,
            pointer: self.spec.path.clone(),
            expected: Some(self.predicate.describe()),
            actual: self.actual(whole).map(ToString::to_string),
        })
    }

    fn text(&self) -> String {
        let path = if self.spec.path.is_empty() { "it" } else { &self.spec.path };
        format!("{path} is {}", self.predicate.describe())
    }
}
