//! Suggests overlaps of tools that are similar, mention each other or were confused.

use karat_cases::registry::GapKind;
use karat_project::{discover_or_empty, load_all, read_overlap_map, result_paths};
use karat_tools::confusion::Confusion;
use karat_tools::overlap::{Suggestion, Suggestions, shell_quote};
use schemars::JsonSchema;
use serde::Serialize;

use crate::confusion::{RunChoice, read_confusion};
use crate::context::Context;
use crate::error::Error;

#[derive(Debug)]
pub struct SuggestOutcome {
    pub report: SuggestionReport,
    /// Parts of the registry could not be read, so there may be more suggestions.
    pub has_gaps: bool,
    /// A part of the registry is broken.
    pub is_broken: bool,
}

/// Suggestions: the most often confused pairs first, then the most similar ones.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "karat overlap suggestions")]
pub struct SuggestionReport {
    /// Minimum similarity of a suggested pair, unless it was confused or names each other.
    pub at_least: f64,
    /// Whether there are results in which confusion was measured.
    pub measured: bool,
    /// Number of suggestions, including those that are not listed.
    pub total: usize,
    /// Number of pairs that are not suggested because they are declared already.
    pub declared: usize,
    /// Tools without a description, compared by name only.
    pub without_description: Vec<String>,
    pub suggestions: Vec<ReportedSuggestion>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportedSuggestion {
    pub tools: (String, String),
    /// From 0 to 1: the cosine of the weights of the words in their names and descriptions.
    pub score: f64,
    /// Words that both tools share, highest weight first.
    pub shared_words: Vec<String>,
    /// Tools of the pair whose description names the other.
    pub named_by: Vec<String>,
    /// How often one tool was called where the other was expected.
    pub confused: Vec<ConfusionCount>,
    /// Command that declares the overlap.
    pub command: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfusionCount {
    pub expected: String,
    pub called: String,
    pub count: u64,
}

/// Suggests overlaps of tools with at least this similarity, from 0 to 1; lists up to `limit` of them.
pub async fn suggest(min_similarity: f64, limit: usize, context: &Context<'_>) -> Result<SuggestOutcome, Error> {
    let Some(registry) = context.list_tools().await? else {
        return Err(Error::invalid("no tool registry is configured")
            .hint("pass --tool-registry-path, or set 'toolRegistryPath' in karat.json"));
    };
    let map = read_overlap_map(&context.settings.overlap_map)?;
    let confusion = measured_confusion(context)?;
    let suggestions = karat_tools::overlap::suggest(&registry, map.as_ref(), confusion.as_ref(), min_similarity);
    Ok(SuggestOutcome {
        report: SuggestionReport::of(suggestions, min_similarity, confusion.is_some(), limit),
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

impl SuggestionReport {
    fn of(suggestions: Suggestions, at_least: f64, measured: bool, limit: usize) -> Self {
        Self {
            at_least,
            measured,
            total: suggestions.list.len(),
            declared: suggestions.declared,
            without_description: suggestions.without_description,
            suggestions: suggestions.list.into_iter().take(limit).map(ReportedSuggestion::of).collect(),
        }
    }
}

impl ReportedSuggestion {
    fn of(suggestion: Suggestion) -> Self {
        let Suggestion { tools: (first, second), score, shared_words, named_by, confused } = suggestion;
        let counts = [(&first, &second, confused.0), (&second, &first, confused.1)];
        let confused = counts.into_iter().filter(|(_, _, count)| *count > 0).map(|(expected, called, count)| {
            ConfusionCount { expected: expected.clone(), called: called.clone(), count }
        });
        Self {
            confused: confused.collect(),
            command: format!("karat overlap add {} {}", shell_quote(&first), shell_quote(&second)),
            tools: (first, second),
            score,
            shared_words,
            named_by,
        }
    }
}
