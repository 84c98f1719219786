//! Checks whether a suite still matches the tool it was written for.

use karat_cases::registry::{Registry, Tool, ToolField};
use karat_cases::{EvalFile, Metadata};

/// A reason why a suite may be stale, or why that is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Staleness {
    DescriptionChanged {
        tool: String,
        generated: String,
        current: String,
    },
    /// The suite was written for a description, but the tool no longer has one.
    DescriptionRemoved {
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
    /// The tool is not in the readable part of the registry.
    ToolUnreadable {
        tool: String,
    },
    /// The tool's description is known only at run time of its source.
    DescriptionUnknown {
        tool: String,
        reason: String,
    },
    /// The acceptable sets were written for another overlap map.
    OverlapMapChanged {
        tool: String,
        generated: String,
        current: String,
    },
}

impl Staleness {
    /// Whether the suite is stale, as opposed to unknown.
    pub fn is_stale(&self) -> bool {
        match self {
            Staleness::DescriptionChanged { .. }
            | Staleness::DescriptionRemoved { .. }
            | Staleness::RegistryGrown { .. }
            | Staleness::MajorVersionChanged { .. } => true,
            Staleness::NoRegistry { .. }
            | Staleness::ToolMissing { .. }
            | Staleness::ToolUnreadable { .. }
            | Staleness::DescriptionUnknown { .. }
            // Only a warning: other runners of the same files do not count it as stale.
            | Staleness::OverlapMapChanged { .. } => false,
        }
    }

    /// Returns the warning for the result file.
    pub fn warning(&self) -> String {
        match self {
            Staleness::DescriptionChanged { tool, generated, current } => format!(
                "Evals for {tool} generated against description hash {generated}, current is {current}. Results may \
                 not reflect current routing contract."
            ),
            Staleness::DescriptionRemoved { tool, generated } => format!(
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
                format!("No tool registry, so whether the evals for {tool} are stale is unknown.")
            }
            Staleness::ToolMissing { tool } => {
                format!("Tool {tool} is not in the registry, so whether its evals are stale is unknown.")
            }
            Staleness::ToolUnreadable { tool } => format!(
                "Tool {tool} is not in the readable part of the tool registry, so whether its evals are stale is \
                 unknown."
            ),
            Staleness::DescriptionUnknown { tool, reason } => format!(
                "The description of {tool} is unknown ({reason}), so whether it changed since the evals were generated is \
                 unknown."
            ),
            Staleness::OverlapMapChanged { tool, generated, current } => format!(
                "Evals for {tool} generated against overlap map {generated}, current is {current}. Acceptable sets may \
                 miss a neighbour."
            ),
        }
    }

    /// Returns how to update the suite, if it is stale.
    pub fn update_hint(&self) -> Option<String> {
        let (key, current) = match self {
            Staleness::DescriptionChanged { current, .. } => ("descriptionHash", format!("\"{current}\"")),
            Staleness::RegistryGrown { current, .. } => ("registrySize", current.to_string()),
            Staleness::MajorVersionChanged { current, .. } => ("toolVersion", format!("\"{current}\"")),
            Staleness::OverlapMapChanged { current, .. } => ("overlapMapVersion", format!("\"{current}\"")),
            Staleness::DescriptionRemoved { tool, .. } => return Some(format!("add a description to '{tool}'")),
            Staleness::NoRegistry { .. }
            | Staleness::ToolMissing { .. }
            | Staleness::ToolUnreadable { .. }
            | Staleness::DescriptionUnknown { .. } => return None,
        };
        Some(format!("review the cases, then set '{key}' to {current}"))
    }

