//! White space and sections of docstrings.

use std::collections::BTreeMap;

/// Removes the indentation that all lines have in common, as `textwrap.dedent` does.
pub(crate) fn dedent(text: &str) -> String {
    let indent = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let margin = text.split('\n').filter(|line| !line.trim().is_empty()).map(indent).min().unwrap_or_default();
    let lines = text.split('\n').map(|line| if line.trim().is_empty() { "" } else { &line[margin..] });
    lines.collect::<Vec<_>>().join("\n")
}

/// Cleans a docstring as `inspect.cleandoc` does: no common indentation, no blank lines at either end.
pub(crate) fn clean_doc(text: &str) -> String {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let text = format!("{}\n{}", first.trim_start(), dedent(&rest.replace('\t', "        ")));
    let lines: Vec<&str> = text.split('\n').map(str::trim_end).collect();
    let start = lines.iter().take_while(|line| line.is_empty()).count();
    let end = lines.len() - lines.iter().rev().take_while(|line| line.is_empty()).count();
    lines.get(start..end).unwrap_or_default().join("\n")
}

/// A cleaned docstring, taken apart.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Docstring {
    /// All of it.
    pub(crate) whole: String,
    /// The part before the first section.
    pub(crate) summary: String,
    pub(crate) parameters: BTreeMap<String, String>,
}

const PARAMETER_SECTIONS: [&str; 7] =
    ["args", "arguments", "parameters", "params", "keyword args", "keyword arguments", "other parameters"];

const OTHER_SECTIONS: [&str; 17] = [
    "returns",
    "return",
    "raises",
    "yields",
    "yield",
    "example",
    "examples",
    "note",
    "notes",
    "warning",
    "warnings",
    "see also",
    "attributes",
    "references",
    "exceptions",
    "todo",
    "usage",
];

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
                let (text, next) = continued(&lines, at + 1, text, 1, |line| field(line).is_some());
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

enum Section {
    Parameters { is_numpy: bool },
    Other,
}

/// Tells whether a section begins at a line, and where its body does.
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

/// Reads `name (type): text` and the lines below that are indented further. Returns where the section ends.
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
        // Some people do not indent the entries.
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
        let (text, next) = continued(lines, at + 1, text.trim(), margin + 1, |_| false);
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
        let (text, next) = continued(lines, at + 1, "", 1, |_| false);
        parameters.entry(name).or_insert(text);
        at = next;
    }
    at
}

/// Joins a text with the lines below that are indented at least this far.
fn continued(lines: &[&str], start: usize, text: &str, margin: usize, ends: impl Fn(&str) -> bool) -> (String, usize) {
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
fn field(line: &str) -> Option<(Option<String>, &str)> {
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

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("", "")]
    #[case("one line", "one line")]
    #[case("  a\n    b\n  ", "a\nb")]
    #[case("a\n\n    b\n      c\n    ", "a\n\nb\n  c")]
    #[case("\n    a\n    b\n    ", "a\nb")]
    fn cleans_like_python(#[case] text: &str, #[case] cleaned: &str) {
        assert_eq!(clean_doc(text), cleaned);
    }

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
    fn leaves_a_docstring_without_sections_whole() {
        let read = Docstring::read("Gets it.\n\nUse when: the user asks.\nNote that args are optional.");
        assert_eq!(read.summary, read.whole);
        assert!(read.parameters.is_empty());
    }
}
