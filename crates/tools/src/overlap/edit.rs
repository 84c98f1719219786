//! Edits of an overlap map that preserve its formatting, and conversion from the list form.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::read::SCHEMA;
use super::{OverlapEntry, OverlapMap, Shape};
use karat_json::{EditError, Finding, JsonText, Side, pointer_key};

/// Separator of reasons.
const REASON_SEPARATOR: &str = "; ";

/// An editable map in the by-tool form.
#[derive(Debug, Clone)]
pub struct OverlapEditor {
    json: JsonText,
    changes: Vec<OverlapChange>,
}

/// A change made by an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OverlapChange {
    OverlapAdded { tool: String, other: String },
    OverlapRemoved { tool: String, other: String },
    ClusterAdded { tool: String, members: Vec<String> },
    ClusterRemoved { tool: String, members: Vec<String> },
    ReasonSet { tool: String, reason: String },
    EntryRemoved { tool: String },
}

/// An error when editing an overlap map.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum OverlapEditError {
    #[error("the overlap map is invalid")]
    Invalid(Vec<Finding>),
    #[error("cannot edit an overlap map in the list form (a list under 'tools')")]
    ListShape,
    #[error("cannot edit the overlap map: {0}")]
    Edit(#[from] EditError),
}

impl OverlapEditor {
    /// Creates an empty map.
    pub fn empty() -> Self {
        Self { json: JsonText::of(&json!({})), changes: Vec::new() }
    }

    /// Opens a map in the by-tool form.
    pub fn open(bytes: &[u8]) -> Result<Self, OverlapEditError> {
        let map = OverlapMap::read(bytes).map_err(OverlapEditError::Invalid)?;
        if map.shape == Shape::List {
            return Err(OverlapEditError::ListShape);
        }
        // Valid UTF-8 and JSON, since it was read above.
        let text = std::str::from_utf8(bytes).unwrap_or_default();
        let json =
            JsonText::read(text).map_err(|error| OverlapEditError::Invalid(vec![Finding::syntax(text, error)]))?;
        Ok(Self { json, changes: Vec::new() })
    }

    /// Converts a map to the by-tool form; also returns descriptions of what that form cannot express.
    pub fn convert(bytes: &[u8]) -> Result<(Self, Vec<String>), OverlapEditError> {
        let map = OverlapMap::read(bytes).map_err(OverlapEditError::Invalid)?;
        let (mut value, lost) = to_by_tool(&map);
        let link = serde_json::from_slice::<Value>(bytes).ok().and_then(|mut tree| Some(tree.get_mut(SCHEMA)?.take()));
        if let (Some(link @ Value::String(_)), Value::Object(entries)) = (link, &mut value) {
            entries.shift_insert(0, SCHEMA.to_owned(), link);
        }
        Ok((Self { json: JsonText::of(&value), changes: Vec::new() }, lost))
    }

    /// Declares an overlap in both directions.
    pub fn add(&mut self, tool: &str, other: &str) -> Result<(), OverlapEditError> {
        for (tool, other) in [(tool, other), (other, tool)] {
            let is_declared =
                self.entry(tool).is_some_and(|entry| entry.overlaps.iter().any(|overlap| overlap.tool == other));
            if !is_declared {
                self.push(tool, "overlaps", &json!(other))?;
                self.changes.push(OverlapChange::OverlapAdded { tool: tool.to_owned(), other: other.to_owned() });
            }
        }
        Ok(())
    }

    /// Declares a cluster in the entry of each of its members.
    pub fn add_cluster(&mut self, members: &[String]) -> Result<(), OverlapEditError> {
        for tool in members {
            if self.clusters_of(tool, members).is_empty() {
                self.push(tool, "clusters", &json!(members))?;
                self.changes.push(OverlapChange::ClusterAdded { tool: tool.clone(), members: members.to_vec() });
            }
        }
        Ok(())
    }

