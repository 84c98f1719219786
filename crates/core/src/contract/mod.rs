//! The contract of a tool's description: `<What it does>. Use when <trigger>. <Disambiguation where overlaps exist>.`
//!
//! A model chooses a tool by its description, so a vague one makes every eval of the tool a lottery. The rules look at
//! words only: the same description is judged alike every time, and no model is asked. Where a rule is not sure, it
//! says nothing. What needs English words is not asked of a text that is plainly not English.

mod action;
mod disambiguation;
mod duplicate;
mod length;
mod prose;
mod silence;
mod trigger;
mod vague;

use std::ops::Range;

use schemars::JsonSchema;
use serde::Serialize;

pub use silence::{RegistryRule, Silence, SilencedRule, Silencer};

use self::prose::Prose;
use crate::overlap::OverlapMap;
use crate::registry::{Registry, Tool, ToolField};

/// The rules, by the names that a person sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ContractRule {
    DescriptionMissing,
    DescriptionAction,
    DescriptionReturns,
    DescriptionTrigger,
    DescriptionDisambiguation,
    DescriptionVague,
    DescriptionLength,
    DescriptionDuplicate,
}

impl ContractRule {
    pub const ALL: [ContractRule; 8] = [
        ContractRule::DescriptionMissing,
        ContractRule::DescriptionAction,
        ContractRule::DescriptionReturns,
        ContractRule::DescriptionTrigger,
        ContractRule::DescriptionDisambiguation,
        ContractRule::DescriptionVague,
        ContractRule::DescriptionLength,
        ContractRule::DescriptionDuplicate,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            ContractRule::DescriptionMissing => "description-missing",
            ContractRule::DescriptionAction => "description-action",
            ContractRule::DescriptionReturns => "description-returns",
            ContractRule::DescriptionTrigger => "description-trigger",
            ContractRule::DescriptionDisambiguation => "description-disambiguation",
            ContractRule::DescriptionVague => "description-vague",
            ContractRule::DescriptionLength => "description-length",
            ContractRule::DescriptionDuplicate => "description-duplicate",
        }
    }

    /// Tells whether a finding is about all its tools alike, not about one of them against the others.
    pub fn is_mutual(self) -> bool {
        self == ContractRule::DescriptionDuplicate
    }
}

/// A way in which a description does not keep the contract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContractFinding {
    pub rule: ContractRule,
    pub tool: String,
    /// The other tools that it is about.
    pub also: Vec<String>,
    /// The words that triggered it.
    pub words: Option<String>,
    /// Where these words are in the description, in bytes.
    pub span: Option<Range<usize>>,
    /// A lower-case fragment.
    pub message: String,
    /// What to write instead.
    pub suggestion: String,
}

/// Judges all descriptions, in the order of the registry. One that is not known is not judged.
pub fn check_descriptions(registry: &Registry, overlaps: Option<&OverlapMap>) -> Vec<ContractFinding> {
    let mut findings: Vec<(usize, ContractFinding)> = duplicate::check(registry);
    for (place, tool) in registry.tools().iter().enumerate() {
        if tool.unknown(ToolField::Description).is_some() {
            continue;
        }
        findings.extend(check(tool, registry, overlaps).into_iter().map(|finding| (place, finding)));
    }
    findings.sort_by_key(|(place, finding)| (*place, finding.rule));
    findings.into_iter().map(|(_, finding)| finding).collect()
}

/// Returns when a tool is to be used, as its description says it behind `Use when`: "the user asks about the weather".
pub fn condition(tool: &Tool) -> Option<&str> {
    trigger::condition(&Prose::of(tool.description.as_deref()?), tool)
}

/// Returns the first sentence of a tool's description: what it does.
pub fn action(tool: &Tool) -> Option<&str> {
    let prose = Prose::of(tool.description.as_deref()?);
    let sentence = prose.sentences.first()?;
    Some(&prose.text[prose.span(sentence.start, sentence.end - 1)])
}

fn check(tool: &Tool, registry: &Registry, overlaps: Option<&OverlapMap>) -> Vec<ContractFinding> {
    let description = tool.description.as_deref().unwrap_or_default();
    if description.trim().is_empty() {
        let message = "there is no description, so a model can only guess what the tool is for".to_owned();
        let suggestion = format!(
            "write: <What it does>. {} <Where another tool is meant: For …, use OTHER instead.>",
            trigger::suggested_sentence(tool)
        );
        return vec![Words::none().finding(ContractRule::DescriptionMissing, tool, message, suggestion)];
    }
    let prose = Prose::of(description);
    let mut findings = Vec::new();
    if prose.is_english() {
        findings.extend(action::check(tool, &prose));
        findings.extend(trigger::check(tool, &prose));
        if let Some(overlaps) = overlaps {
            findings.extend(disambiguation::check(tool, &prose, registry, overlaps));
        }
        findings.extend(vague::check(tool, &prose));
    }
    let is_vague = findings.iter().any(|finding| finding.rule == ContractRule::DescriptionVague);
    findings.extend(length::check(tool, &prose, is_vague));
    findings
}

/// The words that triggered a finding.
struct Words {
    text: Option<String>,
    span: Option<Range<usize>>,
}

impl Words {
    fn none() -> Self {
        Self { text: None, span: None }
    }

    /// Takes the words at a place of the description.
    fn at(prose: &Prose<'_>, span: Range<usize>) -> Self {
        Self { text: Some(prose.text[span.clone()].to_owned()), span: Some(span) }
    }

    fn finding(self, rule: ContractRule, tool: &Tool, message: String, suggestion: String) -> ContractFinding {
        ContractFinding {
            rule,
            tool: tool.name.clone(),
            also: Vec::new(),
            words: self.text,
            span: self.span,
            message,
            suggestion,
        }
    }
}

#[cfg(test)]
mod tests;
