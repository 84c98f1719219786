//! Checks that cases can be drafted from a tool's description.

use karat_cases::registry::{Registry, Tool, ToolField};
use karat_tools::contract::{
    ContractFinding, DraftingGate, SilencedRule, Silencer, check_descriptions, corrected_description,
};
use karat_tools::overlap::OverlapMap;

use crate::context::Context;
use crate::error::Error;

/// A description that does not say when to use the tool: a person has to confirm drafting from it.
#[derive(Debug, Clone)]
pub struct DescriptionWarning {
    pub tool: String,
    pub finding: ContractFinding,
    /// A description to start from.
    pub corrected: String,
}

/// A description from which no reliable cases can be drafted.
#[derive(Debug, Clone)]
pub struct VagueDescription {
    pub tool: String,
    /// The location of the description in the registry.
    pub location: Option<String>,
    pub findings: Vec<ContractFinding>,
    /// A description to start from.
    pub corrected: String,
}

pub(super) enum DescriptionVerdict {
    Clear,
    Doubtful(DescriptionWarning),
    Vague(VagueDescription),
}

/// Checks the description against the contract. Emits findings that do not block drafting as warnings.
pub(super) fn check_description(
    tool: &Tool,
    registry: &Registry,
    overlaps: Option<&OverlapMap>,
    context: &Context<'_>,
) -> Result<DescriptionVerdict, Error> {
    if let Some(unknown) = tool.unknown(ToolField::Description) {
        return Err(Error::invalid(format!("cannot read the description of '{}': {}", tool.name, unknown.reason))
            .hint(format!("{}: cases are drafted from the description", unknown.location)));
    }
    let mut silencer = Silencer::new(&context.settings.silence.silence);
    let is_about_tool = |finding: &ContractFinding| {
        finding.tool == tool.name || finding.rule.is_mutual() && finding.also.contains(&tool.name)
    };
    let mut findings = check_descriptions(registry, overlaps);
    findings.retain(is_about_tool);
    // Silenced findings were reviewed by a person.
    findings.retain(|finding| !silencer.silences([tool.name.as_str()], SilencedRule::Contract(finding.rule)));
    let gate = |finding: &ContractFinding| finding.drafting_gate(registry);
    for finding in findings.iter().filter(|finding| gate(finding) == DraftingGate::Warn) {
        context.notices.warn(&format!("{}: {} ({})", tool.name, finding.message, finding.rule.name()));
    }
    findings.retain(|finding| gate(finding) != DraftingGate::Warn);
    if findings.iter().any(|finding| gate(finding) == DraftingGate::Refuse) {
        let location = tool.description_location.as_ref().or(tool.location.as_ref()).map(ToString::to_string);
        let corrected = corrected_description(tool, &findings.iter().collect::<Vec<_>>(), registry);
        return Ok(DescriptionVerdict::Vague(VagueDescription {
            tool: tool.name.clone(),
            location,
            findings,
            corrected,
        }));
    }
    Ok(match findings.into_iter().next() {
        Some(finding) => {
            let corrected = corrected_description(tool, &[&finding], registry);
            DescriptionVerdict::Doubtful(DescriptionWarning { tool: tool.name.clone(), finding, corrected })
        }
        None => DescriptionVerdict::Clear,
    })
}
