//! Whether a suite still fits the tool it was written for.

use crate::case::{EvalFile, Metadata};
use crate::registry::{Registry, Tool, ToolField};

/// One way in which a suite may be out of date, or why that is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Staleness {
    DescriptionChanged {
        tool: String,
        generated: String,
        current: String,
    },
    /// The suite was made for a description, and the tool has none any more.
    DescriptionGone {
        tool: String,
        generated: String,
    },
    RegistryGrown {
        generated: u64,
        current: u64,
    },
    MajorVersionChanged {
        tool: String,
        generated: String,
        current: String,
    },
    NoRegistry {
        tool: String,
    },
    ToolMissing {
        tool: String,
    },
    /// The registry has no such tool, but a part of it could not be read.
    ToolUnseen {
        tool: String,
    },
    /// The tool's description shows only when its source is run.
    DescriptionUnknown {
        tool: String,
        why: String,
    },
    /// The overlap map is not the one that the acceptable sets were written by.
    OverlapMapChanged {
        tool: String,
        generated: String,
        current: String,
    },
}

impl Staleness {
    /// Tells whether the suite is out of date, not just unknown.
    pub fn is_stale(&self) -> bool {
        match self {
            Staleness::DescriptionChanged { .. }
            | Staleness::DescriptionGone { .. }
            | Staleness::RegistryGrown { .. }
            | Staleness::MajorVersionChanged { .. } => true,
            Staleness::NoRegistry { .. }
            | Staleness::ToolMissing { .. }
            | Staleness::ToolUnseen { .. }
            | Staleness::DescriptionUnknown { .. }
            // Worth a look; what makes a suite stale is a contract with other runners, and this is not in it.
            | Staleness::OverlapMapChanged { .. } => false,
        }
    }

    /// Returns the text of the result file.
    pub fn warning(&self) -> String {
        match self {
            Staleness::DescriptionChanged { tool, generated, current } => format!(
                "Evals for {tool} generated against description hash {generated}, current is {current}. Results may \
                 not reflect current routing contract."
            ),
            Staleness::DescriptionGone { tool, generated } => format!(
                "Evals for {tool} generated against description hash {generated}, now it has no description. Results \
                 may not reflect current routing contract."
            ),
            Staleness::RegistryGrown { generated, current } => format!(
                "Registry has grown from {generated} to {current} tools. Labeled evals may have under-specified \
                 toolsAcceptable sets."
            ),
            Staleness::MajorVersionChanged { tool, generated, current } => format!(
                "Tool {tool} is version {current}, evals were generated for {generated}. Schema may have changed."
            ),
            Staleness::NoRegistry { tool } => {
                format!("No tool registry, so it is not known whether the evals for {tool} are stale.")
            }
            Staleness::ToolMissing { tool } => {
                format!("Tool {tool} is not in the registry, so it is not known whether its evals are stale.")
            }
            Staleness::ToolUnseen { tool } => format!(
                "Parts of the tool registry could not be read, {tool} perhaps among them, so it is not known whether \
                 its evals are stale."
            ),
            Staleness::DescriptionUnknown { tool, why } => format!(
                "The description of {tool} is not known ({why}), so it is not known whether it is still the one that \
                 the evals were generated against."
            ),
            Staleness::OverlapMapChanged { tool, generated, current } => format!(
                "Evals for {tool} generated against overlap map {generated}, current is {current}. Acceptable sets may \
                 miss a neighbour."
            ),
        }
    }

    /// Says how the suite is brought up to date, where it is out of date.
    pub fn renewal(&self) -> Option<String> {
        let (key, current) = match self {
            Staleness::DescriptionChanged { current, .. } => ("descriptionHash", format!("\"{current}\"")),
            Staleness::RegistryGrown { current, .. } => ("registrySize", current.to_string()),
            Staleness::MajorVersionChanged { current, .. } => ("toolVersion", format!("\"{current}\"")),
            Staleness::OverlapMapChanged { current, .. } => ("overlapMapVersion", format!("\"{current}\"")),
            Staleness::DescriptionGone { tool, .. } => return Some(format!("describe '{tool}' again")),
            Staleness::NoRegistry { .. }
            | Staleness::ToolMissing { .. }
            | Staleness::ToolUnseen { .. }
            | Staleness::DescriptionUnknown { .. } => return None,
        };
        Some(format!("look the cases over, then set '{key}' to {current}"))
    }

    /// Returns the line of the console summary.
    pub fn console_line(&self) -> String {
        match self {
            Staleness::DescriptionChanged { generated, current, .. } => {
                format!("Description hash mismatch (generated: {generated}, current: {current})")
            }
            Staleness::DescriptionGone { generated, .. } => {
                format!("Description hash mismatch (generated: {generated}, current: no description)")
            }
            Staleness::RegistryGrown { generated, current } => {
                format!("Registry growth (generated: {generated} tools, current: {current})")
            }
            Staleness::MajorVersionChanged { generated, current, .. } => {
                format!("Major version mismatch (generated: {generated}, current: {current})")
            }
            Staleness::NoRegistry { .. } => "Staleness unknown: no tool registry".to_owned(),
            Staleness::ToolMissing { tool } => format!("Staleness unknown: {tool} is not in the registry"),
            Staleness::ToolUnseen { tool } => {
                format!("Staleness unknown: {tool} is not in what could be read of the registry")
            }
            Staleness::DescriptionUnknown { tool, .. } => {
                format!("Staleness unknown: the description of {tool} shows only when its source is run")
            }
            Staleness::OverlapMapChanged { generated, current, .. } => {
                format!("Overlap map changed (generated: {generated}, current: {current})")
            }
        }
    }

