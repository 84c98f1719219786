//! The arguments of `karat forge`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use karat_workflows::forge::{DrafterKind, Tiers};

use super::trace_filter::RatingName;
use super::{ApproverArgs, ConfigArgs, OutputFormat};

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct ForgeArgs {
    /// The tool to draft cases for [default with --resume: that of the only kept session]
    pub(crate) tool: Option<String>,
    /// Which cases to draft
    #[arg(long, value_name = "TIER", default_value = "both")]
    pub(crate) tier: ForgeTier,
    /// What a person says who means this tool (repeatable, 3 to 5) [default: as the registry says]
    #[arg(long, value_name = "PHRASE")]
    pub(crate) trigger: Vec<String>,
    /// Print what somebody needs to draft the missing cases: the tool, the open slots, the rules, the answer's schema
    #[arg(long, conflicts_with_all = ["plan", "dry_run", "approve_all", "resume", "restart", "drafts"])]
    pub(crate) brief: bool,
    /// Take drafts from a file: an eval file, a list of cases or {"cases": […]}; - is stdin
    #[arg(long, value_name = "FILE", conflicts_with_all = ["drafter", "model", "traces", "plan"])]
    pub(crate) drafts: Option<PathBuf>,
    /// Who drafts [default: the model of --model or 'forge', else template]
    #[arg(long, value_name = "DRAFTER")]
    pub(crate) drafter: Option<DrafterName>,
    /// The model that drafts, in place of that of 'forge' in karat.json
    #[arg(long, value_name = "KIND:MODEL")]
    pub(crate) model: Option<String>,
    /// Draft from the real messages of these traces, as JSON lines; - is stdin (repeatable) [default with --drafter
    /// traces: the traces in the store]
    #[arg(long, value_name = "FILE.jsonl")]
    pub(crate) traces: Vec<PathBuf>,
    /// With --drafter traces and no --traces: traces of the store that began then or later, as 'karat trace list' takes it
    #[arg(long, value_name = "TIME", conflicts_with = "traces")]
    pub(crate) since: Option<String>,
    /// With --drafter traces and no --traces: traces of the store that people together find so
    #[arg(long, value_name = "RATING", conflicts_with = "traces")]
    pub(crate) rating: Option<RatingName>,
    /// Show how many cases there should be, and draft nothing
    #[arg(long, conflicts_with_all = ["dry_run", "approve_all", "resume", "restart"])]
    pub(crate) plan: bool,
    /// Print the drafts, and write nothing, not even a session
    #[arg(long, conflicts_with_all = ["approve_all", "resume", "restart"])]
    pub(crate) dry_run: bool,
    /// For scripts: write every draft that can be approved although nobody has looked at it. Those that cannot are
    /// listed and left out, with exit code 1
    #[arg(long)]
    pub(crate) approve_all: bool,
    #[command(flatten)]
    pub(crate) approver: ApproverArgs,
    /// Run each draft against the agent before it is shown, so that you approve with evidence
    #[arg(long, conflicts_with_all = ["plan", "approve_all"])]
    pub(crate) verify: bool,
    /// Go on although the description does not say when to use the tool
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Go on with a session that was left
    #[arg(long, conflicts_with = "restart")]
    pub(crate) resume: bool,
    /// Forget a session that was left, with what was approved in it and is not written yet
    #[arg(long)]
    pub(crate) restart: bool,
    /// What stdout is
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ForgeTier {
    Golden,
    Labeled,
    Both,
}

impl From<ForgeTier> for Tiers {
    fn from(tier: ForgeTier) -> Self {
        match tier {
            ForgeTier::Golden => Tiers::Golden,
            ForgeTier::Labeled => Tiers::Labeled,
            ForgeTier::Both => Tiers::Both,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DrafterName {
    /// karat itself, without a model: trigger phrases and edge messages; other cases stay open
    Template,
    /// A model
    Model,
    /// Real messages, from traces: of files, or of the store
    Traces,
}

impl From<DrafterName> for DrafterKind {
    fn from(name: DrafterName) -> Self {
        match name {
            DrafterName::Template => DrafterKind::Template,
            DrafterName::Model => DrafterKind::Model,
            DrafterName::Traces => DrafterKind::Traces,
        }
    }
}
