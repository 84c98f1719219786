//! Optional features of eval functions.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The threshold of scores if none is set.
pub const DEFAULT_THRESHOLD: f64 = 0.5;

/// The values that an eval function may return.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReturnForm {
    /// `(bool, str)`.
    #[default]
    Contract,
    /// Also a bool, a number, a dict with `pass`, `passed` or `score`, or None if the function is not applicable.
    Flexible,
}

impl ReturnForm {
    pub const NAMES: [&'static str; 2] = ["contract", "flexible"];

    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "contract" => Some(Self::Contract),
            "flexible" => Some(Self::Flexible),
            _ => None,
        }
    }
}

/// The optional features that an eval function uses. They are part of its code.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EvalOptions {
    /// The modules of `evalImports` that it imports.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub imports: Vec<String>,
    /// The threshold of scores, if its returns are flexible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// The sources of the helper modules that it imports, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub helpers: BTreeMap<String, String>,
}

impl EvalOptions {
    /// Whether the function uses no optional feature.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
