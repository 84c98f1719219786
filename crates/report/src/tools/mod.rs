//! The agent's tools and their changes, as text.

mod change;
mod list;

pub use change::{changes_text, tools_diff_text};
pub use karat_json::text::counted;
pub use list::tool_list_text;
