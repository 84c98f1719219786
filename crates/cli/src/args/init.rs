//! Arguments of `karat init`.

use std::path::PathBuf;

use clap::Args;
use karat_workflows::init::USUAL_PORTS;

const AFTER_HELP: &str = "\
Examples:
  karat init                                    # Detect agent and tools, ask
  karat init --yes                              # Use what was found
  karat init --agent-endpoint openai:gpt-5      # Set up a model as the agent
  karat init --tool-registry-path .mcp.json     # Use MCP servers
  karat init --security                         # Add security cases";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct InitArgs {
    /// Project folder [default: the current folder]
    pub(crate) folder: Option<PathBuf>,
    /// Agent to test: a URL, PRESET:URL such as langgraph:URL, openai:MODEL, anthropic:MODEL, python:MODULE:FUNCTION,
    /// node:FILE#EXPORT, command:PROGRAM ARGS or scripted:FILE
    #[arg(long, value_name = "URL|KIND:NAME")]
    pub(crate) agent_endpoint: Option<String>,
    /// Tool registry: a JSON, TypeScript, JavaScript or Python file or folder, an MCP configuration such as .mcp.json,
    /// mcp:stdio:COMMAND or mcp:URL; empty for none
    #[arg(long, value_name = "PATH")]
    pub(crate) tool_registry_path: Option<String>,
    /// First tool to test
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Message that should make the agent call the tool (repeatable; each is a row of the case)
    #[arg(long, value_name = "TEXT")]
    pub(crate) message: Vec<String>,
    /// In an existing project, write security cases for a tool (--tool): a starter set of injections, put into the
    /// result of a case that calls it
    #[arg(long, conflicts_with_all = ["agent_endpoint", "tool_registry_path", "message", "yes"])]
    pub(crate) security: bool,
    /// Do not prompt; use what was found for missing flags
    #[arg(long, short = 'y')]
    pub(crate) yes: bool,
    /// Local ports to check for an agent, separated by commas
    #[arg(long, value_name = "PORT,PORT", value_delimiter = ',', default_values_t = USUAL_PORTS)]
    pub(crate) ports: Vec<u16>,
}
