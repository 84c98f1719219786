//! The findings of `karat init`, and the files that it wrote.

use karat_workflows::init::{Discovery, Init, InitOutcome, Question, RegistryContent, TOOLS_FILE};

use crate::tools::counted;

/// A message to an agent, if the tool has no trigger phrases.
pub const EXAMPLE_MESSAGE: &str = "Where is my order 1042?";

/// Maximum number of tools in the help of a prompt.
const MAX_LISTED_TOOLS: usize = 8;

/// Renders the findings for a question, or an example.
pub fn init_help(question: Question, default: Option<&str>, init: &Init) -> Option<String> {
    if question == Question::Message && default.is_none() {
        return Some(format!("in the words of a user, for example: {EXAMPLE_MESSAGE}"));
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
        Question::Tool => {
            let names = init.tool_names();
            let more = names.len().saturating_sub(MAX_LISTED_TOOLS);
            let first = names.iter().take(MAX_LISTED_TOOLS).map(|name| (*name).to_owned());
            first.chain((more > 0).then(|| format!("{more} more"))).collect()
        }
        Question::Message | Question::OtherMessage => Vec::new(),
    };
    (!findings.is_empty()).then(|| format!("found {}", findings.join(", ")))
}

/// Renders the written files and the next steps.
pub fn init_summary(written: &InitOutcome) -> String {
    let lines = written.files.iter().map(|file| format!("wrote {file}\n"));
    let updated = written.updated.iter().map(|file| format!("updated {file}\n"));
    lines.chain(updated).chain([next_steps(written)]).collect()
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
    format!("\nnext: {steps}, then\n{change_dir}  karat check\n{draft}  karat run\n")
}
