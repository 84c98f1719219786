//! Parses docstrings, and extracts the part that each library passes to a model.

use std::collections::BTreeMap;

use super::text::clean_doc;

/// A cleaned and parsed docstring.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Docstring {
    pub(crate) whole: String,
    /// The part before the first section.
    pub(crate) summary: String,
    pub(crate) parameters: BTreeMap<String, String>,
}

pub(super) const PARAMETER_SECTIONS: [&str; 7] =
    ["args", "arguments", "parameters", "params", "keyword args", "keyword arguments", "other parameters"];

pub(super) const OTHER_SECTIONS: [&str; 10] =
    ["returns", "return", "raises", "except", "exceptions", "yields", "yield", "example", "examples", "attributes"];

impl Docstring {
    pub(crate) fn read(text: &str) -> Self {
        let whole = clean_doc(text);
        let lines: Vec<&str> = whole.split('\n').collect();
        let mut parameters = BTreeMap::new();
        let mut summary_end = lines.len();
        let mut at = 0;
        while at < lines.len() {
            let Some((section, body)) = section(&lines, at) else {
                let Some((name, text)) = field(lines[at]) else {
                    at += 1;
                    continue;
                };
                summary_end = summary_end.min(at);
                let (text, next) = join_continuation(&lines, at + 1, text, 1, |line| field(line).is_some());
                if let Some(name) = name {
                    parameters.entry(name).or_insert(text);
                }
                at = next;
                continue;
            };
            summary_end = summary_end.min(at);
            at = match section {
                Section::Parameters { is_numpy: false } => google_parameters(&lines, body, &mut parameters),
                Section::Parameters { is_numpy: true } => numpy_parameters(&lines, body, &mut parameters),
                Section::Other => body,
            };
        }
        let summary = lines[..summary_end].join("\n").trim().to_owned();
        Self { whole: whole.clone(), summary, parameters }
    }
}

/// Returns the text before the sections of arguments, return value and exceptions, as smolagents does.
pub(crate) fn before_arguments(whole: &str) -> String {
    let is_end = |line: &&str| ["Args:", "Returns:", "Raises:"].iter().any(|title| line.trim().starts_with(title));
    let lines: Vec<&str> = whole
        .split('\n')
        .enumerate()
        .take_while(|(at, line)| *at == 0 || !is_end(line))
        .map(|(_, line)| line)
        .collect();
    lines.join("\n").trim().to_owned()
}

/// Returns the text without the section of arguments, as Strands does.
pub(crate) fn without_arguments(whole: &str) -> String {
    let mut is_in_arguments = false;
    let mut lines = Vec::new();
    for line in whole.split('\n') {
        match line.trim().split_once(':').map(|(title, _)| title.to_lowercase()).as_deref() {
            Some("args" | "arguments" | "parameters" | "param" | "params") => is_in_arguments = true,
            Some(
                "returns" | "return" | "yields" | "yield" | "raises" | "raise" | "except" | "exceptions" | "examples"
                | "example" | "note" | "notes" | "see also" | "seealso" | "references" | "ref",
            ) => is_in_arguments = false,
            _ => {}
        }
        if !is_in_arguments {
            lines.push(line);
        }
    }
    lines.join("\n").trim().to_owned()
}

enum Section {
    Parameters { is_numpy: bool },
    Other,
}

/// Returns the section that begins at a line, and where its body begins.
fn section(lines: &[&str], at: usize) -> Option<(Section, usize)> {
    let line = lines[at].trim_end();
    if line.starts_with(' ') {
        return None;
    }
    let underline = lines.get(at + 1).map(|line| line.trim());
    let is_numpy = underline.is_some_and(|line| line.len() >= 3 && line.bytes().all(|byte| byte == b'-'));
    let title = if is_numpy { line } else { line.strip_suffix(':')? };
    let title = title.to_lowercase();
    let section = if PARAMETER_SECTIONS.contains(&title.as_str()) {
        Section::Parameters { is_numpy }
    } else if OTHER_SECTIONS.contains(&title.as_str()) {
        Section::Other
    } else {
        return None;
    };
    Some((section, if is_numpy { at + 2 } else { at + 1 }))
}

