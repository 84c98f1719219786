//! Validates eval functions without running them.

use std::ops::Range;
use std::sync::Arc;

use karat_json::Position;
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::Context;
use crate::error::Error;
use crate::functions::{MatchedFile, find_function_files, no_functions};
use crate::hint::Hint;

/// Maximum length of a quoted source line, in characters.
const MAX_LINE_CHARS: usize = 1000;

pub struct Request {
    /// Files, folders and names of functions; all functions of the project if empty.
    pub functions: Vec<String>,
}

/// The output of `karat eval check --format json`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "karat eval check report")]
pub struct EvalCheckReport {
    /// The files in the order of the arguments; files of a folder are sorted by name.
    pub files: Vec<CheckedFile>,
}

/// The file of an eval function.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckedFile {
    pub path: String,
    /// The name of the eval function; null if it cannot run.
    pub function: Option<String>,
    /// The first twelve hex digits of the SHA-256 of the source and of the optional features that it uses; null if the
    /// function cannot run.
    pub code_hash: Option<String>,
    /// The error if the file could not be read, else null.
    pub error: Option<String>,
    /// Hints for the error.
    #[serde(skip)]
    pub hints: Vec<Hint>,
    /// The problems, in source order.
    pub findings: Vec<FileFinding>,
    /// The source text that findings refer to.
    #[serde(skip)]
    pub text: Arc<str>,
}

/// A problem in the source of an eval function.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileFinding {
    /// The rule's name: syntax, import, name, dunder, function, return or size.
    pub rule: String,
    pub message: String,
    /// How to fix it, or null.
    pub help: Option<String>,
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    pub end_line: usize,
    /// From 1, in characters; exclusive.
    pub end_column: usize,
    /// The line in which the finding starts; null if it has more than 1000 characters.
    pub source_line: Option<String>,
    /// The byte range in the file's text.
    #[serde(skip)]
    pub range: Range<usize>,
}

pub fn check_functions(request: &Request, context: &Context<'_>) -> Result<EvalCheckReport, Error> {
    let files = find_function_files(&request.functions, &context.settings)?;
    if files.is_empty() {
        return Err(no_functions(&context.settings));
    }
    Ok(EvalCheckReport { files: files.into_iter().map(CheckedFile::new).collect() })
}

impl CheckedFile {
    fn new(file: MatchedFile) -> Self {
        let checked = Self { path: file.display_path, ..Self::default() };
        let file = match file.file {
            Ok(file) => file,
            Err(Error { message, hints, .. }) => return Self { error: Some(message), hints, ..checked },
        };
        match file.function {
            Ok(function) => {
                let (name, hash) = (function.name.clone(), function.code_hash.clone());
                let warnings = function.warnings.iter().cloned();
                let findings = warnings.map(|finding| FileFinding::new(finding, &file.text)).collect();
                Self { function: Some(name), code_hash: Some(hash), findings, text: file.text, ..checked }
            }
            Err(findings) => {
                let findings = findings.into_iter().map(|finding| FileFinding::new(finding, &file.text)).collect();
                Self { findings, text: file.text, ..checked }
            }
        }
    }

    /// Whether the function can give a verdict.
    pub fn is_valid(&self) -> bool {
        self.function.is_some() && self.findings.is_empty()
    }
}

impl FileFinding {
    fn new(finding: karat_sandbox::Finding, text: &str) -> Self {
        let karat_sandbox::Finding { rule, message, help, range } = finding;
        let (start, end) = (Position::of(text, range.start), Position::of(text, range.end));
        let line_start = text[..range.start].rfind('\n').map_or(0, |end| end + 1);
        let line = text[line_start..].split('\n').next().unwrap_or_default().trim_end_matches('\r');
        Self {
            rule: rule.to_string(),
            message,
            help,
            line: start.line,
            column: start.column,
            end_line: end.line,
            end_column: end.column,
            source_line: (line.chars().count() <= MAX_LINE_CHARS).then(|| line.to_owned()),
            range,
        }
    }
}
