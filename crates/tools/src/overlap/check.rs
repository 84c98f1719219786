//! Finds likely mistakes in a valid overlap map: unknown tools, one-sided overlaps, small clusters and so on.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{Cluster, OverlapEntry, OverlapMap, shell_quote};
use karat_cases::registry::Registry;
use karat_json::Severity;
use karat_json::nearest;

/// Number of tools from which a map is checked for density.
const LARGE_REGISTRY_TOOLS: usize = 50;
/// Most tools of a large registry have no more overlaps and clusters than these.
const TYPICAL_OVERLAPS: usize = 4;
const TYPICAL_CLUSTERS: usize = 2;
/// Maximum even for a hub.
const MAX_OVERLAPS: usize = 10;
const MAX_CLUSTERS: usize = 5;
/// Two tools are an overlap, not a cluster.
const MIN_CLUSTER_SIZE: usize = 3;

/// A likely mistake in an overlap map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverlapFinding {
    pub rule: &'static str,
    pub severity: Severity,
    /// JSON pointer into the map.
    pub pointer: String,
    /// A lower-case fragment.
    pub message: String,
    pub help: Option<String>,
}

/// The registry has no tool of this name, or may have one in a part that could not be read.
const UNKNOWN_TOOL: &str = "overlap-unknown-tool";
/// Only one side declares the overlap.
const ASYMMETRIC: &str = "overlap-asymmetric";
/// A tool overlaps itself.
const SELF: &str = "overlap-self";
/// A duplicate entry.
const REPEATED: &str = "overlap-repeated";
/// A cluster has fewer than three tools.
const SMALL_CLUSTER: &str = "overlap-small-cluster";
/// A cluster is declared under a tool that is not in it.
const FOREIGN_CLUSTER: &str = "overlap-foreign-cluster";
/// The map, or one of its tools, has too many overlaps.
const DENSE: &str = "overlap-dense";

/// All rules by name.
pub const OVERLAP_RULES: [&str; 7] = [ASYMMETRIC, DENSE, FOREIGN_CLUSTER, REPEATED, SELF, SMALL_CLUSTER, UNKNOWN_TOOL];

/// Checks a map, against the registry's tools if given; findings are in file order.
pub fn check_overlaps(map: &OverlapMap, registry: Option<&Registry>) -> Vec<OverlapFinding> {
    let declared =
        map.entries.iter().flat_map(|entry| entry.overlaps.iter().map(|other| (&*entry.tool, &*other.tool))).collect();
    let names = registry.map(Registry::names);
    let mut checker = Checker { map, registry, names, declared, findings: Vec::new() };
    checker.density();
    let mut seen: HashMap<&str, usize> = HashMap::new();
    for (at, entry) in map.entries.iter().enumerate() {
        checker.tool(&entry.tool, checker.tool_pointer(at));
        if let Some(first) = seen.get(entry.tool.as_str()) {
            let message = format!("duplicate entry for '{}': merge it with entry {}", entry.tool, first + 1);
            checker.warn(REPEATED, checker.tool_pointer(at), message, None);
        }
        seen.entry(&entry.tool).or_insert(at);
        checker.overlaps(at, entry);
        checker.clusters(at, entry);
    }
    checker.findings
}

struct Checker<'c> {
    map: &'c OverlapMap,
    registry: Option<&'c Registry>,
    names: Option<Vec<&'c str>>,
    /// Declared overlaps, by direction.
    declared: HashSet<(&'c str, &'c str)>,
    findings: Vec<OverlapFinding>,
}

impl<'c> Checker<'c> {
    fn warn(&mut self, rule: &'static str, pointer: String, message: String, help: Option<String>) {
        self.findings.push(OverlapFinding { rule, severity: Severity::Warning, pointer, message, help });
    }

