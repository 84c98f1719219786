//! The rules for drafts: what has to hold before a person is asked.
//!
//! An error means that a case is not valid, cannot be judged, or misses what its place is for: it cannot be approved. A
//! warning is for a person to weigh, who may know better; a drafter that can do better is asked again all the same
//! ([`DraftFinding::is_worth_another_try`]).

mod asserted;
mod choice;
mod combination;
mod contradiction;
mod duplicate;
mod edge;
mod golden;
mod identity;
mod lints;
mod named;
mod rule;
mod schema;
mod synonyms;
mod together;
mod tokens;
mod volatile;
mod whole;
mod wording;

use karat_core::case::{Case, Difficulty, Tier};
use serde_json::Value;

pub use self::rule::DraftRule;
pub(crate) use self::volatile::is_volatile;
pub use self::whole::examine_whole;
use crate::{Brief, DraftFinding, Purpose, Slot};

/// Returns what is wrong with one draft, by itself and against all other cases: those of the project, and `others`,
/// which must not hold the draft itself.
pub fn examine(brief: &Brief, slot: &Slot, case: &Value, others: &[Case]) -> Vec<DraftFinding> {
    let case = match Case::read_one(case) {
        Ok(case) => case,
        Err(problems) => {
            let finding = |problem: karat_core::source::Problem| {
                let help = problem.help.map_or_else(String::new, |help| format!(" ({help})"));
                DraftFinding::error(problem.pointer, format!("{}{help}", problem.message)).of(DraftRule::CaseShape)
            };
            return problems.into_iter().map(finding).collect();
        }
    };
    let (tier, difficulty) = tier_of(slot);
    let mut examination = Examination { brief, slot, case: &case, tier, difficulty, findings: Vec::new() };
    examination.identity(others);
    match &slot.purpose {
        _ if tier == Tier::Golden => examination.golden(),
        Purpose::Together(tools) => examination.together(tools),
        Purpose::Choice { combination, others } => examination.choice(*combination, others),
        Purpose::Edge(kind) => examination.edge(*kind),
        _ => examination.asks_first(),
    }
    examination.names();
    examination.lints();
    examination.tokens();
    examination.volatile_values();
    examination.synonyms();
    examination.contradictions();
    examination.duplicates(others);
    examination.findings
}

/// A draft on its way through the rules.
struct Examination<'e> {
    brief: &'e Brief,
    slot: &'e Slot,
    case: &'e Case,
    tier: Tier,
    difficulty: Option<Difficulty>,
    findings: Vec<DraftFinding>,
}

/// Returns which kind of case a place is for. A case that asks first can be golden or straightforward, which its id
/// says.
fn tier_of(slot: &Slot) -> (Tier, Option<Difficulty>) {
    if slot.purpose == Purpose::AsksFirst && slot.id.starts_with("ls-") {
        return (Tier::Labeled, Some(Difficulty::Straightforward));
    }
    (slot.purpose.tier(), slot.purpose.difficulty())
}

impl Examination<'_> {
    fn error(&mut self, rule: DraftRule, pointer: impl Into<String>, message: impl Into<String>) {
        self.findings.push(DraftFinding::error(pointer, message).of(rule));
    }

    fn warning(&mut self, rule: DraftRule, pointer: impl Into<String>, message: impl Into<String>) {
        self.findings.push(DraftFinding::warning(pointer, message).of(rule));
    }
}
