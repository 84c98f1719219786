//! Reasons that differ only in their numbers, counted together.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

/// How many kinds of reasons are told apart; a function that says something new of every trace must not fill the memory.
const MOST_GROUPS: usize = 1000;

/// How much of a reason counts, in characters.
const LONGEST_PATTERN: usize = 200;

/// How many traces of a group are named.
const MOST_TRACES: usize = 3;

/// Reasons that are alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReasonGroup {
    /// The first line of the reason, with `#` for the numbers in which reasons of this group differ.
    pub text: String,
    /// The function's line that raised the exception; null where that is not one and the same, or there is none.
    pub line: Option<u64>,
    pub count: u64,
    /// The first traces of the group: their ids, or their lines where they have none.
    pub traces: Vec<String>,
}

/// Counts reasons by what they say: their first line, any number in it being as good as another.
#[derive(Debug, Clone, Default)]
pub struct Reasons {
    groups: BTreeMap<String, Group>,
    /// How many came when there were enough groups.
    others: u64,
}

#[derive(Debug, Clone)]
struct Group {
    /// What all of them say, as long as it is the same.
    text: Option<String>,
    /// Where all of them come from, as long as it is the same.
    line: Option<u64>,
    count: u64,
    traces: Vec<String>,
}

impl Reasons {
    /// Adds a reason, with the line that it comes from; the trace is named only where somebody will read it.
    pub fn add(&mut self, reason: &str, line: Option<u64>, trace: impl FnOnce() -> String) {
        let text = first_line(reason);
        let pattern = pattern(&text);
        if let Some(group) = self.groups.get_mut(&pattern) {
            group.count += 1;
            if group.text.as_ref().is_some_and(|known| *known != text) {
                group.text = None;
            }
            group.line = group.line.filter(|known| Some(*known) == line);
            if group.traces.len() < MOST_TRACES {
                group.traces.push(trace());
            }
        } else if self.groups.len() < MOST_GROUPS {
            self.groups.insert(pattern, Group { text: Some(text), line, count: 1, traces: vec![trace()] });
        } else {
            self.others += 1;
        }
    }

    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Returns the largest groups, the largest first, and how many reasons are in none of them.
    pub fn largest(&self, most: usize) -> (Vec<ReasonGroup>, u64) {
        let mut groups: Vec<(&String, &Group)> = self.groups.iter().collect();
        groups.sort_by_key(|(_, group)| std::cmp::Reverse(group.count));
        let rest: u64 = groups.iter().skip(most).map(|(_, group)| group.count).sum();
        let shown = groups.into_iter().take(most).map(|(pattern, group)| ReasonGroup {
            text: group.text.clone().unwrap_or_else(|| pattern.clone()),
            line: group.line,
            count: group.count,
            traces: group.traces.clone(),
        });
        (shown.collect(), rest + self.others)
    }
}

fn first_line(reason: &str) -> String {
    let line = reason.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line.chars().take(LONGEST_PATTERN).collect()
}

/// Returns the text with `#` for each number.
fn pattern(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    let mut in_number = false;
    while let Some(next) = rest.next() {
        let goes_on = matches!(next, '.' | ',') && rest.peek().is_some_and(char::is_ascii_digit);
        match next {
            '0'..='9' if in_number => {}
            '0'..='9' => {
                out.push('#');
                in_number = true;
            }
            _ if in_number && goes_on => {}
            other => {
                out.push(other);
                in_number = false;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("Response too short (7 chars)", "Response too short (# chars)")]
    #[case("0.25 of 1,000.5, then 3.", "# of #, then #.")]
    #[case("no number", "no number")]
    #[case("", "")]
    fn numbers_do_not_count(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(pattern(text), expected);
    }

    #[test]
    fn the_largest_group_is_first_and_names_its_first_traces() {
        let mut reasons = Reasons::default();
        let said = ["too short (3)", "odd", "too short (4)\nmore", "  \nodd", "too short (5)", "too short (6)", "once"];
        for (index, reason) in said.into_iter().enumerate() {
            reasons.add(reason, None, || format!("t{index}"));
        }
        let (groups, rest) = reasons.largest(2);
        let group = |text: &str, count, traces: &[&str]| ReasonGroup {
            text: text.to_owned(),
            line: None,
            count,
            traces: traces.iter().map(|&trace| trace.to_owned()).collect(),
        };
        assert_eq!(groups, [group("too short (#)", 4, &["t0", "t2", "t4"]), group("odd", 2, &["t1", "t3"])]);
        assert_eq!(rest, 1);
    }

    #[test]
    fn a_line_is_told_as_long_as_it_is_the_same() {
        let mut reasons = Reasons::default();
        for (reason, line) in
            [("a", Some(2)), ("a", Some(2)), ("b", Some(2)), ("b", Some(3)), ("c", Some(2)), ("c", None)]
        {
            reasons.add(reason, line, String::new);
        }
        let lines: Vec<Option<u64>> = reasons.largest(5).0.iter().map(|group| group.line).collect();
        assert_eq!(lines, [Some(2), None, None]);
    }

    #[test]
    fn many_reasons_take_bounded_memory_and_are_all_counted() {
        let mut reasons = Reasons::default();
        let word = |mut number: usize| {
            let mut word = String::new();
            while number > 0 {
                word.push(char::from(b'a' + u8::try_from(number % 26).expect("a letter")));
                number /= 26;
            }
            word
        };
        (0..5000).for_each(|number| reasons.add(&word(number), None, String::new));
        let (groups, rest) = reasons.largest(5);
        assert_eq!(groups.iter().map(|group| group.count).sum::<u64>() + rest, 5000);
        assert!(reasons.groups.len() <= MOST_GROUPS);
    }
}
