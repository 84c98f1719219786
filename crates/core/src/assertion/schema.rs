//! Assertions with the JSON Schemas of tools.

use std::ops::ControlFlow;

use jsonschema::Validator;
use serde_json::Value;

use super::params::MAX_RAW_LENGTH;
use super::tally::{Check, Tally};
use super::{Evidence, Field};
use crate::outcome::Cause;
use crate::trace::ToolCall;
use karat_cases::json_schema::compile_tool_schema;
use karat_cases::registry::{Tool, ToolField};
use karat_json::text::shorten;

pub(super) fn tool_args_valid(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    if evidence.case.expect.tool_args_valid != Some(true) {
        return ControlFlow::Continue(());
    }
    let Some(registry) = evidence.registry else {
        tally.warn("toolArgsValid: no tool registry to validate against".to_owned());
        return tally.record(Field::ToolArgsValid, Check::Skipped);
    };
    let mut unchecked = Vec::new();
    for call in &evidence.trace.tool_calls {
        let valid = match registry.tool(&call.name) {
            None if registry.gaps().is_empty() => Err(format!("'{}' is not in the tool registry", call.name)),
            None => {
                unchecked.push(format!("'{}' is not in the readable part of the tool registry", call.name));
                Ok(())
            }
            Some(tool) => match tool.unknown(ToolField::InputSchema) {
                Some(unknown) => {
                    unchecked.push(format!("the schema of '{}' is unknown: {}", call.name, unknown.reason));
                    Ok(())
                }
                None => match tool_validator(tool) {
                    Ok(validator) => validate_arguments(validator.as_ref(), call),
                    // The registry is wrong, not the agent.
                    Err(error) => {
                        tally.record_error(Field::ToolArgsValid, Cause::Check, &error)?;
                        return tally.record(Field::ToolArgsValid, Check::Skipped);
                    }
                },
            },
        };
        if let Err(failure) = valid {
            return tally.record(Field::ToolArgsValid, Check::Failed(failure));
        }
    }
    if unchecked.is_empty() {
        return tally.record(Field::ToolArgsValid, Check::Passed);
    }
    unchecked.dedup();
    for message in unchecked {
        tally.warn(format!("toolArgsValid: {message}"));
    }
    tally.record(Field::ToolArgsValid, Check::Skipped)
}

/// Compiles a tool's schema; `None` if it has none.
fn tool_validator(tool: &Tool) -> Result<Option<Validator>, String> {
    let schema = tool.input_schema.get();
    schema
        .map(compile_tool_schema)
        .transpose()
        .map_err(|error| format!("the registry's schema of '{}' is not a valid JSON Schema: {error}", tool.name))
}

fn validate_arguments(validator: Option<&Validator>, call: &ToolCall) -> Result<(), String> {
    if let Some(raw) = &call.raw_params {
        let raw = shorten(raw, MAX_RAW_LENGTH);
        return Err(format!("the arguments of '{}' are not a JSON object: {raw}", call.name));
    }
    let Some(validator) = validator else { return Ok(()) };
    first_error(validator, &Value::Object(call.params.clone()))
        .map_err(|error| format!("the arguments of '{}' do not match its schema: {error}", call.name))
}

fn first_error(validator: &Validator, value: &Value) -> Result<(), String> {
    validator.validate(value).map_err(|error| {
        let path = error.instance_path().to_string();
        let message = error.to_string();
        if path.is_empty() { message } else { format!("{path}: {message}") }
    })
}
