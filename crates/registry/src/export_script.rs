//! Scripts that users run themselves to export the tools of a module as JSON.

/// The language of a module that defines tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptLanguage {
    Python,
    /// JavaScript, and TypeScript that Node can run.
    Node,
}

/// Returns a script that imports a module and prints its tools in a shape that [`crate::read_json`] reads.
///
/// karat only prints it, since running it runs the project's code.
pub fn export_script(language: ScriptLanguage) -> &'static str {
    match language {
        ScriptLanguage::Python => include_str!("export_script/python.py"),
        ScriptLanguage::Node => include_str!("export_script/node.mjs"),
    }
}
