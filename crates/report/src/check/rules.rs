//! The list of `karat check --rules`.

use std::fmt::Write as _;

use karat_lints::Severity;
use karat_workflows::check::{RuleEntry, RuleList};

/// Renders the rules, with an example of a violation each.
pub fn rules_text(list: &RuleList) -> String {
    let name = |severity| if severity == Severity::Error { "error" } else { "warning" };
    let mut text = String::new();
    for rule in &list.rules {
        let RuleEntry { severity, draft_severity, summary, example, .. } = rule;
        let files = severity.map_or_else(String::new, |severity| format!("{} in eval files, ", name(severity)));
        let _ = writeln!(text, "{} ({files}{} in drafts)", rule.rule.name(), name(*draft_severity));
        let _ = writeln!(text, "  {summary}\n  violation: {example}\n");
    }
    text.push_str("Silence a rule in karat.json: {\"silence\": {\"TOOL or *\": [\"RULE\"]}}\n");
    text
}
