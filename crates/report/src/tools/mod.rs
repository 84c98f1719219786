//! The agent's tools and their changes, for a person.

mod change;
mod list;

pub use change::{changes_text, tools_diff_text};
pub use karat_json::text::counted;
pub use list::tool_list_text;
