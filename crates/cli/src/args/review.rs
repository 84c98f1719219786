//! Arguments of `karat review`.

use clap::Args;

use super::{AuthorArgs, StoreArgs, TraceFilterArgs};

const AFTER_HELP: &str = "\
Keys:
  g good  b bad  n neutral  s skip  u undo  t note  f full  ? help  q quit
  Arrow keys, Space and Enter scroll. Ratings are saved immediately.

Examples:
  karat review                        # Rate the most informative traces first
  karat review --since 7d --limit 40  # Rate up to 40 traces of the last week
  karat review --eval tone            # Rate traces that the eval tone judged";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ReviewArgs {
    #[command(flatten)]
    pub(crate) author: AuthorArgs,
    /// Only traces that this eval has judged, most informative first
    #[arg(long, value_name = "NAME")]
    pub(crate) eval: Option<String>,
    /// Show verdicts before you rate; may bias your ratings
    #[arg(long)]
    pub(crate) show_verdicts: bool,
    /// Maximum number of traces; 0 for all [default: all]
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    #[command(flatten)]
    pub(crate) filter: TraceFilterArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}
