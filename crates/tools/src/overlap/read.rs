//! Strict parser for both forms of an overlap map.

use serde_json::Value;

use super::{Cluster, Neighbour, OverlapEntry, OverlapMap, Shape};
use karat_json::hash::short_hash;
use karat_json::{
    Finding, ObjectReader, Path, Problems, parse, read_array, read_object_map, read_positive_number, read_string,
    read_strings,
};

/// Key of the file's JSON Schema, for editors.
pub(super) const SCHEMA: &str = "$schema";

impl OverlapMap {
    /// Parses a map, or returns all problems.
    pub fn read(bytes: &[u8]) -> Result<Self, Vec<Finding>> {
        let text = Finding::text_of(bytes)?;
        let value = parse(text).map_err(|error| vec![Finding::syntax(text, error)])?;
        let mut problems = Problems::default();
        let shape = if value.get("tools").is_some_and(Value::is_array) { Shape::List } else { Shape::ByTool };
        let entries = match shape {
            Shape::ByTool => read_by_tool(&value, &Path::Root, &mut problems),
            Shape::List => read_list(&value, &Path::Root, &mut problems),
        };
        match entries.filter(|_| problems.is_empty()) {
            Some(entries) => Ok(Self::of(shape, entries, short_hash(bytes))),
            None => Err(Finding::locate_all(text, problems.into_list())),
        }
    }
}

fn read_by_tool(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Vec<OverlapEntry>> {
    let map = read_object_map(value, path, problems)?;
    let read = |(tool, value): (&String, &Value)| {
        let path = path.key(tool);
        let mut object = ObjectReader::open(value, &path, problems)?;
        let overlaps = object.nullable("overlaps", &path, problems, read_strings).unwrap_or_default();
        let clusters = object.nullable("clusters", &path, problems, |value, path, problems| {
            read_array(value, path, problems, read_strings)
        });
        let reason = object.nullable("reason", &path, problems, read_string);
        object.close(&path, problems);
        Some(OverlapEntry {
            tool: tool.clone(),
            overlaps: overlaps.into_iter().map(|tool| Neighbour { tool, ..Neighbour::default() }).collect(),
            clusters: clusters.unwrap_or_default().into_iter().map(|tools| Cluster { name: None, tools }).collect(),
            reason,
        })
    };
    // Collected first, so that the problems of all entries are reported.
    let entries: Vec<Option<OverlapEntry>> = map.iter().filter(|(tool, _)| *tool != SCHEMA).map(read).collect();
    entries.into_iter().collect()
}

fn read_list(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Vec<OverlapEntry>> {
    let mut object = ObjectReader::open(value, path, problems)?;
    object.nullable(SCHEMA, path, problems, read_string);
    let entries =
        object.required("tools", path, problems, |value, path, problems| read_array(value, path, problems, read_entry));
    object.close(path, problems);
    entries
}

fn read_entry(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<OverlapEntry> {
    let mut object = ObjectReader::open(value, path, problems)?;
    let tool = object.required("tool", path, problems, read_string);
    let overlaps = object.nullable("overlaps", path, problems, |value, path, problems| {
        read_array(value, path, problems, read_neighbour)
    });
    let clusters = object
        .nullable("clusters", path, problems, |value, path, problems| read_array(value, path, problems, read_cluster));
    let reason = object.nullable("reason", path, problems, read_string);
    object.close(path, problems);
    Some(OverlapEntry {
        tool: tool?,
        overlaps: overlaps.unwrap_or_default(),
        clusters: clusters.unwrap_or_default(),
        reason,
    })
}

fn read_neighbour(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Neighbour> {
    let mut object = ObjectReader::open(value, path, problems)?;
    let tool = object.required("tool", path, problems, read_string);
    let reason = object.nullable("reason", path, problems, read_string);
    let weight = object.nullable("weight", path, problems, read_positive_number);
    object.close(path, problems);
    Some(Neighbour { tool: tool?, reason, weight })
}

fn read_cluster(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Cluster> {
    let mut object = ObjectReader::open(value, path, problems)?;
    let name = object.nullable("name", path, problems, read_string);
    let tools = object.required("tools", path, problems, read_strings);
    object.close(path, problems);
    Some(Cluster { name, tools: tools? })
}
