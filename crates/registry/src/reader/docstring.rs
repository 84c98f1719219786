//! Docstrings: their sections, and which part of them each library gives to a model.

use std::collections::BTreeMap;

use super::text::{clean_doc, is_listed};

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

const OTHER_SECTIONS: [&str; 10] =
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

/// Returns the text before the first section, as griffe reads it: a heading of any words ends it where an indented block
/// stands below and a blank line above. `is_lenient` lets a section of parameters follow the text without a blank line.
pub(crate) fn first_text(whole: &str, is_lenient: bool) -> String {
    let lines: Vec<&str> = whole.split('\n').collect();
    let end = headings(&lines, is_lenient).next().map_or(lines.len(), |(at, _)| at);
    lines[..end].join("\n").trim().to_owned()
}

/// Headings that griffe knows no section for and `FastMCP` takes for one.
const ADMONITIONS: &str = "attention caution danger error hint important note notes raise references see-also tip todo warning \
    warnings";

/// Tells whether a docstring has a section that `FastMCP` knows; without one it takes all of the docstring.
pub(crate) fn has_section(whole: &str) -> bool {
    let lines: Vec<&str> = whole.split('\n').collect();
    headings(&lines, false).any(|(_, title)| {
        title.map(str::to_lowercase).is_none_or(|title| {
            let title = title.as_str();
            PARAMETER_SECTIONS.contains(&title)
                || OTHER_SECTIONS.contains(&title)
                || is_listed(&title.replace(' ', "-"), ADMONITIONS)
        })
    })
}

/// Returns where sections begin, outside of code, with their titles; fields and underlined titles have none.
fn headings<'l>(lines: &'l [&'l str], is_lenient: bool) -> impl Iterator<Item = (usize, Option<&'l str>)> {
    let is_blank = move |at: usize| lines.get(at).is_none_or(|line| line.trim().is_empty());
    let is_indented = move |at: usize| !is_blank(at) && lines[at].starts_with(' ');
    let mut is_code = false;
    (0..lines.len()).filter_map(move |at| {
        let line = lines[at].trim_end();
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        if is_code || line.is_empty() || line.starts_with(' ') {
            return None;
        }
        let underline = lines.get(at + 1).map_or("", |line| line.trim());
        if field(line).is_some() || underline.len() >= 3 && underline.bytes().all(|byte| byte == b'-') {
            return Some((at, None));
        }
        let (title, rest) = line.split_once(':')?;
        let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
        let is_title = title.starts_with(is_word)
            && title.chars().all(|letter| is_word(letter) || letter.is_whitespace() || letter == '-')
            && (rest.is_empty() || rest.starts_with(' '));
        let is_apart = at == 0 || is_blank(at - 1);
        let has_block = is_indented(at + 1) || (is_indented(at + 2) && !is_blank(at + 1));
        let is_allowed = is_lenient && rest.is_empty() && PARAMETER_SECTIONS.contains(&title.to_lowercase().as_str());
        (is_title && has_block && (is_apart || is_allowed)).then_some((at, Some(title)))
    })
}

/// Returns the text before the arguments, the result and the exceptions, wherever they stand: the rule of smolagents.
pub(crate) fn before_arguments(whole: &str) -> String {
    let is_end = |line: &&str| ["Args:", "Returns:", "Raises:"].iter().any(|title| line.trim().starts_with(title));
    let kept: Vec<&str> = whole
        .split('\n')
        .enumerate()
        .take_while(|(at, line)| *at == 0 || !is_end(line))
        .map(|(_, line)| line)
        .collect();
    kept.join("\n").trim().to_owned()
}

/// Returns all but the section of arguments: the rule of Strands.
pub(crate) fn without_arguments(whole: &str) -> String {
    let mut is_left_out = false;
    let mut kept = Vec::new();
    for line in whole.split('\n') {
        match line.trim().split_once(':').map(|(title, _)| title.to_lowercase()).as_deref() {
            Some("args" | "arguments" | "parameters" | "param" | "params") => is_left_out = true,
            Some(
                "returns" | "return" | "yields" | "yield" | "raises" | "raise" | "except" | "exceptions" | "examples"
                | "example" | "note" | "notes" | "see also" | "seealso" | "references" | "ref",
            ) => is_left_out = false,
            _ => {}
        }
        if !is_left_out {
            kept.push(line);
        }
    }
    kept.join("\n").trim().to_owned()
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

    #[rstest]
    #[case::section("Gets it.\n\nArgs:\n    x: y", "Gets it.", "Gets it.")]
    #[case::no_blank_line("Gets it.\nArgs:\n    x: y", "Gets it.\nArgs:\n    x: y", "Gets it.")]
    #[case::admonition("Gets it.\n\nUse when:\n    asked\n\nMore.", "Gets it.", "Gets it.")]
    #[case::prose(
        "Gets it.\n\nUse when: asked\nMore.",
        "Gets it.\n\nUse when: asked\nMore.",
        "Gets it.\n\nUse when: asked\nMore."
    )]
    #[case::code(
        "Gets it.\n```\n\nArgs:\n    x\n```",
        "Gets it.\n```\n\nArgs:\n    x\n```",
        "Gets it.\n```\n\nArgs:\n    x\n```"
    )]
    #[case::field("Gets it.\n\n:param x: y", "Gets it.", "Gets it.")]
    #[case::underlined("Gets it.\n\nParameters\n----------\nx : y", "Gets it.", "Gets it.")]
    fn finds_the_first_text(#[case] whole: &str, #[case] strict: &str, #[case] lenient: &str) {
        assert_eq!(first_text(whole, false), strict);
        assert_eq!(first_text(whole, true), lenient);
    }

    #[rstest]
    #[case("Gets it.\n\nReturns:\n    x", true)]
    #[case("Gets it.\n\nNote:\n    x", true)]
    #[case("Gets it.\n\nRules:\n    x", false)]
    fn knows_sections(#[case] whole: &str, #[case] expected: bool) {
        assert_eq!(has_section(whole), expected);
    }

    #[test]
    fn leaves_out_arguments() {
        let whole = "Gets it.\n\nArgs:\n    x: y\n\nReturns:\n    z\n\nMore.";
        assert_eq!(before_arguments(whole), "Gets it.");
        assert_eq!(without_arguments(whole), "Gets it.\n\nReturns:\n    z\n\nMore.");
    }
}
