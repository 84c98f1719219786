//! What is wrong with the tools: what could not be read of them, and how they are described.

use std::sync::Arc;

use karat_core::lint::Severity;
use karat_core::registry::{Gap, GapKind, Registry, Tool, ToolField, ToolPlace, Unknown};
use karat_json::{Finding, Problem};
use karat_project::read_text;
use karat_tools::contract::{ContractFinding, SilencedRule, Silencer, check_descriptions};
use karat_tools::overlap::OverlapMap;

use super::issue::CheckIssue;
use super::source_text::{Sources, Words};
use crate::settings::Settings;

/// How many lines of a server's output are quoted, of its beginning and of its end.
const MAX_QUOTED: usize = 5;
/// The rule under which the broken parts of a registry are listed.
const BROKEN: &str = "registry-broken";
/// The rule under which useless entries of `silence` are listed.
const SILENCES_NOTHING: &str = "silences-nothing";

/// Finds what is wrong, in the order of the registry: gaps, then tool by tool.
pub(super) fn check(
    registry: &Registry,
    overlaps: Option<&OverlapMap>,
    silencer: &mut Silencer<'_>,
    sources: &mut Sources,
) -> Vec<CheckIssue> {
    let mut issues = Vec::new();
    for gap in registry.gaps() {
        if gap.kind == GapKind::Broken || !silencer.takes([], SilencedRule::UNKNOWN) {
            issues.push(from_gap(gap, sources));
        }
    }
    for tool in registry.tools() {
        for (field, unknown) in tool.unknowns() {
            if !silencer.takes([tool.name.as_str()], SilencedRule::UNKNOWN) {
                issues.push(from_unknown(tool, field, unknown, sources));
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

fn from_gap(gap: &Gap, sources: &mut Sources) -> CheckIssue {
    let (rule, severity) = match gap.kind {
        GapKind::Broken => (BROKEN, Severity::Error),
        GapKind::Unknown => (SilencedRule::UNKNOWN.name(), Severity::Warning),
    };
    let (message, output) = gap.parts();
    let help = match gap.kind {
        GapKind::Unknown => Some(unknown_help("there may be more tools than karat knows of")),
        GapKind::Broken => Some(quoted_lines(output)).filter(|lines| !lines.is_empty()),
    };
    let place = sources.locate(&gap.place, None);
    CheckIssue::new(&gap.place.source, place, (rule, severity), message.to_owned(), help)
}

/// Returns the lines of a program's output, without the middle of many.
fn quoted_lines(output: &str) -> String {
    let mut lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    if lines.len() > 2 * MAX_QUOTED {
        lines.splice(MAX_QUOTED..lines.len() - MAX_QUOTED, ["..."]);
    }
    lines.join("\n")
}

fn from_unknown(tool: &Tool, field: ToolField, unknown: &Unknown, sources: &mut Sources) -> CheckIssue {
    let Unknown { place, why } = unknown;
    let message = format!("the {} is not known: {why}", field.name());
    let help = Some(unknown_help("nothing is concluded from it"));
    let rule = (SilencedRule::UNKNOWN.name(), Severity::Warning);
    let issue = CheckIssue::new(&place.source, sources.locate(place, None), rule, message, help);
    CheckIssue { tool: Some(tool.name.clone()), ..issue }
}

fn unknown_help(consequence: &str) -> String {
    format!("{consequence}; write it as a literal, or let 'toolRegistry' name a command that prints the tools")
}

fn from_finding(registry: &Registry, finding: ContractFinding, sources: &mut Sources) -> CheckIssue {
    let tool = registry.tool(&finding.tool);
    let place: Option<&ToolPlace> = tool.and_then(|tool| tool.description_place.as_ref().or(tool.place.as_ref()));
    let description = tool.and_then(|tool| tool.description.as_deref()).unwrap_or_default();
    let words = finding.span.and_then(|span| description.get(span));
    let words = words.map(|words| Words { words, length: description.len() });
    let file = place.map_or_else(|| sources.registry.clone(), |place| place.source.clone());
    let place = place.and_then(|place| sources.locate(place, words));
    let rule = (finding.rule.name(), Severity::Warning);
    let issue = CheckIssue::new(&file, place, rule, finding.message, Some(finding.suggestion));
    CheckIssue { tool: Some(finding.tool), ..issue }
}

/// Finds the entries of `silence` that are of no use, in the file that has them.
pub(super) fn unused_silences(silencer: &Silencer<'_>, registry: &Registry, settings: &Settings) -> Vec<CheckIssue> {
    let mut problems = silencer.unused(registry);
    if problems.is_empty() {
        return Vec::new();
    }
    let file = settings.silence.file.as_deref();
    let text = file.and_then(|file| read_text(file, "the configuration").ok()).map(Arc::from);
    let (Some(file), Some(text)) = (file, text) else {
        return problems.into_iter().map(from_flag).collect();
    };
    for problem in &mut problems {
        problem.pointer.insert_str(0, "/silence");
    }
    let shown = settings.shown(file);
    let findings = Finding::locate_all(&text, problems);
    let issue = |finding| CheckIssue::in_text(&shown, &text, finding, (SILENCES_NOTHING, Severity::Warning));
    findings.into_iter().map(issue).collect()
}

fn from_flag(problem: Problem) -> CheckIssue {
    let rule = (SILENCES_NOTHING, Severity::Warning);
    let issue = CheckIssue::new("--silence", None, rule, problem.message, problem.help);
    CheckIssue { pointer: Some(problem.pointer), ..issue }
}

#[cfg(test)]
mod tests {
    use karat_core::registry::Known;
    use karat_json::Position;
    use karat_testkit::project::TempProject;
    use karat_tools::contract::Silence;

    use super::*;

    fn at(line: usize, column: usize) -> ToolPlace {
        ToolPlace { source: "tools.ts".to_owned(), position: Some(Position { line, column }) }
    }

    /// Where each issue is, by which rule, and the text that is pointed at.
    fn found(registry: &Registry, silence: &Silence) -> Vec<(String, String, String)> {
        let project = TempProject::new("karat").file(
            "tools.ts",
            "export const a = {\n  description: 'This tool can\\'t do it',\n  name: NAME,\n};\nexport * from './b';\n",
        );
        let mut sources = Sources::below(project.path(), "tools".to_owned());
        let issues = check(registry, None, &mut Silencer::new(silence), &mut sources);
        let shown = |issue: CheckIssue| {
            let (at, text) = issue.place.map_or_else(Default::default, |(text, place)| {
                let Position { line, column } = place.position;
                (format!(":{line}:{column}"), text[place.range].to_owned())
            });
            (format!("{}{at}", issue.file), issue.rule, text)
        };
        issues.into_iter().map(shown).collect()
    }

    fn registry() -> Registry {
        let unknown = Unknown { place: at(3, 9), why: "a name".to_owned() };
        let mut registry = Registry::of([Tool {
            name: "a".to_owned(),
            description: Some("This tool can't do it".to_owned()).into(),
            place: Some(at(1, 14)),
            description_place: Some(at(2, 16)),
            version: Known::Unknown(unknown),
            ..Tool::default()
        }]);
        registry.add_gap(Gap { kind: GapKind::Unknown, place: at(5, 1), what: "a loop".to_owned() });
        let server = ToolPlace { source: "mcp:x".to_owned(), position: None };
        registry.add_gap(Gap { kind: GapKind::Broken, place: server, what: "it is gone".to_owned() });
        registry
    }

    #[test]
    fn issues_point_at_their_places() {
        let found = found(&registry(), &Silence::default());
        let found: Vec<_> = found.iter().map(|(at, rule, text)| (at.as_str(), rule.as_str(), text.as_str())).collect();
        assert_eq!(
            found,
            [
                ("tools.ts:5:1", "registry-unknown", "export * from './b'"),
                ("mcp:x", "registry-broken", ""),
                ("tools.ts:3:9", "registry-unknown", "NAME"),
                ("tools.ts:2:17", "description-action", "This tool"),
                ("tools.ts:2:16", "description-trigger", "'This tool can\\'t do it'"),
                ("tools.ts:2:16", "description-vague", "'This tool can\\'t do it'"),
            ]
        );
    }

    #[test]
    fn broken_parts_are_never_silenced() {
        let mut problems = karat_json::Problems::default();
        let all = serde_json::json!({"*": "*"});
        let silence = Silence::read(&all, &karat_json::Path::Root, &mut problems).expect("valid");
        let found = found(&registry(), &silence);
        assert_eq!(found.iter().map(|(_, rule, _)| rule.as_str()).collect::<Vec<_>>(), ["registry-broken"]);
    }
}