    /// Returns the JSON pointer of an entry's tool name.
    fn tool_pointer(&self, entry: usize) -> String {
        match self.map.shape {
            super::Shape::ByTool => self.map.entry_pointer(entry),
            super::Shape::List => format!("{}/tool", self.map.entry_pointer(entry)),
        }
    }

    fn is_known(&self, tool: &str) -> bool {
        self.registry.is_none_or(|registry| registry.tool(tool).is_some())
    }

    fn tool(&mut self, tool: &str, pointer: String) {
        let Some(registry) = self.registry.filter(|_| !self.is_known(tool)) else {
            return;
        };
        let near = nearest(tool, self.names.as_deref().unwrap_or_default());
        let help = near.map(|name| format!("did you mean '{name}'?"));
        // The tool may be in a part of the registry that could not be read.
        let (severity, message) = if registry.gaps().is_empty() {
            (Severity::Error, format!("the registry has no tool '{tool}'"))
        } else {
            let message = format!("the registry has no tool '{tool}', but not all of it could be read");
            (Severity::Warning, message)
        };
        self.findings.push(OverlapFinding { rule: UNKNOWN_TOOL, severity, pointer, message, help });
    }

    fn overlaps(&mut self, at: usize, entry: &'c OverlapEntry) {
        let mut seen: HashSet<&str> = HashSet::new();
        for (index, other) in entry.overlaps.iter().enumerate() {
            let pointer = self.map.overlap_pointer(at, index);
            self.tool(&other.tool, pointer.clone());
            if other.tool == entry.tool {
                self.warn(SELF, pointer, format!("'{}' overlaps itself", entry.tool), None);
            } else if !seen.insert(&other.tool) {
                self.warn(REPEATED, pointer, format!("'{}' is a duplicate", other.tool), None);
            } else if !self.declared.contains(&(&*other.tool, &*entry.tool))
                && self.is_known(&entry.tool)
                && self.is_known(&other.tool)
            {
                let message = format!("'{}' overlaps '{}', but not vice versa", entry.tool, other.tool);
                let words = (shell_quote(&entry.tool), shell_quote(&other.tool));
                let help = format!("karat overlap add {} {}", words.0, words.1);
                self.warn(ASYMMETRIC, pointer, message, Some(help));
            }
        }
    }

    fn clusters(&mut self, at: usize, entry: &'c OverlapEntry) {
        let mut seen: HashSet<BTreeSet<&str>> = HashSet::new();
        for (index, Cluster { tools, .. }) in entry.clusters.iter().enumerate() {
            let pointer = self.map.cluster_pointer(at, index);
            let mut members: BTreeSet<&str> = BTreeSet::new();
            for (index_in_cluster, tool) in tools.iter().enumerate() {
                let pointer = self.map.member_pointer(at, index, index_in_cluster);
                self.tool(tool, pointer.clone());
                if !members.insert(tool) {
                    self.warn(REPEATED, pointer, format!("'{tool}' is a duplicate"), None);
                }
            }
            if members.len() < MIN_CLUSTER_SIZE {
                let count = members.len();
                let message = format!("a cluster needs at least {MIN_CLUSTER_SIZE} tools, found {count}");
                let help = (count == 2).then(|| "declare two tools as an overlap".to_owned());
                self.warn(SMALL_CLUSTER, pointer.clone(), message, help);
            }
            if !members.contains(entry.tool.as_str()) {
                let message = format!("the cluster is declared under '{}', which is not in it", entry.tool);
                self.warn(FOREIGN_CLUSTER, pointer.clone(), message, None);
            }
            if !seen.insert(members) {
                self.warn(REPEATED, pointer, "duplicate cluster".to_owned(), None);
            }
        }
    }

