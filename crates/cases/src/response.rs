//! Expectations on the response as JSON, and on its similarity to other texts.

use schemars::JsonSchema;
use serde::Serialize;

use crate::similarity::SimilarityMethod;

/// Where the JSON of a response is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum JsonFrom {
    /// The whole response.
    #[default]
    Whole,
    /// The only fenced code block.
    Fence,
    /// The first complete object or array.
    First,
}

impl JsonFrom {
    pub const NAMES: [&'static str; 3] = ["whole", "fence", "first"];

    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "whole" => Some(Self::Whole),
            "fence" => Some(Self::Fence),
            "first" => Some(Self::First),
            _ => None,
        }
    }
}

/// Texts that the response must be similar to.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SimilarResponse {
    /// A text, or several of which the most similar one counts.
    pub to: SimilarTo,
    pub method: SimilarityMethod,
    /// The minimum similarity, from 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub at_least: f64,
}

/// The texts that a response is compared with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum SimilarTo {
    Text(String),
    Any(#[schemars(length(min = 1))] Vec<String>),
}

impl SimilarTo {
    pub fn texts(&self) -> &[String] {
        match self {
            Self::Text(text) => std::slice::from_ref(text),
            Self::Any(texts) => texts,
        }
    }
}
