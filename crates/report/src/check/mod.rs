//! Findings in eval files, tools and eval functions, as text.

mod functions;
mod issues;
mod rules;

pub use functions::{checked_file_text, checked_functions_text};
pub use issues::check_text;
pub use rules::rules_text;