    /// Adds a reason why a tool's neighbours are confused with it; existing reasons are kept.
    pub fn add_reason(&mut self, tool: &str, reason: &str) -> Result<(), OverlapEditError> {
        let pointer = format!("/{}", pointer_key(tool));
        let Some(entry) = self.entry(tool) else {
            return Ok(());
        };
        let reason = match entry.reason {
            Some(existing) if existing.split(REASON_SEPARATOR).any(|part| part == reason) || existing == reason => {
                return Ok(());
            }
            Some(existing) => format!("{existing}{REASON_SEPARATOR}{reason}"),
            None => reason.to_owned(),
        };
        if self.has(tool, "reason") {
            self.json.replace(&format!("{pointer}/reason"), &json!(reason))?;
        } else {
            self.json.insert(&pointer, "reason", &json!(reason), Side::Last)?;
        }
        self.changes.push(OverlapChange::ReasonSet { tool: tool.to_owned(), reason });
        Ok(())
    }

    /// Removes an overlap in both directions.
    pub fn remove(&mut self, tool: &str, other: &str) -> Result<(), OverlapEditError> {
        for (tool, other) in [(tool, other), (other, tool)] {
            let position = |entry: &OverlapEntry| entry.overlaps.iter().rposition(|overlap| overlap.tool == other);
            let mut is_removed = false;
            // It may be a duplicate.
            while let Some(index) = self.entry(tool).as_ref().and_then(position) {
                self.json.remove(&format!("/{}/overlaps/{index}", pointer_key(tool)))?;
                is_removed = true;
            }
            if is_removed {
                self.changes.push(OverlapChange::OverlapRemoved { tool: tool.to_owned(), other: other.to_owned() });
                self.remove_empty(tool, "overlaps")?;
            }
        }
        Ok(())
    }

    /// Removes a cluster from all entries.
    pub fn remove_cluster(&mut self, members: &[String]) -> Result<(), OverlapEditError> {
        let tools: Vec<String> = self.entries().into_iter().map(|entry| entry.tool).collect();
        for tool in tools {
            let indices = self.clusters_of(&tool, members);
            for index in indices.iter().rev() {
                self.json.remove(&format!("/{}/clusters/{index}", pointer_key(&tool)))?;
            }
            if !indices.is_empty() {
                self.changes.push(OverlapChange::ClusterRemoved { tool: tool.clone(), members: members.to_vec() });
                self.remove_empty(&tool, "clusters")?;
            }
        }
        Ok(())
    }

    /// Returns the changes so far.
    pub fn changes(&self) -> &[OverlapChange] {
        &self.changes
    }

    pub fn into_text(self) -> String {
        self.json.into_text()
    }

    fn entries(&self) -> Vec<OverlapEntry> {
        // Every edit leaves a valid map.
        OverlapMap::read(self.json.text().as_bytes()).map(|map| map.entries).unwrap_or_default()
    }

    fn entry(&self, tool: &str) -> Option<OverlapEntry> {
        self.entries().into_iter().find(|entry| entry.tool == tool)
    }

    /// Whether an entry has a key, even if null.
    fn has(&self, tool: &str, key: &str) -> bool {
        karat_json::locate(self.json.text(), &format!("/{}/{key}", pointer_key(tool))).is_some()
    }

    /// Returns the indices of a tool's clusters with exactly these members.
    fn clusters_of(&self, tool: &str, members: &[String]) -> Vec<usize> {
        let members: BTreeSet<&String> = members.iter().collect();
        let clusters = self.entry(tool).map(|entry| entry.clusters).unwrap_or_default();
        let same =
            clusters.iter().enumerate().filter(|(_, cluster)| cluster.tools.iter().collect::<BTreeSet<_>>() == members);
        same.map(|(index, _)| index).collect()
    }

    /// Appends an element to a list of a tool's entry, and creates the list and the entry if missing.
    fn push(&mut self, tool: &str, key: &str, value: &Value) -> Result<(), EditError> {
        let pointer = format!("/{}", pointer_key(tool));
        let list = format!("{pointer}/{key}");
        if self.entry(tool).is_none() {
            return self.json.insert("", tool, &json!({ key: [value] }), Side::Last);
        }
        if !self.has(tool, key) {
            let side = if key == "overlaps" { Side::First } else { self.cluster_side(tool) };
            return self.json.insert(&pointer, key, &json!([value]), side);
        }
        match self.json.append(&list, value) {
            // A null list counts as missing.
            Err(EditError::WrongType { .. }) => self.json.replace(&list, &json!([value])),
            appended => appended,
        }
    }

