//! Which cases cover which overlaps: shared by checks, coverage and drafting.

use std::collections::{BTreeMap, BTreeSet};

use super::OverlapMap;
use karat_cases::{Case, Difficulty};

/// Whether a case covers the overlap of two tools: it is ambiguous, and its acceptable sets contain both.
pub fn covers_pair(case: &Case, left: &str, right: &str) -> bool {
    is_ambiguous(case) && names(case, left) && names(case, right)
}

/// Whether a case covers a cluster: one of its acceptable sets, or its expected calls, contain all members. The caller
/// passes only cases of labeled files.
pub fn covers_cluster(case: &Case, cluster: &BTreeSet<String>) -> bool {
    tool_sets(case).any(|set| set.len() >= cluster.len() && cluster.iter().all(|tool| set.contains(tool)))
}

fn is_ambiguous(case: &Case) -> bool {
    case.difficulty == Some(Difficulty::Ambiguous)
}

fn names(case: &Case, tool: &str) -> bool {
    case.expectations().flat_map(|expect| expect.tools_acceptable.iter().flatten().flatten()).any(|name| name == tool)
}

/// Returns the tool sets that a case accepts.
fn tool_sets(case: &Case) -> impl Iterator<Item = &Vec<String>> {
    case.expectations().flat_map(|expect| expect.tools_acceptable.iter().flatten().chain(&expect.tools_called))
}

/// Declared overlaps and clusters without a covering case so far.
///
/// A case is compared with the neighbours of its tools only, not with the whole map.
#[derive(Debug, Clone)]
pub struct UncoveredOverlaps<'m> {
    /// Keyed by the smaller name.
    pairs: BTreeMap<&'m str, BTreeSet<&'m str>>,
    clusters: BTreeSet<&'m BTreeSet<String>>,
}

impl<'m> UncoveredOverlaps<'m> {
    pub fn of(map: &'m OverlapMap) -> Self {
        let mut pairs: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (tool, other) in map.pairs() {
            pairs.entry(tool).or_default().insert(other);
        }
        Self { pairs, clusters: map.clusters().collect() }
    }

    /// Removes the overlaps that a case covers.
    pub fn remove_covered_pairs(&mut self, case: &Case) {
        if self.pairs.is_empty() || !is_ambiguous(case) {
            return;
        }
        let named = case.expectations().flat_map(|expect| expect.tools_acceptable.iter().flatten().flatten());
        let named: BTreeSet<&str> = named.map(String::as_str).collect();
        for &tool in &named {
            if let Some(others) = self.pairs.get_mut(tool) {
                others.retain(|other| !named.contains(other));
            }
        }
    }

    /// Removes the clusters that a case of a labeled file covers.
    pub fn remove_covered_clusters(&mut self, case: &Case) {
        if self.clusters.is_empty() || tool_sets(case).all(Vec::is_empty) {
            return;
        }
        self.clusters.retain(|cluster| !covers_cluster(case, cluster));
    }

    /// Returns the uncovered overlaps, each once, smaller name first.
    pub fn pairs(&self) -> impl Iterator<Item = (&'m str, &'m str)> {
        self.pairs.iter().flat_map(|(&tool, others)| others.iter().map(move |&other| (tool, other)))
    }

    /// Returns the uncovered clusters.
    pub fn clusters(&self) -> impl Iterator<Item = &'m BTreeSet<String>> {
        self.clusters.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;
    use crate::overlap::{Cluster, Neighbour, OverlapEntry, Shape};
    use karat_cases::{CaseLocation, Expectation, Input};

    fn case(difficulty: Difficulty, sets: &[Vec<&str>]) -> Case {
        let set = |set: &Vec<&str>| set.iter().map(|&tool| tool.to_owned()).collect();
        Case {
            id: "ls-a-001".to_owned(),
            description: String::new(),
            difficulty: Some(difficulty),
            created_at: None,
            bug_ref: None,
            input: Some(Input { message: "m".to_owned() }),
            turns: None,
            user: None,
            on_turn_failure: None,
            stubs: None,
            injections: None,
            max_turns: None,
            expect: Expectation { tools_acceptable: Some(sets.iter().map(set).collect()), ..Expectation::default() },
            safety: None,
            tags: Vec::new(),
            skip: None,
            location: CaseLocation { line: 1, ..CaseLocation::default() },
        }
    }

    #[rstest]
    #[case::one_set(Difficulty::Ambiguous, &[vec!["a", "b"]], true)]
    #[case::two_sets(Difficulty::Ambiguous, &[vec!["a"], vec!["b"]], true)]
    #[case::one_tool(Difficulty::Ambiguous, &[vec!["a"], vec!["__none__"]], false)]
    #[case::not_ambiguous(Difficulty::Straightforward, &[vec!["a", "b"]], false)]
    #[case::another_name(Difficulty::Ambiguous, &[vec!["a"], vec!["b2"]], false)]
    fn covers_pairs(#[case] difficulty: Difficulty, #[case] sets: &[Vec<&str>], #[case] covered: bool) {
        assert_eq!(covers_pair(&case(difficulty, sets), "a", "b"), covered);
        assert_eq!(covers_pair(&case(difficulty, sets), "b", "a"), covered);
    }

    #[rstest]
    #[case::more(&[vec!["d", "c", "b", "a"]], true)]
    #[case::over_two_sets(&[vec!["a", "b"], vec!["c"]], false)]
    fn covers_clusters(#[case] sets: &[Vec<&str>], #[case] covered: bool) {
        let cluster = ["a", "b", "c"].map(str::to_owned).into();
        assert_eq!(covers_cluster(&case(Difficulty::Edge, sets), &cluster), covered);
    }

    proptest! {
        #[test]
        fn retains_only_uncovered_pairs_and_clusters(
            declared in prop::collection::vec(("[a-e]", "[a-e]"), 0..6),
            clusters in prop::collection::vec(prop::collection::vec("[a-e]", 1..4), 0..4),
            cases in prop::collection::vec(prop::collection::vec(prop::collection::vec("[a-e]", 0..4), 0..3), 0..4),
        ) {
            let entries = declared.into_iter().map(|(tool, other)| OverlapEntry {
                tool,
                overlaps: vec![Neighbour { tool: other, ..Neighbour::default() }],
                ..OverlapEntry::default()
            });
            let clusters = clusters.into_iter().map(|tools| Cluster { name: None, tools }).collect();
            let of_clusters = OverlapEntry { tool: "a".to_owned(), clusters, ..OverlapEntry::default() };
            let map = OverlapMap::of(Shape::List, entries.chain([of_clusters]).collect(), String::new());
            let cases: Vec<Case> = cases.into_iter().map(|sets| {
                let mut case = case(Difficulty::Ambiguous, &[]);
                case.expect.tools_acceptable = Some(sets);
                case
            }).collect();
            let mut uncovered = UncoveredOverlaps::of(&map);
            for case in &cases {
                uncovered.remove_covered_pairs(case);
                uncovered.remove_covered_clusters(case);
            }
            let pairs: Vec<_> = map
                .pairs()
                .filter(|(left, right)| !cases.iter().any(|case| covers_pair(case, left, right)))
                .collect();
            prop_assert_eq!(uncovered.pairs().collect::<Vec<_>>(), pairs);
            let clusters: Vec<_> =
                map.clusters().filter(|cluster| !cases.iter().any(|case| covers_cluster(case, cluster))).collect();
            prop_assert_eq!(uncovered.clusters().collect::<Vec<_>>(), clusters);
        }
    }
}
