//! `karat check --rules`: lists the rules for cases and drafts.

use std::fmt::Write as _;

use karat_core::exit::ExitStatus;
use karat_core::lint::{Rule, Severity};
use schemars::JsonSchema;
use serde::Serialize;

use crate::args::OutputFormat;
use crate::failure::Failure;
use crate::printer::Printer;

/// Output of `karat check --rules --format json`.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "karat check rules")]
pub(crate) struct RuleList {
    rules: Vec<ListedRule>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ListedRule {
    rule: Rule,
    /// The severity of a finding in an eval file; null if the rule applies to drafts only.
    severity: Option<Severity>,
    /// The severity of a finding in a draft; a draft with an error cannot be approved.
    draft_severity: Severity,
    summary: &'static str,
    /// Part of a case that violates the rule.
    example: &'static str,
}

impl RuleList {
    fn all() -> Self {
        let listed = |rule: &Rule| ListedRule {
            rule: *rule,
            severity: (!rule.is_for_drafts_only()).then(|| rule.severity()),
            draft_severity: rule.draft_severity(),
            summary: rule.summary(),
            example: rule.example(),
        };
        Self { rules: Rule::ALL.iter().map(listed).collect() }
    }

    fn text(&self) -> String {
        let name = |severity| if severity == Severity::Error { "error" } else { "warning" };
        let mut text = String::new();
        for rule in &self.rules {
            let ListedRule { severity, draft_severity, summary, example, .. } = rule;
            let files = severity.map_or_else(String::new, |severity| format!("{} in eval files, ", name(severity)));
            let _ = writeln!(text, "{} ({files}{} in drafts)", rule.rule.name(), name(*draft_severity));
            let _ = writeln!(text, "  {summary}\n  violation: {example}\n");
        }
        text.push_str("Silence a rule in karat.json: {\"silence\": {\"TOOL or *\": [\"RULE\"]}}\n");
        text
    }
}

pub(super) fn list(format: OutputFormat, printer: &Printer) -> Result<ExitStatus, Failure> {
    let rules = RuleList::all();
    match format {
        OutputFormat::Json => printer.print_json(&rules)?,
        OutputFormat::Human => printer.print(&rules.text())?,
    }
    Ok(ExitStatus::Success)
}
