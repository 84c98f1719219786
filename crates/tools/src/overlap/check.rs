//! Finds what is valid in an overlap map and still likely wrong: names of no tool, one-sided overlaps, hollow clusters.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{Cluster, OverlapEntry, OverlapMap, command_word};
use karat_core::registry::Registry;
use karat_json::Severity;
use karat_json::nearest;

/// From so many tools on, a map that says that everything overlaps says nothing.
const MANY_TOOLS: usize = 50;
/// Most tools of a large registry have at most so many neighbours and clusters.
const USUAL_OVERLAPS: usize = 4;
const USUAL_CLUSTERS: usize = 2;
/// Not even a tool that many others lead to has more than these.
const MOST_OVERLAPS: usize = 10;
const MOST_CLUSTERS: usize = 5;
/// Two tools are an overlap.
const LEAST_MEMBERS: usize = 3;

/// Something likely wrong in an overlap map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverlapFinding {
    pub rule: &'static str,
    pub severity: Severity,
    /// Where in the map, as a JSON pointer.
    pub pointer: String,
    /// A lower-case fragment.
    pub message: String,
    pub help: Option<String>,
}

/// A name that no tool has, or of which that is not known since a part of the registry could not be read.
const UNKNOWN_TOOL: &str = "overlap-unknown-tool";
/// An overlap that only one side declares.
const ASYMMETRIC: &str = "overlap-asymmetric";
/// A tool that overlaps itself.
const SELF: &str = "overlap-self";
/// Something that is listed twice.
const REPEATED: &str = "overlap-repeated";
/// A cluster of fewer than three tools.
const SMALL_CLUSTER: &str = "overlap-small-cluster";
/// A cluster that stands under a tool that is not in it.
const FOREIGN_CLUSTER: &str = "overlap-foreign-cluster";
/// A map, or a tool of it, with more overlaps than anybody can tell apart.
const DENSE: &str = "overlap-dense";

/// All rules, by the names that a person sees.
pub const OVERLAP_RULES: [&str; 7] = [ASYMMETRIC, DENSE, FOREIGN_CLUSTER, REPEATED, SELF, SMALL_CLUSTER, UNKNOWN_TOOL];

/// Checks a map for itself and, where there is a registry, against its tools; in the order of the file.
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
            let message = format!("'{}' has an entry already, number {}: put them together", entry.tool, first + 1);
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
    /// What the file says, in the direction in which it says it.
    declared: HashSet<(&'c str, &'c str)>,
    findings: Vec<OverlapFinding>,
}

impl<'c> Checker<'c> {
    fn warn(&mut self, rule: &'static str, pointer: String, message: String, help: Option<String>) {
        self.findings.push(OverlapFinding { rule, severity: Severity::Warning, pointer, message, help });
    }