    /// Checks the density of a large registry's map: a map in which most tools overlap is useless.
    fn density(&mut self) {
        let map = self.map;
        let mut tools: BTreeSet<&str> = map.entries.iter().map(|entry| entry.tool.as_str()).collect();
        tools.extend(map.pairs().flat_map(|(left, right)| [left, right]));
        if self.registry.map_or(tools.len(), |registry| registry.tools().len()) < LARGE_REGISTRY_TOOLS {
            return;
        }
        let counts = tools.iter().map(|tool| (*tool, map.neighbours(tool).count(), map.clusters_of(tool).count()));
        let counts: Vec<(&str, usize, usize)> = counts.collect();
        let is_dense = |&&(_, overlaps, clusters): &&(&str, usize, usize)| {
            overlaps > TYPICAL_OVERLAPS || clusters > TYPICAL_CLUSTERS
        };
        let dense = counts.iter().filter(is_dense).count();
        if dense * 2 > counts.len() {
            let message = format!(
                "{dense} of {} tools have more than {TYPICAL_OVERLAPS} overlaps or {TYPICAL_CLUSTERS} clusters: in a \
                 large registry only a few hubs should",
                counts.len()
            );
            let help = "keep only overlaps of tools that a person could confuse".to_owned();
            self.warn(DENSE, String::new(), message, Some(help));
        }
        for (tool, overlaps, clusters) in counts {
            if overlaps > MAX_OVERLAPS || clusters > MAX_CLUSTERS {
                let entry = map.entries.iter().position(|entry| entry.tool == tool);
                let pointer = entry.map(|entry| self.tool_pointer(entry)).unwrap_or_default();
                let message = format!(
                    "'{tool}' has {overlaps} overlaps and {clusters} clusters: even a hub should \
                     have at most {MAX_OVERLAPS} and {MAX_CLUSTERS}"
                );
                self.warn(DENSE, pointer, message, None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Map, Value, json};

    use super::*;
    use karat_cases::registry::{Gap, GapKind, Tool, ToolLocation};
    use karat_json::locate;

    fn registry(names: &[&str]) -> Registry {
        Registry::from_tools(names.iter().map(|&name| Tool { name: name.to_owned(), ..Tool::default() }))
    }

    /// Returns rule, pointer and message of each finding, and asserts that every pointer is valid.
    fn findings_of(map: &Value, registry: Option<&Registry>) -> Vec<(&'static str, String, String)> {
        let text = map.to_string();
        let map = OverlapMap::read(text.as_bytes()).expect("valid");
        let findings = check_overlaps(&map, registry);
        for finding in &findings {
            assert!(locate(&text, &finding.pointer).is_some(), "{finding:?}");
            assert!(OVERLAP_RULES.contains(&finding.rule));
        }
        findings.into_iter().map(|finding| (finding.rule, finding.pointer, finding.message)).collect()
    }

    #[test]
    fn a_valid_map_has_no_findings() {
        let map = json!({
            "$schema": "x",
            "a": {"overlaps": ["b"], "clusters": [["a", "b", "c"]], "reason": "alike"},
            "b": {"overlaps": ["a"], "clusters": [["a", "b", "c"]]},
            "c": {"clusters": [["a", "b", "c"]]},
        });
        assert_eq!(findings_of(&map, Some(&registry(&["a", "b", "c"]))), []);
        assert_eq!(findings_of(&map, None), []);
    }

    #[rstest]
    #[case(json!({"a": {"overlaps": ["b"]}}), ASYMMETRIC, "/a/overlaps/0", "'a' overlaps 'b', but not vice versa")]
    #[case(json!({"a": {"overlaps": ["a"]}}), SELF, "/a/overlaps/0", "'a' overlaps itself")]
    #[case(json!({"a": {"overlaps": ["b", "b"]}, "b": {"overlaps": ["a"]}}), REPEATED, "/a/overlaps/1", "'b' is a duplicate")]
    #[case(json!({"a": {"clusters": [["a", "b", "b"]]}}), REPEATED, "/a/clusters/0/2", "'b' is a duplicate")]
    #[case(json!({"a": {"clusters": [["a", "b"]]}}), SMALL_CLUSTER, "/a/clusters/0", "a cluster needs at least 3 tools, found 2")]
    #[case(json!({"a": {"clusters": [["b", "c", "d"]]}}), FOREIGN_CLUSTER, "/a/clusters/0", "the cluster is declared under 'a', which is not in it")]
    #[case(json!({"a": {"clusters": [["a", "b", "c"], ["c", "b", "a"]]}}), REPEATED, "/a/clusters/1", "duplicate cluster")]
    #[case(json!({"tools": [{"tool": "a"}, {"tool": "a"}]}), REPEATED, "/tools/1/tool", "duplicate entry for 'a': merge it with entry 1")]
    #[case(json!({"tools": [{"tool": "a", "overlaps": [{"tool": "b"}]}]}), ASYMMETRIC, "/tools/0/overlaps/0/tool", "'a' overlaps 'b', but not vice versa")]
    #[case(json!({"tools": [{"tool": "a", "clusters": [{"tools": ["a", "a", "b", "c"]}]}]}), REPEATED, "/tools/0/clusters/0/tools/1", "'a' is a duplicate")]
    fn reports_findings(#[case] map: Value, #[case] rule: &'static str, #[case] pointer: &str, #[case] message: &str) {
        let all = findings_of(&map, None);
        assert!(all.contains(&(rule, pointer.to_owned(), message.to_owned())), "{all:?}");
    }

    #[test]
    fn suggests_a_fix_for_a_one_sided_overlap() {
        let map = OverlapMap::read(br#"{"a b": {"overlaps": ["b"]}}"#).expect("valid");
        let help = check_overlaps(&map, None)[0].help.clone();
        assert_eq!(help.as_deref(), Some("karat overlap add 'a b' b"));
    }

    #[test]
    fn an_unknown_tool_is_an_error_unless_the_registry_has_gaps() {
        let map = json!({"get_wether": {"overlaps": ["b"]}, "b": {"overlaps": ["get_wether"]}});
        let mut registry = registry(&["get_weather", "b"]);
        let all = findings_of(&map, Some(&registry));
        let locations: Vec<&str> = all.iter().map(|(_, pointer, _)| pointer.as_str()).collect();
        assert_eq!(locations, ["/get_wether", "/b/overlaps/0"]);
        let map = OverlapMap::read(map.to_string().as_bytes()).expect("valid");
        let finding = &check_overlaps(&map, Some(&registry))[0];
        assert_eq!((finding.severity, finding.help.as_deref()), (Severity::Error, Some("did you mean 'get_weather'?")));
        let location = ToolLocation { source: "t.ts".to_owned(), position: None };
        registry.add_gap(Gap { kind: GapKind::Unknown, location, message: "a call".to_owned() });
        assert!(check_overlaps(&map, Some(&registry)).iter().all(|finding| finding.severity == Severity::Warning));
    }

    /// Returns a ring in which every tool overlaps its nearest tools on both sides.
    fn ring(tools: usize, following: usize) -> Value {
        let name = |tool: usize| format!("t{:03}", tool % tools);
        let entry = |tool: usize| {
            let before = (1..=following).map(|step| name(tool + tools - step));
            let after = (1..=following).map(|step| name(tool + step));
            (name(tool), json!({"overlaps": before.chain(after).collect::<Vec<_>>()}))
        };
        Value::Object((0..tools).map(entry).collect::<Map<_, _>>())
    }

    #[rstest]
    #[case(ring(49, 6), 0)]
    #[case(ring(50, 2), 0)]
    #[case(ring(50, 3), 1)]
    #[case(ring(50, 6), 51)]
    fn a_large_map_must_be_sparse(#[case] map: Value, #[case] count: usize) {
        let all = findings_of(&map, None);
        assert!(all.iter().all(|(rule, _, _)| *rule == DENSE));
        assert_eq!(all.len(), count, "{:?}", all.first());
    }
}
