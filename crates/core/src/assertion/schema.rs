//! JSON Schemas: of a tool's arguments, and of a response.

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
        tally.warn("toolArgsValid: there is no tool registry to take the schemas from".to_owned());
        return tally.record(Field::ToolArgsValid, Check::Skipped);
    };
    let mut unjudged = Vec::new();
    for call in &evidence.trace.tool_calls {
        let fits = match registry.tool(&call.name) {
            None if registry.gaps().is_empty() => Err(format!("'{}' is not a tool of the registry", call.name)),
            None => {
                unjudged.push(format!("'{}' is not in what could be read of the tool registry", call.name));
                Ok(())
            }
            Some(tool) => match tool.unknown(ToolField::InputSchema) {
                Some(unknown) => {
                    unjudged.push(format!("the schema of '{}' is not known: {}", call.name, unknown.why));
                    Ok(())
                }
                None => arguments_fit(tool, &call.params),
            },
        };
        if let Err(failure) = fits {
            return tally.record(Field::ToolArgsValid, Check::Failed(failure));
        }
    }
    if unjudged.is_empty() {
        return tally.record(Field::ToolArgsValid, Check::Held);
    }
    unjudged.dedup();
    for what in unjudged {
        tally.warn(format!("toolArgsValid: {what}"));
    }
    tally.record(Field::ToolArgsValid, Check::Skipped)
}

fn arguments_fit(tool: &Tool, arguments: &Map<String, Value>) -> Result<(), String> {
    let Some(schema) = tool.input_schema.get() else {
        return Ok(());
    };
    let validator = compile_schema(schema)
        .map_err(|error| format!("the registry's schema of '{}' is not a JSON Schema: {error}", tool.name))?;
    first_error(&validator, &Value::Object(arguments.clone()))
        .map_err(|error| format!("the arguments of '{}' do not fit its schema: {error}", tool.name))
}

pub(super) fn response_json_schema(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    let Some(schema) = &evidence.case.expect.response_json_schema else {
        return ControlFlow::Continue(());
    };
    let check = serde_json::from_str::<Value>(&evidence.trace.response)
        .map_err(|error| format!("expected JSON but the response is none: {error}"))
        .and_then(|value| {
            let validator = compile_schema(&Value::Object(schema.clone()))?;
            first_error(&validator, &value).map_err(|error| format!("the response does not fit the schema: {error}"))
        });
    tally.record(Field::ResponseJsonSchema, check.map_or_else(Check::Failed, |()| Check::Held))
}

fn first_error(validator: &Validator, value: &Value) -> Result<(), String> {
    validator.validate(value).map_err(|error| {
        let at = error.instance_path().to_string();
        let what = error.to_string();
        if at.is_empty() { what } else { format!("{at}: {what}") }
    })
}
