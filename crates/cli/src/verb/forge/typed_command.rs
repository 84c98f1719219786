//! What a person types when a batch is shown.

use karat_forge::session::Which;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TypedCommand {
    Approve(Which),
    Edit(usize),
    /// Draft anew, as these words say.
    Revise(Which, String),
    Drop(Vec<usize>),
    Regenerate(Which),
    /// Write what is approved so far.
    Write,
    Next,
    Back,
    Quit,
    Help,
    /// Show the batch again.
    Show,
}

/// The most cases that a range may name; a batch has far fewer.
const MAX_RANGE: usize = 100;

/// Reads a line, or says in a lower-case fragment what is wrong with it.
pub(super) fn parse_command(line: &str) -> Result<TypedCommand, String> {
    let line = line.trim();
    let word_end = line.find(|letter: char| !letter.is_alphabetic()).unwrap_or(line.len());
    let (word, rest) = match line.strip_prefix('?') {
        Some(rest) => ("?", rest),
        None => line.split_at(word_end),
    };
    let rest = rest.trim();
    let alone = |command: TypedCommand| match rest {
        "" => Ok(command),
        _ => Err(format!("'{word}' stands alone")),
    };
    match word.to_lowercase().as_str() {
        "a" | "approve" => Ok(TypedCommand::Approve(which(rest)?)),
        "d" | "drop" => match which(rest)? {
            Which::Some(numbers) => Ok(TypedCommand::Drop(numbers)),
            Which::All => Err("which cases are to be dropped? For example: d 2 4".to_owned()),
        },
        "e" | "edit" => match which(rest)? {
            Which::Some(numbers) if numbers.len() == 1 => Ok(TypedCommand::Edit(numbers[0])),
            _ => Err("which case is to be edited? For example: e 2".to_owned()),
        },
        "g" | "regenerate" => Ok(TypedCommand::Regenerate(which(rest)?)),
        "r" | "revise" => {
            let (which, words) = numbers_and_words(rest)?;
            if words.is_empty() {
                return Err("what should be different? For example: r 2 ask for two cities".to_owned());
            }
            Ok(TypedCommand::Revise(which, words.to_owned()))
        }
        "w" | "write" => alone(TypedCommand::Write),
        "n" | "next" => alone(TypedCommand::Next),
        "b" | "back" => alone(TypedCommand::Back),
        "q" | "quit" => alone(TypedCommand::Quit),
        "s" | "show" => alone(TypedCommand::Show),
        "?" | "h" | "help" => alone(TypedCommand::Help),
        "" if rest.is_empty() => Err("type ? for the list of commands".to_owned()),
        _ => Err(format!("'{line}' is not a command; type ? for the list")),
    }
}

fn which(text: &str) -> Result<Which, String> {
    match numbers_and_words(text)? {
        (_, words) if !words.is_empty() && words != "all" => Err(format!("'{words}' is not the number of a case")),
        (which, _) => Ok(which),
    }
}

/// Takes the numbers at the beginning: `1 3`, `1, 3`, `2-4`.
fn numbers_and_words(text: &str) -> Result<(Which, &str), String> {
    let mut numbers = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|letter: char| letter == ',' || letter.is_whitespace());
        let end = rest.find(|letter: char| letter == ',' || letter.is_whitespace()).unwrap_or(rest.len());
        let Some(found) = range(rest[..end].trim_end_matches(':')) else { break };
        for number in found? {
            if !numbers.contains(&number) {
                numbers.push(number);
            }
        }
        rest = &rest[end..];
    }
    let which = if numbers.is_empty() { Which::All } else { Which::Some(numbers) };
    Ok((which, rest.trim()))
}

fn range(word: &str) -> Option<Result<std::ops::RangeInclusive<usize>, String>> {
    if let Ok(number) = word.parse::<usize>() {
        return Some(Ok(number..=number));
    }
    let (first, last) = word.split_once('-')?;
    let (first, last) = (first.parse::<usize>().ok()?, last.parse::<usize>().ok()?);
    if first > last || last - first > MAX_RANGE {
        return Some(Err(format!("'{word}' is not a range of cases")));
    }
    Some(Ok(first..=last))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn some(numbers: &[usize]) -> Which {
        Which::Some(numbers.to_vec())
    }

    #[rstest]
    #[case("a", TypedCommand::Approve(Which::All))]
    #[case(" A all ", TypedCommand::Approve(Which::All))]
    #[case("a 1 3", TypedCommand::Approve(some(&[1, 3])))]
    #[case("a1,3", TypedCommand::Approve(some(&[1, 3])))]
    #[case("approve 2-4, 3", TypedCommand::Approve(some(&[2, 3, 4])))]
    #[case("e 2", TypedCommand::Edit(2))]
    #[case("d 5", TypedCommand::Drop(vec![5]))]
    #[case("g", TypedCommand::Regenerate(Which::All))]
    #[case("g 2", TypedCommand::Regenerate(some(&[2])))]
    #[case("r shorter, please", TypedCommand::Revise(Which::All, "shorter, please".to_owned()))]
    #[case("r 2 3: ask for 4 cities", TypedCommand::Revise(some(&[2, 3]), "ask for 4 cities".to_owned()))]
    #[case("n", TypedCommand::Next)]
    #[case("back", TypedCommand::Back)]
    #[case("q", TypedCommand::Quit)]
    #[case("?", TypedCommand::Help)]
    #[case("s", TypedCommand::Show)]
    fn commands_are_read(#[case] line: &str, #[case] expected: TypedCommand) {
        assert_eq!(parse_command(line), Ok(expected));
    }

    #[rstest]
    #[case("", "type ? for the list of commands")]
    #[case("x 1", "'x 1' is not a command; type ? for the list")]
    #[case("1", "'1' is not a command; type ? for the list")]
    #[case("a b", "'b' is not the number of a case")]
    #[case("a -1", "'-1' is not the number of a case")]
    #[case("a 1-99999999999", "'1-99999999999' is not a range of cases")]
    #[case("a 4-2", "'4-2' is not a range of cases")]
    #[case("d", "which cases are to be dropped? For example: d 2 4")]
    #[case("e 1 2", "which case is to be edited? For example: e 2")]
    #[case("r 2", "what should be different? For example: r 2 ask for two cities")]
    #[case("q now", "'q' stands alone")]
    fn what_is_no_command_is_told(#[case] line: &str, #[case] expected: &str) {
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
