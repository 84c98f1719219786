//! An invalid file with its findings.

use crate::Finding;

/// The text of an invalid file and its problems.
#[derive(Debug, Clone)]
pub struct InvalidFile {
    /// The file's name for messages.
    pub name: String,
    /// The text that the findings' ranges refer to.
    pub text: String,
    pub findings: Vec<Finding>,
}

impl InvalidFile {
    pub fn new(name: &str, bytes: &[u8], findings: Vec<Finding>) -> Self {
        let text = String::from_utf8_lossy(without_bom(bytes)).into_owned();
        Self { name: name.to_owned(), text, findings }
    }
}

/// Strips a byte order mark. Ranges refer to the text without it.
pub fn without_bom(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes)
}
