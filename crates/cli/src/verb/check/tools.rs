//! What is wrong with the tools: what could not be read of them, and how they are described.

use karat_core::contract::{ContractFinding, SilencedRule, Silencer, check_descriptions};
use karat_core::lint::Severity;
use karat_core::overlap::OverlapMap;
use karat_core::registry::{Gap, GapKind, Registry, Tool, ToolPlace, Unknown};
use karat_core::source::{Finding, Problem};

use super::issue::Issue;
use super::source_text::{Sources, Words};
use crate::load::read_text;
use crate::settings::Settings;

/// The rule under which what somebody has to mend in a registry is listed.
const BROKEN: &str = "registry-broken";
/// The rule under which useless entries of `silence` are listed.
const SILENCES_NOTHING: &str = "silences-nothing";

/// Finds what is wrong, in the order of the registry: gaps, then tool by tool.
pub(super) fn check(
    registry: &Registry,
    overlaps: Option<&OverlapMap>,
    silencer: &mut Silencer<'_>,
    sources: &mut Sources,
) -> Vec<Issue> {
    let mut issues = Vec::new();
    for gap in registry.gaps() {
        if gap.kind == GapKind::Broken || !silencer.takes([], SilencedRule::UNKNOWN) {
            issues.push(from_gap(gap, sources));
        }
    }
    for tool in registry.tools() {
        for unknown in &tool.unknown {
            if !silencer.takes([tool.name.as_str()], SilencedRule::UNKNOWN) {
                issues.push(from_unknown(tool, unknown, sources));
            }
        }
    }
    for finding in check_descriptions(registry, overlaps) {
        // An overlap that is not told apart is one tool's affair; what two share is silenced by either.
        let others = finding.also.iter().filter(|_| finding.rule.is_mutual());
        let tools = std::iter::once(&finding.tool).chain(others).map(String::as_str);
        if !silencer.takes(tools, SilencedRule::Contract(finding.rule)) {
            issues.push(from_finding(registry, finding, sources));
        }
    }
    issues
}

fn from_gap(gap: &Gap, sources: &mut Sources) -> Issue {
    let (rule, severity) = match gap.kind {
        GapKind::Broken => (BROKEN, Severity::Error),
        GapKind::Unknown => (SilencedRule::UNKNOWN.name(), Severity::Warning),
    };
    let help = (gap.kind == GapKind::Unknown).then(|| unknown_help("there may be more tools than karat knows of"));
    Issue {
        file: gap.place.source.clone(),
        place: sources.locate(&gap.place, None),
        severity,
        rule: rule.to_owned(),
        case_id: None,
        tool: None,
        pointer: None,
        message: gap.what.clone(),
        help,
    }
}

fn from_unknown(tool: &Tool, unknown: &Unknown, sources: &mut Sources) -> Issue {
    Issue {
        file: unknown.place.source.clone(),
        place: sources.locate(&unknown.place, None),
        severity: Severity::Warning,
        rule: SilencedRule::UNKNOWN.name().to_owned(),
        case_id: None,
        tool: Some(tool.name.clone()),
        pointer: None,
        message: format!("the {} is not known: {}", unknown.field.name(), unknown.why),
        help: Some(unknown_help("nothing is concluded from it")),
    }
}

fn unknown_help(consequence: &str) -> String {
    format!("{consequence}; write it as a literal, or let 'toolRegistry' name a command that prints the tools")
}

fn from_finding(registry: &Registry, finding: ContractFinding, sources: &mut Sources) -> Issue {
    let tool = registry.tool(&finding.tool);
    let place: Option<&ToolPlace> = tool.and_then(|tool| tool.description_place.as_ref().or(tool.place.as_ref()));
    let length = tool.and_then(|tool| tool.description.as_ref()).map_or(0, String::len);
    let words = finding.words.as_deref().filter(|_| finding.span.is_some()).map(|words| Words { words, length });
    Issue {
        file: place.map_or_else(|| sources.registry.clone(), |place| place.source.clone()),
        place: place.and_then(|place| sources.locate(place, words)),
        severity: Severity::Warning,
        rule: finding.rule.name().to_owned(),
        case_id: None,
        tool: Some(finding.tool),
        pointer: None,
        message: finding.message,
        help: Some(finding.suggestion),
    }
}

/// Finds the entries of `silence` that are of no use, in the file that has them.
pub(super) fn unused_silences(silencer: &Silencer<'_>, registry: &Registry, settings: &Settings) -> Vec<Issue> {
    let mut problems = silencer.unused(registry);
    if problems.is_empty() {
        return Vec::new();
    }
    let file = settings.silence.file.as_deref();
    let text = file.and_then(|file| read_text(file, "the configuration").ok()).map(std::sync::Arc::from);
    let (Some(file), Some(text)) = (file, text) else {
        return problems.into_iter().map(from_flag).collect();
    };
    for problem in &mut problems {
        problem.pointer.insert_str(0, "/silence");
    }
    let shown = file.strip_prefix(&settings.here).unwrap_or(file).display().to_string();
    let findings = Finding::locate_all(&text, problems);
    let issue = |finding| Issue::in_text(&shown, &text, finding, SILENCES_NOTHING, Severity::Warning);
    findings.into_iter().map(issue).collect()
}

fn from_flag(problem: Problem) -> Issue {
    Issue {
        file: "--silence".to_owned(),
        place: None,
        severity: Severity::Warning,
        rule: SILENCES_NOTHING.to_owned(),
        case_id: None,
        tool: None,
        pointer: Some(problem.pointer),
        message: problem.message,
        help: problem.help,
    }
}
