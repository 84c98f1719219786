//! Converts a batch of a session for display.

use karat_cases::Difficulty;
use karat_forge::session::{Decision, Entry};
use karat_forge::{Draft, Evidence, Origin};
use karat_lints::Severity;
use karat_workflows::forge::Conversation;

use super::batch::{BatchView, DraftState, DraftView, FindingView, Level};

/// Returns the view of the current batch, or of some of its cases.
pub fn batch_view<'v>(conversation: &'v Conversation<'_>, only: Option<&[String]>) -> Option<BatchView<'v>> {
    let (session, evidence_map) = (conversation.session()?, conversation.evidence_map());
    let batch = session.batch()?;
    let title = batch.difficulty().map_or(batch.tier.name(), Difficulty::name);
    let is_shown = |id: &str| only.is_none_or(|ids| ids.iter().any(|other| other == id));
    let numbered = (1..).zip(&batch.entries).filter(|(_, entry)| is_shown(&entry.slot.id));
    let drafts = numbered.map(|(number, entry)| draft_view(number, entry, evidence_map.get(&entry.slot.id))).collect();
    Some(BatchView { title, position: session.position(), approved: Some(session.approved_count()), drafts })
}

fn draft_view<'v>(number: usize, entry: &'v Entry, evidence: Option<&Evidence>) -> DraftView<'v> {
    let draft = entry.draft.as_ref();
    let findings = draft.iter().flat_map(|draft| &draft.findings).map(|finding| FindingView {
        level: if finding.severity == Severity::Error { Level::Error } else { Level::Warning },
        pointer: &finding.pointer,
        message: finding.message.clone(),
    });
    DraftView {
        number,
        id: &entry.slot.id,
        purpose: purpose_text(entry),
        origin: draft.map(|draft| draft.origin.to_string()).unwrap_or_default(),
        state: match entry.decision {
            Decision::Undecided => DraftState::Undecided,
            Decision::Approved { .. } => DraftState::Approved,
            Decision::Dropped => DraftState::Dropped,
        },
        case: draft.and_then(Draft::parse_case),
        raw: draft.and_then(|draft| draft.case.as_ref()),
        findings: findings.collect(),
        evidence: evidence.map(evidence_views).unwrap_or_default(),
    }
}

/// Describes the purpose of a case, which the person who edits it may change.
fn purpose_text(entry: &Entry) -> String {
    let purpose = &entry.slot.purpose;
    match entry.draft.as_ref().map(|draft| &draft.origin) {
        Some(Origin::Person) => format!("{purpose} (as planned, before your edit)"),
        _ => purpose.to_string(),
    }
}

fn evidence_views<'v>(evidence: &Evidence) -> Vec<FindingView<'v>> {
    let level = if *evidence == Evidence::Passed { Level::Good } else { Level::Warning };
    vec![FindingView { level, pointer: "", message: evidence.summary() }]
}
