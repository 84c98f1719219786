//! Flag values that map to types of other crates.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// The text of a flag value, its help if needed, and the value that it maps to.
pub(crate) type Choice<T> = (&'static str, Option<&'static str>, T);

/// Parses one of these choices.
pub(super) fn one_of<T: Clone + Send + Sync + 'static>(
    choices: &'static [Choice<T>],
) -> impl TypedValueParser<Value = T> {
    let words = choices.iter().map(|(word, help, _)| PossibleValue::new(*word).help(*help));
    PossibleValuesParser::new(words).try_map(|word| {
        let choice = choices.iter().find(|(name, ..)| *name == word);
        choice.map(|(_, _, value)| value.clone()).ok_or("unknown word")
    })
}