    /// Returns a fragment that fits behind the file's name; of what is not known, the line of the summary.
    pub fn sentence(&self) -> String {
        match self {
            Staleness::DescriptionChanged { tool, generated, current } => {
                format!("made for description {generated} of {tool}, which is {current} now")
            }
            Staleness::DescriptionGone { tool, generated } => {
                format!("made for description {generated} of {tool}, which has none now")
            }
            Staleness::RegistryGrown { generated, current } => {
                format!("the registry grew from {generated} to {current} tools: more of them may be acceptable")
            }
            Staleness::MajorVersionChanged { tool, generated, current } => {
                format!("made for version {generated} of {tool}, which is {current} now")
            }
            Staleness::OverlapMapChanged { generated, current, .. } => {
                format!("made for overlap map {generated}, which is {current} now")
            }
            Staleness::NoRegistry { .. }
            | Staleness::ToolMissing { .. }
            | Staleness::ToolUnseen { .. }
            | Staleness::DescriptionUnknown { .. } => self.console_line(),
        }
    }
}

/// What a result says of the tool as it is now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CurrentTool {
    pub name: Option<String>,
    pub version: Option<String>,
    pub description_hash: Option<String>,
    /// Why there is no hash, where there is a description.
    pub description_unknown: Option<String>,
    /// How many tools there are, or at least are.
    pub registry_size: Option<u64>,
    /// Whether a part of the registry could not be read, so that there may be more tools.
    pub has_gaps: bool,
}

impl CurrentTool {
    pub fn of(file: &EvalFile, registry: Option<&Registry>) -> Self {
        let tool = registry.and_then(|registry| registry.find(&file.tool_name));
        Self {
            name: tool.map(|tool| tool.name.clone()),
            version: tool.and_then(|tool| tool.version.get().cloned()),
            description_hash: tool.and_then(Tool::description_hash),
            description_unknown: tool
                .and_then(|tool| tool.unknown(ToolField::Description))
                .map(|unknown| unknown.why.clone()),
            registry_size: registry.map(|registry| registry.tools().len() as u64),
            has_gaps: registry.is_some_and(|registry| !registry.gaps().is_empty()),
        }
    }
}

/// Compares a suite's metadata with the tool as it is now; without metadata there is nothing to compare.
pub fn check_staleness(file: &EvalFile, current: &CurrentTool) -> Vec<Staleness> {
    let Some(metadata) = &file.metadata else {
        return Vec::new();
    };
    let tool = file.tool_name.clone();
    let Some(registry_size) = current.registry_size else {
        // A file that says nothing to compare with misses nothing.
        return if is_comparable(metadata) { vec![Staleness::NoRegistry { tool }] } else { Vec::new() };
    };
    let mut found = Vec::new();
    if current.name.is_none() {
        let tool = tool.clone();
        found.push(if current.has_gaps { Staleness::ToolUnseen { tool } } else { Staleness::ToolMissing { tool } });
    }
    if let (Some(_), Some(why)) = (&metadata.description_hash, &current.description_unknown) {
        found.push(Staleness::DescriptionUnknown { tool: tool.clone(), why: why.clone() });
    } else if let (Some(generated), Some(hash)) = (&metadata.description_hash, &current.description_hash)
        && generated != hash
    {
        found.push(Staleness::DescriptionChanged {
            tool: tool.clone(),
            generated: generated.clone(),
            current: hash.clone(),
        });
    }
    if let (Some(generated), Some(_), None, None) =
        (&metadata.description_hash, &current.name, &current.description_hash, &current.description_unknown)
    {
        found.push(Staleness::DescriptionGone { tool: tool.clone(), generated: generated.clone() });
    }
    // With gaps the size is the least there can be: what has grown by that has grown.
    if let Some(generated) = metadata.registry_size
        && registry_size.saturating_mul(2) > generated.saturating_mul(3)
    {
        found.push(Staleness::RegistryGrown { generated, current: registry_size });
    }
    if let (Some(generated), Some(version)) = (&metadata.tool_version, &current.version)
        && let (Some(old), Some(new)) = (major(generated), major(version))
        && old != new
    {
        found.push(Staleness::MajorVersionChanged { tool, generated: generated.clone(), current: version.clone() });
    }
    found
}