/// Reads `name (type): text` with more indented lines below. Returns where the section ends.
fn google_parameters(lines: &[&str], start: usize, parameters: &mut BTreeMap<String, String>) -> usize {
    let mut at = start;
    while lines.get(at).is_some_and(|line| line.trim().is_empty()) {
        at += 1;
    }
    let margin = lines.get(at).map_or(0, |line| indentation(line));
    while let Some(line) = lines.get(at) {
        if line.trim().is_empty() {
            at += 1;
            continue;
        }
        // Some docstrings do not indent the entries.
        if (indentation(line) < margin) || (margin == 0 && section(lines, at).is_some()) {
            break;
        }
        let entry = line.trim().trim_start_matches("- ").trim_start_matches("* ");
        let Some((name, text)) = entry.split_once(':') else {
            if margin == 0 {
                break;
            }
            at += 1;
            continue;
        };
        let name = name.split(['(', ' ']).next().unwrap_or_default().trim_matches(['`', '*', '"', '\'']);
        let is_name = !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
        if !is_name {
            if margin == 0 {
                break;
            }
            at += 1;
            continue;
        }
        let (text, next) = join_continuation(lines, at + 1, text.trim(), margin + 1, |_| false);
        parameters.entry(name.to_owned()).or_insert(text);
        at = next;
    }
    at
}

/// Reads `name : type` with the text in indented lines below.
fn numpy_parameters(lines: &[&str], start: usize, parameters: &mut BTreeMap<String, String>) -> usize {
    let mut at = start;
    while let Some(line) = lines.get(at) {
        if line.trim().is_empty() {
            at += 1;
            continue;
        }
        if line.starts_with(' ') || section(lines, at).is_some() {
            break;
        }
        let name = line.split([':', ',', ' ']).next().unwrap_or_default().trim().to_owned();
        let (text, next) = join_continuation(lines, at + 1, "", 1, |_| false);
        parameters.entry(name).or_insert(text);
        at = next;
    }
    at
}

/// Joins a string with the following lines that have at least this indentation.
fn join_continuation(
    lines: &[&str],
    start: usize,
    text: &str,
    margin: usize,
    ends: impl Fn(&str) -> bool,
) -> (String, usize) {
    let mut at = start;
    let mut text = text.to_owned();
    while let Some(line) = lines.get(at) {
        let is_inside = indentation(line) >= margin && !line.trim().is_empty() && !ends(line);
        if !is_inside {
            break;
        }
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(line.trim());
        at += 1;
    }
    (text, at)
}

/// Reads `:param name: text` and `:param type name: text`; other fields have no name.
pub(super) fn field(line: &str) -> Option<(Option<String>, &str)> {
    let rest = line.trim_start().strip_prefix([':', '@'])?;
    let (head, text) = rest.split_once(':')?;
    let mut words = head.split_whitespace();
    match words.next()? {
        "param" | "parameter" | "arg" | "argument" | "key" | "keyword" => {
            let name = words.next_back()?.trim_start_matches('*');
            Some((Some(name.to_owned()), text.trim()))
        }
        "type" | "return" | "returns" | "rtype" | "raises" | "raise" | "yield" | "yields" => Some((None, text.trim())),
        _ => None,
    }
}

pub(super) fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::google(
        "Gets it.\n\nMore.\n\nArgs:\n    city (str): The city,\n        anywhere.\n    days: How many\n\nReturns:\n    text"
    )]
    #[case::numpy(
        "Gets it.\n\nMore.\n\nParameters\n----------\ncity : str\n    The city,\n    anywhere.\ndays : int\n    How many\n\nReturns\n-------\nstr"
    )]
    #[case::rest(
        "Gets it.\n\nMore.\n\n:param str city: The city,\n    anywhere.\n:param days: How many\n:return: text"
    )]
    fn reads_sections(#[case] text: &str) {
        let read = Docstring::read(text);
        assert_eq!(read.summary, "Gets it.\n\nMore.");
        let expected = [("city", "The city, anywhere."), ("days", "How many")];
        assert_eq!(read.parameters, expected.map(|(name, text)| (name.to_owned(), text.to_owned())).into());
    }

    #[test]
    fn keeps_docstrings_without_sections() {
        let read = Docstring::read("Gets it.\n\nUse when: the user asks.\nNote that args are optional.");
        assert_eq!(read.summary, read.whole);
        assert!(read.parameters.is_empty());
    }

    #[test]
    fn omits_arguments() {
        let whole = "Gets it.\n\nArgs:\n    x: y\n\nReturns:\n    z\n\nMore.";
        assert_eq!(before_arguments(whole), "Gets it.");
        assert_eq!(without_arguments(whole), "Gets it.\n\nReturns:\n    z\n\nMore.");
    }
}
