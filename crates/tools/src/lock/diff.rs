//! Changes between two locks. Unknown values are never reported as changes.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use super::{LockedField, LockedTool, ToolsLock};
use karat_core::staleness::major_version;

/// Changes, each list sorted by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LockDiff {
    /// Number of tools in the old lock.
    pub tools_before: usize,
    /// Number of tools now.
    pub tools_now: usize,
    pub changed: Vec<ToolChange>,
    pub added: Vec<String>,
    pub removed: Vec<String>,
    /// Removed tools whose description and schema another tool now has: in neither `added` nor `removed`.
    pub renamed: Vec<RenamedTool>,
    /// Tools and fields that may or may not have changed.
    pub not_comparable: Vec<IncomparableTool>,
}

/// A tool present in both, with differences.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolChange {
    pub tool: String,
    pub fields: Vec<FieldChange>,
}

/// A hash or version before and now; null if absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FieldChange {
    pub field: LockedField,
    pub before: Option<String>,
    pub now: Option<String>,
    /// Whether the major version differs.
    pub major: bool,
}

/// A tool that was probably renamed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RenamedTool {
    pub before: String,
    pub now: String,
}

/// A tool with unknown values on at least one side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IncomparableTool {
    pub tool: String,
    /// Fields that cannot be compared; empty if it is unknown whether the tool still exists.
    pub fields: Vec<LockedField>,
}

impl LockDiff {
    /// Compares two locks; `is_complete` means that `now` contains all tools.
    pub fn of(before: &ToolsLock, now: &ToolsLock, is_complete: bool) -> Self {
        let mut diff = Self { tools_before: before.tools.len(), tools_now: now.tools.len(), ..Self::default() };
        for (name, old) in &before.tools {
            match now.tools.get(name) {
                Some(new) => diff.compare(name, old, new),
                None => diff.removed.push(name.clone()),
            }
        }
        diff.added.extend(now.tools.keys().filter(|name| !before.tools.contains_key(*name)).cloned());
        diff.find_renamed(before, now);
        if !is_complete {
            let hidden = std::mem::take(&mut diff.removed);
            diff.not_comparable.extend(hidden.into_iter().map(|tool| IncomparableTool { tool, fields: Vec::new() }));
            diff.not_comparable.sort_by(|left, right| left.tool.cmp(&right.tool));
        }
        diff
    }

    /// Whether nothing is known to have changed.
    pub fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.added.is_empty() && self.removed.is_empty() && self.renamed.is_empty()
    }

    /// Whether the registry grew by more than half, so that labeled cases may accept too few tools.
    pub fn has_grown(&self) -> bool {
        self.tools_now.saturating_mul(2) > self.tools_before.saturating_mul(3)
    }

    fn compare(&mut self, name: &str, old: &LockedTool, new: &LockedTool) {
        let (known, unknown): (Vec<LockedField>, Vec<LockedField>) =
            LockedField::ALL.into_iter().partition(|field| old.is_known(*field) && new.is_known(*field));
        let differing = known.into_iter().filter(|field| old.value(*field) != new.value(*field));
        let fields: Vec<FieldChange> =
            differing.map(|field| FieldChange::of(field, old.value(field), new.value(field))).collect();
        if !fields.is_empty() {
            self.changed.push(ToolChange { tool: name.to_owned(), fields });
        }
        if !unknown.is_empty() {
            self.not_comparable.push(IncomparableTool { tool: name.to_owned(), fields: unknown });
        }
    }

    /// Moves removed tools with an equal added one to `renamed`; ties are matched in order.
    fn find_renamed(&mut self, before: &ToolsLock, now: &ToolsLock) {
        let mut candidates: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
        for name in self.added.iter().rev() {
            if let Some(contents) = now.tools.get(name).and_then(content_hashes) {
                candidates.entry(contents).or_default().push(name.clone());
            }
        }
        for name in &self.removed {
            let contents = before.tools.get(name).and_then(content_hashes);
            if let Some(now) = contents.and_then(|contents| candidates.get_mut(&contents)?.pop()) {
                self.renamed.push(RenamedTool { before: name.clone(), now });
            }
        }
        let renamed: (BTreeSet<&String>, BTreeSet<&String>) =
            self.renamed.iter().map(|pair| (&pair.before, &pair.now)).unzip();
        self.removed.retain(|name| !renamed.0.contains(name));
        self.added.retain(|name| !renamed.1.contains(name));
    }
}

impl FieldChange {
    fn of(field: LockedField, before: Option<&String>, now: Option<&String>) -> Self {
        let majors = before.zip(now).filter(|_| field == LockedField::Version);
        let majors = majors.and_then(|(before, now)| Some((major_version(before)?, major_version(now)?)));
        Self {
            field,
            before: before.cloned(),
            now: now.cloned(),
            major: majors.is_some_and(|(before, now)| before != now),
        }
    }
}

