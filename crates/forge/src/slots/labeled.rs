//! The labeled cases of a tool's plan.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use karat_cases::{Case, Difficulty, Tier};
use karat_tools::overlap::{covers_cluster, covers_pair};

use super::assign_ids;
use super::related::related;
use crate::{Brief, Combination, EdgeKind, Plan, Purpose, Slot};

/// Maximum number of tools in a straightforward case, outside clusters.
const MAX_TOOLS: usize = 4;
/// Number of cases for each overlap in the formula.
const CASES_PER_OVERLAP: usize = 2;

/// Returns slots for the labeled cases that the plan lacks: straightforward, ambiguous, edge.
pub fn labeled_slots(brief: &Brief, plan: &Plan) -> Vec<Slot> {
    let related = related(brief);
    let purposes = plan.tiers.iter().flat_map(|tier| match tier.difficulty {
        Difficulty::Straightforward => straightforward(brief, &related, tier.cases()),
        Difficulty::Ambiguous => ambiguous(brief, &related, tier.cases()),
        Difficulty::Edge => edge(tier.existing, tier.cases()),
        Difficulty::Regression => Vec::new(),
    });
    assign_ids(brief, Tier::Labeled, purposes.collect())
}

fn existing(brief: &Brief, difficulty: Difficulty) -> impl Iterator<Item = &Case> {
    brief.labeled.iter().filter(move |case| case.difficulty == Some(difficulty))
}

/// Returns the clusters that no labeled case covers, if the registry has all their members.
fn open_clusters(brief: &Brief) -> VecDeque<BTreeSet<String>> {
    let members = |cluster: &Vec<String>| cluster.iter().cloned().collect::<BTreeSet<String>>();
    let is_known = |cluster: &BTreeSet<String>| cluster.iter().all(|name| brief.registry.tool(name).is_some());
    let is_open = |cluster: &BTreeSet<String>| !brief.labeled.iter().any(|case| covers_cluster(case, cluster));
    brief.clusters.iter().map(members).filter(|cluster| is_known(cluster) && is_open(cluster)).collect()
}

/// Covers open clusters first, then spreads cases evenly over two, three and four tools, as far as enough are related.
fn straightforward(brief: &Brief, related: &[String], count: usize) -> Vec<Purpose> {
    let max_tools = match brief.registry.tools().len() {
        0 | 1 => return Vec::new(),
        2 => 2,
        // A task can combine any three tools, but four only if they are related.
        _ => MAX_TOOLS.min(3.max(related.len() + 1)),
    };
    // Number of cases by number of tools.
    let mut spread: BTreeMap<usize, usize> = (2..=max_tools).map(|tools| (tools, 0)).collect();
    for case in existing(brief, Difficulty::Straightforward) {
        let expect = case.total_expectation();
        let Some(called) = &expect.tools_called else { continue };
        let tools = called.iter().collect::<BTreeSet<_>>().len().clamp(2, max_tools);
        spread.entry(tools).and_modify(|cases| *cases += 1);
    }
    let mut clusters = open_clusters(brief);
    let mut purposes = Vec::with_capacity(count);
    while purposes.len() < count {
        let (tools, size) = if let Some(cluster) = clusters.pop_front() {
            let others = cluster.iter().filter(|name| **name != brief.tool.name).cloned();
            let tools: Vec<String> = [brief.tool.name.clone()].into_iter().chain(others).collect();
            let size = tools.len();
            (tools, size)
        } else {
            let size = spread.iter().min_by_key(|(_, cases)| **cases).map_or(2, |(size, _)| *size);
            (vec![brief.tool.name.clone()], size)
        };
        spread.entry(size.min(max_tools)).and_modify(|cases| *cases += 1);
        purposes.push(Purpose::Together { tools, count: size });
    }
    purposes
}

/// The tools that an ambiguous case has to name.
enum Target {
    Neighbour(String),
    Cluster(Vec<String>),
}

impl Target {
    /// Whether a combination can name all tools of the target. A cluster must be in one set.
    fn fits(&self, combination: Combination) -> bool {
        match self {
            Target::Neighbour(_) => combination != Combination::Nor,
            Target::Cluster(others) if others.len() == 1 => combination == Combination::AndOr,
            Target::Cluster(_) => matches!(combination, Combination::AndOr | Combination::VariableDepth),
        }
    }
}

