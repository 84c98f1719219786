//! Checks the tools: gaps of the registry, and descriptions.

use std::sync::Arc;

use karat_cases::registry::{Gap, GapKind, Registry, Tool, ToolField, ToolLocation, Unknown};
use karat_json::text::shorten;
use karat_json::{Finding, Problem};
use karat_lints::Severity;
use karat_project::read_text;
use karat_tools::contract::{ContractFinding, SilencedRule, Silencer, check_descriptions};
use karat_tools::overlap::OverlapMap;

use super::issue::CheckIssue;
use super::source_text::{Excerpt, Sources};
use crate::settings::Settings;

/// Maximum number of lines to quote from each end of a server's output.
const MAX_QUOTED_LINES: usize = 5;
/// The rule of broken parts of a registry.
const BROKEN: &str = "registry-broken";
/// The rule of schemas that are not valid.
const SCHEMA: &str = "registry-schema";
/// The rule of unused entries of `silence`.
const UNUSED_SILENCE: &str = "silences-nothing";

/// Returns the issues: gaps first, then by tool in the order of the registry.
pub(super) fn check(
    registry: &Registry,
    overlaps: Option<&OverlapMap>,
    silencer: &mut Silencer<'_>,
    sources: &mut Sources,
) -> Vec<CheckIssue> {
    let mut issues = Vec::new();
    for gap in registry.gaps() {
        if gap.kind == GapKind::Broken || !silencer.silences([], SilencedRule::UNKNOWN) {
            issues.push(from_gap(gap, sources));
        }
    }
    for tool in registry.tools() {
        for (field, unknown) in tool.unknowns() {
            if !silencer.silences([tool.name.as_str()], SilencedRule::UNKNOWN) {
                issues.push(from_unknown(tool, field, unknown, sources));
            }
        }
        if let Some(error) = tool.schema_error() {
            issues.push(from_schema_error(tool, &error, sources));
        }
    }
    for finding in check_descriptions(registry, overlaps) {
        // A mutual finding can be silenced for either tool.
        let others = finding.also.iter().filter(|_| finding.rule.is_mutual());
        let tools = std::iter::once(&finding.tool).chain(others).map(String::as_str);
        if !silencer.silences(tools, SilencedRule::Contract(finding.rule)) {
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
        GapKind::Unknown => Some(unknown_help("the registry may have more tools")),
        GapKind::Broken => Some(quoted_lines(output)).filter(|lines| !lines.is_empty()),
    };
    let location = sources.locate(&gap.location, None);
    CheckIssue::new(&gap.location.source, location, (rule, severity), message.to_owned(), help)
}

/// Returns the first and last lines of a program's output.
fn quoted_lines(output: &str) -> String {
    let mut lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    if lines.len() > 2 * MAX_QUOTED_LINES {
        lines.splice(MAX_QUOTED_LINES..lines.len() - MAX_QUOTED_LINES, ["..."]);
    }
    lines.join("\n")
}

fn from_unknown(tool: &Tool, field: ToolField, unknown: &Unknown, sources: &mut Sources) -> CheckIssue {
    let Unknown { location, reason } = unknown;
    let message = format!("cannot read the {}: {reason}", field.name());
    let help = Some(unknown_help("rules about it are skipped"));
    let rule = (SilencedRule::UNKNOWN.name(), Severity::Warning);
    let issue = CheckIssue::new(&location.source, sources.locate(location, None), rule, message, help);
    CheckIssue { tool: Some(tool.name.clone()), ..issue }
}

fn from_schema_error(tool: &Tool, error: &str, sources: &mut Sources) -> CheckIssue {
    let message = format!("the schema is not a valid JSON Schema: {}", shorten(error, 300));
    let help = Some("until it is fixed, cases with 'toolArgsValid' have no verdict".to_owned());
    let file = tool.location.as_ref().map_or_else(|| sources.registry.clone(), |location| location.source.clone());
    let location = tool.location.as_ref().and_then(|location| sources.locate(location, None));
    let issue = CheckIssue::new(&file, location, (SCHEMA, Severity::Error), message, help);
    CheckIssue { tool: Some(tool.name.clone()), ..issue }
}

fn unknown_help(consequence: &str) -> String {
    format!("{consequence}; write it as a literal, or set 'toolRegistry' to a command that prints the tools")
}

fn from_finding(registry: &Registry, finding: ContractFinding, sources: &mut Sources) -> CheckIssue {
    let tool = registry.tool(&finding.tool);
    let location: Option<&ToolLocation> =
        tool.and_then(|tool| tool.description_location.as_ref().or(tool.location.as_ref()));
    let description = tool.and_then(|tool| tool.description.as_deref()).unwrap_or_default();
    let excerpt = finding.span.and_then(|span| description.get(span));
    let excerpt = excerpt.map(|text| Excerpt { text, description_length: description.len() });
    let file = location.map_or_else(|| sources.registry.clone(), |location| location.source.clone());
    let location = location.and_then(|location| sources.locate(location, excerpt));
    let rule = (finding.rule.name(), Severity::Warning);
    let issue = CheckIssue::new(&file, location, rule, finding.message, Some(finding.suggestion));
    CheckIssue { tool: Some(finding.tool), ..issue }
}

/// Finds unused entries of `silence`, in the file that declares them.
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
    let display_path = settings.display_path(file);
    let findings = Finding::locate_all(&text, problems);
    let issue = |finding| CheckIssue::in_text(&display_path, &text, finding, (UNUSED_SILENCE, Severity::Warning));
    findings.into_iter().map(issue).collect()
}

