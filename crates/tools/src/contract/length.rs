//! A description is neither a remark nor a manual: a model reads all of them at every turn.

use super::prose::Prose;
use super::{ContractFinding, ContractRule, Words};
use karat_core::registry::Tool;

/// What several providers take at most; more is refused or cut.
pub(super) const LIMIT_OF_PROVIDERS: usize = 1024;
/// More than this hides what tells the tool from others.
pub(super) const LONGEST: usize = 600;
/// Less than this cannot hold an action and a trigger.
pub(super) const SHORTEST: usize = 20;

pub(super) fn check(tool: &Tool, prose: &Prose<'_>, is_vague: bool) -> Option<ContractFinding> {
    let length = prose.text.trim().chars().count();
    let (message, suggestion) = if length > LIMIT_OF_PROVIDERS {
        let message = format!(
            "the description has {length} characters; several providers refuse or cut what is over {LIMIT_OF_PROVIDERS}"
        );
        (message, "move what is about arguments into the schema's own descriptions")
    } else if length > LONGEST {
        let message = format!("the description has {length} characters, which is long (over {LONGEST})");
        (message, "keep what it does, when to use it and when not; move the rest into the schema's own descriptions")
    } else if length < SHORTEST && !is_vague && prose.is_english() {
        let message = format!("the description has {length} characters, which is short (under {SHORTEST})");
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
    fn lengths(#[case] letter: &str, #[case] count: usize, #[case] is_vague: bool, #[case] found: bool) {
        let text = letter.repeat(count);
        let finding = check(&Tool::default(), &Prose::of(&text), is_vague);
        assert_eq!(finding.is_some(), found);
        assert_eq!(finding.is_some_and(|finding| finding.message.contains("1024")), count > LIMIT_OF_PROVIDERS);
    }
}
