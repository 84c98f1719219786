//! The brief as Markdown, for people and coding agents.

use std::fmt::{self, Write as _};

use karat_lints::Severity;
use serde_json::Value;

use super::{BriefDocument, OpenSlot};

/// Renders Markdown. All text of the project is inside JSON.
impl fmt::Display for BriefDocument {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "# Brief: eval cases for {}\n", self.plan.tool)?;
        writeln!(out, "{}", self.instructions)?;
        writeln!(out, "\n## Context\n")?;
        let titles = [
            ("tool", "The tool"),
            ("otherTools", "The agent's other tools"),
            ("overlaps", "Tools that it is easily confused with"),
            ("clusters", "Tools that are used together"),
            ("facts", "Facts that a case can use as tokens"),
            ("casesSoFar", "Messages of cases that already exist"),
        ];
        for (key, title) in titles {
            let value = self.shared_document.get(key).unwrap_or(&Value::Null);
            writeln!(out, "### {title}\n\n```json\n{value:#}\n```\n")?;
        }
        writeln!(out, "## The plan\n\n```\n{}```\n", self.plan)?;
        writeln!(out, "## Open slots\n")?;
        for slot in &self.slots {
            writeln!(out, "{}", slot_line(slot))?;
        }
        writeln!(out, "\n## Rules\n\nA draft that breaks an `error` cannot be approved.\n")?;
        for rule in &self.rules {
            let severity = if rule.severity == Severity::Error { "error" } else { "warning" };
            writeln!(out, "- `{}` ({severity}): {}", rule.rule.name(), rule.summary)?;
        }
        writeln!(out, "\n## JSON Schema of the drafts\n\n```json\n{:#}\n```", self.answer_schema)
    }
}

fn slot_line(slot: &OpenSlot) -> String {
    let kind = slot.difficulty.map_or("golden", karat_cases::Difficulty::name);
    let mut line = format!("- `{}` ({kind}): {}. {}", slot.id, slot.purpose, slot.task);
    if let Some(phrase) = &slot.phrase {
        let _ = write!(line, " phrase: {}", Value::from(phrase.as_str()));
    }
    if !slot.tools.is_empty() {
        let _ = write!(line, " tools: {}", slot.tools.join(", "));
    }
    if let Some(count) = slot.tool_count {
        let _ = write!(line, " toolCount: {count}");
    }
    line
}
