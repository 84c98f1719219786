//! What changed between two texts, line by line.

use schemars::JsonSchema;
use serde::Serialize;
use similar::{Algorithm, DiffOp, capture_diff_slices, group_diff_ops};

/// How many lines one text has that the other has not, at the least.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LineChange {
    pub added: u64,
    pub removed: u64,
}

/// What became of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Same,
    Gone,
    New,
}

/// Changes that are near each other, with the lines around them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk<'t> {
    /// Unchanged lines are left out before it.
    pub after_gap: bool,
    pub lines: Vec<(Fate, &'t str)>,
}

/// The shortest difference of two texts.
pub struct LineDiff<'t> {
    before: Vec<&'t str>,
    now: Vec<&'t str>,
    /// Steps from one to the other, in their order.
    steps: Vec<DiffOp>,
}

impl<'t> LineDiff<'t> {
    /// Compares two texts. How a line ends is no part of it.
    pub fn between(before: &'t str, now: &'t str) -> Self {
        let (before, now): (Vec<&str>, Vec<&str>) = (before.lines().collect(), now.lines().collect());
        let steps = capture_diff_slices(Algorithm::Myers, &before, &now);
        Self { before, now, steps }
    }

    pub fn change(&self) -> LineChange {
        let mut change = LineChange::default();
        for step in self.steps.iter().filter(|step| !matches!(step, DiffOp::Equal { .. })) {
            change.added += step.new_range().len() as u64;
            change.removed += step.old_range().len() as u64;
        }
        change
    }

    /// Returns the changes, with so many unchanged lines around each.
    pub fn hunks(&self, around: usize) -> Vec<Hunk<'t>> {
        let mut shown = 0;
        let hunk = |steps: Vec<DiffOp>| {
            let begin = steps.first().map_or(shown, |step| step.old_range().start);
            let after_gap = begin > shown;
            shown = steps.last().map_or(shown, |step| step.old_range().end);
            Hunk { after_gap, lines: steps.iter().flat_map(|step| self.lines(step)).collect() }
        };
        group_diff_ops(self.steps.clone(), around).into_iter().map(hunk).collect()
    }

    fn lines(&self, step: &DiffOp) -> Vec<(Fate, &'t str)> {
        let of = |fate: Fate, lines: &[&'t str]| lines.iter().map(|line| (fate, *line)).collect::<Vec<_>>();
        let (before, now) = (&self.before[step.old_range()], &self.now[step.new_range()]);
        if matches!(step, DiffOp::Equal { .. }) {
            return of(Fate::Same, now);
        }
        let mut lines = of(Fate::Gone, before);
        lines.extend(of(Fate::New, now));
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
    fn lines_that_come_and_go_are_counted(
        #[case] before: &str,
        #[case] now: &str,
        #[case] added: u64,
        #[case] removed: u64,
    ) {
        assert_eq!(LineDiff::between(before, now).change(), LineChange { added, removed });
    }

    /// The longest list that is in both, by the textbook.
    fn longest_common(before: &[u8], now: &[u8]) -> usize {
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
        fn nothing_that_could_stay_is_counted(
            before in proptest::collection::vec(0_u8..4, 0..30),
            now in proptest::collection::vec(0_u8..4, 0..30),
        ) {
            let text = |lines: &[u8]| lines.iter().map(u8::to_string).collect::<Vec<_>>().join("\n");
            let kept = longest_common(&before, &now);
            let expected =
                LineChange { added: (now.len() - kept) as u64, removed: (before.len() - kept) as u64 };
            prop_assert_eq!(LineDiff::between(&text(&before), &text(&now)).change(), expected);
        }

        #[test]
        fn both_texts_are_in_a_difference(
            before in proptest::collection::vec("[a-d]", 0..12),
            now in proptest::collection::vec("[a-d]", 0..12),
        ) {
            let (old, new) = (before.join("\n"), now.join("\n"));
            let diff = LineDiff::between(&old, &new);
            // Around a change there is as much as there is.
            let hunks = diff.hunks(100);
            prop_assert_eq!(hunks.len(), usize::from(before != now));
            for hunk in hunks {
                prop_assert!(!hunk.after_gap);
                let side = |other: Fate| -> Vec<&str> {
                    hunk.lines.iter().filter(|(fate, _)| *fate != other).map(|(_, line)| *line).collect()
                };
                prop_assert_eq!(side(Fate::New), before.clone());
                prop_assert_eq!(side(Fate::Gone), now.clone());
            }
        }
    }

    #[test]
    fn changes_that_are_apart_are_apart() {
        let before = "a\nb\nc\nd\ne\nf\ng\n";
        let shown = |now: &str| -> Vec<(bool, String)> {
            let diff = LineDiff::between(before, now);
            let hunks = diff.hunks(1).into_iter();
            hunks.map(|hunk| (hunk.after_gap, hunk.lines.into_iter().map(|(_, line)| line).collect())).collect()
        };
        let hunks =
            |all: &[(bool, &str)]| all.iter().map(|(gap, lines)| (*gap, (*lines).to_owned())).collect::<Vec<_>>();
        assert_eq!(shown(before), []);
        assert_eq!(shown("A\nb\nc\nd\ne\nF\ng\n"), hunks(&[(false, "aAb"), (true, "efFg")]));
        assert_eq!(shown("a\nb\nC\nd\ne\nF\ng\n"), hunks(&[(true, "bcCdefFg")]), "nothing is between them");
    }
}
