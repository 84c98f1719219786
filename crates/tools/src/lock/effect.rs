//! Which eval files a change of the tools makes stale.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::{LockDiff, LockedField};
use karat_core::case::{EvalFile, Tier};
use karat_core::lint::named_tools;
use karat_core::registry::{Registry, same_name};
use karat_core::staleness::{CurrentTool, Staleness, check_staleness};

/// What changed since the lock, and what that means for the eval files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "karat tools diff")]
pub struct ToolsDiff {
    /// The lock's file.
    pub lock: String,
    #[serde(flatten)]
    pub tools: LockDiff,
    /// The eval files that should be looked at again.
    pub stale_files: Vec<StaleFile>,
    /// The eval files of which that is not known, since they are invalid.
    pub invalid_files: Vec<String>,
}

/// An eval file that should be looked at again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StaleFile {
    pub file: String,
    pub effects: Vec<Effect>,
}

/// Why an eval file should be looked at again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Effect {
    /// The file's tool is another one than when it was locked.
    ToolChanged { tool: String, fields: Vec<LockedField> },
    /// The file's tool is gone, or has another name now.
    ToolRemoved { tool: String, renamed_to: Option<String> },
    /// Cases expect something of a tool that is gone.
    NamesRemovedTool { tool: String, renamed_to: Option<String>, cases: usize },
    /// So many tools came in that labeled cases may accept too few of them.
    RegistryGrown { before: u64, now: u64 },
    /// The file's own metadata says what it was made for, and that is gone.
    DescriptionChanged { tool: String, generated: String, current: String },
    /// The file's own metadata says which description it was made for, and the tool has none any more.
    DescriptionGone { tool: String, generated: String },
    /// The file was made for another major version.
    MajorVersionChanged { tool: String, generated: String, current: String },
}

impl Effect {
    /// Returns a fragment that fits behind the file's name.
    pub fn sentence(&self) -> String {
        let renamed = |to: &Option<String>| match to {
            Some(name) => format!("is gone (renamed to {name}?)"),
            None => "is gone".to_owned(),
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
                format!("made for description {generated} of {tool}, which is {current} now")
            }
            Effect::DescriptionGone { tool, generated } => {
                format!("made for description {generated} of {tool}, which has none now")
            }
            Effect::MajorVersionChanged { tool, generated, current } => {
                format!("made for version {generated} of {tool}, which is {current} now")
            }
        }
    }
}

/// Finds why a file is stale, by what it says itself and else by the lock.
///
/// What a file's metadata says it was made for is nearer to the truth than the lock: a file that was made after the
/// change is fresh, though the lock is older.
pub fn effects(file: &EvalFile, diff: &LockDiff, registry: &Registry) -> Vec<Effect> {
    let mut effects: Vec<Effect> = check_staleness(file, &CurrentTool::of(file, Some(registry)))
        .into_iter()
        .filter_map(|staleness| match staleness {
            Staleness::DescriptionChanged { tool, generated, current } => {
                Some(Effect::DescriptionChanged { tool, generated, current })
            }
            Staleness::DescriptionGone { tool, generated } => Some(Effect::DescriptionGone { tool, generated }),
            Staleness::MajorVersionChanged { tool, generated, current } => {
                Some(Effect::MajorVersionChanged { tool, generated, current })
            }
            Staleness::RegistryGrown { generated, current } => {
                Some(Effect::RegistryGrown { before: generated, now: current })
            }
            _ => None,
        })
        .collect();
    effects.extend(of_own_tool(file, diff, registry));
    effects.extend(of_named_tools(file, diff));
    let says_size = file.metadata.as_ref().is_some_and(|metadata| metadata.registry_size.is_some());
    if file.tier == Tier::Labeled && diff.has_grown() && !says_size {
        effects.push(Effect::RegistryGrown { before: diff.tools_before as u64, now: diff.tools_now as u64 });
    }
    effects
}

fn of_own_tool(file: &EvalFile, diff: &LockDiff, registry: &Registry) -> Option<Effect> {
    let Some(tool) = registry.find(&file.tool_name) else {
        let tool = gone(diff).find(|(name, _)| same_name(name, &file.tool_name));
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
        // A small step of the version promises that nothing broke.
        LockedField::Version => major && metadata.is_none_or(|metadata| metadata.tool_version.is_none()),
    };
    let fields = change.fields.iter().filter(|change| counts(change.field, change.major)).map(|change| change.field);
    let fields: Vec<LockedField> = fields.collect();
    (!fields.is_empty()).then(|| Effect::ToolChanged { tool: tool.name.clone(), fields })
}

