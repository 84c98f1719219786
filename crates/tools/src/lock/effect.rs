//! Which eval files become stale by changes of the tools.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::{LockDiff, LockedField};
use karat_cases::registry::{Registry, same_name};
use karat_cases::{EvalFile, Tier};
use karat_core::staleness::{CurrentTool, Staleness, check_staleness};
use karat_lints::named_tools;

/// Changes since the lock and the eval files they make stale.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "karat tools diff")]
pub struct ToolsDiff {
    /// Path of the lock.
    pub lock: String,
    #[serde(flatten)]
    pub tools: LockDiff,
    /// Eval files to review.
    pub stale_files: Vec<StaleFile>,
    /// Invalid eval files, of which staleness is unknown.
    pub invalid_files: Vec<String>,
}

/// An eval file to review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StaleFile {
    pub file: String,
    pub effects: Vec<Effect>,
}

/// The reason that an eval file is stale.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Effect {
    /// The file's tool changed since the lock.
    ToolChanged { tool: String, fields: Vec<LockedField> },
    /// The file's tool was removed or renamed.
    ToolRemoved { tool: String, renamed_to: Option<String> },
    /// Cases refer to a removed tool.
    NamesRemovedTool { tool: String, renamed_to: Option<String>, cases: usize },
    /// So many tools were added that labeled cases may accept too few.
    RegistryGrown { before: u64, now: u64 },
    /// The file's metadata names another description than the tool's current one.
    DescriptionChanged { tool: String, generated: String, current: String },
    /// The file's metadata names a description, and the tool has none any more.
    DescriptionGone { tool: String, generated: String },
    /// The file was written for another major version.
    MajorVersionChanged { tool: String, generated: String, current: String },
}

impl Effect {
    /// Returns a fragment to follow the file's name.
    pub fn sentence(&self) -> String {
        let renamed = |to: &Option<String>| match to {
            Some(name) => format!("was removed (renamed to {name}?)"),
            None => "was removed".to_owned(),
        };
        match self {
            Effect::ToolChanged { tool, fields } => {
                let fields: Vec<&str> = fields.iter().map(|field| field.name()).collect();
                let list = fields.split_last().map(|(last, others)| match others {
                    [] => (*last).to_owned(),
                    others => format!("{} and {last}", others.join(", ")),
                });
                format!("{} of {tool} changed since the lock", list.unwrap_or_default())
            }
            Effect::ToolRemoved { tool, renamed_to } => format!("its tool {tool} {}", renamed(renamed_to)),
            Effect::NamesRemovedTool { tool, renamed_to, cases } => {
                let cases = if *cases == 1 { "1 case names".to_owned() } else { format!("{cases} cases name") };
                format!("{cases} {tool}, which {}", renamed(renamed_to))
            }
            Effect::RegistryGrown { before, now } => {
                format!("the registry grew from {before} to {now} tools: more of them may be acceptable")
            }
            Effect::DescriptionChanged { tool, generated, current } => {
                format!("written for description {generated} of {tool}, which is now {current}")
            }
            Effect::DescriptionGone { tool, generated } => {
                format!("written for description {generated} of {tool}, which no longer has one")
            }
            Effect::MajorVersionChanged { tool, generated, current } => {
                format!("written for version {generated} of {tool}, which is now {current}")
            }
        }
    }
}

/// Returns why a file is stale, by its own metadata or else by the lock.
///
/// A file's metadata takes precedence over the lock: a file written after the change is fresh, even if the lock is
/// older.
pub fn effects(file: &EvalFile, diff: &LockDiff, registry: &Registry) -> Vec<Effect> {
    let mut effects: Vec<Effect> = check_staleness(file, &CurrentTool::find(file, Some(registry)))
        .into_iter()
        .filter_map(|staleness| match staleness {
            Staleness::DescriptionChanged { tool, generated, current } => {
                Some(Effect::DescriptionChanged { tool, generated, current })
            }
            Staleness::DescriptionRemoved { tool, generated } => Some(Effect::DescriptionGone { tool, generated }),
            Staleness::MajorVersionChanged { tool, generated, current } => {
                Some(Effect::MajorVersionChanged { tool, generated, current })
            }
            Staleness::RegistryGrown { generated, current } => {
                Some(Effect::RegistryGrown { before: generated, now: current })
            }
            _ => None,
        })
        .collect();
    effects.extend(own_tool_effect(file, diff, registry));
    effects.extend(named_tool_effects(file, diff));
    let has_registry_size = file.metadata.as_ref().is_some_and(|metadata| metadata.registry_size.is_some());
    if file.tier == Tier::Labeled && diff.has_grown() && !has_registry_size {
        effects.push(Effect::RegistryGrown { before: diff.tools_before as u64, now: diff.tools_now as u64 });
    }
    effects
}

