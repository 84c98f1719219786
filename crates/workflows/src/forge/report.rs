//! What came of a session.

use std::collections::BTreeMap;

use karat_core::case::{Difficulty, Tier};
use karat_core::lint::{Rule, Severity};
use karat_core::trace::Usage;
use karat_forge::session::{Entry, Session};
use karat_forge::{Draft, DraftFinding, Drafter, Evidence, OpenSlot, Plan, examine_whole};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::material::Material;
use super::verifier::Evidences;
use super::writing::Written;

/// A report for programs, and what a person is told beside it.
#[derive(Debug)]
pub struct Summary {
    pub report: ForgeReport,
    /// What the drafter's model used, where that is known.
    pub usage: Option<Usage>,
    /// Drafts that were left out and could not have been approved by a script.
    pub refused: Vec<RefusedDraft>,
    /// How many approved cases have findings.
    pub with_findings: usize,
    /// How many of them have a finding of each rule.
    pub findings: BTreeMap<&'static str, usize>,
    /// There was nothing to draft, and no slot is open.
    pub is_complete: bool,
}

/// A draft with errors, or with personal data.
#[derive(Debug)]
pub struct RefusedDraft {
    pub id: String,
    pub reasons: Vec<String>,
}

/// What was planned, drafted and written.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "karat forge report")]
pub struct ForgeReport {
    pub tool: String,
    /// The labeled cases of the tool, by the formula.
    pub plan: Plan,
    /// What drafts: `template`, `model`, `traces` or `file`; none where only the plan was wanted.
    pub drafter: Option<String>,
    /// The model that drafts, if one does.
    pub model: Option<String>,
    /// With `--dry-run`: what was drafted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub batches: Vec<ReportedBatch>,
    /// What was written.
    pub files: Vec<WrittenFile>,
    /// Drafts that were not approved.
    pub left_out: Vec<ReportedDraft>,
    /// The places for which there is no draft.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub open: Vec<OpenSlot>,
    /// Tools that the overlap map now declares to be taken for this one.
    pub overlaps_added: Vec<String>,
    /// What all cases together lack.
    pub lacking: Vec<ReportedFinding>,
}

/// Drafts that belong together.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportedBatch {
    pub tier: Tier,
    pub difficulty: Option<Difficulty>,
    pub drafts: Vec<ReportedDraft>,
}

/// A draft, and what is wrong with it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportedDraft {
    pub id: String,
    /// What it is to test, in words.
    pub purpose: String,
    /// Who or what made it, in words.
    pub origin: Option<String>,
    /// The case; none where none could be made.
    pub case: Option<Value>,
    pub findings: Vec<ReportedFinding>,
    /// Whether a person could approve it as it is.
    pub can_be_approved: bool,
    /// With `--verify`: what running it showed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
}

/// Something that is wrong.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportedFinding {
    /// `error`: it cannot be approved so; `warning`: a person should look at it.
    pub severity: Severity,
    pub rule: Rule,
    /// Where in the case, as a JSON pointer; empty for the whole of it.
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
    /// How many cases the file has now.
    pub total: usize,
    /// The file was not there before.
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
            lacking: Vec::new(),
        }
    }

    /// Reports a session.
    fn of_session(session: &Session, drafter: &dyn Drafter, written: Written, lacking: &[DraftFinding]) -> Self {
        Self {
            drafter: Some(drafter.name().to_owned()),
            model: drafter.model(),
            files: written.files,
            left_out: left_out(session).map(|entry| ReportedDraft::of(entry, None)).collect(),
            open: session.open_slots().iter().map(OpenSlot::of).collect(),
            overlaps_added: written.overlaps,
            lacking: lacking.iter().map(ReportedFinding::of).collect(),
            ..Self::of_plan(session.plan.clone())
        }
    }

    /// Adds all drafts.
    fn with_drafts(mut self, session: &Session, evidences: &Evidences) -> Self {
        let batches = session.batches().iter().map(|batch| ReportedBatch {
            tier: batch.tier,
            difficulty: batch.difficulty(),
            drafts: batch.entries.iter().map(|entry| ReportedDraft::of(entry, evidences.get(&entry.slot.id))).collect(),
        });
        self.batches = batches.collect();
        self
    }
}

impl Summary {
    /// Sums a session up; lists all drafts where these are their evidences.
    pub(super) fn of(
        session: &Session,
        material: &Material,
        drafter: &dyn Drafter,
        written: Written,
        evidences: Option<&Evidences>,
    ) -> Self {
        let report = ForgeReport::of_session(session, drafter, written, &lacking(material, session));
        let report = match evidences {
            Some(evidences) => report.with_drafts(session, evidences),
            None => report,
        };
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
            refused: left_out(session).filter_map(RefusedDraft::of).collect(),
            with_findings,
            findings,
            is_complete: session.batches().is_empty() && session.open_slots().is_empty(),
        }
    }
}

impl RefusedDraft {
    /// Returns nothing where a person dropped a draft that could have been approved.
    fn of(entry: &Entry) -> Option<Self> {
        if entry.draft.as_ref().is_some_and(Draft::can_be_approved) && !is_private(entry) {
            return None;
        }
        let findings = entry.draft.iter().flat_map(|draft| &draft.findings);
        let is_reason =
            |finding: &&DraftFinding| finding.severity == Severity::Error || finding.rule == Rule::PersonalData;
        let reasons = findings.filter(is_reason).map(|finding| finding.message.clone()).collect();
        Some(Self { id: entry.slot.id.clone(), reasons })
    }
}

/// Tells whether a draft holds personal data.
pub(super) fn is_private(entry: &Entry) -> bool {
    let findings = entry.draft.iter().flat_map(|draft| &draft.findings);
    findings.into_iter().any(|finding| finding.rule == Rule::PersonalData)
}

fn left_out(session: &Session) -> impl Iterator<Item = &Entry> {
    [Tier::Golden, Tier::Labeled].into_iter().flat_map(|tier| session.left_out(tier))
}

fn approved(session: &Session) -> impl Iterator<Item = &Draft> {
    let entries = session.batches().iter().flat_map(|batch| &batch.entries);
    entries.filter(|entry| entry.is_approved()).filter_map(|entry| entry.draft.as_ref())
}

/// Returns what all cases together lack.
fn lacking(material: &Material, session: &Session) -> Vec<DraftFinding> {
    let drafts: Vec<Draft> = approved(session).cloned().collect();
    if drafts.is_empty() {
        return Vec::new();
    }
    examine_whole(&material.brief, &session.plan, &drafts)
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
