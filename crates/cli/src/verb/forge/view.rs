//! A session's batch as the terminal shows it.

use std::collections::BTreeMap;

use karat_forge::session::{Decision, Entry, Session};
use karat_forge::{Combination, Draft, EdgeKind, Evidence, Origin, Purpose, Weight};
use karat_report::forge::{BatchView, DraftState, DraftView, FindingView, Level};

/// What running the drafts showed, by their ids.
pub(super) type Evidences = BTreeMap<String, Evidence>;

/// Returns the current batch, or these of its cases, to be shown.
pub(super) fn batch_view<'v>(
    session: &'v Session,
    evidences: &Evidences,
    only: Option<&[&str]>,
) -> Option<BatchView<'v>> {
    let batch = session.batch()?;
    let title = batch.difficulty().map_or(batch.tier.name(), karat_core::case::Difficulty::name);
    let is_shown = |id: &str| only.is_none_or(|ids| ids.contains(&id));
    let numbered = (1..).zip(&batch.entries).filter(|(_, entry)| is_shown(&entry.slot.id));
    let drafts = numbered.map(|(number, entry)| draft_view(number, entry, evidences.get(&entry.slot.id))).collect();
    Some(BatchView { title, place: session.place(), approved: Some(session.unwritten_count()), drafts })
}

fn draft_view<'v>(number: usize, entry: &'v Entry, evidence: Option<&Evidence>) -> DraftView<'v> {
    let draft = entry.draft.as_ref();
    let findings = draft.iter().flat_map(|draft| &draft.findings).map(|finding| FindingView {
        level: if finding.weight == Weight::Error { Level::Error } else { Level::Warning },
        pointer: &finding.pointer,
        message: finding.message.clone(),
    });
    DraftView {
        number,
        id: &entry.slot.id,
        purpose: purpose_text(&entry.slot.purpose),
        origin: draft.map(|draft| origin_text(&draft.origin)).unwrap_or_default(),
        state: match entry.decision {
            Decision::Undecided => DraftState::Undecided,
            Decision::Approved { .. } => DraftState::Approved,
            Decision::Dropped => DraftState::Dropped,
        },
        case: draft.and_then(Draft::read),
        raw: draft.and_then(|draft| draft.case.as_ref()),
        findings: findings.collect(),
        evidence: evidence.map(evidence_views).unwrap_or_default(),
    }
}

fn evidence_views<'v>(evidence: &Evidence) -> Vec<FindingView<'v>> {
    let (level, verdict) = match evidence {
        Evidence::Passed => (Level::Good, "the agent passes it"),
        Evidence::Failed { .. } => (Level::Warning, "the agent fails it"),
        Evidence::Errored { .. } => (Level::Warning, "no verdict"),
        Evidence::ProvesNothing { .. } => (Level::Warning, "proves nothing"),
    };
    let reasons = evidence.reasons().join("; ");
    let message = if reasons.is_empty() { verdict.to_owned() } else { format!("{verdict}: {reasons}") };
    vec![FindingView { level, pointer: "", message }]
}

/// Says in words what a case is to test.
pub(super) fn purpose_text(purpose: &Purpose) -> String {
    match purpose {
        Purpose::Trigger(phrase) => format!("the trigger phrase '{phrase}'"),
        Purpose::Rephrasing(phrase) => format!("'{phrase}' in other words"),
        Purpose::NoLeak => "that the answer holds no raw field names".to_owned(),
        Purpose::Disambiguation(other) => format!("a message that could be taken for {other}"),
        Purpose::AsksFirst => "that the agent asks before it changes anything".to_owned(),
        Purpose::Together(tools) => format!("a task for {} together", tools.join(", ")),
        Purpose::Choice { combination, others } => {
            let how = match combination {
                Combination::Or => "either tool alone suffices",
                Combination::AndOr => "one tool alone, or with another",
                Combination::Xor => "one set of tools, or another",
                Combination::VariableDepth => "all are needed, how deep is open",
                Combination::Nor => "it looks as if a tool were needed",
            };
            if others.is_empty() { how.to_owned() } else { format!("{how}: {}", others.join(", ")) }
        }
        Purpose::Edge(kind) => match kind {
            EdgeKind::PromptInjection => "orders against the agent's own (prompt injection)".to_owned(),
            EdgeKind::OffTopic => "something else, dressed as what the agent is for".to_owned(),
            EdgeKind::GeneralKnowledge => "general knowledge, for which no tool is needed".to_owned(),
            EdgeKind::Contradiction => "steps that cannot all be done".to_owned(),
        },
    }
}

pub(super) fn origin_text(origin: &Origin) -> String {
    match origin {
        Origin::Template => "from a pattern: reword it".to_owned(),
        Origin::Model(model) => format!("drafted by {model}"),
        Origin::Trace(id) => format!("from the trace {id}"),
        Origin::Person => "edited by you".to_owned(),
    }
}