    /// Returns the line of the console summary.
    pub fn console_line(&self) -> String {
        match self {
            Staleness::DescriptionChanged { generated, current, .. } => {
                format!("Description hash mismatch (generated: {generated}, current: {current})")
            }
            Staleness::DescriptionRemoved { generated, .. } => {
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
            Staleness::ToolUnreadable { tool } => {
                format!("Staleness unknown: {tool} is not in the readable part of the registry")
            }
            Staleness::DescriptionUnknown { tool, .. } => {
                format!("Staleness unknown: the description of {tool} is known only at run time")
            }
            Staleness::OverlapMapChanged { generated, current, .. } => {
                format!("Overlap map changed (generated: {generated}, current: {current})")
            }
        }
    }

    /// Returns a fragment to follow the file's name.
    pub fn sentence(&self) -> String {
        match self {
            Staleness::DescriptionChanged { tool, generated, current } => {
                format!("written for description {generated} of {tool}, which is now {current}")
            }
            Staleness::DescriptionRemoved { tool, generated } => {
                format!("written for description {generated} of {tool}, which no longer has one")
            }
            Staleness::RegistryGrown { generated, current } => {
                format!("the registry grew from {generated} to {current} tools: more of them may be acceptable")
            }
            Staleness::MajorVersionChanged { tool, generated, current } => {
                format!("written for version {generated} of {tool}, which is now {current}")
            }
            Staleness::OverlapMapChanged { generated, current, .. } => {
                format!("written for overlap map {generated}, which is now {current}")
            }
            Staleness::NoRegistry { .. }
            | Staleness::ToolMissing { .. }
            | Staleness::ToolUnreadable { .. }
            | Staleness::DescriptionUnknown { .. } => self.console_line(),
        }
    }
}

/// The current state of a suite's tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CurrentTool {
    pub name: Option<String>,
    pub version: Option<String>,
    pub description_hash: Option<String>,
    /// Why the hash of an existing description is unknown.
    pub description_unknown: Option<String>,
    /// The number of tools, or a lower bound if there are gaps.
    pub registry_size: Option<u64>,
    /// Whether a part of the registry could not be read.
    pub has_gaps: bool,
}

impl CurrentTool {
    pub fn find(file: &EvalFile, registry: Option<&Registry>) -> Self {
        let tool = registry.and_then(|registry| registry.find(&file.tool_name));
        Self {
            name: tool.map(|tool| tool.name.clone()),
            version: tool.and_then(|tool| tool.version.get().cloned()),
            description_hash: tool.and_then(Tool::description_hash),
            description_unknown: tool
                .and_then(|tool| tool.unknown(ToolField::Description))
                .map(|unknown| unknown.reason.clone()),
            registry_size: registry.map(|registry| registry.tools().len() as u64),
            has_gaps: registry.is_some_and(|registry| !registry.gaps().is_empty()),
        }
    }
}

/// Compares a suite's metadata with the current state of its tool.
pub fn check_staleness(file: &EvalFile, current: &CurrentTool) -> Vec<Staleness> {
    let Some(metadata) = &file.metadata else {
        return Vec::new();
    };
    // File names have '-' in place of '_'.
    let tool = current.name.clone().unwrap_or_else(|| file.tool_name.clone());
    let Some(registry_size) = current.registry_size else {
        // Without metadata to compare, a missing registry does not matter.
        return if is_comparable(metadata) { vec![Staleness::NoRegistry { tool }] } else { Vec::new() };
    };
    let mut staleness = Vec::new();
    if current.name.is_none() {
        let tool = tool.clone();
        staleness.push(if current.has_gaps {
            Staleness::ToolUnreadable { tool }
        } else {
            Staleness::ToolMissing { tool }
        });
    }
    if let (Some(_), Some(reason)) = (&metadata.description_hash, &current.description_unknown) {
        staleness.push(Staleness::DescriptionUnknown { tool: tool.clone(), reason: reason.clone() });
    } else if let (Some(generated), Some(hash)) = (&metadata.description_hash, &current.description_hash)
        && generated != hash
    {
        staleness.push(Staleness::DescriptionChanged {
            tool: tool.clone(),
            generated: generated.clone(),
            current: hash.clone(),
        });
    }
    if let (Some(generated), Some(_), None, None) =
        (&metadata.description_hash, &current.name, &current.description_hash, &current.description_unknown)
    {
        staleness.push(Staleness::DescriptionRemoved { tool: tool.clone(), generated: generated.clone() });
    }
    // With gaps, the size is a lower bound, which is enough to detect growth.
    if let Some(generated) = metadata.registry_size
        && registry_size.saturating_mul(2) > generated.saturating_mul(3)
    {
        staleness.push(Staleness::RegistryGrown { generated, current: registry_size });
    }
    if let (Some(generated), Some(version)) = (&metadata.tool_version, &current.version)
        && let (Some(old), Some(new)) = (major_version(generated), major_version(version))
        && old != new
    {
        staleness.push(Staleness::MajorVersionChanged { tool, generated: generated.clone(), current: version.clone() });
    }
    staleness
}

