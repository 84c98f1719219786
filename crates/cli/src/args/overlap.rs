//! Arguments of `karat overlap`.

use clap::{Args, Subcommand};

use super::OutputFormat;
use super::config::{ConfigFileArgs, OutputDirArgs, OverlapMapArgs, RegistryArgs};

const AFTER_HELP: &str = "\
Examples:
  karat overlap                               # List the declared overlaps
  karat overlap suggest                       # Suggest overlaps to declare
  karat overlap add get_weather get_forecast  # Declare an overlap";

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = AFTER_HELP)]
pub(crate) struct OverlapArgs {
    #[command(subcommand)]
    pub(crate) action: Option<OverlapAction>,
    #[command(flatten)]
    pub(crate) list: OverlapListArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum OverlapAction {
    /// List the declared overlaps (the default)
    List(OverlapListArgs),
    /// Suggest overlaps from similar descriptions and past confusion
    Suggest(OverlapSuggestArgs),
    /// Declare an overlap or a cluster
    Add(OverlapAddArgs),
    /// Remove an overlap or a cluster
    Remove(OverlapRemoveArgs),
}

/// For verbs that need only the overlap map.
#[derive(Debug, Default, Args)]
pub(crate) struct MapArgs {
    #[command(flatten)]
    map: OverlapMapArgs,
    #[command(flatten)]
    file: ConfigFileArgs,
}

/// The overlap map and the tool registry.
#[derive(Debug, Default, Args)]
pub(crate) struct ToolSourceArgs {
    #[command(flatten)]
    registry: RegistryArgs,
    #[command(flatten)]
    map: MapArgs,
}

const LIST_AFTER_HELP: &str = "\
Examples:
  karat overlap list                # List the declared overlaps
  karat overlap list --format json  # Print them as JSON";

#[derive(Debug, Default, Args)]
#[command(after_help = LIST_AFTER_HELP)]
pub(crate) struct OverlapListArgs {
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) source: MapArgs,
}

const SUGGEST_AFTER_HELP: &str = "\
Similarity is the cosine of the weighted words in the names and descriptions of two tools. Pairs \
that name each other or that were confused in stored results are always suggested.

Examples:
  karat overlap suggest                 # Suggest overlaps to declare
  karat overlap suggest --at-least 0.5  # Suggest only very similar tools";

#[derive(Debug, Args)]
#[command(after_help = SUGGEST_AFTER_HELP)]
pub(crate) struct OverlapSuggestArgs {
    /// Minimum similarity of two tools, from 0 to 1
    #[arg(long, value_name = "NUMBER", default_value_t = karat_tools::overlap::DEFAULT_MIN_SIMILARITY)]
    pub(crate) at_least: f64,
    /// Maximum number to show; 0 for all [default: 20, or all with --format json]
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    output: OutputDirArgs,
    #[command(flatten)]
    source: ToolSourceArgs,
}

const ADD_AFTER_HELP: &str = "\
Examples:
  karat overlap add get_weather get_forecast       # Declare an overlap
  karat overlap add a b c --cluster                # Declare a cluster
  karat overlap add a b --reason \"both read mail\"  # Give a reason";

#[derive(Debug, Args)]
#[command(after_help = ADD_AFTER_HELP)]
pub(crate) struct OverlapAddArgs {
    /// Name of a tool
    pub(crate) tool: String,
    /// Tools that overlap with it
    #[arg(required = true)]
    pub(crate) others: Vec<String>,
    /// Declare one cluster of all tools (three or more) instead of overlaps with the first
    #[arg(long)]
    pub(crate) cluster: bool,
    /// Reason for the overlap, appended to an existing one
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) reason: Option<String>,
    /// Convert a map with a list under 'tools' to the format that karat edits
    #[arg(long)]
    pub(crate) convert: bool,
    #[command(flatten)]
    pub(crate) source: ToolSourceArgs,
}

const REMOVE_AFTER_HELP: &str = "\
Examples:
  karat overlap remove get_weather get_forecast  # Remove an overlap
  karat overlap remove a b c --cluster           # Remove a cluster";

#[derive(Debug, Args)]
#[command(after_help = REMOVE_AFTER_HELP)]
pub(crate) struct OverlapRemoveArgs {
    /// Name of a tool
    pub(crate) tool: String,
    /// Tools that no longer overlap with it
    #[arg(required = true)]
    pub(crate) others: Vec<String>,
    /// Remove the cluster of all tools instead of overlaps with the first
    #[arg(long)]
    pub(crate) cluster: bool,
    /// Convert a map with a list under 'tools' to the format that karat edits
    #[arg(long)]
    pub(crate) convert: bool,
    #[command(flatten)]
    pub(crate) source: MapArgs,
}