/// Compares the overlap map that a suite was written by with the one that is there now.
pub fn check_overlap_version(file: &EvalFile, current: &str) -> Option<Staleness> {
    let generated = file.metadata.as_ref()?.overlap_map_version.as_ref()?;
    (generated != current).then(|| Staleness::OverlapMapChanged {
        tool: file.tool_name.clone(),
        generated: generated.clone(),
        current: current.to_owned(),
    })
}

fn is_comparable(metadata: &Metadata) -> bool {
    metadata.description_hash.is_some() || metadata.registry_size.is_some() || metadata.tool_version.is_some()
}

pub fn major(version: &str) -> Option<u64> {
    let version = version.trim().trim_start_matches(['v', 'V']);
    version.split(['.', '-', '+']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::case::Tier;
    use crate::registry::{Gap, GapKind, Known, ToolPlace, Unknown};

    fn file(metadata: Metadata) -> EvalFile {
        EvalFile {
            metadata: Some(metadata),
            tier: Tier::Golden,
            tool_name: "t".to_owned(),
            hash: String::new(),
            cases: Vec::new(),
        }
    }

    #[rstest]
    #[case("1.9.9", "2.0.0", true)]
    #[case("1.0.0", "1.9.0", false)]
    #[case("v1", "1.2", false)]
    #[case("v1", "v2", true)]
    #[case("latest", "2.0.0", false)]
    fn major_versions(#[case] generated: &str, #[case] current: &str, #[case] warns: bool) {
        let metadata = Metadata { tool_version: Some(generated.to_owned()), ..Metadata::default() };
        let current = CurrentTool {
            name: Some("t".to_owned()),
            version: Some(current.to_owned()),
            registry_size: Some(1),
            ..CurrentTool::default()
        };
        assert_eq!(!check_staleness(&file(metadata), &current).is_empty(), warns);
    }

    #[rstest]
    #[case(2, 3, false)]
    #[case(2, 4, true)]
    #[case(3, 4, false)]
    #[case(3, 5, true)]
    #[case(0, 1, true)]
    fn growth_past_one_half(#[case] generated: u64, #[case] size: u64, #[case] warns: bool) {
        let metadata = Metadata { registry_size: Some(generated), ..Metadata::default() };
        let current = CurrentTool { name: Some("t".to_owned()), registry_size: Some(size), ..CurrentTool::default() };
        assert_eq!(!check_staleness(&file(metadata), &current).is_empty(), warns);
    }

    #[test]
    fn a_description_that_is_gone_is_another_one() {
        let metadata = Metadata { description_hash: Some("x".to_owned()), ..Metadata::default() };
        let file = file(metadata);
        let tool = Tool { name: "t".to_owned(), ..Tool::default() };
        let found = check_staleness(&file, &CurrentTool::of(&file, Some(&Registry::of([tool]))));
        assert_eq!(found, [Staleness::DescriptionGone { tool: "t".to_owned(), generated: "x".to_owned() }]);
        assert!(found[0].is_stale());
    }

    #[test]
    fn what_is_not_known_is_said_and_is_not_stale() {
        let metadata = Metadata { description_hash: Some("x".to_owned()), ..Metadata::default() };
        let unknown = check_staleness(&file(metadata.clone()), &CurrentTool::default());
        assert_eq!(unknown, [Staleness::NoRegistry { tool: "t".to_owned() }]);
        let current = CurrentTool { registry_size: Some(3), ..CurrentTool::default() };
        let missing = check_staleness(&file(metadata), &current);
        assert_eq!(missing, [Staleness::ToolMissing { tool: "t".to_owned() }]);
        assert!(!missing[0].is_stale());
    }

    #[test]
    fn what_shows_only_at_run_time_is_neither_changed_nor_missing() {
        let place = ToolPlace { source: "t.ts".to_owned(), position: None };
        let description = Known::Unknown(Unknown { place: place.clone(), why: "a call".to_owned() });
        let tool = Tool { name: "t".to_owned(), description, ..Tool::default() };
        let metadata = Metadata { description_hash: Some("x".to_owned()), ..Metadata::default() };
        let file = file(metadata);
        let found = check_staleness(&file, &CurrentTool::of(&file, Some(&Registry::of([tool]))));
        assert_eq!(found, [Staleness::DescriptionUnknown { tool: "t".to_owned(), why: "a call".to_owned() }]);
        assert!(!found[0].is_stale());
        let mut registry = Registry::default();
        registry.add_gap(Gap { kind: GapKind::Unknown, place, what: "a loop".to_owned() });
        let found = check_staleness(&file, &CurrentTool::of(&file, Some(&registry)));
        assert_eq!(found, [Staleness::ToolUnseen { tool: "t".to_owned() }]);
    }

    #[test]
    fn another_overlap_map_is_said() {
        let map = "0123456789ab".to_owned();
        let of = |version: &str| {
            let version = Some(version.to_owned());
            check_overlap_version(&file(Metadata { overlap_map_version: version, ..Metadata::default() }), &map)
        };
        assert_eq!(of(&map), None);
        assert!(of("000000000000").is_some_and(|changed| !changed.is_stale() && changed.warning().contains(&map)));
        assert_eq!(check_overlap_version(&file(Metadata::default()), &map), None);
    }
}
