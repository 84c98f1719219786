//! Parses docstrings like the package griffe, which `FastMCP`, OpenAI Agents and Pydantic AI use.

use super::docstring::{OTHER_SECTIONS, PARAMETER_SECTIONS, field, indentation};
use super::text::{clean_doc, dedent, is_listed};

/// Returns the text before the first section. As in griffe, any heading between a blank line and an indented block
/// starts a section. With `is_lenient`, a section of parameters needs no blank line before it.
pub(crate) fn summary(whole: &str, is_lenient: bool) -> String {
    let lines: Vec<&str> = whole.split('\n').collect();
    let end = headings(&lines, is_lenient).next().map_or(lines.len(), |(at, _)| at);
    lines[..end].join("\n").trim().to_owned()
}

/// Headings that are sections for `FastMCP` but not for griffe.
const ADMONITIONS: &str = "attention caution danger error hint important note notes raise references see-also tip todo warning \
    warnings";

/// Whether a docstring has a section that `FastMCP` recognises; otherwise it uses the whole docstring.
pub(crate) fn has_section(whole: &str) -> bool {
    let lines: Vec<&str> = whole.split('\n').collect();
    headings(&lines, false).any(|(_, title)| {
        title.map(str::to_lowercase).is_none_or(|title| {
            let title = title.as_str();
            PARAMETER_SECTIONS.contains(&title)
                || OTHER_SECTIONS.contains(&title)
                || is_listed_title(title, ADMONITIONS)
        })
    })
}

/// Returns the lines on which sections begin, outside of code, with their titles; `None` for fields and underlined
/// titles.
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
        let follows_blank_line = at == 0 || is_blank(at - 1);
        let has_block = is_indented(at + 1) || (is_indented(at + 2) && !is_blank(at + 1));
        let is_allowed = is_lenient && rest.is_empty() && PARAMETER_SECTIONS.contains(&title.to_lowercase().as_str());
        (is_title && has_block && (follows_blank_line || is_allowed)).then_some((at, Some(title)))
    })
}

/// The parts of a docstring that Pydantic AI uses.
#[derive(Default)]
struct Parts {
    /// The first text outside of all sections.
    text: String,
    result: Option<ReturnSection>,
}

/// The section about the return value.
struct ReturnSection {
    type_name: Option<String>,
    description: String,
}

/// Returns the description that Pydantic AI derives from a docstring: the first text and the return value.
pub(crate) fn description_with_returns(docstring: &str) -> String {
    let whole = clean_doc(docstring);
    let lines: Vec<&str> = whole.split('\n').collect();
    let Parts { text, result } = match Style::detect(docstring) {
        Style::Google => google(&lines),
        Style::Numpy => numpy(&lines),
        Style::Sphinx => sphinx(&lines),
    };
    let Some(ReturnSection { type_name, description }) = result else { return text };
    let type_name = type_name.map_or_else(String::new, |name| format!("<type>{name}</type>\n"));
    let returns = format!("<returns>\n{type_name}<description>{description}</description>\n</returns>");
    if text.is_empty() { returns } else { format!("<summary>{text}</summary>\n{returns}") }
}

enum Style {
    Google,
    Numpy,
    Sphinx,
}

/// Fields of Sphinx docstrings.
const SPHINX_FIELDS: &str = "param parameter arg argument key keyword type var ivar cvar vartype returns return rtype raises raise \
    except exception";

/// Section titles of Google docstrings.
const GOOGLE_TITLES: &str = "args arguments params parameters keyword-args keyword-arguments other-args other-arguments \
    other-params other-parameters raises exceptions returns yields receives examples attributes functions methods \
    classes modules warns warnings";

/// Section titles of numpy docstrings.
const NUMPY_TITLES: &str = "deprecated parameters other-parameters returns yields receives raises warns attributes functions \
    methods classes modules";

