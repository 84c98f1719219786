//! Overlaps that should be declared: tools that are alike, name each other, or were confused.

use karat_core::registry::GapKind;
use karat_project::{discover_any, load_all, read_overlap_map, result_paths};
use karat_tools::confusion::Confusion;
use karat_tools::overlap::Suggestions;

use crate::confusion::{RunChoice, read_confusion};
use crate::context::Context;
use crate::error::Error;

#[derive(Debug)]
pub struct Suggested {
    pub suggestions: Suggestions,
    /// Whether there are earlier results, from which confusion is measured.
    pub measured: bool,
    /// Some tools could not be read, so that there may be more suggestions.
    pub has_gaps: bool,
    /// A part of the tools is broken.
    pub is_broken: bool,
}

/// Proposes overlaps of tools that are at least so alike, from 0 to 1.
pub async fn suggest(at_least: f64, context: &Context<'_>) -> Result<Suggested, Error> {
    let Some(registry) = context.list_tools().await? else {
        return Err(Error::invalid("there is no tool registry, so there is nothing to compare")
            .hint("set 'toolRegistryPath' in karat.json, or give --tool-registry-path"));
    };
    let map = read_overlap_map(&context.settings.overlap_map)?;
    let confusion = measured_confusion(context)?;
    Ok(Suggested {
        suggestions: karat_tools::overlap::suggest(&registry, map.as_ref(), confusion.as_ref(), at_least),
        measured: confusion.is_some(),
        has_gaps: !registry.gaps().is_empty(),
        is_broken: registry.gaps().iter().any(|gap| gap.kind == GapKind::Broken),
    })
}

/// Counts which tools were called for which, where there are results.
fn measured_confusion(context: &Context<'_>) -> Result<Option<Confusion>, Error> {
    let layout = &context.settings.layout;
    if result_paths(&layout.output_dir).is_empty() {
        return Ok(None);
    }
    let (suites, _) = load_all(discover_any(&[], layout, &layout.here)?)?;
    let measured = read_confusion(&suites, RunChoice::Newest, context)?;
    Ok((measured.results > 0).then_some(measured.confusion))
}