fn own_tool_effect(file: &EvalFile, diff: &LockDiff, registry: &Registry) -> Option<Effect> {
    let Some(tool) = registry.find(&file.tool_name) else {
        let tool = removed_tools(diff).find(|(name, _)| same_name(name, &file.tool_name));
        return tool.map(|(name, renamed_to)| Effect::ToolRemoved {
            tool: name.to_owned(),
            renamed_to: renamed_to.map(str::to_owned),
        });
    };
    let change = diff.changed.iter().find(|change| change.tool == tool.name)?;
    let metadata = file.metadata.as_ref();
    let counts = |field: LockedField, major: bool| match field {
        LockedField::Description => metadata.is_none_or(|metadata| metadata.description_hash.is_none()),
        LockedField::InputSchema => true,
        // A minor version promises compatibility.
        LockedField::Version => major && metadata.is_none_or(|metadata| metadata.tool_version.is_none()),
    };
    let fields = change.fields.iter().filter(|change| counts(change.field, change.major)).map(|change| change.field);
    let fields: Vec<LockedField> = fields.collect();
    (!fields.is_empty()).then(|| Effect::ToolChanged { tool: tool.name.clone(), fields })
}

fn named_tool_effects(file: &EvalFile, diff: &LockDiff) -> Vec<Effect> {
    let removed: BTreeMap<&str, Option<&str>> = removed_tools(diff).collect();
    if removed.is_empty() {
        return Vec::new();
    }
    let mut cases: BTreeMap<&str, usize> = BTreeMap::new();
    for case in &file.cases {
        let mut names: Vec<&str> = case.expectations().flat_map(named_tools).map(|(_, name)| name).collect();
        names.retain(|name| removed.contains_key(name));
        names.sort_unstable();
        names.dedup();
        for name in names {
            *cases.entry(name).or_default() += 1;
        }
    }
    cases
        .into_iter()
        .map(|(tool, cases)| Effect::NamesRemovedTool {
            tool: tool.to_owned(),
            renamed_to: removed.get(tool).copied().flatten().map(str::to_owned),
            cases,
        })
        .collect()
}