/// Compares the overlap map that a suite was written for with the current one.
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

pub fn major_version(version: &str) -> Option<u64> {
    let version = version.trim().trim_start_matches(['v', 'V']);
    version.split(['.', '-', '+']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use karat_cases::Tier;
    use karat_cases::registry::{Gap, GapKind, Known, ToolLocation, Unknown};

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
    fn warns_about_another_major_version(#[case] generated: &str, #[case] current: &str, #[case] warns: bool) {
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
    fn warns_about_growth_by_more_than_half(#[case] generated: u64, #[case] size: u64, #[case] warns: bool) {
        let metadata = Metadata { registry_size: Some(generated), ..Metadata::default() };
        let current = CurrentTool { name: Some("t".to_owned()), registry_size: Some(size), ..CurrentTool::default() };
        assert_eq!(!check_staleness(&file(metadata), &current).is_empty(), warns);
    }

    #[test]
    fn a_removed_description_is_stale() {
        let metadata = Metadata { description_hash: Some("x".to_owned()), ..Metadata::default() };
        let file = file(metadata);
        let tool = Tool { name: "t".to_owned(), ..Tool::default() };
        let staleness = check_staleness(&file, &CurrentTool::find(&file, Some(&Registry::from_tools([tool]))));
        assert_eq!(staleness, [Staleness::DescriptionRemoved { tool: "t".to_owned(), generated: "x".to_owned() }]);
        assert!(staleness[0].is_stale());
    }

    #[test]
    fn warnings_use_the_name_of_the_tool() {
        let metadata = Metadata { description_hash: Some("x".to_owned()), ..Metadata::default() };
        let file = EvalFile { tool_name: "get-weather".to_owned(), ..file(metadata) };
        let tool = Tool { name: "get_weather".to_owned(), ..Tool::default() };
        let staleness = check_staleness(&file, &CurrentTool::find(&file, Some(&Registry::from_tools([tool]))));
        assert!(staleness[0].warning().starts_with("Evals for get_weather generated"), "{}", staleness[0].warning());
    }

    #[test]
    fn a_missing_registry_or_tool_is_unknown() {
        let metadata = Metadata { description_hash: Some("x".to_owned()), ..Metadata::default() };
        let unknown = check_staleness(&file(metadata.clone()), &CurrentTool::default());
        assert_eq!(unknown, [Staleness::NoRegistry { tool: "t".to_owned() }]);
        let current = CurrentTool { registry_size: Some(3), ..CurrentTool::default() };
        let missing = check_staleness(&file(metadata), &current);
        assert_eq!(missing, [Staleness::ToolMissing { tool: "t".to_owned() }]);
        assert!(!missing[0].is_stale());
    }

    #[test]
    fn an_unknown_description_is_not_stale() {
        let location = ToolLocation { source: "t.ts".to_owned(), position: None };
        let description = Known::Unknown(Unknown { location: location.clone(), reason: "a call".to_owned() });
        let tool = Tool { name: "t".to_owned(), description, ..Tool::default() };
        let metadata = Metadata { description_hash: Some("x".to_owned()), ..Metadata::default() };
        let file = file(metadata);
        let staleness = check_staleness(&file, &CurrentTool::find(&file, Some(&Registry::from_tools([tool]))));
        assert_eq!(staleness, [Staleness::DescriptionUnknown { tool: "t".to_owned(), reason: "a call".to_owned() }]);
        assert!(!staleness[0].is_stale());
        let mut registry = Registry::default();
        registry.add_gap(Gap { kind: GapKind::Unknown, location, message: "a loop".to_owned() });
        let staleness = check_staleness(&file, &CurrentTool::find(&file, Some(&registry)));
        assert_eq!(staleness, [Staleness::ToolUnreadable { tool: "t".to_owned() }]);
    }

    #[test]
    fn warns_about_another_overlap_map() {
        let map = "0123456789ab".to_owned();
        let check = |version: &str| {
            let version = Some(version.to_owned());
            check_overlap_version(&file(Metadata { overlap_map_version: version, ..Metadata::default() }), &map)
        };
        assert_eq!(check(&map), None);
        assert!(check("000000000000").is_some_and(|changed| !changed.is_stale() && changed.warning().contains(&map)));
        assert_eq!(check_overlap_version(&file(Metadata::default()), &map), None);
    }
}