fn from_flag(problem: Problem) -> CheckIssue {
    let rule = (UNUSED_SILENCE, Severity::Warning);
    let issue = CheckIssue::new("--silence", None, rule, problem.message, problem.help);
    CheckIssue { pointer: Some(problem.pointer), ..issue }
}

#[cfg(test)]
mod tests {
    use karat_cases::registry::Known;
    use karat_json::Position;
    use karat_testkit::project::TempProject;
    use karat_tools::contract::Silence;

    use super::*;

    fn at(line: usize, column: usize) -> ToolLocation {
        ToolLocation { source: "tools.ts".to_owned(), position: Some(Position { line, column }) }
    }

    /// Returns the location, rule and marked text of each issue.
    fn issues_of(registry: &Registry, silence: &Silence) -> Vec<(String, String, String)> {
        let project = TempProject::new("karat").file(
            "tools.ts",
            "export const a = {\n  description: 'This tool can\\'t do it',\n  name: NAME,\n};\nexport * from './b';\n",
        );
        let mut sources = Sources::with_base(project.path(), "tools".to_owned());
        let issues = check(registry, None, &mut Silencer::new(silence), &mut sources);
        let summary = |issue: CheckIssue| {
            let (at, text) = issue.location.map_or_else(Default::default, |(text, location)| {
                let Position { line, column } = location.position;
                (format!(":{line}:{column}"), text[location.range].to_owned())
            });
            (format!("{}{at}", issue.file), issue.rule, text)
        };
        issues.into_iter().map(summary).collect()
    }

    fn registry() -> Registry {
        let unknown = Unknown { location: at(3, 9), reason: "a name".to_owned() };
        let mut registry = Registry::from_tools([Tool {
            name: "a".to_owned(),
            description: Some("This tool can't do it".to_owned()).into(),
            location: Some(at(1, 14)),
            description_location: Some(at(2, 16)),
            version: Known::Unknown(unknown),
            ..Tool::default()
        }]);
        registry.add_gap(Gap { kind: GapKind::Unknown, location: at(5, 1), message: "a loop".to_owned() });
        let server = ToolLocation { source: "mcp:x".to_owned(), position: None };
        registry.add_gap(Gap { kind: GapKind::Broken, location: server, message: "connection closed".to_owned() });
        registry
    }

    #[test]
    fn locates_issues_in_the_source() {
        let issues = issues_of(&registry(), &Silence::default());
        let issues: Vec<_> =
            issues.iter().map(|(at, rule, text)| (at.as_str(), rule.as_str(), text.as_str())).collect();
        assert_eq!(
            issues,
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
    fn finds_invalid_schemas() {
        let tool = |name: &str, schema: serde_json::Value| Tool {
            name: name.to_owned(),
            description: Some("Finds a city by its name. Use when a place is named.".to_owned()).into(),
            input_schema: Some(schema).into(),
            location: Some(at(1, 14)),
            ..Tool::default()
        };
        let registry = Registry::from_tools([
            tool("a", serde_json::json!({"type": "dict"})),
            tool("b", serde_json::json!({"type": "object"})),
            tool("c", serde_json::json!({"city": "where to look"})),
        ]);
        let issues = issues_of(&registry, &Silence::default());
        let schemas = issues.iter().filter(|(_, rule, _)| rule == "registry-schema");
        assert_eq!(schemas.map(|(at, _, _)| at.as_str()).collect::<Vec<_>>(), ["tools.ts:1:14", "tools.ts:1:14"]);
    }

    #[test]
    fn never_silences_broken_parts() {
        let mut problems = karat_json::Problems::default();
        let all = serde_json::json!({"*": "*"});
        let silence = Silence::read(&all, &karat_json::Path::Root, &mut problems).expect("valid");
        let issues = issues_of(&registry(), &silence);
        assert_eq!(issues.iter().map(|(_, rule, _)| rule.as_str()).collect::<Vec<_>>(), ["registry-broken"]);
    }
}
