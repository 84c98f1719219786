//! Arguments of `karat agent`.

use clap::{Args, Subcommand};

use super::OutputFormat;
use super::config::{AgentArgs, AgentEndpointArgs, ConfigFileArgs, ProviderArgs, RegistryArgs, ToolExecutionArgs};

const AFTER_HELP: &str = "\
Examples:
  karat agent detect http://127.0.0.1:2024  # Find out how to talk to a running agent
  karat agent try 'Where is order 42?'      # Send a message and show what is read from the reply
  karat agent show langgraph                # Show a preset as configuration";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct AgentVerbArgs {
    #[command(subcommand)]
    pub(crate) action: AgentAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentAction {
    /// Send a message to the agent and show what is read from the reply
    Try(Box<AgentTryArgs>),
    /// List the presets for agents of popular products, or show one as configuration
    Show(AgentShowArgs),
    /// Find the preset for a running agent
    Detect(AgentDetectArgs),
}

const TRY_AFTER_HELP: &str = "\
Exit codes:
  0  an answer was read
  3  no answer was read

Examples:
  karat agent try \"Where is order 42?\"
  karat agent try \"Hello\" --agent-endpoint langgraph:http://127.0.0.1:2024
  karat agent try \"Remember the number 7.\" --turn \"Which number?\"";

#[derive(Debug, Args)]
#[command(after_help = TRY_AFTER_HELP)]
pub(crate) struct AgentTryArgs {
    /// Message to send
    pub(crate) message: String,
    /// Further message of the same conversation (repeatable)
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
  karat agent show                                     # List the presets
  karat agent show langgraph                           # Show one as configuration
  karat agent show adk:http://127.0.0.1:8000?app=shop  # Show it for a URL";

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
The discovery endpoints that products document are asked first; this has no side effects. If none
replies, a message is sent in the form of each product until a reply can be read. Only the server of
the URL is contacted.

Exit codes:
  0  the agent was recognised
  3  the agent was not recognised

Examples:
  karat agent detect http://127.0.0.1:2024              # Ask before a message is sent
  karat agent detect http://127.0.0.1:3000/api/chat -y  # Send a message if necessary
  karat agent detect http://127.0.0.1:2024 --write      # Set agentEndpoint in karat.json";

#[derive(Debug, Args)]
#[command(after_help = DETECT_AFTER_HELP)]
pub(crate) struct AgentDetectArgs {
    /// URL of the running agent
    pub(crate) url: String,
    /// Send a message without asking, if discovery finds nothing
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
