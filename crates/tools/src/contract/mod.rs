//! The contract of a tool's description: `<What it does>. Use when <trigger>. <Disambiguation where overlaps exist>.`
//!
//! A model chooses a tool by its description, so a vague one makes every eval of the tool unreliable. The rules look at
//! words only: they are deterministic and ask no model. In doubt, a rule reports nothing. Rules that need English words
//! skip descriptions that are clearly not English.

mod action;
mod disambiguation;
mod duplicate;
mod length;
mod prose;
mod silence;
mod trigger;
mod vague;

use std::collections::BTreeSet;
use std::ops::Range;

use schemars::JsonSchema;
use serde::Serialize;

pub use silence::{RegistryRule, Silence, SilencedRule, Silencer};

use self::prose::Prose;
use crate::overlap::OverlapMap;
use karat_cases::registry::{Registry, Tool, ToolField};

/// Placeholder for the first sentence of a description.
const ACTION_PLACEHOLDER: &str = "<What it does>.";

/// The rules of the contract.
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

    /// Whether a finding concerns all its tools equally, rather than one tool against others.
    pub fn is_mutual(self) -> bool {
        self == ContractRule::DescriptionDuplicate
    }
}

/// A violation of the contract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContractFinding {
    pub rule: ContractRule,
    pub tool: String,
    /// The other tools involved.
    pub also: Vec<String>,
    /// The words that triggered it.
    pub words: Option<String>,
    /// Byte range of these words in the description.
    pub span: Option<Range<usize>>,
    /// A lower-case fragment.
    pub message: String,
    /// How to fix it.
    pub suggestion: String,
}

/// Effect of a finding on drafting cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DraftingGate {
    /// Cases for the tool would be unreliable.
    Refuse,
    /// A person must confirm.
    Confirm,
    /// Drafting continues.
    Warn,
}

impl ContractFinding {
    /// Returns whether cases can be drafted with this finding.
    pub fn drafting_gate(&self, registry: &Registry) -> DraftingGate {
        let description = |name: &str| {
            let text = registry.tool(name).and_then(|tool| tool.description.as_deref()).unwrap_or_default();
            text.split_whitespace().map(str::to_lowercase).collect::<Vec<_>>()
        };
        match self.rule {
            ContractRule::DescriptionMissing
            | ContractRule::DescriptionAction
            | ContractRule::DescriptionDisambiguation
            | ContractRule::DescriptionVague => DraftingGate::Refuse,
            ContractRule::DescriptionDuplicate
                if self.also.iter().any(|other| description(other) == description(&self.tool)) =>
            {
                DraftingGate::Refuse
            }
            ContractRule::DescriptionTrigger => DraftingGate::Confirm,
            ContractRule::DescriptionReturns | ContractRule::DescriptionLength | ContractRule::DescriptionDuplicate => {
                DraftingGate::Warn
            }
        }
    }
}

/// Returns a draft of a better description: the tool's own, with a sentence for each missing part.
pub fn corrected_description(tool: &Tool, findings: &[&ContractFinding], registry: &Registry) -> String {
    let has = |rule: ContractRule| findings.iter().any(|finding| finding.rule == rule);
    let prose = Prose::of(tool.description.as_deref().unwrap_or_default());
    let empty_condition = trigger::empty_condition(&prose, tool);
    let mut sentences: Vec<String> = Vec::new();
    for (index, words) in prose.sentences.iter().enumerate() {
        let span = prose.span(words.start, words.end - 1);
        let text = prose.text[span.clone()].trim_end_matches(['.', '!', '?']);
        let is_empty = empty_condition
            .as_ref()
            .is_some_and(|condition| span.start <= condition.start && condition.end <= span.end);
        let is_vague = has(ContractRule::DescriptionVague) && empty_condition.is_none();
        match index {
            _ if is_empty => {}
            0 if has(ContractRule::DescriptionAction) && trigger::is_condition(&prose, tool, words) => {
                sentences.extend([ACTION_PLACEHOLDER.to_owned(), format!("{text}.")]);
            }
            0 if has(ContractRule::DescriptionAction) => sentences.push(ACTION_PLACEHOLDER.to_owned()),
            0 if is_vague => sentences.push(format!("{text} <which ones, whose, from where>.")),
            _ => sentences.push(format!("{text}.")),
        }
    }
    if sentences.is_empty() {
        sentences.push(ACTION_PLACEHOLDER.to_owned());
    }
    let has_trigger =
        !has(ContractRule::DescriptionTrigger) && empty_condition.is_none() && !has(ContractRule::DescriptionMissing);
    if !has_trigger {
        sentences.push(trigger::suggested_sentence(tool));
    }
    let is_confusable =
        |rule| matches!(rule, ContractRule::DescriptionDisambiguation | ContractRule::DescriptionDuplicate);
    let named = findings.iter().filter(|finding| is_confusable(finding.rule));
    let named = named.flat_map(|finding| finding.also.iter().chain([&finding.tool])).filter(|name| **name != tool.name);
    let others: BTreeSet<&String> = named.collect();
    let own = trigger::condition(&prose, tool);
    for other in others.into_iter().filter_map(|name| registry.tool(name)) {
        let other_prose = other.description.as_deref().map(Prose::of);
        let is_same = other_prose.is_some_and(|other_prose| trigger::condition(&other_prose, other) == own);
        sentences.push(if is_same {
            format!("For …, use {} instead.", other.name)
        } else {
            disambiguation::sentence(other)
        });
    }
    sentences.join(" ")
}

/// Checks all descriptions, in registry order. Unknown descriptions are skipped.
pub fn check_descriptions(registry: &Registry, overlaps: Option<&OverlapMap>) -> Vec<ContractFinding> {
    let mut findings: Vec<(usize, ContractFinding)> = duplicate::check(registry);
    for (index, tool) in registry.tools().iter().enumerate() {
        if tool.unknown(ToolField::Description).is_some() {
            continue;
        }
        findings.extend(check(tool, registry, overlaps).into_iter().map(|finding| (index, finding)));
    }
    findings.sort_by_key(|(index, finding)| (*index, finding.rule));
    findings.into_iter().map(|(_, finding)| finding).collect()
}

fn check(tool: &Tool, registry: &Registry, overlaps: Option<&OverlapMap>) -> Vec<ContractFinding> {
    let description = tool.description.as_deref().unwrap_or_default();
    if !description.contains(char::is_alphanumeric) {
        let message = "missing description: a model can only guess what the tool is for".to_owned();
        let suggestion = format!(
            "write: <What it does>. {} <If tools overlap: For …, use OTHER instead.>",
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

    /// Takes the words in a byte range of the description.
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
