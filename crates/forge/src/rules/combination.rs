//! How the acceptable sets of an ambiguous case relate.

use std::collections::BTreeSet;

use karat_core::case::NO_TOOL;

use crate::Combination;

impl Combination {
    /// Returns the combination that acceptable sets form, if it is one of the five.
    pub fn of(sets: &[Vec<String>]) -> Option<Self> {
        let sets = distinct(sets);
        let core = core(&sets);
        let is_deep = Self::VariableDepth.is_formed_by(&sets) && core.len() > 1;
        let by_shape = [Self::Nor, Self::Xor].into_iter().find(|combination| combination.is_formed_by(&sets));
        if by_shape.is_some() {
            return by_shape;
        }
        if is_deep {
            return Some(Self::VariableDepth);
        }
        // A tool or none is a question of depth, not of which.
        [Self::AndOr, Self::Or, Self::VariableDepth].into_iter().find(|combination| combination.is_formed_by(&sets))
    }

    /// Tells whether acceptable sets form the combination; some sets form more than one.
    pub fn fits(self, sets: &[Vec<String>]) -> bool {
        self.is_formed_by(&distinct(sets))
    }

    /// Tells whether a registry of so many tools has enough of them. With one tool the only question is whether it is
    /// called at all.
    pub fn is_possible_with(self, tools: usize) -> bool {
        match self {
            Self::AndOr | Self::Nor => true,
            Self::Or => tools >= 2,
            Self::Xor | Self::VariableDepth => tools >= 3,
        }
    }

    /// Returns the name that people see.
    pub fn name(self) -> &'static str {
        match self {
            Self::Or => "OR",
            Self::AndOr => "AND/OR",
            Self::Xor => "XOR",
            Self::VariableDepth => "variable depth",
            Self::Nor => "NOR",
        }
    }

    /// Says what sets of this combination look like.
    pub(super) fn form(self) -> &'static str {
        match self {
            Self::Or => "two or more sets of one tool each, [[a], [b]]",
            Self::AndOr => "a set and the same set with more, [[a], [a, b]]",
            Self::Xor => "sets that share no tool, one of them of two or more, [[a, b], [c, d]]",
            Self::VariableDepth => "sets that share tools and differ in size, [[a, b], [a, b, c]]",
            Self::Nor => "no tool at all, [[\"__none__\"]]",
        }
    }

    fn is_formed_by(self, sets: &BTreeSet<BTreeSet<&str>>) -> bool {
        let pairs = || sets.iter().flat_map(|left| sets.iter().map(move |right| (left, right)));
        let differ = |(left, right): &(&BTreeSet<&str>, &BTreeSet<&str>)| left != right;
        match self {
            Self::Nor => sets.len() == 1 && sets.iter().all(BTreeSet::is_empty),
            Self::Or => sets.len() > 1 && sets.iter().all(|set| set.len() <= 1),
            Self::AndOr => pairs().filter(differ).any(|(left, right)| left.is_subset(right)),
            Self::Xor => {
                sets.len() > 1
                    && sets.iter().all(|set| !set.is_empty())
                    && sets.iter().any(|set| set.len() > 1)
                    && pairs().filter(differ).all(|(left, right)| left.is_disjoint(right))
            }
            Self::VariableDepth => {
                let sizes: BTreeSet<usize> = sets.iter().map(BTreeSet::len).collect();
                sizes.len() > 1 && !core(sets).is_empty()
            }
        }
    }
}

/// Returns the sets as they are compared: each once, and none for no tool.
fn distinct(sets: &[Vec<String>]) -> BTreeSet<BTreeSet<&str>> {
    sets.iter().map(|set| set.iter().map(String::as_str).filter(|name| *name != NO_TOOL).collect()).collect()
}

/// Returns the tools that all sets hold.
fn core<'s>(sets: &BTreeSet<BTreeSet<&'s str>>) -> BTreeSet<&'s str> {
    let mut core = sets.first().cloned().unwrap_or_default();
    core.retain(|tool| sets.iter().all(|set| set.contains(tool)));
    core
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn sets(text: &str) -> Vec<Vec<String>> {
        let set = |set: &str| set.split(' ').filter(|tool| !tool.is_empty()).map(str::to_owned).collect();
        text.split('|').map(set).collect()
    }

    #[rstest]
    #[case("a|b", Some(Combination::Or))]
    #[case("a|b|c", Some(Combination::Or))]
    #[case("a|a", None)]
    #[case("a", None)]
    #[case("a|a b", Some(Combination::AndOr))]
    #[case("a|__none__", Some(Combination::AndOr))]
    #[case("a b|c d", Some(Combination::Xor))]
    #[case("a b|c", Some(Combination::Xor))]
    #[case("a b|b c", None)]
    #[case("a b|a b c", Some(Combination::VariableDepth))]
    #[case("a b|a c d", Some(Combination::VariableDepth))]
    #[case("__none__", Some(Combination::Nor))]
    #[case("", Some(Combination::Nor))]
    fn sets_form_a_combination(#[case] text: &str, #[case] expected: Option<Combination>) {
        assert_eq!(Combination::of(&sets(text)), expected);
        assert!(expected.is_none_or(|combination| combination.fits(&sets(text))));
    }

    #[rstest]
    #[case("a|a b", Combination::VariableDepth, true)]
    #[case("a b|a b c", Combination::AndOr, true)]
    #[case("a|__none__", Combination::Or, true)]
    #[case("a b|c|__none__", Combination::Xor, false)]
    #[case("a b|a c", Combination::VariableDepth, false)]
    #[case("a|__none__", Combination::Nor, false)]
    fn some_sets_form_more_than_one(#[case] text: &str, #[case] combination: Combination, #[case] expected: bool) {
        assert_eq!(combination.fits(&sets(text)), expected);
    }
}
