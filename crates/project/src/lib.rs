//! The files of a user's project: eval files, results, the tool lock, the overlap map and archives.
//!
//! Finds, reads and atomically writes them, and lets one process edit them at a time. Never evaluates their contents
//! and never prints.

mod atomic;
mod discover;
mod edit_lock;
mod error;
mod ignored;
mod layout;
mod load;
mod lock;
mod overlap;
mod read;
mod regression;
mod result_file;
mod results;
mod runs;
mod tables;

pub use atomic::{check_writable_folder, create_file, replace_file, write_atomically};
pub use discover::{
    DiscoveredFiles, EvalPath, discover, discover_all, discover_archives, discover_or_empty, looks_like_eval_file,
};
pub use edit_lock::EditLock;
pub use error::{Error, ErrorKind};
pub use ignored::IgnoredFile;
pub use layout::{Baseline, Layout, PathSetting};
pub use load::{
    LoadedRubric, LoadedSuite, load_all, parse_json, parse_suite_file, read_bytes, read_json_setting, read_setting,
    read_text,
};
pub use lock::{lock_path, read_lock};
pub use overlap::read_overlap_map;
pub use read::read_file;
pub use regression::{archive_path, archived_ids, read_archive, regression_ids};
pub use result_file::ResultFileReporter;
pub use results::{
    EarlierResults, SuiteName, read_result, read_suite_result, result_paths, result_paths_in_tree, results_of,
};
pub use runs::{ResultFile, Run, list_results, list_runs, read_head};
pub use tables::table_files;