/// Returns removed tools with their probable new names.
fn removed_tools(diff: &LockDiff) -> impl Iterator<Item = (&str, Option<&str>)> {
    let removed = diff.removed.iter().map(|name| (name.as_str(), None));
    removed.chain(diff.renamed.iter().map(|pair| (pair.before.as_str(), Some(pair.now.as_str()))))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::ToolsLock;
    use super::*;
    use karat_cases::registry::Tool;
    use karat_cases::{Case, CaseLocation, Expectation, Input, Metadata};

    fn tool(name: &str, description: &str, version: &str) -> Tool {
        Tool {
            name: name.to_owned(),
            description: Some(description.to_owned()).into(),
            version: Some(version.to_owned()).into(),
            ..Tool::default()
        }
    }

    fn file(tool: &str, tier: Tier, expected: &[&str], metadata: Option<Metadata>) -> EvalFile {
        let expect = Expectation {
            tools_called: Some(expected.iter().map(|&name| name.to_owned()).collect()),
            ..Expectation::default()
        };
        let case = Case {
            id: "gs-x-001".to_owned(),
            description: String::new(),
            difficulty: None,
            created_at: None,
            bug_ref: None,
            input: Some(Input { message: "m".to_owned() }),
            turns: None,
            user: None,
            on_turn_failure: None,
            stubs: None,
            injections: None,
            max_turns: None,
            expect,
            safety: None,
            tags: Vec::new(),
            skip: None,
            location: CaseLocation { line: 1, ..CaseLocation::default() },
        };
        EvalFile { metadata, tier, tool_name: tool.to_owned(), hash: String::new(), cases: vec![case] }
    }

    fn effects_of(file: &EvalFile, before: Vec<Tool>, now: Vec<Tool>) -> Vec<String> {
        let (before, now) = (Registry::from_tools(before), Registry::from_tools(now));
        let diff = LockDiff::of(&ToolsLock::of(&before), &ToolsLock::of(&now), true);
        effects(file, &diff, &now).iter().map(Effect::sentence).collect()
    }

    #[rstest]
    #[case::description(tool("get_it", "b", "1.0.0"), "description of get_it changed since the lock")]
    #[case::major(tool("get_it", "a", "2.0.0"), "version of get_it changed since the lock")]
    #[case::both(tool("get_it", "b", "2.0.0"), "description and version of get_it changed since the lock")]
    #[case::minor(tool("get_it", "a", "1.1.0"), "")]
    #[case::same(tool("get_it", "a", "1.0.0"), "")]
    #[case::renamed(tool("fetch_it", "a", "1.0.0"), "its tool get_it was removed (renamed to fetch_it?)")]
    #[case::removed(tool("fetch_it", "b", "1.0.0"), "its tool get_it was removed")]
    fn detects_changes_of_the_files_tool(#[case] now: Tool, #[case] effect: &str) {
        let file = file("get-it", Tier::Golden, &[], None);
        assert_eq!(effects_of(&file, vec![tool("get_it", "a", "1.0.0")], vec![now]).join("|"), effect);
    }

    #[test]
    fn a_file_written_after_the_change_is_fresh() {
        let now = tool("t", "new", "2.0.0");
        let metadata = Metadata {
            description_hash: now.description_hash(),
            tool_version: now.version.get().cloned(),
            registry_size: Some(3),
            ..Metadata::default()
        };
        let file = file("t", Tier::Labeled, &["t"], Some(metadata));
        let more = ["a", "b"].map(|name| tool(name, name, "1"));
        let now = std::iter::once(now).chain(more).collect();
        assert_eq!(effects_of(&file, vec![tool("t", "old", "1.0.0")], now), Vec::<String>::new());
    }

    #[test]
    fn metadata_shows_that_a_file_is_stale() {
        let metadata = Metadata { description_hash: Some("0123456789ab".to_owned()), ..Metadata::default() };
        let file = file("t", Tier::Golden, &["t"], Some(metadata));
        let now = vec![tool("t", "new", "1")];
        let hash = now[0].description_hash().expect("a hash");
        let sentence = format!("written for description 0123456789ab of t, which is now {hash}");
        assert_eq!(effects_of(&file, vec![tool("t", "old", "1")], now), [sentence]);
    }

    #[test]
    fn reports_cases_that_name_a_removed_tool() {
        let file = file("a", Tier::Labeled, &["b", "b"], None);
        let before = vec![tool("a", "a", "1"), tool("b", "b", "1")];
        assert_eq!(effects_of(&file, before.clone(), vec![tool("a", "a", "1")]), ["1 case names b, which was removed"]);
        let renamed = vec![tool("a", "a", "1"), tool("c", "b", "1")];
        assert_eq!(effects_of(&file, before, renamed), ["1 case names b, which was removed (renamed to c?)"]);
    }

    #[rstest]
    #[case(Tier::Labeled, 3, "")]
    #[case(Tier::Labeled, 4, "the registry grew from 2 to 4 tools: more of them may be acceptable")]
    #[case(Tier::Golden, 4, "")]
    fn registry_growth_affects_labeled_files_only(#[case] tier: Tier, #[case] size: usize, #[case] effect: &str) {
        let tools = |size| ["a", "b", "c", "d"][..size].iter().map(|name| tool(name, name, "1")).collect::<Vec<_>>();
        assert_eq!(effects_of(&file("a", tier, &[], None), tools(2), tools(size)).join("|"), effect);
    }
}
