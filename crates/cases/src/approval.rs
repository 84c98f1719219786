//! Approvals of drafted cases in an eval file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use karat_json::{ObjectReader, Path, Problems, read_string, read_strings};

/// One approval; drafted cases are written to a file only with one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(transform = super::shape::approval)]
pub struct Approval {
    /// The person who approved the cases.
    pub approved_by: String,
    /// When they were approved.
    pub approved_at: String,
    /// The drafter: `template`, `model` or `traces`.
    pub drafter: String,
    /// The model that drafted them, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The ids of the approved cases.
    pub cases: Vec<String>,
}

impl Approval {
    pub(super) fn read(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        let mut object = ObjectReader::open(value, path, problems)?;
        let approved_by = object.required("approvedBy", path, problems, read_string);
        let approved_at = object.required("approvedAt", path, problems, read_string);
        let drafter = object.required("drafter", path, problems, read_string);
        let model = object.optional("model", path, problems, read_string);
        let cases = object.required("cases", path, problems, read_strings);
        object.close(path, problems);
        Some(Self { approved_by: approved_by?, approved_at: approved_at?, drafter: drafter?, model, cases: cases? })
    }
}
