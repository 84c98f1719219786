//! Whether cases can be drafted from a tool's description.

use karat_core::registry::{Registry, Tool, ToolField};
use karat_tools::contract::{
    ContractFinding, DraftingGate, SilencedRule, Silencer, check_descriptions, corrected_description,
};
use karat_tools::overlap::OverlapMap;

use crate::context::Context;
use crate::error::Error;

/// A description that does not say when to use the tool: a person has to agree to draft from it.
#[derive(Debug, Clone)]
pub struct DescriptionDoubt {
    pub tool: String,
    pub finding: ContractFinding,
    /// A description to start from.
    pub corrected: String,
}

/// A description from which no reliable cases can be drafted.
#[derive(Debug, Clone)]
pub struct VagueDescription {
    pub tool: String,
    /// The place of the description in the registry.
    pub place: Option<String>,
    pub findings: Vec<ContractFinding>,
    /// A description to start from.
    pub corrected: String,
}

pub(super) enum DescriptionVerdict {
    Clear,
    Doubtful(DescriptionDoubt),
    Vague(VagueDescription),
}

/// Checks the description against the contract; findings that prevent nothing are warnings.
pub(super) fn check_description(
    tool: &Tool,
    registry: &Registry,
    overlaps: Option<&OverlapMap>,
    context: &Context<'_>,
) -> Result<DescriptionVerdict, Error> {
    if let Some(unknown) = tool.unknown(ToolField::Description) {
        return Err(Error::invalid(format!("the description of '{}' is not known: {}", tool.name, unknown.why))
            .hint(format!("{}: cases are drafted from a description that can be read", unknown.place)));
    }
    let mut silencer = Silencer::new(&context.settings.silence.silence);
    let is_about_tool = |finding: &ContractFinding| {
        finding.tool == tool.name || finding.rule.is_mutual() && finding.also.contains(&tool.name)
    };
    let mut findings = check_descriptions(registry, overlaps);
    findings.retain(is_about_tool);
    // A person has looked at what is silenced.
    findings.retain(|finding| !silencer.takes([tool.name.as_str()], SilencedRule::Contract(finding.rule)));
    let gate = |finding: &ContractFinding| finding.drafting_gate(registry);
    for finding in findings.iter().filter(|finding| gate(finding) == DraftingGate::Warn) {
        context.notices.warn(&format!("{}: {} ({})", tool.name, finding.message, finding.rule.name()));
    }
    findings.retain(|finding| gate(finding) != DraftingGate::Warn);
    if findings.iter().any(|finding| gate(finding) == DraftingGate::Refuse) {
        let place = tool.description_place.as_ref().or(tool.place.as_ref()).map(ToString::to_string);
        let corrected = corrected_description(tool, &findings.iter().collect::<Vec<_>>(), registry);
        return Ok(DescriptionVerdict::Vague(VagueDescription { tool: tool.name.clone(), place, findings, corrected }));
    }
    Ok(match findings.into_iter().next() {
        Some(finding) => {
            let corrected = corrected_description(tool, &[&finding], registry);
            DescriptionVerdict::Doubtful(DescriptionDoubt { tool: tool.name.clone(), finding, corrected })
        }
        None => DescriptionVerdict::Clear,
    })
}
