//! The report of a session.

use std::collections::BTreeMap;

use karat_cases::{Difficulty, Tier};
use karat_core::trace::Usage;
use karat_forge::session::{Entry, Session};
use karat_forge::{Draft, DraftFinding, Drafter, Evidence, OpenSlot, Plan, check_coverage};
use karat_lints::{Rule, Severity};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::inputs::ForgeInputs;
use super::verifier::EvidenceMap;
use super::writing::WriteOutcome;

/// The machine-readable report, with details for people.
#[derive(Debug)]
pub struct Summary {
    pub report: ForgeReport,
    /// The usage of the drafter's model, if known.
    pub usage: Option<Usage>,
    /// Drafts that were left out and that a script cannot approve.
    pub refused: Vec<RefusedDraft>,
    /// A draft was left out because there is no verdict of its run.
    pub has_no_verdict: bool,
    /// The number of approved cases with findings.
    pub with_findings: usize,
    /// The number of approved cases with findings, by rule.
    pub findings: BTreeMap<&'static str, usize>,
    /// There was nothing to draft and no slot is open.
    pub is_complete: bool,
}

/// A draft with errors or personal data, or that did not pass.
#[derive(Debug)]
pub struct RefusedDraft {
    pub id: String,
    pub reasons: Vec<String>,
}

/// The planned, drafted and written cases.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "karat forge report")]
pub struct ForgeReport {
    pub tool: String,
    /// The planned labeled cases of the tool.
    pub plan: Plan,
    /// The drafter: `template`, `model`, `traces` or `file`; none for a plan only.
    pub drafter: Option<String>,
    /// The model of the drafter, if it uses one.
    pub model: Option<String>,
    /// With `--dry-run`: all drafts; otherwise empty.
    pub batches: Vec<ReportedBatch>,
    pub files: Vec<WrittenFile>,
    /// Drafts that were not approved.
    pub left_out: Vec<ReportedDraft>,
    /// The slots without a draft.
    pub open: Vec<OpenSlot>,
    /// Tools that were added to the overlap map as overlaps of this tool.
    pub overlaps_added: Vec<String>,
    /// Findings about the cases as a whole.
    #[serde(rename = "lacking")]
    pub coverage_findings: Vec<ReportedFinding>,
}

/// Drafts that are approved together.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportedBatch {
    pub tier: Tier,
    pub difficulty: Option<Difficulty>,
    pub drafts: Vec<ReportedDraft>,
}

/// A draft with its findings.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportedDraft {
    pub id: String,
    /// The purpose of the draft, as text.
    pub purpose: String,
    /// The author or drafter, for people.
    pub origin: Option<String>,
    /// The case; none if the drafter could not create one.
    pub case: Option<Value>,
    pub findings: Vec<ReportedFinding>,
    /// Whether a person could approve the draft unchanged.
    pub can_be_approved: bool,
    /// With `--verify`: the evidence from running the draft.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
}

/// A problem of a draft, or of the cases as a whole.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportedFinding {
    /// `error` prevents approval; `warning` needs a person's attention.
    pub severity: Severity,
    pub rule: Rule,
    /// The location in the case, as a JSON pointer; empty for the whole case.
    pub pointer: String,
    pub message: String,
}

/// A file that was written.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WrittenFile {
    pub path: String,
    pub tier: Tier,
    /// The ids of the cases that were added.
    pub added: Vec<String>,
    /// The total number of cases in the file.
    pub total: usize,
    /// Whether the file was created.
    pub is_new: bool,
}

impl ForgeReport {
    pub fn of_plan(plan: Plan) -> Self {
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
            coverage_findings: Vec::new(),
        }
    }

    fn of_session(
        session: &Session,
        drafter: &dyn Drafter,
        written: WriteOutcome,
        evidence_map: &EvidenceMap,
        coverage_findings: &[DraftFinding],
    ) -> Self {
        let left_out = left_out(session).map(|entry| ReportedDraft::of(entry, evidence_map.get(&entry.slot.id)));
        Self {
            drafter: Some(drafter.name().to_owned()),
            model: drafter.model(),
            files: written.files,
            left_out: left_out.collect(),
            open: session.open_slots().iter().map(OpenSlot::new).collect(),
            overlaps_added: written.overlaps,
            coverage_findings: coverage_findings.iter().map(ReportedFinding::of).collect(),
            ..Self::of_plan(session.plan.clone())
        }
    }

    fn with_drafts(mut self, session: &Session, evidence_map: &EvidenceMap) -> Self {
        let batches = session.batches().iter().map(|batch| ReportedBatch {
            tier: batch.tier,
            difficulty: batch.difficulty(),
            drafts: batch
                .entries
                .iter()
                .map(|entry| ReportedDraft::of(entry, evidence_map.get(&entry.slot.id)))
                .collect(),
        });
        self.batches = batches.collect();
        self
    }
}