impl Style {
    /// Detects the style of a docstring from its lines after the first.
    fn detect(docstring: &str) -> Self {
        let lines: Vec<&str> = docstring.split('\n').map(|line| line.trim_start_matches([' ', '\t'])).collect();
        let is_field = |line: &str| {
            let head = line.strip_prefix(':').and_then(|line| line.split_once(':')).map(|(head, _)| head);
            head.and_then(|head| head.split_whitespace().next())
                .is_some_and(|word| is_listed_title(word, SPHINX_FIELDS))
        };
        // Like griffe, ignore a field in the last line.
        let inner = lines.get(1..lines.len().saturating_sub(1)).unwrap_or_default();
        if inner.iter().any(|line| is_field(line)) {
            return Self::Sphinx;
        }
        let is_google =
            |line: &&str| line.split_once(':').is_some_and(|(title, _)| is_listed_title(title, GOOGLE_TITLES));
        let is_numpy = |pair: &[&str]| is_listed_title(pair[0], NUMPY_TITLES) && is_underline(pair[1]);
        let is_numpy = !inner.iter().any(is_google) && inner.windows(2).any(is_numpy);
        if is_numpy { Self::Numpy } else { Self::Google }
    }
}

/// Whether a title is in a list, which has hyphens for spaces.
fn is_listed_title(title: &str, list: &str) -> bool {
    is_listed(&title.to_lowercase().replace(' ', "-"), list)
}

fn google(lines: &[&str]) -> Parts {
    let mut parts = Parts::default();
    let (mut text, mut has_text_ended) = (Vec::new(), false);
    let headings: Vec<(usize, &str)> = headings(lines, false).filter_map(|(at, title)| Some((at, title?))).collect();
    let mut at = 0;
    while at < lines.len() {
        if let Some((_, title)) = headings.iter().find(|(heading, _)| *heading == at) {
            let margin = lines.get(at + 1).map_or(0, |line| indentation(line));
            let is_inside = |line: &&&str| margin > 0 && (line.trim().is_empty() || indentation(line) >= margin);
            let block: Vec<&str> =
                lines[at + 1..].iter().take_while(is_inside).map(|line| line.get(margin..).unwrap_or("")).collect();
            if is_listed_title(title, GOOGLE_TITLES) || !block.is_empty() {
                has_text_ended |= text.iter().any(|line: &&str| !line.is_empty());
                if title.eq_ignore_ascii_case("returns") && parts.result.is_none() {
                    parts.result = google_result(&block);
                }
                at += 1 + block.len();
                continue;
            }
        }
        if !has_text_ended {
            text.push(lines[at]);
        }
        at += 1;
    }
    text.join("\n").trim_end_matches('\n').clone_into(&mut parts.text);
    parts
}

/// Reads `type: text` with more text below.
fn google_result(block: &[&str]) -> Option<ReturnSection> {
    let (first, rest) = block.split_first()?;
    let (type_name, text) = first.split_once(':').unwrap_or(("", first));
    let type_name = type_name.trim_start_matches('(').trim_end_matches(')');
    let description = [&[text.trim_start()], rest].concat().join("\n");
    Some(ReturnSection {
        type_name: (!type_name.is_empty()).then(|| type_name.to_owned()),
        description: description.trim_end_matches('\n').to_owned(),
    })
}

fn numpy(lines: &[&str]) -> Parts {
    let mut titles = (0..lines.len()).filter(|at| {
        !lines[*at].trim().is_empty()
            && !is_underline(lines[*at])
            && lines.get(at + 1).is_some_and(|next| is_underline(next))
    });
    let end = titles.clone().next().unwrap_or(lines.len());
    let result = titles.find(|at| lines[*at].eq_ignore_ascii_case("returns"));
    Parts {
        text: lines[..end].join("\n").trim_end_matches('\n').to_owned(),
        result: result.and_then(|at| numpy_result(&lines[at + 2..])),
    }
}

/// Reads `name : type` or `type` with the text in indented lines below.
fn numpy_result(lines: &[&str]) -> Option<ReturnSection> {
    let start = lines.iter().position(|line| !line.trim().is_empty())?;
    let first = lines[start];
    let is_name = |text: &str| text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    let type_name = match first.split_once(':') {
        Some((name, type_name)) if is_name(name.trim()) => type_name.trim_start(),
        _ => first,
    };
    let is_below = |line: &&&str| line.is_empty() || line.starts_with(' ');
    let below: Vec<&str> = lines[start + 1..].iter().take_while(is_below).copied().collect();
    let type_name = (!type_name.is_empty()).then(|| type_name.to_owned());
    Some(ReturnSection { type_name, description: dedent(&below.join("\n")) })
}

