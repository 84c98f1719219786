//! The rules for drafts, by the names that programs see.

use std::fmt;

use karat_core::lint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A rule that a draft can break. Where `karat check` has the same rule, it has the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DraftRule {
    /// No rule of this list: what the drafter itself has to say.
    Drafter,
    /// It is no case of an eval file: an unknown field, a wrong type, something missing.
    CaseShape,
    /// Its id is that of its place, and nobody else's.
    Id,
    /// Its difficulty is that of its place.
    Difficulty,
    /// The message says something, and asks for no tool by its technical name.
    Message,
    /// A draft cannot know which eval functions there are.
    EvalFunction,
    UnknownTool,
    /// A tool may be in a part of the registry that could not be read.
    ToolNotKnown,
    UnknownParam,
    /// The value of a parameter is one that the tool's schema allows.
    ParamValue,
    /// A case with stubs has one for each tool that it expects.
    MissingStub,
    EmptyStubs,
    IgnoredValue,
    /// A golden case calls one tool: ours.
    OneTool,
    LabeledFieldInGolden,
    FewProofValues,
    ProofEchoesPrompt,
    /// A trigger's case says the phrase.
    TriggerPhrase,
    /// A rephrasing says it in other words.
    Rephrasing,
    /// A case against leaks forbids raw field names.
    FieldLeak,
    /// A case of a tool that changes something expects to be asked first.
    AsksFirst,
    /// A straightforward case names its tools, ours among them, and as many as its place says.
    ToolCount,
    /// A straightforward case names the companions of its place.
    Companions,
    /// A straightforward case takes its tools in any order.
    AnyOrder,
    BothRoutingKinds,
    AmbiguousWithoutSets,
    /// The acceptable sets form the combination of their place.
    Combination,
    /// An ambiguous case names the tools that it is about.
    NamesTools,
    EdgeWithoutNegative,
    /// An edge case expects what fits to what is tried.
    EdgeFit,
    /// A token has a value in the seed manifest.
    UnresolvedToken,
    /// The value of a snapshot is known only in a run.
    SnapshotToken,
    /// Braces that look like a token, where none is replaced.
    StrayToken,
    TokenInPattern,
    /// Assertions hold no value that is another one tomorrow.
    VolatileValue,
    /// Groups of synonyms hold two to four different texts.
    SynonymGroup,
    EmptyValue,
    /// No answer can fulfil all of it.
    Contradiction,
    /// Every answer fulfils it.
    CannotFail,
    /// Nobody else asks the same.
    NearDuplicate,
    /// What is nobody else's business stands in no case without a person's word.
    PersonalData,
    /// Of a whole set: each declared overlap has an ambiguous case that names both tools.
    OverlapUncovered,
    /// Of a whole set: each declared cluster has a case with all its members.
    ClusterUncovered,
    /// Of a whole set: ambiguous cases are spread over the combinations.
    CombinationSpread,
    /// Of a whole set: edge cases are spread over what is tried.
    EdgeSpread,
    /// Of a whole set: straightforward cases take two, three and more tools.
    ToolCountSpread,
    /// Of a whole set: there are as many cases as the plan says.
    FewCases,
}

impl DraftRule {
    /// Returns the name as JSON has it.
    pub fn name(self) -> String {
        serde_json::to_value(self).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
    }

    /// Tells whether somebody who can write could do better, even where a person may leave it so.
    pub(crate) fn can_be_mended(self) -> bool {
        !matches!(
            self,
            Self::Drafter | Self::PersonalData | Self::ToolNotKnown | Self::SnapshotToken | Self::Companions
        )
    }

    /// Returns the rule that a lint of eval files is; none where drafts have a rule of their own that says more.
    pub(super) fn of_lint(rule: lint::Rule) -> Option<Self> {
        match rule {
            lint::Rule::BothRoutingKinds => Some(Self::BothRoutingKinds),
            lint::Rule::FewProofValues => Some(Self::FewProofValues),
            lint::Rule::ProofEchoesPrompt => Some(Self::ProofEchoesPrompt),
            lint::Rule::EmptyStubs => Some(Self::EmptyStubs),
            lint::Rule::LabeledFieldInGolden => Some(Self::LabeledFieldInGolden),
            lint::Rule::IdForm => Some(Self::Id),
            lint::Rule::UnknownTool => Some(Self::UnknownTool),
            lint::Rule::ToolNotKnown => Some(Self::ToolNotKnown),
            lint::Rule::IgnoredValue => Some(Self::IgnoredValue),
            lint::Rule::EmptyValue => Some(Self::EmptyValue),
            lint::Rule::TokenInPattern => Some(Self::TokenInPattern),
            lint::Rule::SnapshotInRegression
            | lint::Rule::EditedRegression
            | lint::Rule::RemovedRegression
            | lint::Rule::UnsealedRegression
            | lint::Rule::ArchivedRegression
            | lint::Rule::AmbiguousWithoutSets
            | lint::Rule::EdgeWithoutNegative
            | lint::Rule::SamePrompt
            | lint::Rule::LonelySynonym
            | lint::Rule::ResponseInRoutingOnly => None,
        }
    }
}

impl fmt::Display for DraftRule {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(&self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_that_check_has_too_has_its_name() {
        for rule in [lint::Rule::FewProofValues, lint::Rule::ProofEchoesPrompt, lint::Rule::UnknownTool] {
            assert_eq!(DraftRule::of_lint(rule).map(DraftRule::name).as_deref(), Some(rule.name()));
        }
        assert_eq!(DraftRule::NearDuplicate.to_string(), "near-duplicate");
    }
}