impl Summary {
    /// Summarizes a session; `lists_drafts` if no files were written.
    pub(super) fn of(
        session: &Session,
        inputs: &ForgeInputs,
        drafter: &dyn Drafter,
        written: WriteOutcome,
        evidence_map: &EvidenceMap,
        lists_drafts: bool,
    ) -> Self {
        let findings = coverage_findings(inputs, session);
        let report = ForgeReport::of_session(session, drafter, written, evidence_map, &findings);
        let report = if lists_drafts { report.with_drafts(session, evidence_map) } else { report };
        let mut findings: BTreeMap<&'static str, usize> = BTreeMap::new();
        let mut with_findings = 0;
        for draft in approved(session).filter(|draft| !draft.findings.is_empty()) {
            with_findings += 1;
            let mut rules: Vec<&'static str> = draft.findings.iter().map(|finding| finding.rule.name()).collect();
            rules.sort_unstable();
            rules.dedup();
            for rule in rules {
                *findings.entry(rule).or_default() += 1;
            }
        }
        Self {
            report,
            usage: drafter.usage(),
            refused: left_out(session)
                .filter_map(|entry| RefusedDraft::of(entry, evidence_map.get(&entry.slot.id)))
                .collect(),
            has_no_verdict: left_out(session)
                .any(|entry| matches!(evidence_map.get(&entry.slot.id), Some(Evidence::Errored { .. }))),
            with_findings,
            findings,
            is_complete: session.batches().is_empty() && session.open_slots().is_empty(),
        }
    }
}

impl RefusedDraft {
    /// Returns `None` for a draft that could have been approved but was dropped by a person.
    fn of(entry: &Entry, evidence: Option<&Evidence>) -> Option<Self> {
        let run = evidence.filter(|evidence| **evidence != Evidence::Passed);
        if entry.draft.as_ref().is_some_and(Draft::can_be_approved) && !has_personal_data(entry) && run.is_none() {
            return None;
        }
        let findings = entry.draft.iter().flat_map(|draft| &draft.findings);
        let is_reason =
            |finding: &&DraftFinding| finding.severity == Severity::Error || finding.rule == Rule::PersonalData;
        let reasons = findings.filter(is_reason).map(|finding| finding.message.clone());
        let reasons = reasons.chain(run.map(Evidence::summary)).collect();
        Some(Self { id: entry.slot.id.clone(), reasons })
    }
}

/// Whether a draft has personal data.
pub(super) fn has_personal_data(entry: &Entry) -> bool {
    let findings = entry.draft.iter().flat_map(|draft| &draft.findings);
    findings.into_iter().any(|finding| finding.rule == Rule::PersonalData)
}

fn left_out(session: &Session) -> impl Iterator<Item = &Entry> {
    [Tier::Golden, Tier::Labeled].into_iter().flat_map(|tier| session.dropped(tier))
}

fn approved(session: &Session) -> impl Iterator<Item = &Draft> {
    let entries = session.batches().iter().flat_map(|batch| &batch.entries);
    entries.filter(|entry| entry.is_approved()).filter_map(|entry| entry.draft.as_ref())
}

/// Returns the findings about the cases as a whole.
fn coverage_findings(inputs: &ForgeInputs, session: &Session) -> Vec<DraftFinding> {
    let drafts: Vec<Draft> = approved(session).cloned().collect();
    if drafts.is_empty() {
        return Vec::new();
    }
    let tiers: Vec<Tier> =
        [Tier::Golden, Tier::Labeled].into_iter().filter(|tier| inputs.tiers.includes(*tier)).collect();
    check_coverage(&inputs.brief, &session.plan, &drafts, &tiers)
}

impl ReportedDraft {
    fn of(entry: &Entry, evidence: Option<&Evidence>) -> Self {
        let draft = entry.draft.as_ref();
        Self {
            id: entry.slot.id.clone(),
            purpose: entry.slot.purpose.to_string(),
            origin: draft.map(|draft| draft.origin.to_string()),
            case: draft.and_then(|draft| draft.case.clone()),
            findings: draft.iter().flat_map(|draft| &draft.findings).map(ReportedFinding::of).collect(),
            can_be_approved: draft.is_some_and(Draft::can_be_approved),
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
