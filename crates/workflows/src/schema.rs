//! JSON Schemas of the formats that karat reads and writes.

use karat_agents::{ChatScript, Script};
use karat_cases::regression::ArchiveSchema;
use karat_cases::{EvalFileSchema, RubricFileSchema};
use karat_core::case_list::CaseList;
use karat_core::result::{RunList, SavedRun, SuiteResult};
use karat_core::rubric::RubricResult;
use karat_core::run_report::RunReport;
use karat_core::stored::{ImportReport, ReceiveEvent};
use karat_evals::agreement::{
    AgreementReport, ContradictionList, Refinement, ResolvedContradiction, VersionComparison,
};
use karat_evals::execution::{EvalRun, Execution};
use karat_evals::feedback::Feedback;
use karat_evals::function_test::{EvalTestReport, FunctionCaseSchema};
use karat_evals::report::{EvalDetails, EvalHistory, EvalList, EvalsAdded, StoredEvalRun};
use karat_evals::traces::{TraceDetails, TraceList};
use karat_forge::BriefDocument;
use karat_tools::coverage::Coverage;
use karat_tools::lock::{ToolsDiff, ToolsLock};
use karat_tools::overlap::OverlapMapSchema;
use karat_tools::tool_list::ToolList;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};

use crate::adopt_eval::AdoptReport;
use crate::agent::detect::Detection;
use crate::agent::presets::{PresetDetails, PresetList};
use crate::agent::try_message::AgentTrial;
use crate::check::{CheckReport, RuleList};
use crate::check_functions::EvalCheckReport;
use crate::compare_runs::RunComparison;
use crate::doctor::DoctorReport;
use crate::feedback::{FeedbackChange, FeedbackImportReport, FeedbackList};
use crate::forge::ForgeReport;
use crate::overlaps::{OverlapList, SuggestionReport};
use crate::regress::RegressReport;
use crate::runs::PruneReport;
use crate::settings::Config;

/// The name and description of a format, and its schema with these settings.
type Format = (&'static str, &'static str, fn(SchemaSettings) -> Schema);

/// Returns the name and description of each format.
pub fn formats() -> impl Iterator<Item = (&'static str, &'static str)> {
    FORMATS.iter().map(|(name, help, _)| (*name, *help))
}

/// Returns the schema of the format with this name.
pub fn schema_of(name: &str) -> Option<Schema> {
    let (_, _, schema) = FORMATS.iter().find(|(format, ..)| *format == name)?;
    Some(schema(SchemaSettings::default()))
}

