//! Assertions with JSON Schemas: tool arguments and the response.

use std::ops::ControlFlow;

use jsonschema::Validator;
use serde_json::{Map, Value};

use super::tally::{Check, Tally};
use super::{Evidence, Field};
use crate::json_schema::compile_schema;
use crate::registry::{Tool, ToolField};

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
                None => validate_arguments(tool, &call.params),
            },
        };
        if let Err(failure) = valid {
            return tally.record(Field::ToolArgsValid, Check::Failed(failure));
        }
    }
    if unchecked.is_empty() {
        return tally.record(Field::ToolArgsValid, Check::Held);
    }
    unchecked.dedup();
    for message in unchecked {
        tally.warn(format!("toolArgsValid: {message}"));
    }
    tally.record(Field::ToolArgsValid, Check::Skipped)
}

fn validate_arguments(tool: &Tool, arguments: &Map<String, Value>) -> Result<(), String> {
    let Some(schema) = tool.input_schema.get() else {
        return Ok(());
    };
    let validator = compile_schema(schema)
        .map_err(|error| format!("the registry's schema of '{}' is not a valid JSON Schema: {error}", tool.name))?;
    first_error(&validator, &Value::Object(arguments.clone()))
        .map_err(|error| format!("the arguments of '{}' do not match its schema: {error}", tool.name))
}

pub(super) fn response_json_schema(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    let Some(schema) = &evidence.case.expect.response_json_schema else {
        return ControlFlow::Continue(());
    };
    let check = serde_json::from_str::<Value>(&evidence.trace.response)
        .map_err(|error| format!("expected JSON but the response is not valid: {error}"))
        .and_then(|value| {
            let validator = compile_schema(&Value::Object(schema.clone()))?;
            first_error(&validator, &value).map_err(|error| format!("the response does not match the schema: {error}"))
        });
    tally.record(Field::ResponseJsonSchema, check.map_or_else(Check::Failed, |()| Check::Held))
}

fn first_error(validator: &Validator, value: &Value) -> Result<(), String> {
    validator.validate(value).map_err(|error| {
        let path = error.instance_path().to_string();
        let message = error.to_string();
        if path.is_empty() { message } else { format!("{path}: {message}") }
    })
}
