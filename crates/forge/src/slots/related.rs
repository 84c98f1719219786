//! Tools that are related to the tool under test, by declaration and by similarity.

use karat_tools::overlap::DEFAULT_MIN_SIMILARITY;
use karat_tools::similarity::SimilarityIndex;

use crate::Brief;

/// Maximum number of tools that are related by similarity alone.
const MAX_SIMILAR: usize = 5;

/// Returns the related tools by priority: declared overlaps, members of the same clusters, then tools with a similar
/// name and description, most similar first.
pub(super) fn related(brief: &Brief) -> Vec<String> {
    let mut related: Vec<String> = Vec::new();
    let mut add = |name: &str| {
        let is_new = name != brief.tool.name && !related.iter().any(|known| known == name);
        if is_new && brief.registry.tool(name).is_some() {
            related.push(name.to_owned());
        }
    };
    brief.overlaps.iter().for_each(|overlap| add(&overlap.tool));
    brief.clusters.iter().flatten().for_each(|name| add(name));
    for name in &similar(brief) {
        add(name);
    }
    related
}

fn similar(brief: &Brief) -> Vec<String> {
    let tools = brief.registry.tools();
    let texts = tools.iter().map(|tool| format!("{} {}", tool.name, tool.description.as_deref().unwrap_or_default()));
    let texts: Vec<String> = texts.collect();
    let similarity = SimilarityIndex::of(texts.iter().map(String::as_str));
    let Some(own) = tools.iter().position(|tool| tool.name == brief.tool.name) else {
        return Vec::new();
    };
    let scored =
        (0..tools.len()).filter(|&index| index != own).map(|index| (similarity.compare(own, index).score, index));
    let mut scored: Vec<(f64, usize)> = scored.filter(|(score, _)| *score >= DEFAULT_MIN_SIMILARITY).collect();
    scored.sort_by(|left, right| right.0.total_cmp(&left.0).then(left.1.cmp(&right.1)));
    scored.into_iter().take(MAX_SIMILAR).map(|(_, index)| tools[index].name.clone()).collect()
}
