//! A file's text as a [`Module`]: parsed by oxc, names resolved by scope, nothing run.

use std::path::Path;

use karat_core::source::Position;
use karat_core::text::shorten;
use oxc_allocator::Allocator;
use oxc_parser::{ParseOptions, Parser};
use oxc_semantic::SemanticBuilder;
use oxc_span::SourceType;

use super::declare::declare;
use super::lines::LineTable;
use super::nesting::{DEEPEST, nesting, tags};
use super::syntax::Module;

/// Larger than any source with tools in it; generated bundles are no place to read them from.
pub(super) const LARGEST: usize = 10 * 1024 * 1024;

/// Why a file gives no module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    pub position: Option<Position>,
    /// A lower-case fragment.
    pub what: String,
}

impl Failure {
    pub(super) fn whole(what: impl Into<String>) -> Self {
        Self { position: None, what: what.into() }
    }

    pub(super) fn too_large() -> Self {
        Self::whole(format!("the file is larger than {} MiB", LARGEST / 1024 / 1024))
    }
}

/// Parses a file. Nesting costs stack, so this wants a thread that has [`super::STACK`].
pub(super) fn parse(path: &Path, shown: &str, text: String) -> Result<Module, Failure> {
    if text.len() > LARGEST {
        return Err(Failure::too_large());
    }
    if nesting(&text) > DEEPEST {
        return Err(Failure::whole("the source is nested too deeply"));
    }
    let source_type = SourceType::from_path(path).map_err(|error| Failure::whole(error.to_string()))?;
    // React's habit: markup in files that are called `.js`.
    let has_markup = text.contains("</") || text.contains("/>");
    let source_type = if source_type.is_javascript() { source_type.with_jsx(has_markup) } else { source_type };
    if source_type.is_jsx() && tags(&text) > DEEPEST {
        return Err(Failure::whole("the source holds more markup than karat reads"));
    }
    let allocator = Allocator::default();
    let options = ParseOptions { allow_return_outside_function: true, ..ParseOptions::default() };
    let parsed = Parser::new(&allocator, &text, source_type).with_options(options).parse();
    if let Some(error) = parsed.diagnostics.errors().next() {
        // The first label is the place; others say what it has to do with.
        let offset = error.labels.first().map(oxc_span::LabeledSpan::offset);
        let position = offset.map(|offset| LineTable::new(text.clone()).position(offset as usize));
        let what = format!("the syntax is wrong: {}", fragment(&error.message));
        return Err(Failure { position, what });
    }
    if parsed.panicked {
        return Err(Failure::whole("the syntax is wrong"));
    }
    let built = SemanticBuilder::new().with_build_nodes(true).build(&parsed.program);
    let parts = declare(&built.semantic, &parsed.program);
    drop(built);
    Ok(Module {
        path: path.to_owned(),
        shown: shown.to_owned(),
        bindings: parts.bindings,
        exports: parts.exports,
        commonjs: parts.commonjs,
        registrations: parts.registrations,
        followed: parts.followed,
        listings: parts.listings,
        writes: parts.writes,
        imports: parts.imports,
        lines: LineTable::new(text),
    })
}

/// Returns a message of oxc's as a fragment that fits behind a colon.
fn fragment(message: &str) -> String {
    let message = message.trim().trim_end_matches('.');
    let mut characters = message.chars();
    let first = characters.next().map(|first| first.to_lowercase().to_string()).unwrap_or_default();
    // A name in capitals stays as it is.
    let keeps = message.split_whitespace().next().is_some_and(|word| word.chars().skip(1).any(char::is_uppercase));
    let text = if keeps { message.to_owned() } else { first + characters.as_str() };
    shorten(&text, 200).into_owned()
}
