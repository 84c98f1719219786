//! Compiles JSON Schemas, with a limit on their patterns.

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

/// Backtracking steps of a schema's pattern after which the text counts as not matching.
const BACKTRACK_LIMIT: usize = 100_000;

/// Compiles a JSON Schema without fetching remote references.
pub(crate) fn compile_schema(schema: &Value) -> Result<Validator, String> {
    jsonschema::options()
        .offline()
        .with_pattern_options(PatternOptions::fancy_regex().backtrack_limit(BACKTRACK_LIMIT))
        .build(schema)
        .map_err(|error| error.to_string())
}
