//! The labeled cases of a tool, by its plan.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use karat_core::case::{Case, Difficulty, Tier};
use karat_core::overlap::{covers_cluster, covers_pair};

use super::ring::Ring;
use super::{neighbours, numbered};
use crate::{BATCH_SIZE, Brief, Combination, EdgeKind, Plan, Purpose, Slot};

/// The most tools that a straightforward case asks for, but for a whole cluster.
const MOST_TOOLS: usize = 6;
/// How often each overlap is to be tested, by the formula.
const CASES_OF_OVERLAP: usize = 2;

/// Returns the labeled cases that the plan lacks, in batches of one difficulty: straightforward, ambiguous, edge.
pub fn labeled_slots(brief: &Brief, plan: &Plan) -> Vec<Vec<Slot>> {
    let mut purposes = Vec::new();
    let mut sizes = Vec::new();
    for tier in &plan.tiers {
        let of_tier = match tier.difficulty {
            Difficulty::Straightforward => straightforward(brief, tier.cases()),
            Difficulty::Ambiguous => ambiguous(brief, tier.cases()),
            Difficulty::Edge => edge(tier.existing, tier.cases()),
            Difficulty::Regression => Vec::new(),
        };
        sizes.extend(of_tier.chunks(BATCH_SIZE).map(<[Purpose]>::len));
        purposes.extend(of_tier);
    }
    let mut slots = numbered(brief, Tier::Labeled, purposes).into_iter();
    sizes.into_iter().map(|size| slots.by_ref().take(size).collect()).collect()
}

fn existing(brief: &Brief, difficulty: Difficulty) -> impl Iterator<Item = &Case> {
    brief.labeled.iter().filter(move |case| case.difficulty == Some(difficulty))
}

/// Returns the clusters all of whose members the registry has, each without our tool.
fn clusters(brief: &Brief) -> Vec<Vec<String>> {
    let is_known = |cluster: &&Vec<String>| cluster.iter().all(|name| brief.registry.tool(name).is_some());
    let others = |cluster: &Vec<String>| {
        let mut seen = BTreeSet::new();
        cluster.iter().filter(|name| **name != brief.tool.name && seen.insert(*name)).cloned().collect()
    };
    brief.clusters.iter().filter(is_known).map(others).filter(|others: &Vec<String>| !others.is_empty()).collect()
}

fn with_ours(brief: &Brief, others: &[String]) -> BTreeSet<String> {
    others.iter().chain([&brief.tool.name]).cloned().collect()
}

/// Asks for two, three, and four or more tools in turn; whole clusters that no case has come first.
fn straightforward(brief: &Brief, count: usize) -> Vec<Purpose> {
    let mut ring = Ring::of(brief);
    if ring.len() == 0 {
        return Vec::new();
    }
    // How many cases have two, three, and more tools.
    let mut spread = [0_usize; 3];
    let class = |tools: usize| tools.clamp(2, 4) - 2;
    for called in existing(brief, Difficulty::Straightforward).filter_map(|case| case.expect.tools_called.as_ref()) {
        let companions: BTreeSet<String> = called.iter().filter(|name| **name != brief.tool.name).cloned().collect();
        spread[class(companions.len() + 1)] += 1;
        ring.remember(companions);
    }
    let is_open = |others: &Vec<String>| {
        let members = with_ours(brief, others);
        !brief.labeled.iter().any(|case| covers_cluster(case, &members))
    };
    let mut open: VecDeque<Vec<String>> = clusters(brief).into_iter().filter(is_open).collect();
    let mut purposes = Vec::with_capacity(count);
    while purposes.len() < count {
        let companions = if let Some(members) = open.pop_front() {
            ring.remember(members.iter().cloned());
            members
        } else {
            let classes = ring.len().min(spread.len());
            let least = (0..classes).min_by_key(|class| spread[*class]).unwrap_or_default();
            let most = MOST_TOOLS.min(ring.len() + 1);
            let tools = if least < 2 { least + 2 } else { 4 + spread[2] % (most - 3) };
            ring.take(&[], tools - 1)
        };
        spread[class(companions.len() + 1)] += 1;
        let tools = [brief.tool.name.clone()].into_iter().chain(companions).collect();
        purposes.push(Purpose::Together(tools));
    }
    purposes
}

/// What an ambiguous case has to be about.
enum Target {
    Neighbour(String),
    Cluster(Vec<String>),
}

