//! Classifies the acceptable sets of an ambiguous case.

use std::collections::BTreeSet;

use karat_cases::NO_TOOL;

use crate::Combination;

impl Combination {
    /// Returns the combination that the acceptable sets form, if any.
    pub fn from_sets(sets: &[Vec<String>]) -> Option<Self> {
        let sets = distinct(sets);
        let order = if core(&sets).len() > 1 {
            [Self::Nor, Self::Xor, Self::VariableDepth, Self::AndOr, Self::Or]
        } else {
            [Self::Nor, Self::Xor, Self::AndOr, Self::Or, Self::VariableDepth]
        };
        order.into_iter().find(|combination| combination.is_formed_by(&sets))
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

/// Removes duplicate sets; "no tool" becomes the empty set.
fn distinct(sets: &[Vec<String>]) -> BTreeSet<BTreeSet<&str>> {
    sets.iter().map(|set| set.iter().map(String::as_str).filter(|name| *name != NO_TOOL).collect()).collect()
}

/// Returns the tools that all sets have in common.
fn core<'s>(sets: &BTreeSet<BTreeSet<&'s str>>) -> BTreeSet<&'s str> {
    let mut core = sets.first().cloned().unwrap_or_default();
    core.retain(|tool| sets.iter().all(|set| set.contains(tool)));
    core
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("a / b", Some(Combination::Or))]
    #[case("a / a b", Some(Combination::AndOr))]
    #[case("a / __none__", Some(Combination::AndOr))]
    #[case("a b / c d", Some(Combination::Xor))]
    #[case("a b / c", Some(Combination::Xor))]
    #[case("a b / a b c", Some(Combination::VariableDepth))]
    #[case("__none__", Some(Combination::Nor))]
    #[case("", Some(Combination::Nor))]
    #[case("a", None)]
    fn sets_form_a_combination(#[case] sets: &str, #[case] expected: Option<Combination>) {
        let set = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<String>>();
        let sets: Vec<Vec<String>> = sets.split('/').map(set).collect();
        assert_eq!(Combination::from_sets(&sets), expected);
    }
}
