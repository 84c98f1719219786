//! The findings of `karat init`, and the files that it wrote.

use std::fmt::Write as _;

use karat_workflows::init::{Discovery, Init, InitOutcome, Question, RegistryContent, TOOLS_FILE};
use karat_workflows::security_cases;

use crate::terminal_text::width;
use crate::tools::counted;

/// A message to an agent, if the tool has no trigger phrases.
pub const EXAMPLE_MESSAGE: &str = "Where is my order 1042?";

/// Maximum number of findings in the help of a prompt.
const MAX_LISTED: usize = 8;

/// Renders the findings for a question in `columns`, or an example.
pub fn init_help(question: Question, default: Option<&str>, init: &Init, columns: usize) -> Option<String> {
    if question == Question::Message && default.is_none() {
        return Some(format!("what a user would write, for example: {EXAMPLE_MESSAGE}"));
    }
    let Discovery { ports, agents, registries, .. } = init.discovered();
    let findings: Vec<String> = match question {
        Question::Agent => {
            let unknown = ports.iter().filter(|port| agents.iter().all(|agent| agent.port != **port));
            let unknown = unknown.map(|port| format!("a program on port {port}"));
            agents.iter().map(|agent| format!("{} on port {}", agent.kind, agent.port)).chain(unknown).collect()
        }
        Question::Registry => registries
            .iter()
            .map(|registry| match registry.content {
                RegistryContent::Tools(count) => format!("{} ({})", registry.path, counted(count, "tool")),
                RegistryContent::McpServers(count) => format!("{} ({})", registry.path, counted(count, "MCP server")),
            })
            .collect(),
        Question::Tool => init.tool_names().iter().map(|name| (*name).to_owned()).collect(),
        Question::Message | Question::OtherMessage => Vec::new(),
    };
    (!findings.is_empty()).then(|| list_in_line(&findings, columns))
}

/// Lists as many findings as fit a line. A prompt would break a longer line inside a word.
fn list_in_line(findings: &[String], columns: usize) -> String {
    let text = |shown: usize| {
        let more = findings.len() - shown;
        let more = if more > 0 { format!(", {more} more") } else { String::new() };
        format!("found {}{more}", findings[..shown].join(", "))
    };
    let most = findings.len().min(MAX_LISTED);
    (1..=most).rev().map(text).find(|text| width(text) <= columns).unwrap_or_else(|| text(1))
}

/// Renders the written files and the next steps.
pub fn init_summary(written: &InitOutcome) -> String {
    let lines = written.files.iter().map(|file| format!("wrote {file}\n"));
    let updated = written.updated.iter().map(|file| format!("updated {file}\n"));
    lines.chain(updated).chain([next_steps(written)]).collect()
}

/// Renders the written security cases, and what is missing.
pub fn security_cases_summary(written: &security_cases::Outcome) -> String {
    let security_cases::Outcome { file, tool, based_on, cases, left_out, tools_without_cases } = written;
    let mut text = format!("wrote {file}\n{} for {tool}, based on {based_on}\n", counted(*cases, "case"));
    if *left_out > 0 {
        let _ =
            writeln!(text, "{} left out: the registry has no other tool to attack", counted(*left_out, "injection"));
    }
    if !tools_without_cases.is_empty() {
        let tools = tools_without_cases.join(", ");
        let _ = writeln!(text, "no case to base security cases on: {tools}");
    }
    text.push_str("next: check the stubs, then run karat run --tier security\n");
    text
}

fn next_steps(written: &InitOutcome) -> String {
    let InitOutcome { folder, is_model, variables, has_tools, has_example_tools, tool, .. } = written;
    let mut steps = match tool {
        Some(_) if *is_model => {
            let describe =
                if *has_example_tools { format!("describe the tool in {TOOLS_FILE},\n") } else { String::new() };
            format!(
                "{describe}add its result to 'stubs',\nand the values that the response must contain to 'responseContains'"
            )
        }
        Some(_) => "in 'responseContains', add values that only the tool can return".to_owned(),
        None => "in 'responseContains', add strings that the answer must contain".to_owned(),
    };
    if !variables.is_empty() {
        steps = format!("{steps},\nset {} (in the environment or in .env)", variables.join(" and "));
    }
    let change_dir = folder.as_ref().map(|folder| format!("  cd {}\n", shell_words::quote(folder))).unwrap_or_default();
    let draft = match tool {
        _ if !has_tools => String::new(),
        Some(tool) => format!("  karat forge {}\n", shell_words::quote(tool)),
        None => "  karat tools\n  karat forge TOOL\n".to_owned(),
    };
    format!("\nnext: {steps}, then\n{change_dir}  karat agent try \"Hello\"\n  karat check\n{draft}  karat run\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_findings_that_fit_a_line() {
        let findings = ["cancel_order", "check_stock", "get_order"].map(str::to_owned);
        assert_eq!(list_in_line(&findings, 80), "found cancel_order, check_stock, get_order");
        assert_eq!(list_in_line(&findings, 41), "found cancel_order, check_stock, 1 more");
        assert_eq!(list_in_line(&findings, 10), "found cancel_order, 2 more");
        let many: Vec<String> = (1..=10).map(|number| number.to_string()).collect();
        assert_eq!(list_in_line(&many, 80), "found 1, 2, 3, 4, 5, 6, 7, 8, 2 more");
    }
}
