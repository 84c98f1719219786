//! Suggests overlaps of tools that are similar, mention each other or were confused.

use karat_core::registry::GapKind;
use karat_project::{discover_or_empty, load_all, read_overlap_map, result_paths};
use karat_tools::confusion::Confusion;
use karat_tools::overlap::Suggestions;

use crate::confusion::{RunChoice, read_confusion};
use crate::context::Context;
use crate::error::Error;

#[derive(Debug)]
pub struct Suggested {
    pub suggestions: Suggestions,
    /// Whether confusion was measured from earlier results.
    pub measured: bool,
    /// Parts of the registry could not be read, so there may be more suggestions.
    pub has_gaps: bool,
    /// A part of the registry is broken.
    pub is_broken: bool,
}

/// Suggests overlaps of tools with at least this similarity, from 0 to 1.
pub async fn suggest(min_similarity: f64, context: &Context<'_>) -> Result<Suggested, Error> {
    let Some(registry) = context.list_tools().await? else {
        return Err(Error::invalid("no tool registry is configured")
            .hint("pass --tool-registry-path, or set 'toolRegistryPath' in karat.json"));
    };
    let map = read_overlap_map(&context.settings.overlap_map)?;
    let confusion = measured_confusion(context)?;
    Ok(Suggested {
        suggestions: karat_tools::overlap::suggest(&registry, map.as_ref(), confusion.as_ref(), min_similarity),
        measured: confusion.is_some(),
        has_gaps: !registry.gaps().is_empty(),
        is_broken: registry.gaps().iter().any(|gap| gap.kind == GapKind::Broken),
    })
}

/// Measures confusion from the newest results; `None` without results.
fn measured_confusion(context: &Context<'_>) -> Result<Option<Confusion>, Error> {
    let layout = &context.settings.layout;
    if result_paths(&layout.output_dir).is_empty() {
        return Ok(None);
    }
    let (suites, _) = load_all(discover_or_empty(&[], layout, &layout.current_dir)?)?;
    let measured = read_confusion(&suites, RunChoice::Newest, context)?;
    Ok((measured.results > 0).then_some(measured.confusion))
}
