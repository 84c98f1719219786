//! What all labeled cases of a tool together lack.

use std::collections::BTreeSet;

use karat_core::case::{Case, Tier};
use karat_core::lint::Rule;
use karat_json::text::quoted_list;
use karat_tools::coverage::{LEAST_GOLDEN, MOST_GOLDEN};
use karat_tools::overlap::{covers_cluster, covers_pair};

use crate::{Brief, Draft, DraftFinding, Plan};

/// Returns what the labeled cases lack: those of the project, and the drafts that are to be kept.
pub fn examine_whole(brief: &Brief, plan: &Plan, drafts: &[Draft]) -> Vec<DraftFinding> {
    let drafted = drafts.iter().filter(|draft| draft.slot.purpose.tier() == Tier::Labeled).filter_map(Draft::read);
    let cases: Vec<Case> = brief.labeled.iter().cloned().chain(drafted).collect();
    let mut findings = Vec::new();
    let golden = brief.golden.len() + drafts.iter().filter(|draft| draft.slot.purpose.tier() == Tier::Golden).count();
    if golden < LEAST_GOLDEN {
        let message = format!("{golden} golden cases of {LEAST_GOLDEN} to {MOST_GOLDEN} that a tool should have");
        findings.push(DraftFinding::of(Rule::FewCases, "", message));
    }
    for tier in &plan.tiers {
        let found = cases.iter().filter(|case| case.difficulty == Some(tier.difficulty)).count();
        if found < tier.wanted {
            let message =
                format!("{found} {} cases of {} that the formula asks for", tier.difficulty.name(), tier.wanted);
            findings.push(DraftFinding::of(Rule::FewCases, "", message));
        }
    }
    let ours = &brief.tool.name;
    for overlap in brief.neighbours() {
        if !cases.iter().any(|case| covers_pair(case, ours, &overlap.tool)) {
            let message =
                format!("no ambiguous case names both '{ours}' and '{}', which the overlap map declares", overlap.tool);
            findings.push(DraftFinding::of(Rule::UntestedOverlap, "", message));
        }
    }
    for cluster in &brief.clusters {
        let members: BTreeSet<String> = cluster.iter().cloned().collect();
        if !cases.iter().any(|case| covers_cluster(case, &members)) {
            let tools: Vec<String> = members.into_iter().collect();
            let message = format!("no labeled case has all of the cluster {} in one set", quoted_list(&tools));
            findings.push(DraftFinding::of(Rule::UntestedCluster, "", message));
        }
    }
    findings.retain(|finding| !brief.silenced.contains(&finding.rule));
    findings
}
