//! Checks which cases a tool still lacks.

use std::collections::BTreeSet;

use karat_cases::{Case, Tier};
use karat_json::text::quoted_list;
use karat_lints::Rule;
use karat_tools::coverage::{MAX_GOLDEN_CASES, MIN_GOLDEN_CASES};
use karat_tools::overlap::{covers_cluster, covers_pair};

use crate::{Brief, Draft, DraftFinding, Plan};

/// Reports missing cases of some tiers, given those of the project and the drafts to be written.
pub fn check_coverage(brief: &Brief, plan: &Plan, drafts: &[Draft], tiers: &[Tier]) -> Vec<DraftFinding> {
    let mut findings = Vec::new();
    if tiers.contains(&Tier::Golden) {
        findings.extend(too_few_golden_cases(brief, drafts));
    }
    if tiers.contains(&Tier::Labeled) {
        findings.extend(missing_labeled_cases(brief, plan, drafts));
    }
    findings.retain(|finding| !brief.silenced.contains(&finding.rule));
    findings
}

fn too_few_golden_cases(brief: &Brief, drafts: &[Draft]) -> Option<DraftFinding> {
    let golden = brief.golden.len() + drafts.iter().filter(|draft| draft.slot.purpose.tier() == Tier::Golden).count();
    let message = format!("expected {MIN_GOLDEN_CASES} to {MAX_GOLDEN_CASES} golden cases, found {golden}");
    (golden < MIN_GOLDEN_CASES).then(|| DraftFinding::new(Rule::FewCases, "", message))
}

fn missing_labeled_cases(brief: &Brief, plan: &Plan, drafts: &[Draft]) -> Vec<DraftFinding> {
    let drafted =
        drafts.iter().filter(|draft| draft.slot.purpose.tier() == Tier::Labeled).filter_map(Draft::parse_case);
    let cases: Vec<Case> = brief.labeled.iter().cloned().chain(drafted).collect();
    let mut findings = Vec::new();
    for tier in &plan.tiers {
        let count = cases.iter().filter(|case| case.difficulty == Some(tier.difficulty)).count();
        if count < tier.wanted {
            let message = format!("expected {} {} cases, found {count}", tier.wanted, tier.difficulty.name());
            findings.push(DraftFinding::new(Rule::FewCases, "", message));
        }
    }
    let own_name = &brief.tool.name;
    for overlap in brief.neighbours() {
        if !cases.iter().any(|case| covers_pair(case, own_name, &overlap.tool)) {
            let message =
                format!("no ambiguous case covers the declared overlap of '{own_name}' and '{}'", overlap.tool);
            findings.push(DraftFinding::new(Rule::UntestedOverlap, "", message));
        }
    }
    for cluster in &brief.clusters {
        let members: BTreeSet<String> = cluster.iter().cloned().collect();
        if !cases.iter().any(|case| covers_cluster(case, &members)) {
            let tools: Vec<String> = members.into_iter().collect();
            let message = format!("no labeled case has the whole cluster {} in one set", quoted_list(&tools));
            findings.push(DraftFinding::new(Rule::UntestedCluster, "", message));
        }
    }
    findings
}
