//! Groups reasons that differ only in numbers.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

/// Maximum number of groups, to bound memory if every trace has a new reason.
const MAX_GROUPS: usize = 1000;

/// Maximum length of a pattern, in characters.
const MAX_PATTERN_LENGTH: usize = 200;

/// Maximum number of traces listed per group.
const MAX_TRACES_PER_GROUP: usize = 3;

/// A group of similar reasons.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReasonGroup {
    /// First line of the reason, with `#` for numbers that differ within the group.
    pub text: String,
    /// Line of the function that raised the exception; null if it differs within the group or is unknown.
    pub line: Option<u64>,
    pub count: u64,
    /// First traces of the group: their ids, or their lines if they have none.
    pub traces: Vec<String>,
}

/// Counts reasons by their first line, with numbers ignored.
#[derive(Debug, Clone, Default)]
pub struct Reasons {
    groups: BTreeMap<String, Group>,
    /// Number of reasons not grouped because the limit was reached.
    others: u64,
}

#[derive(Debug, Clone)]
struct Group {
    /// The common text, if it is the same for all.
    text: Option<String>,
    /// The common line, if it is the same for all.
    line: Option<u64>,
    count: u64,
    traces: Vec<String>,
}

impl Reasons {
    /// Adds a reason with its line. `trace` is called only if it is listed.
    pub fn add(&mut self, reason: &str, line: Option<u64>, trace: impl FnOnce() -> String) {
        let text = first_line(reason);
        let pattern = pattern(&text);
        if let Some(group) = self.groups.get_mut(&pattern) {
            group.count += 1;
            if group.text.as_ref().is_some_and(|known| *known != text) {
                group.text = None;
            }
            group.line = group.line.filter(|known| Some(*known) == line);
            if group.traces.len() < MAX_TRACES_PER_GROUP {
                group.traces.push(trace());
            }
        } else if self.groups.len() < MAX_GROUPS {
            self.groups.insert(pattern, Group { text: Some(text), line, count: 1, traces: vec![trace()] });
        } else {
            self.others += 1;
        }
    }

    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Returns the `max` largest groups, largest first, and the number of reasons in no returned group.
    pub fn largest(&self, max: usize) -> (Vec<ReasonGroup>, u64) {
        let mut groups: Vec<(&String, &Group)> = self.groups.iter().collect();
        groups.sort_by_key(|(_, group)| std::cmp::Reverse(group.count));
        let rest: u64 = groups.iter().skip(max).map(|(_, group)| group.count).sum();
        let largest = groups.into_iter().take(max).map(|(pattern, group)| ReasonGroup {
            text: group.text.clone().unwrap_or_else(|| pattern.clone()),
            line: group.line,
            count: group.count,
            traces: group.traces.clone(),
        });
        (largest.collect(), rest + self.others)
    }
}

fn first_line(reason: &str) -> String {
    let line = reason.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line.chars().take(MAX_PATTERN_LENGTH).collect()
}

/// Replaces each number with `#`.
fn pattern(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    let mut in_number = false;
    while let Some(next) = rest.next() {
        let is_separator = matches!(next, '.' | ',') && rest.peek().is_some_and(char::is_ascii_digit);
        match next {
            '0'..='9' if in_number => {}
            '0'..='9' => {
                out.push('#');
                in_number = true;
            }
            _ if in_number && is_separator => {}
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
    fn replaces_numbers(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(pattern(text), expected);
    }

    #[test]
    fn lists_the_largest_group_first_with_its_first_traces() {
        let mut reasons = Reasons::default();
        let texts =
            ["too short (3)", "odd", "too short (4)\nmore", "  \nodd", "too short (5)", "too short (6)", "once"];
        for (index, reason) in texts.into_iter().enumerate() {
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
    fn reports_the_line_only_if_it_is_the_same() {
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
    fn bounds_memory_and_counts_every_reason() {
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
        assert!(reasons.groups.len() <= MAX_GROUPS);
    }
}