    /// Returns where an entry names its tool.
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
        // What could not be read may hold the tool, so that nothing is claimed of it.
        let (severity, message) = if registry.gaps().is_empty() {
            (Severity::Error, format!("the registry has no tool '{tool}'"))
        } else {
            let message =
                format!("'{tool}' is not known: the registry has no such tool, but not all of it could be read");
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
                self.warn(REPEATED, pointer, format!("'{}' is listed twice", other.tool), None);
            } else if !self.declared.contains(&(&*other.tool, &*entry.tool))
                && self.is_known(&entry.tool)
                && self.is_known(&other.tool)
            {
                let message = format!("'{}' overlaps '{}', but not the other way round", entry.tool, other.tool);
                let words = (command_word(&entry.tool), command_word(&other.tool));
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
            for (place, tool) in tools.iter().enumerate() {
                let pointer = self.map.member_pointer(at, index, place);
                self.tool(tool, pointer.clone());
                if !members.insert(tool) {
                    self.warn(REPEATED, pointer, format!("'{tool}' is listed twice"), None);
                }
            }
            if members.len() < LEAST_MEMBERS {
                let found = members.len();
                let message = format!("a cluster is of at least {LEAST_MEMBERS} tools, found {found}");
                let help = (found == 2).then(|| "two tools are an overlap".to_owned());
                self.warn(SMALL_CLUSTER, pointer.clone(), message, help);
            }
            if !members.contains(entry.tool.as_str()) {
                let message = format!("this cluster stands under '{}', which is not in it", entry.tool);
                self.warn(FOREIGN_CLUSTER, pointer.clone(), message, None);
            }
            if !seen.insert(members) {
                self.warn(REPEATED, pointer, "a cluster of the same tools is listed twice".to_owned(), None);
            }
        }
    }

    /// Looks at a large registry's map as a whole: most tools have few neighbours, or the map tells nothing apart.
    fn density(&mut self) {
        let map = self.map;
        let mut tools: BTreeSet<&str> = map.entries.iter().map(|entry| entry.tool.as_str()).collect();
        tools.extend(map.pairs().flat_map(|(left, right)| [left, right]));
        if self.registry.map_or(tools.len(), |registry| registry.tools().len()) < MANY_TOOLS {
            return;
        }
        let counts = tools.iter().map(|tool| (*tool, map.neighbours(tool).count(), map.clusters_of(tool).count()));
        let counts: Vec<(&str, usize, usize)> = counts.collect();
        let is_past =
            |&&(_, overlaps, clusters): &&(&str, usize, usize)| overlaps > USUAL_OVERLAPS || clusters > USUAL_CLUSTERS;
        let past = counts.iter().filter(is_past).count();
        if past * 2 > counts.len() {
            let message = format!(
                "{past} of {} tools have more than {USUAL_OVERLAPS} overlaps or {USUAL_CLUSTERS} clusters: most tools of \
                 a large registry have fewer, only hubs have more",
                counts.len()
            );
            let help = "keep the neighbours that a person would really take for each other".to_owned();
            self.warn(DENSE, String::new(), message, Some(help));
        }
        for (tool, overlaps, clusters) in counts {
            if overlaps > MOST_OVERLAPS || clusters > MOST_CLUSTERS {
                let entry = map.entries.iter().position(|entry| entry.tool == tool);
                let pointer = entry.map(|entry| self.tool_pointer(entry)).unwrap_or_default();
                let message = format!(
                    "'{tool}' has {overlaps} overlaps and {clusters} clusters: a hub may have more than others, but not \
                     more than {MOST_OVERLAPS} and {MOST_CLUSTERS}"
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
    use karat_core::registry::{Gap, GapKind, Tool, ToolPlace};
    use karat_json::locate;

    fn registry(names: &[&str]) -> Registry {
        Registry::of(names.iter().map(|&name| Tool { name: name.to_owned(), ..Tool::default() }))
    }

    /// Returns rule, pointer and message of each finding; every pointer leads somewhere.
    fn found(map: &Value, registry: Option<&Registry>) -> Vec<(&'static str, String, String)> {
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
    fn a_good_map_has_no_findings() {
        let map = json!({
            "$schema": "x",
            "a": {"overlaps": ["b"], "clusters": [["a", "b", "c"]], "reason": "alike"},
            "b": {"overlaps": ["a"], "clusters": [["a", "b", "c"]]},
            "c": {"clusters": [["a", "b", "c"]]},
        });
        assert_eq!(found(&map, Some(&registry(&["a", "b", "c"]))), []);
        assert_eq!(found(&map, None), []);
    }

    #[rstest]
    #[case(json!({"a": {"overlaps": ["b"]}}), ASYMMETRIC, "/a/overlaps/0", "'a' overlaps 'b', but not the other way round")]
    #[case(json!({"a": {"overlaps": ["a"]}}), SELF, "/a/overlaps/0", "'a' overlaps itself")]
    #[case(json!({"a": {"overlaps": ["b", "b"]}, "b": {"overlaps": ["a"]}}), REPEATED, "/a/overlaps/1", "'b' is listed twice")]
    #[case(json!({"a": {"clusters": [["a", "b", "b"]]}}), REPEATED, "/a/clusters/0/2", "'b' is listed twice")]
    #[case(json!({"a": {"clusters": [["a", "b"]]}}), SMALL_CLUSTER, "/a/clusters/0", "a cluster is of at least 3 tools, found 2")]
    #[case(json!({"a": {"clusters": [["b", "c", "d"]]}}), FOREIGN_CLUSTER, "/a/clusters/0", "this cluster stands under 'a', which is not in it")]
    #[case(json!({"a": {"clusters": [["a", "b", "c"], ["c", "b", "a"]]}}), REPEATED, "/a/clusters/1", "a cluster of the same tools is listed twice")]
    #[case(json!({"tools": [{"tool": "a"}, {"tool": "a"}]}), REPEATED, "/tools/1/tool", "'a' has an entry already, number 1: put them together")]
    #[case(json!({"tools": [{"tool": "a", "overlaps": [{"tool": "b"}]}]}), ASYMMETRIC, "/tools/0/overlaps/0/tool", "'a' overlaps 'b', but not the other way round")]
    #[case(json!({"tools": [{"tool": "a", "clusters": [{"tools": ["a", "a", "b", "c"]}]}]}), REPEATED, "/tools/0/clusters/0/tools/1", "'a' is listed twice")]
    fn findings(#[case] map: Value, #[case] rule: &'static str, #[case] pointer: &str, #[case] message: &str) {
        let all = found(&map, None);
        assert!(all.contains(&(rule, pointer.to_owned(), message.to_owned())), "{all:?}");
    }

    #[test]
    fn a_one_sided_overlap_comes_with_its_fix() {
        let map = OverlapMap::read(br#"{"a b": {"overlaps": ["b"]}}"#).expect("valid");
        let help = check_overlaps(&map, None)[0].help.clone();
        assert_eq!(help.as_deref(), Some("karat overlap add 'a b' b"));
    }

    #[test]
    fn a_tool_that_the_registry_lacks_is_an_error_unless_parts_of_it_are_missing() {
        let map = json!({"get_wether": {"overlaps": ["b"]}, "b": {"overlaps": ["get_wether"]}});
        let mut registry = registry(&["get_weather", "b"]);
        let all = found(&map, Some(&registry));
        let places: Vec<&str> = all.iter().map(|(_, pointer, _)| pointer.as_str()).collect();
        assert_eq!(places, ["/get_wether", "/b/overlaps/0"]);
        let map = OverlapMap::read(map.to_string().as_bytes()).expect("valid");
        let finding = &check_overlaps(&map, Some(&registry))[0];
        assert_eq!((finding.severity, finding.help.as_deref()), (Severity::Error, Some("did you mean 'get_weather'?")));
        let place = ToolPlace { source: "t.ts".to_owned(), position: None };
        registry.add_gap(Gap { kind: GapKind::Unknown, place, what: "a call".to_owned() });
        assert!(check_overlaps(&map, Some(&registry)).iter().all(|finding| finding.severity == Severity::Warning));
    }

    /// A ring in which every tool overlaps those that follow it.
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
    fn a_large_map_is_sparse(#[case] map: Value, #[case] count: usize) {
        let all = found(&map, None);
        assert!(all.iter().all(|(rule, _, _)| *rule == DENSE));
        assert_eq!(all.len(), count, "{:?}", all.first());
    }
}