fn of_named_tools(file: &EvalFile, diff: &LockDiff) -> Vec<Effect> {
    let gone: BTreeMap<&str, Option<&str>> = gone(diff).collect();
    if gone.is_empty() {
        return Vec::new();
    }
    let mut cases: BTreeMap<&str, usize> = BTreeMap::new();
    for case in &file.cases {
        let mut names: Vec<&str> = named_tools(&case.expect).into_iter().map(|(_, name)| name).collect();
        names.retain(|name| gone.contains_key(name));
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
            renamed_to: gone.get(tool).copied().flatten().map(str::to_owned),
            cases,
        })
        .collect()
}

/// Returns what is gone, with the name that it may have now.
fn gone(diff: &LockDiff) -> impl Iterator<Item = (&str, Option<&str>)> {
    let removed = diff.removed.iter().map(|name| (name.as_str(), None));
    removed.chain(diff.renamed.iter().map(|pair| (pair.before.as_str(), Some(pair.now.as_str()))))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::ToolsLock;
    use super::*;
    use karat_core::case::{Case, Expectation, Input, Metadata};
    use karat_core::registry::Tool;

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
            input: Input { message: "m".to_owned() },
            stubs: None,
            max_turns: None,
            expect,
            line: 1,
        };
        EvalFile { metadata, tier, tool_name: tool.to_owned(), hash: String::new(), cases: vec![case] }
    }

    fn found(file: &EvalFile, before: Vec<Tool>, now: Vec<Tool>) -> Vec<String> {
        let (before, now) = (Registry::of(before), Registry::of(now));
        let diff = LockDiff::of(&ToolsLock::of(&before), &ToolsLock::of(&now), true);
        effects(file, &diff, &now).iter().map(Effect::sentence).collect()
    }

    #[rstest]
    #[case::description(tool("get_it", "b", "1.0.0"), "description of get_it changed since the lock")]
    #[case::major(tool("get_it", "a", "2.0.0"), "version of get_it changed since the lock")]
    #[case::both(tool("get_it", "b", "2.0.0"), "description and version of get_it changed since the lock")]
    #[case::minor(tool("get_it", "a", "1.1.0"), "")]
    #[case::same(tool("get_it", "a", "1.0.0"), "")]
    #[case::renamed(tool("fetch_it", "a", "1.0.0"), "its tool get_it is gone (renamed to fetch_it?)")]
    #[case::gone(tool("fetch_it", "b", "1.0.0"), "its tool get_it is gone")]
    fn its_own_tool(#[case] now: Tool, #[case] effect: &str) {
        let file = file("get-it", Tier::Golden, &[], None);
        assert_eq!(found(&file, vec![tool("get_it", "a", "1.0.0")], vec![now]).join("|"), effect);
    }

    #[test]
    fn a_file_that_was_made_after_the_change_is_fresh() {
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
        assert_eq!(found(&file, vec![tool("t", "old", "1.0.0")], now), Vec::<String>::new());
    }

    #[test]
    fn a_file_that_was_made_before_says_so_itself() {
        let metadata = Metadata { description_hash: Some("0123456789ab".to_owned()), ..Metadata::default() };
        let file = file("t", Tier::Golden, &["t"], Some(metadata));
        let now = vec![tool("t", "new", "1")];
        let hash = now[0].description_hash().expect("a hash");
        let sentence = format!("made for description 0123456789ab of t, which is {hash} now");
        assert_eq!(found(&file, vec![tool("t", "old", "1")], now), [sentence]);
    }

    #[test]
    fn a_tool_that_is_gone_is_named_in_cases_of_others() {
        let file = file("a", Tier::Labeled, &["b", "b"], None);
        let before = vec![tool("a", "a", "1"), tool("b", "b", "1")];
        assert_eq!(found(&file, before.clone(), vec![tool("a", "a", "1")]), ["1 case names b, which is gone"]);
        let renamed = vec![tool("a", "a", "1"), tool("c", "b", "1")];
        assert_eq!(found(&file, before, renamed), ["1 case names b, which is gone (renamed to c?)"]);
    }

    #[rstest]
    #[case(Tier::Labeled, 3, "")]
    #[case(Tier::Labeled, 4, "the registry grew from 2 to 4 tools: more of them may be acceptable")]
    #[case(Tier::Golden, 4, "")]
    fn growth_touches_labeled_files(#[case] tier: Tier, #[case] size: usize, #[case] effect: &str) {
        let tools = |size| ["a", "b", "c", "d"][..size].iter().map(|name| tool(name, name, "1")).collect::<Vec<_>>();
        assert_eq!(found(&file("a", tier, &[], None), tools(2), tools(size)).join("|"), effect);
    }
}
