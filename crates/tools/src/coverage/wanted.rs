//! The number of cases that a tool should have.

/// Minimum number of golden cases of a tool.
pub const MIN_GOLDEN_CASES: usize = 5;
/// Maximum number of golden cases of a tool; further ones should be labeled cases.
pub const MAX_GOLDEN_CASES: usize = 10;

/// The wanted numbers of labeled cases of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WantedCases {
    pub straightforward: usize,
    pub ambiguous: usize,
    pub edge: usize,
}

impl WantedCases {
    /// Returns the wanted numbers for a registry of `tools` and a tool with this many overlaps and clusters.
    pub fn of(tools: usize, overlaps: usize, clusters: usize) -> Self {
        Self {
            // A straightforward case chooses between tools, which needs more than one.
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
    fn computes_wanted_numbers(
        #[case] tools: usize,
        #[case] overlaps: usize,
        #[case] clusters: usize,
        #[case] (straightforward, ambiguous, edge): (usize, usize, usize),
    ) {
        assert_eq!(WantedCases::of(tools, overlaps, clusters), WantedCases { straightforward, ambiguous, edge });
    }
}
