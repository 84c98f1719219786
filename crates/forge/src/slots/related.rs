//! The tools that belong together with ours: declared first, then measured.

use karat_tools::overlap::USUALLY_ALIKE;
use karat_tools::similarity::Likeness;

use crate::Brief;

/// How many tools are taken for their similarity alone.
const MAX_SIMILAR: usize = 5;

/// Returns the other tools in the order in which cases name them: declared neighbours, members of our clusters, then
/// those with a similar name and description, the most similar first. Unrelated tools are not among them.
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
    let likeness = Likeness::of(texts.iter().map(String::as_str));
    let Some(own) = tools.iter().position(|tool| tool.name == brief.tool.name) else {
        return Vec::new();
    };
    let scored =
        (0..tools.len()).filter(|&place| place != own).map(|place| (likeness.between(own, place).score, place));
    let mut scored: Vec<(f64, usize)> = scored.filter(|(score, _)| *score >= USUALLY_ALIKE).collect();
    scored.sort_by(|left, right| right.0.total_cmp(&left.0).then(left.1.cmp(&right.1)));
    scored.into_iter().take(MAX_SIMILAR).map(|(_, place)| tools[place].name.clone()).collect()
}