/// Whether a line underlines a title.
fn is_underline(line: &str) -> bool {
    line.contains('-') && line.chars().all(|letter| letter == '-' || letter.is_whitespace())
}

fn sphinx(lines: &[&str]) -> Parts {
    let mut parts = Parts::default();
    let (mut text, mut description, mut type_name) = (Vec::new(), None, None);
    let mut at = 0;
    while at < lines.len() {
        let field = lines[at].strip_prefix(':').and_then(|line| line.split_once(':'));
        let word = field.and_then(|(head, _)| head.split_whitespace().next());
        let Some(word) = word.filter(|word| is_listed(word, SPHINX_FIELDS)) else {
            text.push(lines[at]);
            at += 1;
            continue;
        };
        // A field extends to the next one.
        let count = 1 + lines[at + 1..].iter().take_while(|line| !line.starts_with(':')).count();
        let whole = clean_doc(&lines[at..at + count].join("\n"));
        let value = whole.splitn(3, ':').nth(2).unwrap_or_default().trim().to_owned();
        match word {
            "return" | "returns" => description = Some(value),
            "rtype" => type_name = Some(value.replace(" or ", " | ")),
            _ => {}
        }
        at += count;
    }
    text.join("\n").trim_matches('\n').clone_into(&mut parts.text);
    parts.result = description.map(|description| ReturnSection { type_name, description });
    parts
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

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
    fn extracts_the_summary(#[case] whole: &str, #[case] strict: &str, #[case] lenient: &str) {
        assert_eq!(summary(whole, false), strict);
        assert_eq!(summary(whole, true), lenient);
    }

    #[rstest]
    #[case("Gets it.\n\nReturns:\n    x", true)]
    #[case("Gets it.\n\nNote:\n    x", true)]
    #[case("Gets it.\n\nRules:\n    x", false)]
    fn recognises_sections(#[case] whole: &str, #[case] expected: bool) {
        assert_eq!(has_section(whole), expected);
    }

    #[rstest]
    #[case::no_result("Gets it.\n\n    Args:\n        x: y\n    ", "Gets it.")]
    #[case::sentence("Returns it.", "Returns it.")]
    #[case::result(
        "Gets it.\n\n    Args:\n        x: y\n\n    Returns:\n        A text\n          of lines.\n\n    More.\n    ",
        "<summary>Gets it.</summary>\n<returns>\n<description>A text\n  of lines.</description>\n</returns>"
    )]
    #[case::documented_type(
        "Gets it.\n\n    Returns:\n        dict[str,int]: How many.\n    ",
        "<summary>Gets it.</summary>\n<returns>\n<type>dict[str,int]</type>\n<description>How many.</description>\n</returns>"
    )]
    #[case::words_before_a_colon(
        "Gets it.\n\n    Returns:\n        A list of: names\n    ",
        "<summary>Gets it.</summary>\n<returns>\n<type>A list of</type>\n<description>names</description>\n</returns>"
    )]
    #[case::no_text("\n    Returns:\n        It.\n    ", "<returns>\n<description>It.</description>\n</returns>")]
    #[case::text_below(
        "Returns:\n        It.\n\n    Gets it.\n    ",
        "<summary>Gets it.</summary>\n<returns>\n<description>It.</description>\n</returns>"
    )]
    #[case::no_blank_line("Gets it.\n    Returns:\n        It.\n    ", "Gets it.\nReturns:\n    It.")]
    #[case::sphinx(
        "Gets it.\n\n    :param x: y\n    :return: A text\n        of lines\n    :rtype: str or None\n    ",
        "<summary>Gets it.</summary>\n<returns>\n<type>str | None</type>\n<description>A text\nof lines</description>\n</returns>"
    )]
    #[case::field_in_the_last_line("Gets it.\n\n    :return: It.", "Gets it.\n\n:return: It.")]
    #[case::numpy(
        "Gets it.\n\n    Returns\n    -------\n    name : str\n        A text.\n    ",
        "<summary>Gets it.</summary>\n<returns>\n<type>str</type>\n<description>A text.</description>\n</returns>"
    )]
    fn describes_like_pydantic_ai(#[case] docstring: &str, #[case] expected: &str) {
        assert_eq!(description_with_returns(docstring), expected);
    }
}
