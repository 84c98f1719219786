//! Checks the length of a description, since a model reads all descriptions at every turn.

use super::prose::Prose;
use super::{ContractFinding, ContractRule, Words};
use karat_cases::registry::Tool;

/// Limit of several providers; longer descriptions are rejected or truncated.
pub(super) const PROVIDER_LIMIT: usize = 1024;
/// Longer descriptions hide what distinguishes the tool.
pub(super) const MAX_LENGTH: usize = 600;
/// Shorter descriptions cannot contain an action and a trigger.
pub(super) const MIN_LENGTH: usize = 20;

pub(super) fn check(tool: &Tool, prose: &Prose<'_>, is_vague: bool) -> Option<ContractFinding> {
    let length = prose.text.trim().chars().count();
    let (message, suggestion) = if length > PROVIDER_LIMIT {
        let message = format!(
            "the description has {length} characters; several providers reject or truncate more than {PROVIDER_LIMIT}"
        );
        (message, "move details about arguments into the schema")
    } else if length > MAX_LENGTH {
        let message = format!("the description is long: {length} characters (recommended maximum: {MAX_LENGTH})");
        (message, "keep what it does, when to use it and when not; move the rest into the schema")
    } else if length < MIN_LENGTH && !is_vague && prose.is_english() {
        let message = format!("the description is short: {length} characters (recommended minimum: {MIN_LENGTH})");
        (message, "write: <What it does>. Use when <trigger>.")
    } else {
        return None;
    };
    Some(Words::none().finding(ContractRule::DescriptionLength, tool, message, suggestion.to_owned()))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::just_long_enough("a", 20, false, false)]
    #[case::short("a", 19, false, true)]
    #[case::short_and_vague("a", 19, true, false)]
    #[case::short_in_chinese("天", 5, false, false)]
    #[case::just_short_enough("a", 600, false, false)]
    #[case::characters_not_bytes("é", 600, false, false)]
    #[case::long("a", 601, false, true)]
    #[case::too_long("天", 1025, false, true)]
    fn checks_the_length(
        #[case] letter: &str,
        #[case] count: usize,
        #[case] is_vague: bool,
        #[case] has_finding: bool,
    ) {
        let text = letter.repeat(count);
        let finding = check(&Tool::default(), &Prose::of(&text), is_vague);
        assert_eq!(finding.is_some(), has_finding);
        assert_eq!(finding.is_some_and(|finding| finding.message.contains("1024")), count > PROVIDER_LIMIT);
    }
}
