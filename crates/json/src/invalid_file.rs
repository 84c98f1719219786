//! A file that cannot be used, with every problem at its place.

use crate::Finding;

/// The text of an invalid file and what is wrong with it.
#[derive(Debug, Clone)]
pub struct InvalidFile {
    /// The file as the user would name it.
    pub name: String,
    /// The text that the findings' places count in.
    pub text: String,
    pub findings: Vec<Finding>,
}

impl InvalidFile {
    pub fn new(name: &str, bytes: &[u8], findings: Vec<Finding>) -> Self {
        let text = String::from_utf8_lossy(without_bom(bytes)).into_owned();
        Self { name: name.to_owned(), text, findings }
    }
}

/// Places are counted in the text without its byte order mark.
pub fn without_bom(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes)
}
