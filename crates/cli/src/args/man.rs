//! Arguments of `karat man`.

use std::path::PathBuf;

use clap::Args;

const AFTER_HELP: &str = "\
Examples:
  karat man --dir ~/.local/share/man/man1  # Install the manual pages
  karat man --dir dist/man                 # Write them to a folder";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ManArgs {
    /// Folder to write to; it is created if it does not exist
    #[arg(long, value_name = "FOLDER")]
    pub(crate) dir: PathBuf,
}
