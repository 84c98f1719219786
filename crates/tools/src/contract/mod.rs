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

use std::collections::BTreeSet;
use std::ops::Range;

use schemars::JsonSchema;
use serde::Serialize;

pub use silence::{RegistryRule, Silence, SilencedRule, Silencer};

use self::prose::Prose;
use crate::overlap::OverlapMap;
use karat_core::registry::{Registry, Tool, ToolField};

/// Stands for the first sentence of a description.
const WHAT_IT_DOES: &str = "<What it does>.";

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

/// What a finding means for the drafting of cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DraftingGate {
    /// Cases for the tool would not be reliable.
    Refuse,
    /// A person has to agree.
    Ask,
    /// Drafting goes on.
    Warn,
}

impl ContractFinding {
    /// Returns whether cases can be drafted for the tool as it is described.
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
            ContractRule::DescriptionTrigger => DraftingGate::Ask,
            ContractRule::DescriptionReturns | ContractRule::DescriptionLength | ContractRule::DescriptionDuplicate => {
                DraftingGate::Warn
            }
        }
    }
}

/// Returns a description to start from: what the tool's own says, with a sentence for each part that findings miss.
pub fn corrected_description(tool: &Tool, findings: &[&ContractFinding], registry: &Registry) -> String {
    let has = |rule: ContractRule| findings.iter().any(|finding| finding.rule == rule);
    let prose = Prose::of(tool.description.as_deref().unwrap_or_default());
    let hollow = trigger::hollow_condition(&prose, tool);
    let mut sentences: Vec<String> = Vec::new();
    for (place, words) in prose.sentences.iter().enumerate() {
        let span = prose.span(words.start, words.end - 1);
        let text = prose.text[span.clone()].trim_end_matches(['.', '!', '?']);
        let is_hollow = hollow.as_ref().is_some_and(|hollow| span.start <= hollow.start && hollow.end <= span.end);
        let is_vague = has(ContractRule::DescriptionVague) && hollow.is_none();
        match place {
            _ if is_hollow => {}
            0 if has(ContractRule::DescriptionAction) && trigger::is_condition(&prose, tool, words) => {
                sentences.extend([WHAT_IT_DOES.to_owned(), format!("{text}.")]);
            }
            0 if has(ContractRule::DescriptionAction) => sentences.push(WHAT_IT_DOES.to_owned()),
            0 if is_vague => sentences.push(format!("{text} <which exactly, of whom, from where>.")),
            _ => sentences.push(format!("{text}.")),
        }
    }
    if sentences.is_empty() {
        sentences.push(WHAT_IT_DOES.to_owned());
    }
    let says_when =
        !has(ContractRule::DescriptionTrigger) && hollow.is_none() && !has(ContractRule::DescriptionMissing);
    if !says_when {
        sentences.push(trigger::suggested_sentence(tool));
    }
    let is_mixed_up =
        |rule| matches!(rule, ContractRule::DescriptionDisambiguation | ContractRule::DescriptionDuplicate);
    let named = findings.iter().filter(|finding| is_mixed_up(finding.rule));
    let named = named.flat_map(|finding| finding.also.iter().chain([&finding.tool])).filter(|name| **name != tool.name);
    let others: BTreeSet<&String> = named.collect();
    let own = trigger::condition(&prose, tool);
    for other in others.into_iter().filter_map(|name| registry.tool(name)) {
        let theirs = other.description.as_deref().map(Prose::of);
        let is_same = theirs.is_some_and(|theirs| trigger::condition(&theirs, other) == own);
        sentences.push(if is_same {
            format!("For …, use {} instead.", other.name)
        } else {
            disambiguation::sentence(other)
        });
    }
    sentences.join(" ")
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

fn check(tool: &Tool, registry: &Registry, overlaps: Option<&OverlapMap>) -> Vec<ContractFinding> {
    let description = tool.description.as_deref().unwrap_or_default();
    if !description.contains(char::is_alphanumeric) {
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
