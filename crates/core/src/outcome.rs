//! How a case ended.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What came of a case: a verdict, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    Passed,
    /// An assertion did not hold, or the agent took too long.
    Failed,
    /// No verdict could be reached.
    Errored,
}