/// Spreads the combinations over related tools. Declared overlaps and clusters have their cases first, and the further
/// cases name a declared neighbour too, if there is one.
fn ambiguous(brief: &Brief, related: &[String], count: usize) -> Vec<Purpose> {
    let is_declared = |name: &String| {
        brief.overlaps.iter().any(|overlap| overlap.tool == *name)
            || brief.clusters.iter().flatten().any(|tool| tool == name)
    };
    let declared: Vec<&String> = related.iter().filter(|name| is_declared(name)).collect();
    let others = brief.registry.tools().len().saturating_sub(1);
    let possible: Vec<Combination> =
        Combination::ALL.into_iter().filter(|combination| combination.is_possible_with(others)).collect();
    let mut spread: BTreeMap<Combination, usize> = possible.iter().map(|combination| (*combination, 0)).collect();
    for case in existing(brief, Difficulty::Ambiguous) {
        let expect = case.total_expectation();
        let sets = expect.tools_acceptable.as_deref().unwrap_or_default();
        if let Some(used) = Combination::from_sets(sets).and_then(|combination| spread.get_mut(&combination)) {
            *used += 1;
        }
    }
    let mut targets = targets(brief);
    let mut turn = 0;
    let mut purposes = Vec::with_capacity(count);
    while purposes.len() < count {
        let can =
            |combination: &&Combination| targets.is_empty() || targets.iter().any(|target| target.fits(**combination));
        let least = possible.iter().filter(can).min_by_key(|combination| spread[*combination]);
        let combination = least.copied().unwrap_or(Combination::Nor);
        *spread.entry(combination).or_default() += 1;
        let target = targets.iter().position(|target| target.fits(combination)).and_then(|at| targets.remove(at));
        let others = match target {
            Some(Target::Cluster(others)) => others,
            Some(Target::Neighbour(name)) => other_tools(combination, related, Some(&name), turn),
            None => {
                let first = (!declared.is_empty()).then(|| declared[turn % declared.len()]);
                other_tools(combination, related, first, turn)
            }
        };
        turn += usize::from(combination != Combination::Nor);
        purposes.push(Purpose::Choice { combination, others });
    }
    purposes
}

/// Returns the other tools that a combination names: the given one first, then related ones in turn. If these are too
/// few, the drafter chooses.
fn other_tools(combination: Combination, related: &[String], first: Option<&String>, turn: usize) -> Vec<String> {
    let count = match combination {
        Combination::Or | Combination::AndOr => 1,
        Combination::VariableDepth => 2,
        Combination::Xor => 3,
        Combination::Nor => 0,
    };
    let begin = turn % related.len().max(1);
    let rest = related.iter().cycle().skip(begin).take(related.len()).filter(|name| Some(*name) != first);
    first.into_iter().chain(rest).take(count).cloned().collect()
}

/// Returns the targets of ambiguous cases: overlaps and clusters without a case, then overlaps with too few.
fn targets(brief: &Brief) -> VecDeque<Target> {
    let is_known = |name: &&str| *name != brief.tool.name && brief.registry.tool(name).is_some();
    let neighbours = brief.overlaps.iter().map(|overlap| overlap.tool.as_str()).filter(is_known);
    let covering = |name: &str| {
        existing(brief, Difficulty::Ambiguous).filter(|case| covers_pair(case, &brief.tool.name, name)).count()
    };
    let counted: Vec<(&str, usize)> = neighbours.map(|name| (name, covering(name))).collect();
    let round = |round: usize| {
        let short = counted.iter().filter(move |(_, covered)| *covered < round);
        short.map(|(name, _)| Target::Neighbour((*name).to_owned()))
    };
    let clusters = open_clusters(brief)
        .into_iter()
        .filter(|cluster| cluster.len() > 1)
        .map(|cluster| Target::Cluster(cluster.into_iter().filter(|name| *name != brief.tool.name).collect()));
    round(1).chain(clusters).chain((2..=CASES_PER_OVERLAP).flat_map(round)).collect()
}

/// Cycles through the kinds of edge cases.
fn edge(existing: usize, count: usize) -> Vec<Purpose> {
    EdgeKind::ALL.into_iter().cycle().skip(existing % EdgeKind::ALL.len()).take(count).map(Purpose::Edge).collect()
}
