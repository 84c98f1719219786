//! Commands typed at the prompt of a batch.

use karat_forge::session::CaseSelection;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TypedCommand {
    Approve(CaseSelection),
    Edit(usize),
    /// Draft again with these instructions.
    Revise(CaseSelection, String),
    Drop(Vec<usize>),
    Regenerate(CaseSelection),
    /// Write the approved cases.
    Write,
    Next,
    Back,
    Quit,
    Help,
    /// Show the batch again, or some of its cases in full.
    Show(CaseSelection),
}

/// Larger than any batch.
const MAX_RANGE: usize = 100;

/// Parses a line, or returns an error message.
pub(super) fn parse_command(line: &str) -> Result<TypedCommand, String> {
    let line = line.trim();
    let word_end = line.find(|letter: char| !letter.is_alphabetic()).unwrap_or(line.len());
    let (word, rest) = match line.strip_prefix('?') {
        Some(rest) => ("?", rest),
        None => line.split_at(word_end),
    };
    let rest = rest.trim();
    let without_arguments = |command: TypedCommand| match rest {
        "" => Ok(command),
        _ => Err(format!("'{word}' takes no arguments")),
    };
    match word.to_lowercase().as_str() {
        "a" | "approve" => Ok(TypedCommand::Approve(parse_selection(rest)?)),
        "d" | "drop" => match parse_selection(rest)? {
            CaseSelection::Some(numbers) => Ok(TypedCommand::Drop(numbers)),
            CaseSelection::All => Err("missing case numbers, for example: d 2 4".to_owned()),
        },
        "e" | "edit" => match parse_selection(rest)? {
            CaseSelection::Some(numbers) if numbers.len() == 1 => Ok(TypedCommand::Edit(numbers[0])),
            _ => Err("expected one case number, for example: e 2".to_owned()),
        },
        "g" | "regenerate" => Ok(TypedCommand::Regenerate(parse_selection(rest)?)),
        "r" | "revise" => {
            let (selection, words) = split_numbers(rest)?;
            if words.is_empty() {
                return Err("missing instructions, for example: r 2 ask for two cities".to_owned());
            }
            Ok(TypedCommand::Revise(selection, words.to_owned()))
        }
        "w" | "write" => without_arguments(TypedCommand::Write),
        "n" | "next" => without_arguments(TypedCommand::Next),
        "b" | "back" => without_arguments(TypedCommand::Back),
        "q" | "quit" => without_arguments(TypedCommand::Quit),
        "s" | "show" => Ok(TypedCommand::Show(parse_selection(rest)?)),
        "?" | "h" | "help" => without_arguments(TypedCommand::Help),
        "" if rest.is_empty() => Err("type ? for the list of commands".to_owned()),
        _ => Err(format!("unknown command '{line}'; type ? for the list")),
    }
}

fn parse_selection(text: &str) -> Result<CaseSelection, String> {
    match split_numbers(text)? {
        (_, words) if !words.is_empty() && words != "all" => Err(format!("'{words}' is not a case number")),
        (selection, _) => Ok(selection),
    }
}

/// Splits off leading numbers: `1 3`, `1, 3`, `2-4`.
fn split_numbers(text: &str) -> Result<(CaseSelection, &str), String> {
    let mut numbers = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|letter: char| letter == ',' || letter.is_whitespace());
        let end = rest.find(|letter: char| letter == ',' || letter.is_whitespace()).unwrap_or(rest.len());
        let Some(range) = parse_range(rest[..end].trim_end_matches(':')) else { break };
        for number in range? {
            if !numbers.contains(&number) {
                numbers.push(number);
            }
        }
        rest = &rest[end..];
    }
    let selection = if numbers.is_empty() { CaseSelection::All } else { CaseSelection::Some(numbers) };
    Ok((selection, rest.trim()))
}

fn parse_range(word: &str) -> Option<Result<std::ops::RangeInclusive<usize>, String>> {
    if let Ok(number) = word.parse::<usize>() {
        return Some(Ok(number..=number));
    }
    let (first, last) = word.split_once('-')?;
    let (first, last) = (first.parse::<usize>().ok()?, last.parse::<usize>().ok()?);
    if first > last || last - first > MAX_RANGE {
        return Some(Err(format!("'{word}' is not a valid range")));
    }
    Some(Ok(first..=last))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn some(numbers: &[usize]) -> CaseSelection {
        CaseSelection::Some(numbers.to_vec())
    }

    #[rstest]
    #[case("a", TypedCommand::Approve(CaseSelection::All))]
    #[case(" A all ", TypedCommand::Approve(CaseSelection::All))]
    #[case("a 1 3", TypedCommand::Approve(some(&[1, 3])))]
    #[case("a1,3", TypedCommand::Approve(some(&[1, 3])))]
    #[case("approve 2-4, 3", TypedCommand::Approve(some(&[2, 3, 4])))]
    #[case("e 2", TypedCommand::Edit(2))]
    #[case("d 5", TypedCommand::Drop(vec![5]))]
    #[case("g", TypedCommand::Regenerate(CaseSelection::All))]
    #[case("g 2", TypedCommand::Regenerate(some(&[2])))]
    #[case("r shorter, please", TypedCommand::Revise(CaseSelection::All, "shorter, please".to_owned()))]
    #[case("r 2 3: ask for 4 cities", TypedCommand::Revise(some(&[2, 3]), "ask for 4 cities".to_owned()))]
    #[case("n", TypedCommand::Next)]
    #[case("back", TypedCommand::Back)]
    #[case("q", TypedCommand::Quit)]
    #[case("?", TypedCommand::Help)]
    #[case("s", TypedCommand::Show(CaseSelection::All))]
    #[case("s 2", TypedCommand::Show(some(&[2])))]
    fn parses_commands(#[case] line: &str, #[case] expected: TypedCommand) {
        assert_eq!(parse_command(line), Ok(expected));
    }

    #[rstest]
    #[case("", "type ? for the list of commands")]
    #[case("x 1", "unknown command 'x 1'; type ? for the list")]
    #[case("1", "unknown command '1'; type ? for the list")]
    #[case("a b", "'b' is not a case number")]
    #[case("a -1", "'-1' is not a case number")]
    #[case("a 1-99999999999", "'1-99999999999' is not a valid range")]
    #[case("a 4-2", "'4-2' is not a valid range")]
    #[case("d", "missing case numbers, for example: d 2 4")]
    #[case("e 1 2", "expected one case number, for example: e 2")]
    #[case("r 2", "missing instructions, for example: r 2 ask for two cities")]
    #[case("q now", "'q' takes no arguments")]
    fn rejects_invalid_commands(#[case] line: &str, #[case] expected: &str) {
        assert_eq!(parse_command(line), Err(expected.to_owned()));
    }

    #[rstest]
    #[case("é 1")]
    #[case("a\u{301} 2")]
    #[case("r 2,,\u{a0}日本")]
    #[case("a 1-2-3")]
    #[case("\u{0}?")]
    fn does_not_panic_on_odd_characters(#[case] line: &str) {
        let _ = parse_command(line);
    }
}
