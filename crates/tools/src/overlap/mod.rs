//! The overlap map: which tools are easily confused, and which belong together.

mod check;
mod cover;
mod edit;
mod read;
mod shape;
mod suggest;

pub use check::{OVERLAP_RULES, OverlapFinding, check_overlaps};
pub use edit::{OverlapChange, OverlapEditError, OverlapEditor};
pub use shape::OverlapMapSchema;
pub use suggest::{DEFAULT_MIN_SIMILARITY, Suggestion, Suggestions, suggest};

pub use cover::{UncoveredOverlaps, covers_cluster, covers_pair};

use std::collections::{BTreeMap, BTreeSet};

use karat_json::pointer_key;

/// The declared overlaps and clusters, in file order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OverlapMap {
    pub shape: Shape,
    pub entries: Vec<OverlapEntry>,
    /// First twelve hex digits of the file's SHA-256; eval files record it as `overlapMapVersion`.
    pub version: String,
    neighbours: BTreeMap<String, BTreeSet<String>>,
    clusters: BTreeSet<BTreeSet<String>>,
}

/// The form of the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Shape {
    /// An object with a key per tool; the form that karat writes.
    #[default]
    ByTool,
    /// A list under `tools`, with a reason and a weight per overlap and names for clusters.
    List,
}

/// The declarations of one tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OverlapEntry {
    pub tool: String,
    pub overlaps: Vec<Neighbour>,
    pub clusters: Vec<Cluster>,
    pub reason: Option<String>,
}

/// A tool that is easily confused with the entry's tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Neighbour {
    pub tool: String,
    pub reason: Option<String>,
    pub weight: Option<f64>,
}

/// Tools that belong together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cluster {
    pub name: Option<String>,
    pub tools: Vec<String>,
}

impl OverlapMap {
    /// Creates a map from entries.
    pub fn of(shape: Shape, entries: Vec<OverlapEntry>, version: String) -> Self {
        let mut neighbours: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut clusters = BTreeSet::new();
        for entry in &entries {
            for Neighbour { tool, .. } in entry.overlaps.iter().filter(|other| other.tool != entry.tool) {
                neighbours.entry(entry.tool.clone()).or_default().insert(tool.clone());
                neighbours.entry(tool.clone()).or_default().insert(entry.tool.clone());
            }
            let all = entry.clusters.iter().map(|cluster| cluster.tools.iter().cloned().collect());
            // An empty cluster could never be covered.
            clusters.extend(all.filter(|cluster: &BTreeSet<String>| !cluster.is_empty()));
        }
        Self { shape, entries, version, neighbours, clusters }
    }

    /// Returns the names of all tools in the map.
    pub fn tool_names(&self) -> BTreeSet<&str> {
        let pairs = self.pairs().flat_map(|(left, right)| [left, right]);
        let clusters = self.clusters().flatten().map(String::as_str);
        pairs.chain(clusters).chain(self.entries.iter().map(|entry| entry.tool.as_str())).collect()
    }

    /// Returns a tool's distinct neighbours, declared by either side: O in the formula of wanted cases.
    pub fn neighbours(&self, tool: &str) -> impl Iterator<Item = &str> {
        self.neighbours.get(tool).into_iter().flatten().map(String::as_str)
    }

    /// Whether either of two tools declares the other.
    pub fn are_neighbours(&self, left: &str, right: &str) -> bool {
        self.neighbours.get(left).is_some_and(|others| others.contains(right))
    }

