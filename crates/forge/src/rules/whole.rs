//! What a whole set of labeled cases lacks.

use std::collections::{BTreeMap, BTreeSet};

use karat_core::case::{Case, Difficulty, Tier};
use karat_core::overlap::{covers_cluster, covers_pair};
use karat_core::text::quoted_list;

use super::{DraftRule, tier_of};
use crate::{Brief, Combination, Draft, DraftFinding, EdgeKind, Plan, Purpose};

/// From so many cases on, each way to combine tools should be among them.
const ENOUGH: usize = 5;

/// Returns what a whole set of labeled cases lacks: the drafts that are to be kept, and the cases that the project has
/// already. Pointers are empty, since nothing is wrong with any one case. An overlap without a case is an error, as
/// `karat check` has it.
pub fn examine_whole(brief: &Brief, plan: &Plan, drafts: &[Draft]) -> Vec<DraftFinding> {
    let mut whole = Whole { brief, plan, cases: Vec::new(), findings: Vec::new() };
    let existing = brief.labeled.iter().map(|case| Entry { case: case.clone(), purpose: None });
    let labeled = drafts.iter().filter(|draft| tier_of(&draft.slot).0 == Tier::Labeled);
    let drafted = labeled.filter_map(|draft| Some(Entry { case: draft.read()?, purpose: Some(&draft.slot.purpose) }));
    whole.cases = existing.chain(drafted).collect();
    whole.numbers();
    whole.tool_counts();
    whole.overlaps();
    whole.clusters();
    whole.combinations();
    whole.edge_kinds();
    whole.findings
}

struct Whole<'w> {
    brief: &'w Brief,
    plan: &'w Plan,
    cases: Vec<Entry<'w>>,
    findings: Vec<DraftFinding>,
}

struct Entry<'w> {
    case: Case,
    /// What it was drafted for; nobody knows of cases that were there before.
    purpose: Option<&'w Purpose>,
}

impl Whole<'_> {
    fn of(&self, difficulty: Difficulty) -> impl Iterator<Item = &Entry<'_>> {
        self.cases.iter().filter(move |entry| entry.case.difficulty == Some(difficulty))
    }

    fn error(&mut self, rule: DraftRule, message: String) {
        self.findings.push(DraftFinding::error("", message).of(rule));
    }

    fn warning(&mut self, rule: DraftRule, message: String) {
        self.findings.push(DraftFinding::warning("", message).of(rule));
    }

    fn numbers(&mut self) {
        for tier in &self.plan.tiers {
            let found = self.of(tier.difficulty).count();
            if found < tier.wanted {
                let (name, wanted) = (tier.difficulty.name(), tier.wanted);
                let message = format!("there are {found} {name} cases, but the plan says {wanted}");
                self.warning(DraftRule::FewCases, message);
            }
        }
    }

    fn tool_counts(&mut self) {
        let count = |entry: &Entry<'_>| entry.case.expect.tools_called.iter().flatten().collect::<BTreeSet<_>>().len();
        let found: BTreeSet<usize> = self.of(Difficulty::Straightforward).map(|entry| count(entry).min(4)).collect();
        if found.is_empty() {
            return;
        }
        let possible = [(2, "two tools"), (3, "three tools"), (4, "four tools or more")];
        let missing: Vec<&str> = possible
            .into_iter()
            .filter(|(tools, _)| *tools <= self.plan.tools && !found.contains(tools))
            .map(|(_, name)| name)
            .collect();
        if !missing.is_empty() {
            let message = format!("no straightforward case takes {}", missing.join(", and none "));
            self.warning(DraftRule::ToolCountSpread, message);
        }
    }

    fn overlaps(&mut self) {
        let ours = &self.brief.tool.name;
        let is_covered = |other: &str| self.cases.iter().any(|entry| covers_pair(&entry.case, ours, other));
        let missing: Vec<&str> =
            self.brief.overlaps.iter().map(|overlap| overlap.tool.as_str()).filter(|tool| !is_covered(tool)).collect();
        let messages: Vec<String> = missing
            .into_iter()
            .map(|tool| format!("no ambiguous case names both '{ours}' and '{tool}', which the overlap map declares"))
            .collect();
        for message in messages {
            self.error(DraftRule::OverlapUncovered, message);
        }
    }

    fn clusters(&mut self) {
        let members = |cluster: &Vec<String>| cluster.iter().cloned().collect::<BTreeSet<String>>();
        let is_covered =
            |cluster: &BTreeSet<String>| self.cases.iter().any(|entry| covers_cluster(&entry.case, cluster));
        let missing: Vec<BTreeSet<String>> =
            self.brief.clusters.iter().map(members).filter(|cluster| !is_covered(cluster)).collect();
        for cluster in missing {
            let tools: Vec<String> = cluster.into_iter().collect();
            let message = format!("no labeled case has all of the cluster {} in one set", quoted_list(&tools));
            self.warning(DraftRule::ClusterUncovered, message);
        }
    }

    fn combinations(&mut self) {
        let mut found: BTreeMap<Combination, usize> = BTreeMap::new();
        let mut cases = 0;
        for entry in self.of(Difficulty::Ambiguous) {
            cases += 1;
            let sets = entry.case.expect.tools_acceptable.as_deref().unwrap_or_default();
            // Some sets form more than one combination: then it is what was meant.
            let meant = match entry.purpose {
                Some(Purpose::Choice { combination, .. }) => Some(*combination).filter(|meant| meant.fits(sets)),
                _ => None,
            };
            if let Some(combination) = meant.or_else(|| Combination::of(sets)) {
                *found.entry(combination).or_default() += 1;
            }
        }
        if cases < ENOUGH {
            return;
        }
        let possible: Vec<Combination> =
            Combination::ALL.into_iter().filter(|combination| combination.is_possible_with(self.plan.tools)).collect();
        let missing: Vec<&str> = possible.iter().filter(|one| !found.contains_key(one)).map(|one| one.name()).collect();
        if !missing.is_empty() {
            let message = format!("no ambiguous case is of the kind {}", missing.join(" or "));
            self.warning(DraftRule::CombinationSpread, message);
        }
        // Of two possible kinds one always has half.
        let most = found.iter().find(|(_, count)| possible.len() > 2 && *count * 2 > cases);
        if let Some((combination, count)) = most {
            let message =
                format!("{count} of {cases} ambiguous cases are of the kind {}: spread them", combination.name());
            self.warning(DraftRule::CombinationSpread, message);
        }
    }

    fn edge_kinds(&mut self) {
        let kinds: Vec<Option<EdgeKind>> = self
            .of(Difficulty::Edge)
            .map(|entry| match entry.purpose {
                Some(Purpose::Edge(kind)) => Some(*kind),
                _ => None,
            })
            .collect();
        // What a case of the project tries is not known: it may be any.
        let unknown = kinds.iter().filter(|kind| kind.is_none()).count();
        let missing: Vec<&str> =
            EdgeKind::ALL.into_iter().filter(|kind| !kinds.contains(&Some(*kind))).map(EdgeKind::name).collect();
        if kinds.len() >= EdgeKind::ALL.len() && missing.len() > unknown {
            let message = format!("no edge case tries {}", missing.join(" or "));
            self.warning(DraftRule::EdgeSpread, message);
        }
    }
}

impl EdgeKind {
    /// Returns the name that people see.
    pub fn name(self) -> &'static str {
        match self {
            Self::PromptInjection => "prompt injection",
            Self::OffTopic => "something off the topic",
            Self::GeneralKnowledge => "general knowledge",
            Self::Contradiction => "a contradiction",
        }
    }
}
