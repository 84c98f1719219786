//! What can be said to `karat review`.

use clap::Args;

use super::{AuthorArgs, StoreArgs, TraceFilterArgs};

const KEYS: &str = "\
Keys:
  g good   b bad   n neutral   s skip   u undo   t note   f full   ? help   q quit
  Arrows, space and Enter scroll. Every rating is stored at once.";

#[derive(Debug, Args)]
#[command(after_help = KEYS)]
pub(crate) struct ReviewArgs {
    #[command(flatten)]
    pub(crate) author: AuthorArgs,
    /// Only traces that this eval has judged; what it says of them decides the order
    #[arg(long, value_name = "NAME")]
    pub(crate) eval: Option<String>,
    /// Show what evals say of a trace before it is rated, which may sway you
    #[arg(long)]
    pub(crate) show_verdicts: bool,
    /// At most this many, the most informative
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) limit: Option<u64>,
    #[command(flatten)]
    pub(crate) filter: TraceFilterArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}
