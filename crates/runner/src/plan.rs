//! Everything that a run needs to know before it begins.

use karat_core::case::RubricFile;
use karat_core::chat::ChatModel;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use karat_core::assertion::Strictness;
use karat_core::case::{Case, EvalFile};
use karat_core::event::SuiteHeader;
use karat_core::gate::Gates;
use karat_core::port::EvalFunctions;
use karat_core::redact::Redactor;
use karat_core::registry::Registry;
use karat_core::result::EarlierCase;
use karat_core::staleness::{CurrentTool, check_staleness};
use karat_core::token::TokenSources;
use karat_core::tokenizer::Tokenizer;
use karat_json::text::display_width;

/// What is run, and how.
pub struct Plan {
    pub run_id: String,
    pub suites: Vec<SuitePlan>,
    pub rubrics: Rubrics,
    /// How many cases are under way at once.
    pub concurrency: usize,
    /// How long a case may take.
    pub timeout: Duration,
    /// How often each case is tried.
    pub trials: usize,
    pub strictness: Strictness,
    /// Begins no further case after the first that does not pass.
    pub fail_fast: bool,
    /// The limits that decide how the run ends.
    pub gates: Option<Gates>,
    pub tokens: TokenSources,
    pub registry: Option<Registry>,
    pub tokenizer: Tokenizer,
    pub redactor: Redactor,
    /// Who runs the eval functions that cases name; needed only where one does.
    pub functions: Option<Arc<dyn EvalFunctions>>,
}

/// One eval file of a run.
#[derive(Debug)]
pub struct SuitePlan {
    /// As the person named it.
    pub path: String,
    /// Relative to the project's folder, so that results of one file find each other.
    pub project_path: String,
    /// Who answers: a place among the run's agents.
    pub agent: usize,
    /// With the selected cases only.
    pub file: EvalFile,
    pub current: CurrentTool,
    pub baseline: Option<Baseline>,
}

/// An earlier result of the same suite.
#[derive(Debug)]
pub struct Baseline {
    pub run_id: String,
    pub cases: Vec<EarlierCase>,
}

impl SuitePlan {
    /// Returns the tool's name as the registry spells it.
    pub fn tool_name(&self) -> &str {
        self.current.name.as_deref().unwrap_or(&self.file.tool_name)
    }

    pub(crate) fn header(&self, agent: Option<String>, trials: usize) -> SuiteHeader {
        let cases = &self.file.cases;
        let widest = |text: fn(&Case) -> &str| cases.iter().map(|case| display_width(text(case))).max().unwrap_or(0);
        SuiteHeader {
            path: self.path.clone(),
            tool_name: self.tool_name().to_owned(),
            tier: self.file.tier,
            agent,
            selected: cases.len(),
            trials,
            lines: cases.iter().map(|case| case.line).collect(),
            staleness: check_staleness(&self.file, &self.current),
            has_baseline: self.baseline.is_some(),
            id_columns: widest(|case| &case.id),
            description_columns: widest(|case| &case.description),
        }
    }
}

/// The rubric suites of a run, and who scores them.
#[derive(Default)]
pub struct Rubrics {
    pub suites: Vec<RubricPlan>,
    /// Without one, all suites are skipped.
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
    /// As the person named it.
    pub path: String,
    /// Relative to the project's folder.
    pub project_path: String,
    /// Who answers: a place among the run's agents.
    pub agent: usize,
    /// With the selected cases only.
    pub file: RubricFile,
    pub current: CurrentTool,
}

impl RubricPlan {
    pub(crate) fn tool_name(&self) -> &str {
        self.current.name.as_deref().unwrap_or(&self.file.tool_name)
    }
}
