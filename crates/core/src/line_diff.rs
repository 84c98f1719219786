//! Line diffs of two strings.

use schemars::JsonSchema;
use serde::Serialize;
use similar::{Algorithm, DiffOp, capture_diff_slices, group_diff_ops};

/// Numbers of added and removed lines in a shortest diff.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LineChange {
    pub added: u64,
    pub removed: u64,
}

/// Whether a line is in both strings, or only in one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineStatus {
    Unchanged,
    Removed,
    Added,
}

/// Nearby changes with their context lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk<'t> {
    /// Whether unchanged lines before this hunk are left out.
    pub after_gap: bool,
    pub lines: Vec<(LineStatus, &'t str)>,
}

/// A shortest diff of two strings.
pub struct LineDiff<'t> {
    before: Vec<&'t str>,
    now: Vec<&'t str>,
    ops: Vec<DiffOp>,
}

impl<'t> LineDiff<'t> {
    /// Compares two strings by line, ignoring line endings.
    pub fn between(before: &'t str, now: &'t str) -> Self {
        let (before, now): (Vec<&str>, Vec<&str>) = (before.lines().collect(), now.lines().collect());
        let ops = capture_diff_slices(Algorithm::Myers, &before, &now);
        Self { before, now, ops }
    }

    pub fn change(&self) -> LineChange {
        let mut change = LineChange::default();
        for op in self.ops.iter().filter(|op| !matches!(op, DiffOp::Equal { .. })) {
            change.added += op.new_range().len() as u64;
            change.removed += op.old_range().len() as u64;
        }
        change
    }

    /// Returns the changes, each with up to `context` unchanged lines around it.
    pub fn hunks(&self, context: usize) -> Vec<Hunk<'t>> {
        let mut hunk_end = 0;
        let hunk = |ops: Vec<DiffOp>| {
            let begin = ops.first().map_or(hunk_end, |op| op.old_range().start);
            let after_gap = begin > hunk_end;
            hunk_end = ops.last().map_or(hunk_end, |op| op.old_range().end);
            Hunk { after_gap, lines: ops.iter().flat_map(|op| self.lines(op)).collect() }
        };
        group_diff_ops(self.ops.clone(), context).into_iter().map(hunk).collect()
    }

    fn lines(&self, op: &DiffOp) -> Vec<(LineStatus, &'t str)> {
        let tag = |status: LineStatus, lines: &[&'t str]| lines.iter().map(|line| (status, *line)).collect::<Vec<_>>();
        let (before, now) = (&self.before[op.old_range()], &self.now[op.new_range()]);
        if matches!(op, DiffOp::Equal { .. }) {
            return tag(LineStatus::Unchanged, now);
        }
        let mut lines = tag(LineStatus::Removed, before);
        lines.extend(tag(LineStatus::Added, now));
        lines
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("", "", 0, 0)]
    #[case("a\nb\n", "a\nb", 0, 0)]
    #[case("", "a\nb\n", 2, 0)]
    #[case("a\nb\n", "", 0, 2)]
    #[case("a\nb\nc\n", "a\nx\nc\n", 1, 1)]
    #[case("a\nb\nc\na\nb\nb\na\n", "c\nb\na\nb\na\nc\n", 2, 3)]
    fn counts_added_and_removed_lines(
        #[case] before: &str,
        #[case] now: &str,
        #[case] added: u64,
        #[case] removed: u64,
    ) {
        assert_eq!(LineDiff::between(before, now).change(), LineChange { added, removed });
    }

    /// Returns the length of the longest common subsequence, by dynamic programming.
    fn longest_common_subsequence(before: &[u8], now: &[u8]) -> usize {
        let mut row = vec![0; now.len() + 1];
        for left in before {
            let mut corner = 0;
            for (index, right) in now.iter().enumerate() {
                let above = row[index + 1];
                row[index + 1] = if left == right { corner + 1 } else { above.max(row[index]) };
                corner = above;
            }
        }
        row[now.len()]
    }

    proptest! {
        #[test]
        fn the_diff_is_the_shortest(
            before in proptest::collection::vec(0_u8..4, 0..30),
            now in proptest::collection::vec(0_u8..4, 0..30),
        ) {
            let text = |lines: &[u8]| lines.iter().map(u8::to_string).collect::<Vec<_>>().join("\n");
            let common = longest_common_subsequence(&before, &now);
            let expected =
                LineChange { added: (now.len() - common) as u64, removed: (before.len() - common) as u64 };
            prop_assert_eq!(LineDiff::between(&text(&before), &text(&now)).change(), expected);
        }

        #[test]
        fn a_diff_contains_both_strings(
            before in proptest::collection::vec("[a-d]", 0..12),
            now in proptest::collection::vec("[a-d]", 0..12),
        ) {
            let (old, new) = (before.join("\n"), now.join("\n"));
            let diff = LineDiff::between(&old, &new);
            // Enough context to put both strings completely into one hunk.
            let hunks = diff.hunks(100);
            prop_assert_eq!(hunks.len(), usize::from(before != now));
            for hunk in hunks {
                prop_assert!(!hunk.after_gap);
                let side = |other: LineStatus| -> Vec<&str> {
                    hunk.lines.iter().filter(|(status, _)| *status != other).map(|(_, line)| *line).collect()
                };
                prop_assert_eq!(side(LineStatus::Added), before.clone());
                prop_assert_eq!(side(LineStatus::Removed), now.clone());
            }
        }
    }

    #[test]
    fn distant_changes_are_separate_hunks() {
        let before = "a\nb\nc\nd\ne\nf\ng\n";
        let hunks_of = |now: &str| -> Vec<(bool, String)> {
            let diff = LineDiff::between(before, now);
            let hunks = diff.hunks(1).into_iter();
            hunks.map(|hunk| (hunk.after_gap, hunk.lines.into_iter().map(|(_, line)| line).collect())).collect()
        };
        let expected =
            |all: &[(bool, &str)]| all.iter().map(|(gap, lines)| (*gap, (*lines).to_owned())).collect::<Vec<_>>();
        assert_eq!(hunks_of(before), []);
        assert_eq!(hunks_of("A\nb\nc\nd\ne\nF\ng\n"), expected(&[(false, "aAb"), (true, "efFg")]));
        assert_eq!(hunks_of("a\nb\nC\nd\ne\nF\ng\n"), expected(&[(true, "bcCdefFg")]), "adjacent hunks are merged");
    }
}