    /// Clusters follow overlaps, but precede a reason without overlaps.
    fn cluster_side(&self, tool: &str) -> Side {
        let has_only_reason = self.has(tool, "reason") && !self.has(tool, "overlaps");
        if has_only_reason { Side::First } else { Side::Last }
    }

    /// Removes an empty list, and then the entry if it is empty.
    fn remove_empty(&mut self, tool: &str, key: &str) -> Result<(), EditError> {
        let Some(entry) = self.entry(tool) else {
            return Ok(());
        };
        let pointer = format!("/{}", pointer_key(tool));
        let is_list_empty = if key == "overlaps" { entry.overlaps.is_empty() } else { entry.clusters.is_empty() };
        if entry.overlaps.is_empty() && entry.clusters.is_empty() && entry.reason.is_none() {
            self.json.remove(&pointer)?;
            self.changes.push(OverlapChange::EntryRemoved { tool: tool.to_owned() });
        } else if is_list_empty {
            self.json.remove(&format!("{pointer}/{key}"))?;
        }
        Ok(())
    }
}

/// Converts a map to the by-tool form, and lists what that form cannot express.
fn to_by_tool(map: &OverlapMap) -> (Value, Vec<String>) {
    let mut lost = Vec::new();
    let mut entries: Map<String, Value> = Map::new();
    for entry in &map.entries {
        let OverlapEntry { tool, overlaps, clusters, reason } = entry;
        let mut reasons: Vec<&str> = reason.as_deref().into_iter().collect();
        for other in overlaps {
            reasons.extend(other.reason.as_deref().filter(|reason| !reasons.contains(reason)));
            if let Some(weight) = other.weight {
                lost.push(format!("the weight {weight} of the overlap of '{tool}' with '{}'", other.tool));
            }
        }
        for name in clusters.iter().filter_map(|cluster| cluster.name.as_ref()) {
            lost.push(format!("the name '{name}' of a cluster of '{tool}'"));
        }
        let written = entries.entry(tool.clone()).or_insert_with(|| json!({}));
        // Duplicate entries are merged.
        extend(written, "overlaps", overlaps.iter().map(|other| json!(other.tool)));
        extend(written, "clusters", clusters.iter().map(|cluster| json!(cluster.tools)));
        let existing = written.get("reason").and_then(Value::as_str).map(str::to_owned);
        let reasons: Vec<&str> = existing.as_deref().into_iter().chain(reasons).collect();
        if !reasons.is_empty() {
            // Reasons come last.
            written.as_object_mut().map(|written| written.shift_remove("reason"));
            written["reason"] = json!(reasons.join(REASON_SEPARATOR));
        }
    }
    (Value::Object(entries), lost)
}

