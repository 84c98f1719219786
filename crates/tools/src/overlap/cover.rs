//! Which cases cover which overlaps: the one rule that checks, coverage and the drafting of cases share.

use std::collections::{BTreeMap, BTreeSet};

use super::OverlapMap;
use karat_core::case::{Case, Difficulty};

/// Tells whether a case covers the overlap of two tools: it is ambiguous, and its acceptable sets name both.
pub fn covers_pair(case: &Case, left: &str, right: &str) -> bool {
    is_ambiguous(case) && names(case, left) && names(case, right)
}

/// Tells whether a case covers a cluster: one of its acceptable sets, or its list of tools to be called, holds all
/// members. Only cases of labeled files count, which the caller sees to.
pub fn covers_cluster(case: &Case, cluster: &BTreeSet<String>) -> bool {
    tool_sets(case).any(|set| set.len() >= cluster.len() && cluster.iter().all(|tool| set.contains(tool)))
}

fn is_ambiguous(case: &Case) -> bool {
    case.difficulty == Some(Difficulty::Ambiguous)
}

fn names(case: &Case, tool: &str) -> bool {
    case.expect.tools_acceptable.iter().flatten().flatten().any(|name| name == tool)
}

/// Returns the sets of tools that are right for a case.
fn tool_sets(case: &Case) -> impl Iterator<Item = &Vec<String>> {
    case.expect.tools_acceptable.iter().flatten().chain(&case.expect.tools_called)
}

/// The declared overlaps and clusters that no case has covered yet.
///
/// A case is compared with the neighbours of the tools that it names, not with the whole map.
#[derive(Debug, Clone)]
pub struct Uncovered<'m> {
    /// By the smaller name.
    pairs: BTreeMap<&'m str, BTreeSet<&'m str>>,
    clusters: BTreeSet<&'m BTreeSet<String>>,
}

impl<'m> Uncovered<'m> {
    pub fn of(map: &'m OverlapMap) -> Self {
        let mut pairs: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (tool, other) in map.pairs() {
            pairs.entry(tool).or_default().insert(other);
        }
        Self { pairs, clusters: map.clusters().collect() }
    }

    /// Takes out the overlaps that a case covers.
    pub fn take_pairs(&mut self, case: &Case) {
        if self.pairs.is_empty() || !is_ambiguous(case) {
            return;
        }
        let named: BTreeSet<&str> =
            case.expect.tools_acceptable.iter().flatten().flatten().map(String::as_str).collect();
        for &tool in &named {
            if let Some(others) = self.pairs.get_mut(tool) {
                others.retain(|other| !named.contains(other));
            }
        }
    }

    /// Takes out the clusters that a case of a labeled file covers.
    pub fn take_clusters(&mut self, case: &Case) {
        if self.clusters.is_empty() || tool_sets(case).all(Vec::is_empty) {
            return;
        }
        self.clusters.retain(|cluster| !covers_cluster(case, cluster));
    }

    /// Returns the overlaps without a case, each once, the smaller name first.
    pub fn pairs(&self) -> impl Iterator<Item = (&'m str, &'m str)> {
        self.pairs.iter().flat_map(|(&tool, others)| others.iter().map(move |&other| (tool, other)))
    }

    /// Returns the clusters without a case.
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
    use karat_core::case::{Expectation, Input};

    fn case(difficulty: Difficulty, sets: &[Vec<&str>]) -> Case {
        let set = |set: &Vec<&str>| set.iter().map(|&tool| tool.to_owned()).collect();
        Case {
            id: "ls-a-001".to_owned(),
            description: String::new(),
            difficulty: Some(difficulty),
            created_at: None,
            bug_ref: None,
            input: Input { message: "m".to_owned() },
            stubs: None,
            max_turns: None,
            expect: Expectation { tools_acceptable: Some(sets.iter().map(set).collect()), ..Expectation::default() },
            line: 1,
        }
    }

    #[rstest]
    #[case::one_set(Difficulty::Ambiguous, &[vec!["a", "b"]], true)]
    #[case::two_sets(Difficulty::Ambiguous, &[vec!["a"], vec!["b"]], true)]
    #[case::one_tool(Difficulty::Ambiguous, &[vec!["a"], vec!["__none__"]], false)]
    #[case::not_ambiguous(Difficulty::Straightforward, &[vec!["a", "b"]], false)]
    #[case::another_name(Difficulty::Ambiguous, &[vec!["a"], vec!["b2"]], false)]
    fn pairs(#[case] difficulty: Difficulty, #[case] sets: &[Vec<&str>], #[case] covered: bool) {
        assert_eq!(covers_pair(&case(difficulty, sets), "a", "b"), covered);
        assert_eq!(covers_pair(&case(difficulty, sets), "b", "a"), covered);
    }

    #[rstest]
    #[case::more(&[vec!["d", "c", "b", "a"]], true)]
    #[case::over_two_sets(&[vec!["a", "b"], vec!["c"]], false)]
    fn clusters(#[case] sets: &[Vec<&str>], #[case] covered: bool) {
        let cluster = ["a", "b", "c"].map(str::to_owned).into();
        assert_eq!(covers_cluster(&case(Difficulty::Edge, sets), &cluster), covered);
    }

    proptest! {
        #[test]
        fn what_is_left_is_what_no_case_covers(
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
                let mut made = case(Difficulty::Ambiguous, &[]);
                made.expect.tools_acceptable = Some(sets);
                made
            }).collect();
            let mut uncovered = Uncovered::of(&map);
            for case in &cases {
                uncovered.take_pairs(case);
                uncovered.take_clusters(case);
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
