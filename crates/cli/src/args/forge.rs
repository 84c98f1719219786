//! Arguments of `karat forge`.

use std::path::PathBuf;

use clap::Args;
use karat_workflows::forge::{DrafterKind, Tiers};

use super::choice::{Choice, one_of};
use super::config::{
    AgentArgs, AgentEndpointArgs, HEADING, OverlapMapArgs, ProviderArgs, RegistryArgs, SeedManifestArgs, SilenceArgs,
    SnapshotArgs, StoreArgs, TokenizerArgs, ToolExecutionArgs,
};
use super::trace_filter::RatingName;
use super::{AuthorArgs, OutputFormat};

const AFTER_HELP: &str = "\
Examples:
  karat forge get_weather --plan                # Show which cases are missing
  karat forge get_weather --model openai:gpt-5  # Review drafts from a model
  karat forge get_weather --drafts cases.json   # Review drafts from a file
  karat forge --resume                          # Continue a saved session";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP, mut_arg("author", |author| author.alias("approved-by")))]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct ForgeArgs {
    /// Tool to draft cases for [default with --resume: the tool of the only saved session]
    pub(crate) tool: Option<String>,
    /// Tier of the cases to draft
    #[arg(long, value_name = "TIER", default_value = "both", value_parser = one_of(TIERS))]
    pub(crate) tier: Tiers,
    /// Phrase that should trigger the tool (repeatable, 3 to 5) [default: from the registry]
    #[arg(long, value_name = "PHRASE")]
    pub(crate) trigger: Vec<String>,
    /// Print instructions for a coding agent or a person to draft the missing cases, and exit
    #[arg(long, conflicts_with_all = ["plan", "dry_run", "approve_all", "resume", "restart", "drafts"])]
    pub(crate) brief: bool,
    /// Read drafts from this file: an eval file, a list of cases or {"cases": […]}; - for stdin
    #[arg(long, value_name = "FILE", conflicts_with_all = ["drafter", "model", "traces", "plan"])]
    pub(crate) drafts: Option<PathBuf>,
    /// Drafter to use [default: model if one is configured, else template]
    #[arg(long, value_name = "DRAFTER", value_parser = one_of(DRAFTERS))]
    pub(crate) drafter: Option<DrafterKind>,
    /// Model that drafts the cases; overrides 'forge' in karat.json
    #[arg(long, value_name = "PROVIDER:MODEL")]
    pub(crate) model: Option<String>,
    /// Draft from the messages of these traces; - for stdin (repeatable) [default with --drafter traces: the store]
    #[arg(long, value_name = "FILE.jsonl")]
    pub(crate) traces: Vec<PathBuf>,
    /// With --drafter traces: use stored traces since this time, as in 'karat trace list'
    #[arg(long, value_name = "TIME", conflicts_with = "traces")]
    pub(crate) since: Option<String>,
    /// With --drafter traces: use stored traces with this rating
    #[arg(long, value_name = "RATING", conflicts_with = "traces")]
    pub(crate) rating: Option<RatingName>,
    /// Show the planned cases and exit
    #[arg(long, conflicts_with_all = ["dry_run", "approve_all", "resume", "restart"])]
    pub(crate) plan: bool,
    /// Print the drafts without writing anything
    #[arg(long, conflicts_with_all = ["approve_all", "resume", "restart"])]
    pub(crate) dry_run: bool,
    /// Write all valid drafts without review, for scripts; exit with 1 if any draft is left out
    #[arg(long)]
    pub(crate) approve_all: bool,
    #[command(flatten)]
    pub(crate) author: AuthorArgs,
    /// Run each draft against the agent before showing it; --approve-all then writes only those that pass
    #[arg(long, conflicts_with = "plan")]
    pub(crate) verify: bool,
    /// Continue even if the description does not say when to use the tool
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Continue a saved session
    #[arg(long, conflicts_with = "restart")]
    pub(crate) resume: bool,
    /// Discard the saved session, including approved cases that are not written yet
    #[arg(long)]
    pub(crate) restart: bool,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    /// The configuration key; --model is the flag
    #[arg(long, value_name = "PROVIDER:MODEL|JSON", hide = true)]
    forge: Option<String>,
    #[command(flatten)]
    registry: RegistryArgs,
    #[command(flatten)]
    overlap_map: OverlapMapArgs,
    #[command(flatten)]
    seed_manifest: SeedManifestArgs,
    #[command(flatten)]
    silence: SilenceArgs,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    providers: ProviderArgs,
    #[command(flatten)]
    verification: VerificationArgs,
}

/// How `--verify` runs drafts.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct VerificationArgs {
    #[command(flatten)]
    agent_endpoint: AgentEndpointArgs,
    /// With --verify: number of drafts to run in parallel [default: 1]
    #[arg(id = "concurrency", long = "jobs", short = 'j', value_name = "N", visible_alias = "concurrency")]
    jobs: Option<u64>,
    /// With --verify: number of trials of each draft [default: 1]
    #[arg(long, value_name = "N")]
    trials: Option<u64>,
    #[command(flatten)]
    agent: AgentArgs,
    #[command(flatten)]
    tool_execution: ToolExecutionArgs,
    #[command(flatten)]
    snapshot: SnapshotArgs,
    #[command(flatten)]
    tokenizer: TokenizerArgs,
}

const TIERS: &[Choice<Tiers>] =
    &[("golden", None, Tiers::Golden), ("labeled", None, Tiers::Labeled), ("both", None, Tiers::Both)];

const DRAFTERS: &[Choice<DrafterKind>] = &[
    (
        "template",
        Some("Built-in templates: trigger phrases and edge messages; other slots remain open"),
        DrafterKind::Template,
    ),
    ("model", Some("A model"), DrafterKind::Model),
    ("traces", Some("Real messages from traces, in files or in the store"), DrafterKind::Traces),
];