const FORMATS: &[Format] = &[
    ("case", "Eval files", schema::<EvalFileSchema>),
    ("rubric", "Rubric files", schema::<RubricFileSchema>),
    ("config", "karat.json", schema::<Config>),
    ("result", "Result files", schema::<SuiteResult>),
    ("run", "Output of 'karat run --format json'", schema::<RunReport>),
    ("rubric-result", "Result files of rubric suites", schema::<RubricResult>),
    ("runs", "Output of 'karat runs --format json'", schema::<RunList>),
    ("runs-prune", "Output of 'karat runs prune --format json'", schema::<PruneReport>),
    ("diff", "Output of 'karat diff --format json'", schema::<RunComparison>),
    ("show", "Output of 'karat show --format json'", schema::<SavedRun>),
    ("coverage", "Output of 'karat coverage --format json'", schema::<Coverage>),
    ("case-list", "Output of 'karat run --list --format json'", schema::<CaseList>),
    ("check", "Output of 'karat check --format json'", schema::<CheckReport>),
    ("agent-try", "Output of 'karat agent try --format json'", schema::<AgentTrial>),
    ("agent-kinds", "Output of 'karat agent show --format json'", schema::<PresetList>),
    ("agent-show", "Output of 'karat agent show KIND --format json'", schema::<PresetDetails>),
    ("agent-detect", "Output of 'karat agent detect --format json'", schema::<Detection>),
    ("script", "Files of scripted agents", schema::<Script>),
    ("judge-script", "Files of scripted judges", schema::<ChatScript>),
    ("tools", "Output of 'karat tools --format json'", schema::<ToolList>),
    ("tools-lock", "Lock files of tools", schema::<ToolsLock>),
    ("tools-diff", "Output of 'karat tools diff --format json'", schema::<ToolsDiff>),
    ("overlap-map", "Overlap maps", schema::<OverlapMapSchema>),
    ("overlap-list", "Output of 'karat overlap list --format json'", schema::<OverlapList>),
    ("overlap-suggestions", "Output of 'karat overlap suggest --format json'", schema::<SuggestionReport>),
    ("regress-report", "Output of 'karat regress --format json'", schema::<RegressReport>),
    ("regression-archive", "Archives of regression cases", schema::<ArchiveSchema>),
    ("eval-doctor", "Output of 'karat eval doctor --format json'", schema::<DoctorReport>),
    ("eval-adopt", "Output of 'karat eval adopt --format json'", schema::<AdoptReport>),
    ("eval-check", "Output of 'karat eval check --format json'", schema::<EvalCheckReport>),
    ("eval-cases", "Lines of the test cases of an eval function", schema::<FunctionCaseSchema>),
    ("eval-execution", "Lines of 'karat eval run --format jsonl'", schema::<Execution>),
    ("eval-run", "Output of 'karat eval run --format json'", schema::<EvalRun>),
    ("eval-run-stored", "Output of 'karat eval run --stored --format json'", schema::<StoredEvalRun>),
    ("eval-test", "Output of 'karat eval test --format json'", schema::<EvalTestReport>),
    ("eval-add", "Output of 'karat eval add --format json'", schema::<EvalsAdded>),
    ("eval-list", "Output of 'karat eval list --format json'", schema::<EvalList>),
    ("eval-show", "Output of 'karat eval show --format json'", schema::<EvalDetails>),
    ("eval-history", "Output of 'karat eval history --format json'", schema::<EvalHistory>),
    ("eval-agreement", "Output of 'karat eval agreement --format json'", schema::<AgreementReport>),
    ("eval-compare", "Output of 'karat eval compare --format json'", schema::<VersionComparison>),
    ("eval-refine", "Output of 'karat eval refine --format json'", schema::<Refinement>),
    ("contradictions", "Output of 'karat contradictions --format json'", schema::<ContradictionList>),
    (
        "contradictions-resolve",
        "Output of 'karat contradictions resolve --format json'",
        schema::<ResolvedContradiction>,
    ),
    ("forge", "Output of 'karat forge --format json'", schema::<ForgeReport>),
    ("forge-brief", "Output of 'karat forge --brief --format json'", schema::<BriefDocument>),
    ("check-rules", "Output of 'karat check --rules --format json'", schema::<RuleList>),
    ("feedback", "Lines of 'karat feedback list --format jsonl'", schema::<Feedback>),
    ("feedback-add", "Output of 'karat feedback add --format json'", schema::<FeedbackChange>),
    ("feedback-import", "Output of 'karat feedback import --format json'", schema::<FeedbackImportReport>),
    ("feedback-list", "Output of 'karat feedback list --format json'", schema::<FeedbackList>),
    ("trace-import", "Output of 'karat trace import --format json'", schema::<ImportReport>),
    ("trace-list", "Output of 'karat trace list --format json'", schema::<TraceList>),
    ("trace-show", "Output of 'karat trace show --format json'", schema::<TraceDetails>),
    ("trace-receive", "Lines of 'karat trace receive --format jsonl'", schema::<ReceiveEvent>),
];

fn schema<T: JsonSchema>(settings: SchemaSettings) -> Schema {
    settings.into_generator().into_root_schema_for::<T>()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    /// Adds the required keys of all objects in the schema, each as the path of the object and the key.
    fn required_keys(schema: &Value, path: &str, keys: &mut BTreeSet<String>) {
        match schema {
            Value::Object(object) => {
                let required = object.get("required").and_then(Value::as_array).into_iter().flatten();
                keys.extend(required.filter_map(Value::as_str).map(|key| format!("{path}: {key}")));
                for (name, part) in object {
                    required_keys(part, &format!("{path}/{name}"), keys);
                }
            }
            Value::Array(parts) => {
                for (index, part) in parts.iter().enumerate() {
                    required_keys(part, &format!("{path}/{index}"), keys);
                }
            }
            _ => {}
        }
    }

    /// A schema describes what is accepted; `skip_serializing_if` leaves out keys in what is written.
    #[test]
    fn required_keys_are_always_written() {
        let required = |schema: &Schema, name: &str| {
            let mut keys = BTreeSet::new();
            required_keys(schema.as_value(), name, &mut keys);
            keys
        };
        let mut missing = BTreeSet::new();
        for (name, _, schema) in FORMATS {
            let written = required(&schema(SchemaSettings::default().for_serialize()), name);
            let accepted = required(&schema(SchemaSettings::default()), name);
            missing.extend(accepted.difference(&written).cloned());
        }
        assert_eq!(missing, BTreeSet::new());
    }
}
