//! Flags of the expectation, as keys of `expect`.

use karat_json::parse;
use serde_json::{Map, Value, json};

use crate::args::ExpectArgs;
use crate::failure::Failure;

pub(super) fn expect_from_flags(args: &ExpectArgs) -> Result<Map<String, Value>, Failure> {
    let list = |texts: &[String]| (!texts.is_empty()).then(|| json!(texts));
    let sets: Vec<Vec<&str>> = args.tools_acceptable.iter().map(|set| split_tools(set)).collect();
    let keys = [
        ("toolsCalled", args.tools_called.as_deref().map(|all| json!(split_tools(all)))),
        ("toolsAcceptable", (!sets.is_empty()).then(|| json!(sets))),
        ("toolsNotCalled", args.tools_not_called.as_deref().map(|all| json!(split_tools(all)))),
        ("responseContains", list(&args.response_contains)),
        ("responseNotContains", list(&args.response_not_contains)),
        ("responseMatches", list(&args.response_matches)),
        ("responseNonEmpty", args.response_non_empty.then(|| json!(true))),
        ("noToolErrors", args.no_tool_errors.then(|| json!(true))),
    ];
    let mut expect: Map<String, Value> =
        keys.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect();
    if let Some(text) = &args.expect {
        for (key, value) in parse_json_object("expect", text)? {
            expect.entry(key).or_insert(value);
        }
    }
    Ok(expect)
}

pub(super) fn parse_json_object(flag: &str, text: &str) -> Result<Map<String, Value>, Failure> {
    match parse(text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(Failure::invalid(format!("--{flag} must be a JSON object"))),
        Err(error) => Err(Failure::invalid(format!("--{flag} is not valid JSON: {}", error.message))),
    }
}

fn split_tools(text: &str) -> Vec<&str> {
    text.split(',').map(str::trim).filter(|tool| !tool.is_empty()).collect()
}
