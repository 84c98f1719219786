//! How far two texts are apart, in lines.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;

/// How many lines one text has that the other has not, at the least.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LineChange {
    pub added: u64,
    pub removed: u64,
}

impl LineChange {
    /// Compares two texts, line by line.
    pub fn between(before: &str, now: &str) -> Self {
        let mut numbers = HashMap::new();
        let mut number = |line| {
            let next = numbers.len();
            *numbers.entry(line).or_insert(next)
        };
        let before: Vec<usize> = before.lines().map(&mut number).collect();
        let now: Vec<usize> = now.lines().map(&mut number).collect();
        let steps = fewest_steps(&before, &now);
        // Steps are lines that go and lines that come; what stays is in both.
        let kept = (before.len() + now.len() - steps) / 2;
        Self { added: (now.len() - kept) as u64, removed: (before.len() - kept) as u64 }
    }
}

/// Returns the fewest lines that have to be taken out and put in to make one list of the other. For each number of steps
/// it knows how far one can get on each diagonal, which costs time by lines × steps and memory by lines.
fn fewest_steps(before: &[usize], now: &[usize]) -> usize {
    let most = before.len() + now.len();
    // Diagonals are numbered from `-most` to `most`; one more on each side needs no question.
    let mut furthest = vec![0_usize; 2 * most + 3];
    for steps in 0..=most {
        // On which diagonals one can be after so many steps.
        for diagonal in (most - steps..=most + steps).step_by(2) {
            let place = diagonal + 1;
            let comes_from_above =
                diagonal == most - steps || (diagonal != most + steps && furthest[place - 1] < furthest[place + 1]);
            let mut x = if comes_from_above { furthest[place + 1] } else { furthest[place - 1] + 1 };
            // y is x less the diagonal's number.
            let Some(mut y) = (x + most).checked_sub(diagonal) else { continue };
            while x < before.len() && y < now.len() && before[x] == now[y] {
                x += 1;
                y += 1;
            }
            furthest[place] = x;
            if x >= before.len() && y >= now.len() {
                return steps;
            }
        }
    }
    most
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
        assert_eq!(LineChange::between(before, now), LineChange { added, removed });
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
            prop_assert_eq!(LineChange::between(&text(&before), &text(&now)), expected);
        }
    }
}