fn extend(entry: &mut Value, key: &str, items: impl Iterator<Item = Value>) {
    for item in items {
        match &mut entry[key] {
            Value::Array(list) if list.contains(&item) => {}
            Value::Array(list) => list.push(item),
            missing => *missing = json!([item]),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MAP: &str =
        "{\n  \"a\": {\"overlaps\": [\"b\"], \"reason\": \"alike\"},\n  \"b\": {\"overlaps\": [\"a\"]}\n}\n";

    fn edited(text: &str, edit: impl FnOnce(&mut OverlapEditor) -> Result<(), OverlapEditError>) -> String {
        let mut editor = OverlapEditor::open(text.as_bytes()).expect("a map");
        edit(&mut editor).expect("an edit");
        editor.into_text()
    }

    #[test]
    fn declares_an_overlap_in_both_directions_once() {
        let text = edited(MAP, |map| map.add("a", "c"));
        insta::assert_snapshot!(text, @r#"
        {
          "a": {"overlaps": ["b", "c"], "reason": "alike"},
          "b": {"overlaps": ["a"]},
          "c": {"overlaps": ["a"]}
        }
        "#);
        assert_eq!(edited(&text, |map| map.add("c", "a")), text);
        assert_eq!(edited(&text, |map| map.remove("c", "a")), MAP);
    }

    #[test]
    fn removes_empty_entries_without_a_reason() {
        let text = edited(MAP, |map| map.remove("a", "b"));
        assert_eq!(text, "{\n  \"a\": {\"reason\": \"alike\"}\n}\n");
    }

    #[test]
    fn declares_a_cluster_in_each_members_entry() {
        let members = ["a", "c", "b"].map(str::to_owned);
        let text = edited(MAP, |map| map.add_cluster(&members));
        insta::assert_snapshot!(text, @r#"
        {
          "a": {"overlaps": ["b"], "reason": "alike", "clusters": [["a", "c", "b"]]},
          "b": {"overlaps": ["a"], "clusters": [["a", "c", "b"]]},
          "c": {"clusters": [["a", "c", "b"]]}
        }
        "#);
        let in_other_order = ["b", "a", "c"].map(str::to_owned);
        assert_eq!(edited(&text, |map| map.add_cluster(&in_other_order)), text);
        assert_eq!(edited(&text, |map| map.remove_cluster(&in_other_order)), MAP);
    }

    #[test]
    fn joins_reasons_without_duplicates() {
        let text = edited(MAP, |map| map.add_reason("a", "both read"));
        assert!(text.contains(r#""reason": "alike; both read""#), "{text}");
        assert_eq!(edited(&text, |map| map.add_reason("a", "alike")), text);
        let text = edited(MAP, |map| map.add_reason("b", "both read"));
        assert!(text.contains(r#""b": {"overlaps": ["a"], "reason": "both read"}"#), "{text}");
    }

    #[test]
    fn treats_a_null_list_as_missing() {
        let text = edited("{\"a\": {\"overlaps\": null, \"reason\": null}}", |map| {
            map.add("a", "b")?;
            map.add_reason("a", "alike")
        });
        assert_eq!(text, r#"{"a": {"overlaps": ["b"], "reason": "alike"}, "b": {"overlaps": ["a"]}}"#);
    }

    #[test]
    fn converts_the_list_form_and_reports_losses() {
        let text = r#"{"$schema": "x", "tools": [
            {"tool": "a", "overlaps": [{"tool": "b", "reason": "both read", "weight": 0.5}, {"tool": "c", "reason": "both read"}],
             "clusters": [{"name": "readers", "tools": ["a", "b", "c"]}], "reason": "alike"},
            {"tool": "a", "overlaps": [{"tool": "b"}, {"tool": "d", "reason": "rare"}]}
        ]}"#;
        assert!(matches!(OverlapEditor::open(text.as_bytes()), Err(OverlapEditError::ListShape)));
        let (editor, lost) = OverlapEditor::convert(text.as_bytes()).expect("a map");
        insta::assert_snapshot!(editor.into_text(), @r#"
        {
          "$schema": "x",
          "a": {
            "overlaps": ["b", "c", "d"],
            "clusters": [["a", "b", "c"]],
            "reason": "alike; both read; rare"
          }
        }
        "#);
        assert_eq!(lost, ["the weight 0.5 of the overlap of 'a' with 'b'", "the name 'readers' of a cluster of 'a'"]);
    }

    proptest! {
        #[test]
        fn additions_are_symmetric_and_reversible(pairs in prop::collection::vec(("[a-d/~]{1,2}", "[a-d/~]{1,2}"), 0..8)) {
            let mut editor = OverlapEditor::empty();
            let pairs: Vec<_> = pairs.into_iter().filter(|(tool, other)| tool != other).collect();
            for (tool, other) in &pairs {
                editor.add(tool, other).expect("an edit");
            }
            let map = OverlapMap::read(editor.json.text().as_bytes()).expect("valid");
            prop_assert_eq!(super::super::check_overlaps(&map, None), []);
            for (tool, other) in &pairs {
                prop_assert!(map.neighbours(tool).any(|neighbour| neighbour == other));
                editor.remove(other, tool).expect("an edit");
            }
            prop_assert_eq!(editor.into_text(), "{}\n");
        }
    }
}
