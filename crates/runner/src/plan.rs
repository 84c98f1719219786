//! The plan of a run.

use karat_cases::RubricFile;
use karat_core::chat::ChatModel;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use karat_cases::registry::Registry;
use karat_cases::token::TokenSources;
use karat_cases::{Case, EvalFile};
use karat_core::assertion::Strictness;
use karat_core::event::SuiteHeader;
use karat_core::gate::Gates;
use karat_core::port::{EvalFunctions, Hooks, StateSources};
use karat_core::redact::Redactor;
use karat_core::result::{EarlierCase, MissingCases, SkippedCase};
use karat_core::shard::Shard;
use karat_core::staleness::{CurrentTool, check_staleness};
use karat_core::tokenizer::Tokenizer;
use karat_json::text::display_width;

/// The suites of a run and its settings.
pub struct Plan {
    pub run_id: String,
    pub suites: Vec<SuitePlan>,
    pub rubrics: Rubrics,
    /// The models that play simulated users, by `model` of the case; under `None` the configured one.
    pub simulated_users: BTreeMap<Option<String>, Arc<dyn ChatModel>>,
    /// The shard of this run, if it is one of several.
    pub shard: Option<Shard>,
    /// Maximum number of cases in parallel.
    pub concurrency: usize,
    /// Maximum time of a case.
    pub timeout: Duration,
    /// Number of trials per case.
    pub trials: usize,
    pub strictness: Strictness,
    /// Starts no more cases after the first one that does not pass.
    pub fail_fast: bool,
    pub gates: Option<Gates>,
    /// Cases of the baseline whose suites are not part of this run.
    pub baseline_missing: MissingCases,
    pub tokens: TokenSources,
    pub registry: Option<Registry>,
    pub tokenizer: Tokenizer,
    pub redactor: Redactor,
    /// Runs eval functions; required only if a case names one.
    pub functions: Option<Arc<dyn EvalFunctions>>,
    /// Captures state sources; required only if a case names one.
    pub state_sources: Option<Arc<dyn StateSources>>,
    /// Runs the hooks of cases. Those of the run are called by the caller.
    pub hooks: Option<Arc<dyn Hooks>>,
}

/// One eval file of a run.
#[derive(Debug)]
pub struct SuitePlan {
    /// The path as the user gave it.
    pub path: String,
    /// Relative to the project folder; identifies the file across runs.
    pub project_path: String,
    /// Index into the agents of the run.
    pub agent: usize,
    /// Contains only the cases to run.
    pub file: EvalFile,
    /// Selected cases that are not run.
    pub skipped: Vec<SkippedCase>,
    /// The ids and lines of the selected cases of all shards; empty without shards.
    pub all_selected: Vec<(String, usize)>,
    pub current: CurrentTool,
    pub baseline: Option<Baseline>,
}

/// An earlier result of the same suite.
#[derive(Debug, Default)]
pub struct Baseline {
    pub run_id: String,
    pub cases: Vec<EarlierCase>,
    /// Ids of cases that are no longer in the eval file.
    pub removed: BTreeSet<String>,
}

impl SuitePlan {
    /// Returns the tool's name as in the registry.
    pub fn tool_name(&self) -> &str {
        self.current.name.as_deref().unwrap_or(&self.file.tool_name)
    }

    pub(crate) fn header(&self, agent: Option<String>, trials: usize, timeout: Duration) -> SuiteHeader {
        let cases = &self.file.cases;
        let widest = |text: fn(&Case) -> &str| cases.iter().map(|case| display_width(text(case))).max().unwrap_or(0);
        SuiteHeader {
            path: self.path.clone(),
            tool_name: self.tool_name().to_owned(),
            tier: self.file.tier,
            agent,
            selected: cases.len(),
            trials,
            timeout_ms: Some(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)),
            lines: cases.iter().map(|case| case.location.line).collect(),
            staleness: check_staleness(&self.file, &self.current),
            has_baseline: self.baseline.is_some(),
            id_columns: widest(|case| &case.id),
            description_columns: widest(|case| &case.description),
        }
    }
}

/// The rubric suites of a run and their judge.
#[derive(Default)]
pub struct Rubrics {
    pub suites: Vec<RubricPlan>,
    /// Without a judge, all rubric suites are skipped.
    pub judge: Option<Arc<dyn ChatModel>>,
}

impl fmt::Debug for Rubrics {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let judge = self.judge.as_ref().map(|judge| judge.identity());
        out.debug_struct("Rubrics").field("suites", &self.suites).field("judge", &judge).finish()
    }
}

/// One rubric file of a run.
#[derive(Debug)]
pub struct RubricPlan {
    /// The path as the user gave it.
    pub path: String,
    /// Relative to the project folder.
    pub project_path: String,
    /// Index into the agents of the run.
    pub agent: usize,
    /// Contains only the cases to run.
    pub file: RubricFile,
    /// Selected cases that are not run.
    pub skipped: Vec<SkippedCase>,
    pub current: CurrentTool,
}

impl RubricPlan {
    pub(crate) fn tool_name(&self) -> &str {
        self.current.name.as_deref().unwrap_or(&self.file.tool_name)
    }
}
