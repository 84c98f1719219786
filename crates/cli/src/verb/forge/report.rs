//! What `karat forge` tells programs.

use karat_core::case::{Difficulty, Tier};
use karat_core::lint::{Rule, Severity};
use karat_forge::session::{Entry, Session};
use karat_forge::{DraftFinding, Evidence, OpenSlot, Plan};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::view::{Evidences, origin_text};
use crate::args::OutputFormat;
use crate::failure::Failure;
use crate::printer::Printer;

/// What was planned, drafted and written.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "karat forge report")]
pub(crate) struct ForgeReport {
    tool: String,
    /// The labeled cases of the tool, by the formula.
    plan: Plan,
    /// What drafts: `template`, `model`, `traces` or `file`; none where only the plan was wanted.
    drafter: Option<String>,
    /// The model that drafts, if one does.
    model: Option<String>,
    /// With `--dry-run`: what was drafted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    batches: Vec<ReportedBatch>,
    /// What was written.
    files: Vec<WrittenFile>,
    /// Drafts that were not approved.
    left_out: Vec<ReportedDraft>,
    /// The places for which there is no draft.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    open: Vec<OpenSlot>,
    /// Tools that the overlap map now declares to be taken for this one.
    overlaps_added: Vec<String>,
    /// What all cases together lack.
    lacking: Vec<ReportedFinding>,
}

/// Drafts that belong together.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReportedBatch {
    tier: Tier,
    difficulty: Option<Difficulty>,
    drafts: Vec<ReportedDraft>,
}

/// A draft, and what is wrong with it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReportedDraft {
    id: String,
    /// What it is to test, in words.
    purpose: String,
    /// Who or what made it, in words.
    origin: Option<String>,
    /// The case; none where none could be made.
    case: Option<Value>,
    findings: Vec<ReportedFinding>,
    /// Whether a person could approve it as it is.
    can_be_approved: bool,
    /// With `--verify`: what running it showed.
    #[serde(skip_serializing_if = "Option::is_none")]
    evidence: Option<Evidence>,
}

/// Something that is wrong.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReportedFinding {
    /// `error`: it cannot be approved so; `warning`: a person should look at it.
    severity: Severity,
    rule: Rule,
    /// Where in the case, as a JSON pointer; empty for the whole of it.
    pointer: String,
    message: String,
}

/// A file that was written.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WrittenFile {
    pub(super) path: String,
    pub(super) tier: Tier,
    /// The ids of the cases that were added.
    pub(super) added: Vec<String>,
    /// How many cases the file has now.
    pub(super) total: usize,
    /// The file was not there before.
    pub(super) is_new: bool,
}

impl ForgeReport {
    pub(super) fn of_plan(plan: Plan) -> Self {
        Self {
            tool: plan.tool.clone(),
            plan,
            drafter: None,
            model: None,
            batches: Vec::new(),
            files: Vec::new(),
            left_out: Vec::new(),
            open: Vec::new(),
            overlaps_added: Vec::new(),
            lacking: Vec::new(),
        }
    }

    /// Tells what became of a session.
    pub(super) fn of_session(
        session: &Session,
        drafter: &dyn karat_forge::Drafter,
        files: Vec<WrittenFile>,
        overlaps_added: Vec<String>,
        lacking: &[DraftFinding],
    ) -> Self {
        let left_out = [Tier::Golden, Tier::Labeled].into_iter().flat_map(|tier| session.left_out(tier));
        let left_out = left_out.map(|entry| ReportedDraft::of(entry, None)).collect();
        Self {
            drafter: Some(drafter.name().to_owned()),
            model: drafter.model(),
            files,
            left_out,
            open: session.open_slots().iter().map(OpenSlot::of).collect(),
            overlaps_added,
            lacking: lacking.iter().map(ReportedFinding::of).collect(),
            ..Self::of_plan(session.plan.clone())
        }
    }

    /// Adds all drafts.
    pub(super) fn with_drafts(mut self, session: &Session, evidences: &Evidences) -> Self {
        let batches = session.batches().iter().map(|batch| ReportedBatch {
            tier: batch.tier,
            difficulty: batch.difficulty(),
            drafts: batch.entries.iter().map(|entry| ReportedDraft::of(entry, evidences.get(&entry.slot.id))).collect(),
        });
        self.batches = batches.collect();
        self
    }

    /// Prints the report for programs, or this text for people.
    pub(super) fn print(&self, format: OutputFormat, text: &str, printer: &Printer) -> Result<(), Failure> {
        match format {
            OutputFormat::Json => printer.print_json(self),
            OutputFormat::Human => printer.print(text),
        }
    }
}

impl ReportedDraft {
    fn of(entry: &Entry, evidence: Option<&Evidence>) -> Self {
        let draft = entry.draft.as_ref();
        Self {
            id: entry.slot.id.clone(),
            purpose: entry.slot.purpose.to_string(),
            origin: draft.map(|draft| origin_text(&draft.origin)),
            case: draft.and_then(|draft| draft.case.clone()),
            findings: draft.iter().flat_map(|draft| &draft.findings).map(ReportedFinding::of).collect(),
            can_be_approved: draft.is_some_and(karat_forge::Draft::can_be_approved),
            evidence: evidence.cloned(),
        }
    }
}

impl ReportedFinding {
    fn of(finding: &DraftFinding) -> Self {
        let DraftFinding { rule, severity, pointer, message } = finding.clone();
        Self { severity, rule, pointer, message }
    }
}
