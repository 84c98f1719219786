//! How many cases a tool should have.

/// The fewest golden cases of a tool.
pub const LEAST_GOLDEN: usize = 5;
/// The most golden cases of a tool; what is above belongs among the labeled ones.
pub const MOST_GOLDEN: usize = 10;

/// The labeled cases that a tool should have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    pub straightforward: usize,
    pub ambiguous: usize,
    pub edge: usize,
}

impl Wanted {
    /// Returns the contract's numbers for a registry of `tools` and a tool with so many overlaps and clusters.
    pub fn of(tools: usize, overlaps: usize, clusters: usize) -> Self {
        Self {
            // A straightforward case takes several tools, which a registry of one does not have.
            straightforward: if tools <= 1 { 0 } else { 10 + tools },
            ambiguous: 25 + 2 * overlaps + clusters,
            edge: 5 + tools / 3,
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(1, 0, 0, (0, 25, 5))]
    #[case(2, 1, 0, (12, 27, 5))]
    #[case(3, 0, 1, (13, 26, 6))]
    #[case(8, 3, 2, (18, 33, 7))]
    #[case(500, 6, 1, (510, 38, 171))]
    fn numbers(
        #[case] tools: usize,
        #[case] overlaps: usize,
        #[case] clusters: usize,
        #[case] (straightforward, ambiguous, edge): (usize, usize, usize),
    ) {
        assert_eq!(Wanted::of(tools, overlaps, clusters), Wanted { straightforward, ambiguous, edge });
    }
}
