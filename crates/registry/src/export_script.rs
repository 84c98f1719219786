//! Scripts that a user runs with their own interpreter to get the exact tools of a module as JSON.

/// The language of a module that defines tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptLanguage {
    Python,
    /// JavaScript and TypeScript, as far as Node runs it.
    Node,
}

/// Returns a script that imports a module and prints its tools in a shape that [`crate::read_json`] reads.
///
/// karat only prints it: running it runs the project's code, which is for the user to decide.
pub fn export_script(language: ScriptLanguage) -> &'static str {
    match language {
        ScriptLanguage::Python => include_str!("export_script/python.py"),
        ScriptLanguage::Node => include_str!("export_script/node.mjs"),
    }
}
