//! Checks drafts with the rules of `karat check`, before a person sees them.

use karat_cases::{Case, Difficulty, EvalFile};
use karat_json::Problem;
use karat_lints::{LintContext, Rule, lint};
use serde_json::Value;

use crate::{Brief, DraftFinding, Slot, find_personal_data};

/// Returns the findings of a draft, by itself and against the tool's other cases: those of the project, and `others`,
/// which must not include the draft itself.
pub fn check_draft(brief: &Brief, slot: &Slot, case: &Value, others: &[Case]) -> Vec<DraftFinding> {
    let case = match Case::read_one(case) {
        Ok(case) => case,
        Err(problems) => return problems.into_iter().map(invalid).collect(),
    };
    let others: Vec<&Case> = brief.existing().chain(others).collect();
    let mut findings = Vec::new();
    if case.id != slot.id {
        let message = format!("expected id '{}', found '{}'", slot.id, case.id);
        findings.push(DraftFinding::new(Rule::Invalid, "/id", message));
    }
    if others.iter().any(|other| other.id == case.id) {
        findings.push(DraftFinding::new(Rule::Invalid, "/id", format!("duplicate id '{}'", case.id)));
    }
    findings.extend(wrong_difficulty(case.difficulty, slot.purpose.difficulty()));
    if !case.messages().all(|message| message.chars().any(char::is_alphanumeric)) {
        findings.push(DraftFinding::new(Rule::Invalid, "/input/message", "the message has no words"));
    }
    let file = EvalFile {
        metadata: None,
        tier: slot.purpose.tier(),
        tool_name: brief.tool.name.clone(),
        hash: String::new(),
        cases: vec![case],
    };
    let context = LintContext {
        registry: Some(&brief.registry),
        tokens: Some(&brief.sources),
        other_cases: Some(&others),
        ..LintContext::default()
    };
    findings
        .extend(lint(&file, context).into_iter().map(|lint| DraftFinding::new(lint.rule, lint.pointer, lint.message)));
    let personal = find_personal_data(&file.cases[0].message_text()).map(|data| {
        let message = format!("the message contains {data}: replace it unless it may be stored");
        DraftFinding::new(Rule::PersonalData, "/input/message", message)
    });
    findings.extend(personal);
    findings.retain(|finding| finding.rule == Rule::Invalid || !brief.silenced.contains(&finding.rule));
    findings
}

fn invalid(problem: Problem) -> DraftFinding {
    let help = problem.help.map_or_else(String::new, |help| format!(" ({help})"));
    DraftFinding::new(Rule::Invalid, problem.pointer, format!("{}{help}", problem.message))
}

fn wrong_difficulty(actual: Option<Difficulty>, expected: Option<Difficulty>) -> Option<DraftFinding> {
    let message = match (actual, expected) {
        _ if actual == expected => return None,
        (_, None) => "a golden case has no difficulty: remove it".to_owned(),
        (_, Some(expected)) => format!("expected difficulty '{}'", expected.name()),
    };
    Some(DraftFinding::new(Rule::Invalid, "/difficulty", message))
}
