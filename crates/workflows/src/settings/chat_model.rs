//! The configuration of a model that returns structured output.

use karat_json::{ObjectReader, Path, Problems, read_positive_count, read_string};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::config::{read_seed, read_temperature};

/// A model and its parameters.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChatModelConfig {
    /// `PROVIDER:MODEL`, `command:PROGRAM` for a program, or `scripted:FILE` for scripted replies in examples and tests.
    pub model: String,
    /// Sampling temperature.
    #[schemars(range(min = 0))]
    pub temperature: Option<f64>,
    /// Sampling seed, for models that support one.
    pub seed: Option<i64>,
    /// Maximum number of output tokens.
    #[schemars(range(min = 1))]
    pub max_output_tokens: Option<u64>,
}

impl ChatModelConfig {
    pub fn new(model: &str) -> Self {
        Self { model: model.to_owned(), temperature: None, seed: None, max_output_tokens: None }
    }

    pub(crate) fn read(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        let mut object = ObjectReader::open(value, path, problems)?;
        let model = object.required("model", path, problems, read_string);
        let temperature = object.nullable("temperature", path, problems, read_temperature);
        let seed = object.nullable("seed", path, problems, read_seed);
        let max_output_tokens = object.nullable("maxOutputTokens", path, problems, read_positive_count);
        object.close(path, problems);
        Some(Self { model: model?, temperature, seed, max_output_tokens })
    }
}
