//! What can be said to `karat overlap`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{ConfigArgs, OutputFormat};

const MEASURE: &str = "\
    Two tools are as alike as the words of their names and descriptions: the cosine of the words' weights, from 0 (no \
    word in common) to 1 (all), where a word weighs ln(1 + N/n) if n of the N tools have it. A pair whose descriptions \
    name each other, or that was confused in stored results, is proposed however unlike it is.";

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct OverlapArgs {
    #[command(subcommand)]
    pub(crate) action: Option<OverlapAction>,
    #[command(flatten)]
    pub(crate) list: OverlapListArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum OverlapAction {
    /// List which tools are declared to be easily taken for each other (the default)
    List(OverlapListArgs),
    /// Propose overlaps: tools with alike descriptions, that name each other, or that were called for each other
    Suggest(OverlapSuggestArgs),
    /// Declare that tools are easily taken for each other
    Add(OverlapAddArgs),
    /// Take a declaration back
    Remove(OverlapRemoveArgs),
}

/// Where the map is; the rest of the configuration comes from karat.json and variables.
#[derive(Debug, Default, Args)]
pub(crate) struct MapArgs {
    /// Read this configuration instead of the nearest karat.json
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Which tools are easily taken for each other [default: evals/overlap-map.json]
    #[arg(long, value_name = "FILE")]
    pub(crate) overlap_map_path: Option<PathBuf>,
}

impl MapArgs {
    pub(crate) fn config_args(&self) -> ConfigArgs {
        ConfigArgs {
            config: self.config.clone(),
            overlap_map_path: self.overlap_map_path.clone(),
            ..ConfigArgs::default()
        }
    }
}

/// Where the map and the tools are.
#[derive(Debug, Default, Args)]
pub(crate) struct ToolSourceArgs {
    #[command(flatten)]
    pub(crate) map: MapArgs,
    /// The agent's tools: a JSON, TypeScript, JavaScript or Python file or a folder of them, mcp:stdio:COMMAND or
    /// mcp:URL [default: tools/tools.exports.ts]
    #[arg(long, value_name = "PATH")]
    pub(crate) tool_registry_path: Option<PathBuf>,
    /// A program of your own that lists the agent's tools, as JSON: {"command": […], "timeoutMs": …}
    #[arg(long, value_name = "JSON", conflicts_with = "tool_registry_path")]
    pub(crate) tool_registry: Option<String>,
    /// MCP servers, as JSON: {"NAME": {"command": […], "env": {…}, "cwd": …}} or {"NAME": {"url": …, "headers": {…}}}
    #[arg(long, value_name = "JSON")]
    pub(crate) mcp_servers: Option<String>,
}

impl ToolSourceArgs {
    pub(crate) fn config_args(&self) -> ConfigArgs {
        let mut config = self.map.config_args();
        config.tool_registry_path.clone_from(&self.tool_registry_path);
        config.tool_registry.clone_from(&self.tool_registry);
        config.tools.mcp_servers.clone_from(&self.mcp_servers);
        config
    }
}

#[derive(Debug, Default, Args)]
pub(crate) struct OverlapListArgs {
    /// What stdout is
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) source: MapArgs,
}

#[derive(Debug, Args)]
#[command(after_help = MEASURE)]
pub(crate) struct OverlapSuggestArgs {
    /// How alike two tools are at least, from 0 to 1
    #[arg(long, value_name = "0.NN", default_value_t = karat_tools::overlap::USUALLY_ALIKE)]
    pub(crate) at_least: f64,
    /// Show at most so many [default: 20 for people, all for programs]
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// What stdout is
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    /// Where results are looked for, to measure confusion [default: evals/results/]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) output_dir: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) source: ToolSourceArgs,
}

#[derive(Debug, Args)]
pub(crate) struct OverlapAddArgs {
    /// A tool
    pub(crate) tool: String,
    /// The tools that are easily taken for it
    #[arg(required = true)]
    pub(crate) others: Vec<String>,
    /// Declare that all of them belong together (three or more), instead of overlaps with the first
    #[arg(long)]
    pub(crate) cluster: bool,
    /// Why they are taken for each other; joined to what is said already
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) reason: Option<String>,
    /// Rewrite a map of the other shape (a list under 'tools') in the shape that karat edits
    #[arg(long)]
    pub(crate) convert: bool,
    #[command(flatten)]
    pub(crate) source: ToolSourceArgs,
}

#[derive(Debug, Args)]
pub(crate) struct OverlapRemoveArgs {
    /// A tool
    pub(crate) tool: String,
    /// The tools that it does not overlap any more
    #[arg(required = true)]
    pub(crate) others: Vec<String>,
    /// Take back the cluster of all of them, instead of overlaps with the first
    #[arg(long)]
    pub(crate) cluster: bool,
    /// Rewrite a map of the other shape (a list under 'tools') in the shape that karat edits
    #[arg(long)]
    pub(crate) convert: bool,
    #[command(flatten)]
    pub(crate) source: MapArgs,
}
