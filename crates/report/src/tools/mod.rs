//! The agent's tools and their changes, for a person.

mod change;
mod list;

pub use change::{changes_text, tools_diff_text};
pub use list::tool_list_text;

/// Returns a count with its noun.
pub fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