/// Returns the hashes that identify a renamed tool; `None` without a description, since too many tools would match.
fn content_hashes(tool: &LockedTool) -> Option<(String, String)> {
    let known = tool.is_known(LockedField::Description) && tool.is_known(LockedField::InputSchema);
    let hashes = (tool.description_hash.clone()?, tool.schema_hash.clone().unwrap_or_default());
    known.then_some(hashes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{LOCK_VERSION, strategy};
    use super::*;

    fn lock(tools: &[(&str, Option<&str>, &str)]) -> ToolsLock {
        let tools = tools.iter().map(|(name, hash, version)| {
            let tool = LockedTool {
                description_hash: hash.map(str::to_owned),
                version: Some((*version).to_owned()),
                unknown: if hash.is_none() { vec![LockedField::Description] } else { Vec::new() },
                ..LockedTool::default()
            };
            ((*name).to_owned(), tool)
        });
        ToolsLock { schema: None, lock_version: LOCK_VERSION, tools: tools.collect() }
    }

    #[test]
    fn sorts_changes_into_lists() {
        let before = lock(&[
            ("changed", Some("a"), "1.0.0"),
            ("gone", Some("b"), "1"),
            ("old_name", Some("c"), "1"),
            ("same", Some("d"), "1"),
            ("was_unknown", None, "1.0.0"),
        ]);
        let now = lock(&[
            ("changed", Some("A"), "2.0.0"),
            ("new", Some("e"), "1"),
            ("new_name", Some("c"), "2"),
            ("same", Some("d"), "1"),
            ("was_unknown", Some("f"), "1.0.1"),
        ]);
        let diff = LockDiff::of(&before, &now, true);
        assert_eq!(diff.added, ["new"]);
        assert_eq!(diff.removed, ["gone"]);
        assert_eq!(diff.renamed, [RenamedTool { before: "old_name".to_owned(), now: "new_name".to_owned() }]);
        let changed: Vec<String> = diff
            .changed
            .iter()
            .flat_map(|change| change.fields.iter().map(move |field| (change, field)))
            .map(|(change, field)| format!("{} {} {}", change.tool, field.field.key(), field.major))
            .collect();
        assert_eq!(changed, ["changed description false", "changed version true", "was_unknown version false"]);
        let unknown = IncomparableTool { tool: "was_unknown".to_owned(), fields: vec![LockedField::Description] };
        assert_eq!(diff.not_comparable, [unknown]);
    }

    #[test]
    fn an_incomplete_registry_reports_no_removals() {
        let before = lock(&[("a", Some("a"), "1"), ("b", Some("b"), "1"), ("c", None, "1")]);
        let diff = LockDiff::of(&before, &lock(&[("b", None, "1"), ("c", None, "1")]), false);
        assert!(diff.is_empty());
        let names: Vec<&str> = diff.not_comparable.iter().map(|tool| tool.tool.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert_eq!(diff.not_comparable[0].fields, []);
        let mut now = lock(&[("b", None, "2"), ("c", None, "1")]);
        assert_eq!(now.preserve_unknown(&before, &diff), 2);
        assert_eq!(now, lock(&[("a", Some("a"), "1"), ("b", Some("b"), "2"), ("c", None, "1")]));
    }

    proptest! {
        #[test]
        fn equal_locks_have_no_changes(lock in strategy::lock()) {
            prop_assert!(LockDiff::of(&lock, &lock, true).is_empty());
        }

        #[test]
        fn swapping_locks_mirrors_the_diff(left in strategy::lock(), right in strategy::lock()) {
            let (forward, backward) = (LockDiff::of(&left, &right, true), LockDiff::of(&right, &left, true));
            prop_assert_eq!(&forward.added, &backward.removed);
            prop_assert_eq!(&forward.removed, &backward.added);
            prop_assert_eq!(forward.renamed.len(), backward.renamed.len());
            for pair in &forward.renamed {
                let mirrored = RenamedTool { before: pair.now.clone(), now: pair.before.clone() };
                prop_assert!(backward.renamed.contains(&mirrored));
            }
            prop_assert_eq!(&forward.not_comparable, &backward.not_comparable);
            prop_assert_eq!(forward.changed.len(), backward.changed.len());
            for (change, reverse) in forward.changed.iter().zip(&backward.changed) {
                let mirrored: Vec<_> = reverse
                    .fields
                    .iter()
                    .map(|field| FieldChange { before: field.now.clone(), now: field.before.clone(), ..field.clone() })
                    .collect();
                prop_assert_eq!((&change.tool, &change.fields), (&reverse.tool, &mirrored));
            }
        }

        #[test]
        fn every_tool_is_accounted_for(left in strategy::lock(), right in strategy::lock()) {
            let diff = LockDiff::of(&left, &right, true);
            let common = left.tools.keys().filter(|name| right.tools.contains_key(*name)).count();
            prop_assert_eq!(left.tools.len(), common + diff.removed.len() + diff.renamed.len());
            prop_assert_eq!(right.tools.len(), common + diff.added.len() + diff.renamed.len());
        }
    }
}
