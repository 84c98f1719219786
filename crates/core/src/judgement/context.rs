//! What an eval function is told beside the trace.

use serde::Serialize;
use serde_json::{Map, Value};

/// The second argument of an eval function that has one.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct EvalContext {
    /// The case that is judged: its id, description, tags, input and metadata. `None` for a trace without a case.
    pub case: Option<Value>,
    /// The reference of the entry in `expect.evals`.
    pub reference: Option<Value>,
    /// The parameters of the entry in `expect.evals`.
    pub params: Map<String, Value>,
}