impl Target {
    /// Tells whether a combination can name all its tools as coverage asks: a cluster stands whole in one set.
    fn fits(&self, combination: Combination) -> bool {
        match self {
            Target::Neighbour(_) => combination != Combination::Nor,
            Target::Cluster(others) if others.len() == 1 => combination == Combination::AndOr,
            Target::Cluster(_) => matches!(combination, Combination::AndOr | Combination::VariableDepth),
        }
    }
}

/// Spreads the combinations, and has every overlap and every cluster in one of them.
fn ambiguous(brief: &Brief, count: usize) -> Vec<Purpose> {
    let mut ring = Ring::of(brief);
    let possible: Vec<Combination> =
        Combination::ALL.into_iter().filter(|combination| combination.is_possible_with(ring.len() + 1)).collect();
    let mut spread: BTreeMap<Combination, usize> = possible.iter().map(|combination| (*combination, 0)).collect();
    for case in existing(brief, Difficulty::Ambiguous) {
        let sets = case.expect.tools_acceptable.as_deref().unwrap_or_default();
        if let Some(used) = Combination::of(sets).and_then(|combination| spread.get_mut(&combination)) {
            *used += 1;
        }
    }
    let mut targets = targets(brief);
    let mut purposes = Vec::with_capacity(count);
    while purposes.len() < count {
        let is_urgent = targets.len() >= count - purposes.len();
        let can =
            |combination: &&Combination| !is_urgent || targets.front().is_none_or(|target| target.fits(**combination));
        let least = possible.iter().filter(can).min_by_key(|combination| spread[*combination]);
        let combination = least.copied().unwrap_or(Combination::Nor);
        *spread.entry(combination).or_default() += 1;
        let place = targets.iter().position(|target| target.fits(combination));
        let others = match place.and_then(|place| targets.remove(place)) {
            Some(Target::Cluster(others)) => others,
            Some(Target::Neighbour(name)) => {
                let more = companions_of(combination, ring.len()).saturating_sub(1);
                let companions = ring.take(std::slice::from_ref(&name), more);
                [name].into_iter().chain(companions).collect()
            }
            None => ring.take(&[], companions_of(combination, ring.len())),
        };
        purposes.push(Purpose::Choice { combination, others: without_whole(brief, combination, others) });
    }
    purposes
}

/// Leaves out a companion where sets that share no tool would name exactly a cluster, which belongs in one set.
fn without_whole(brief: &Brief, combination: Combination, mut others: Vec<String>) -> Vec<String> {
    let is_cluster = |others: &[String]| {
        let members = with_ours(brief, others);
        brief.clusters.iter().any(|cluster| cluster.iter().cloned().collect::<BTreeSet<_>>() == members)
    };
    if combination == Combination::Xor && others.len() > 2 && is_cluster(&others) {
        others.pop();
    }
    others
}

/// Returns what the ambiguous cases have to name, what no case names yet first.
fn targets(brief: &Brief) -> VecDeque<Target> {
    let covering = |name: &str| {
        existing(brief, Difficulty::Ambiguous).filter(|case| covers_pair(case, &brief.tool.name, name)).count()
    };
    let is_open = |others: &Vec<String>| {
        let members = with_ours(brief, others);
        !existing(brief, Difficulty::Ambiguous).any(|case| covers_cluster(case, &members))
    };
    let clusters = clusters(brief).into_iter().filter(is_open).map(Target::Cluster);
    let counted: Vec<(&str, usize)> = neighbours(brief).into_iter().map(|name| (name, covering(name))).collect();
    let round = |round: usize| {
        let short = counted.iter().filter(move |(_, covered)| *covered < round);
        short.map(|(name, _)| Target::Neighbour((*name).to_owned()))
    };
    let again = (2..=CASES_OF_OVERLAP).flat_map(round);
    round(1).chain(clusters).chain(again).collect()
}

/// Returns how many other tools a combination names.
fn companions_of(combination: Combination, others: usize) -> usize {
    let wanted = match combination {
        Combination::Or | Combination::AndOr => 1,
        Combination::VariableDepth => 2,
        Combination::Xor => 3,
        Combination::Nor => 0,
    };
    wanted.min(others)
}

/// Tries the four kinds in turn.
fn edge(existing: usize, count: usize) -> Vec<Purpose> {
    EdgeKind::ALL.into_iter().cycle().skip(existing % EdgeKind::ALL.len()).take(count).map(Purpose::Edge).collect()
}
