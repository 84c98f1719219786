//! Arguments of `karat agent`.

use clap::{Args, Subcommand};

use super::OutputFormat;
use super::config::{AgentArgs, AgentEndpointArgs, ConfigFileArgs, ProviderArgs, RegistryArgs, ToolExecutionArgs};

const AFTER_HELP: &str = "\
Examples:
  karat agent detect http://127.0.0.1:2024  # Find its preset
  karat agent try 'Where is order 42?'      # Send a message
  karat agent show langgraph                # Show a preset as configuration";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct AgentVerbArgs {
    #[command(subcommand)]
    pub(crate) action: AgentAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentAction {
    /// Send a message to the agent and show what karat reads from the reply
    Try(Box<AgentTryArgs>),
    /// List the presets for popular products, or show one as configuration
    Show(AgentShowArgs),
    /// Find the preset for a running agent
    Detect(AgentDetectArgs),
}

const TRY_AFTER_HELP: &str = "\
Exit codes:
  0  an answer was read
  3  no answer was read

Examples:
  karat agent try \"Where is order 42?\"                # Send one message
  karat agent try \"I am Ada.\" --turn \"Who am I?\"      # Send two in a row
  karat agent try \"Hi\" --agent-endpoint adk:http://…  # Use another agent";

#[derive(Debug, Args)]
#[command(after_help = TRY_AFTER_HELP)]
pub(crate) struct AgentTryArgs {
    /// Message to send
    pub(crate) message: String,
    /// Follow-up message in the same conversation (repeatable)
    #[arg(long, value_name = "MESSAGE")]
    pub(crate) turn: Vec<String>,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    endpoint: AgentEndpointArgs,
    #[command(flatten)]
    agent: AgentArgs,
    #[command(flatten)]
    providers: ProviderArgs,
    #[command(flatten)]
    tool_execution: ToolExecutionArgs,
    #[command(flatten)]
    registry: RegistryArgs,
    #[command(flatten)]
    file: ConfigFileArgs,
}

const SHOW_AFTER_HELP: &str = "\
Examples:
  karat agent show                            # List the presets
  karat agent show langgraph                  # Show its configuration
  karat agent show adk:http://127.0.0.1:8000  # Show it for this URL";

#[derive(Debug, Args)]
#[command(after_help = SHOW_AFTER_HELP)]
pub(crate) struct AgentShowArgs {
    /// Preset to show [default: list all]
    #[arg(value_name = "KIND[:URL]")]
    pub(crate) kind: Option<String>,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
}

const DETECT_AFTER_HELP: &str = "\
karat queries the discovery endpoints of known products, which has no side effects. If none \
responds, it sends a message in the format of each product until it can read a reply. It contacts \
only the server in the URL.

Exit codes:
  0  the agent was recognised
  3  the agent was not recognised

Examples:
  karat agent detect http://127.0.0.1:2024          # Ask before sending
  karat agent detect http://127.0.0.1:3000/chat -y  # Send without asking
  karat agent detect http://127.0.0.1:2024 --write  # Write it to karat.json";

#[derive(Debug, Args)]
#[command(after_help = DETECT_AFTER_HELP)]
pub(crate) struct AgentDetectArgs {
    /// URL of the running agent
    pub(crate) url: String,
    /// If discovery finds nothing, send a message without asking
    #[arg(long, short = 'y')]
    pub(crate) yes: bool,
    /// Set agentEndpoint in karat.json
    #[arg(long)]
    pub(crate) write: bool,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    file: ConfigFileArgs,
}