    /// Returns all pairs of neighbours, each once, smaller name first.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.neighbours.iter().flat_map(|(tool, others)| others.iter().map(move |other| (tool, other)));
        pairs.filter(|(tool, other)| tool < other).map(|(tool, other)| (tool.as_str(), other.as_str()))
    }

    /// Returns the distinct clusters.
    pub fn clusters(&self) -> impl Iterator<Item = &BTreeSet<String>> {
        self.clusters.iter()
    }

    /// Returns the distinct clusters that contain a tool: C in the formula of wanted cases.
    pub fn clusters_of(&self, tool: &str) -> impl Iterator<Item = &BTreeSet<String>> {
        self.clusters.iter().filter(move |cluster| cluster.contains(tool))
    }

    /// Returns the JSON pointer of an entry's overlap.
    pub fn overlap_pointer(&self, entry: usize, overlap: usize) -> String {
        match self.shape {
            Shape::ByTool => format!("{}/overlaps/{overlap}", self.entry_pointer(entry)),
            Shape::List => format!("{}/overlaps/{overlap}/tool", self.entry_pointer(entry)),
        }
    }

    /// Returns the JSON pointer of an entry's cluster.
    pub fn cluster_pointer(&self, entry: usize, cluster: usize) -> String {
        format!("{}/clusters/{cluster}", self.entry_pointer(entry))
    }

    /// Returns the JSON pointer of a tool in an entry's cluster.
    pub fn member_pointer(&self, entry: usize, cluster: usize, member: usize) -> String {
        let list = if self.shape == Shape::List { "/tools" } else { "" };
        format!("{}{list}/{member}", self.cluster_pointer(entry, cluster))
    }

    /// Returns the JSON pointer of an entry.
    pub fn entry_pointer(&self, entry: usize) -> String {
        match self.shape {
            Shape::ByTool => format!("/{}", pointer_key(&self.entries[entry].tool)),
            Shape::List => format!("/tools/{entry}"),
        }
    }
}

/// Quotes a name for a shell if needed.
pub fn shell_quote(name: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./:@+".contains(letter);
    if !name.is_empty() && !name.starts_with('-') && name.chars().all(is_plain) {
        return name.to_owned();
    }
    format!("'{}'", name.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merges_both_directions_and_equal_clusters() {
        let text = r#"{
            "a": {"overlaps": ["b", "c"], "clusters": [["a", "b", "c"]], "reason": "alike"},
            "b": {"overlaps": ["a"], "clusters": [["c", "b", "a"], ["b", "d", "e"]]}
        }"#;
        let map = OverlapMap::read(text.as_bytes()).expect("valid");
        assert_eq!(map.pairs().collect::<Vec<_>>(), [("a", "b"), ("a", "c")]);
        assert_eq!(map.neighbours("a").collect::<Vec<_>>(), ["b", "c"]);
        assert_eq!(map.neighbours("c").collect::<Vec<_>>(), ["a"]);
        assert_eq!(map.clusters().count(), 2);
        assert_eq!(OverlapMap::read(br#"{"a": {"clusters": [[]]}}"#).expect("a map").clusters().count(), 0);
        assert_eq!(map.clusters_of("b").count(), 2);
        assert_eq!(map.clusters_of("a").count(), 1);
        assert_eq!(map.overlap_pointer(0, 1), "/a/overlaps/1");
    }

    #[test]
    fn both_forms_are_equivalent() {
        let by_tool = r#"{"a": {"overlaps": ["b"], "clusters": [["a", "b", "c"]]}}"#;
        let list = r#"{"tools": [{"tool": "a", "overlaps": [{"tool": "b", "reason": "alike", "weight": 0.5}],
            "clusters": [{"name": "all", "tools": ["a", "b", "c"]}]}]}"#;
        let by_tool = OverlapMap::read(by_tool.as_bytes()).expect("valid");
        let list = OverlapMap::read(list.as_bytes()).expect("valid");
        assert_eq!(by_tool.neighbours, list.neighbours);
        assert_eq!(by_tool.clusters, list.clusters);
        assert_eq!((by_tool.shape, list.shape), (Shape::ByTool, Shape::List));
        assert_eq!(list.entries[0].overlaps[0].weight, Some(0.5));
        assert_eq!(list.overlap_pointer(0, 0), "/tools/0/overlaps/0/tool");
    }

    #[test]
    fn rejects_unknown_keys_and_wrong_types() {
        let text = r#"{"a": {"overlap": ["b"]}, "b": []}"#;
        let findings = OverlapMap::read(text.as_bytes()).expect_err("invalid");
        let messages: Vec<&str> = findings.iter().map(|finding| finding.message.as_str()).collect();
        assert_eq!(messages, ["unknown key 'overlap'", "'b' must be an object, found an array"]);
    }
}
