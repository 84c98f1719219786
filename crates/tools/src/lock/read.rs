//! Strict parser for a tool lock.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{LOCK_VERSION, LockedField, LockedTool, ToolsLock};
use karat_json::{
    Finding, ObjectReader, Path, Problems, parse, read_array, read_enum, read_positive_count, read_string, type_name,
};

/// Length of a hash.
const HASH_DIGITS: usize = 12;

impl ToolsLock {
    /// Parses a lock, or returns all problems.
    pub fn read(bytes: &[u8]) -> Result<Self, Vec<Finding>> {
        let text = Finding::text_of(bytes)?;
        let value = parse(text).map_err(|error| vec![Finding::syntax(text, error)])?;
        let mut problems = Problems::default();
        let lock = read_lock(&value, &Path::Root, &mut problems);
        match lock.filter(|_| problems.is_empty()) {
            Some(lock) => Ok(lock),
            None => Err(Finding::locate_all(text, problems.into_list())),
        }
    }
}

fn read_lock(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<ToolsLock> {
    let mut object = ObjectReader::open(value, path, problems)?;
    let lock_version = object.required("lockVersion", path, problems, read_positive_count);
    if let Some(version) = lock_version.filter(|version| *version > LOCK_VERSION) {
        // A newer file may contain anything else.
        problems.at(
            &path.key("lockVersion"),
            format!(
                "unsupported 'lockVersion' {version} (supported: {LOCK_VERSION}): the file was written by a newer karat"
            ),
        );
        return None;
    }
    let schema = object.nullable("$schema", path, problems, read_string);
    let tools = object.required("tools", path, problems, read_tools);
    object.close(path, problems);
    Some(ToolsLock { schema, lock_version: lock_version?, tools: tools? })
}

fn read_tools(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<BTreeMap<String, LockedTool>> {
    let Value::Object(map) = value else {
        problems.at(path, format!("{} must be an object, found {}", path.name(), type_name(value)));
        return None;
    };
    // Collected first, so that the problems of all tools are reported.
    let tools: Vec<Option<(String, LockedTool)>> =
        map.iter().map(|(name, tool)| Some((name.clone(), read_tool(tool, &path.key(name), problems)?))).collect();
    tools.into_iter().collect()
}

fn read_tool(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<LockedTool> {
    let mut object = ObjectReader::open(value, path, problems)?;
    let description_hash = object.required("descriptionHash", path, problems, or_null(read_hash));
    let schema_hash = object.required("schemaHash", path, problems, or_null(read_hash));
    let version = object.required("version", path, problems, or_null(read_string));
    let unknown = object
        .optional("unknown", path, problems, |value, path, problems| read_array(value, path, problems, read_field));
    object.close(path, problems);
    let mut unknown = unknown.unwrap_or_default();
    unknown.sort_unstable();
    unknown.dedup();
    Some(LockedTool { description_hash: description_hash?, schema_hash: schema_hash?, version: version?, unknown })
}

/// Reads a required member that may be null.
fn or_null<T>(
    read: impl Fn(&Value, &Path<'_>, &mut Problems) -> Option<T>,
) -> impl Fn(&Value, &Path<'_>, &mut Problems) -> Option<Option<T>> {
    move |value, path, problems| if value.is_null() { Some(None) } else { read(value, path, problems).map(Some) }
}

fn read_hash(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<String> {
    let hash = read_string(value, path, problems)?;
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if hash.len() == HASH_DIGITS && hash.bytes().all(is_digit) {
        return Some(hash);
    }
    problems.at(path, format!("{} must be {HASH_DIGITS} hex digits (0-9, a-f) or null", path.name()));
    None
}

fn read_field(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<LockedField> {
    read_enum(value, path, problems, &LockedField::ALL.map(LockedField::key), LockedField::from_key)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::super::strategy;
    use super::*;

    #[rstest]
    #[case("{", "the file ends in the middle of an object")]
    #[case("[]", "the file must be an object, found an array")]
    #[case("{}", "'lockVersion' is missing|'tools' is missing")]
    #[case(r#"{"lockVersion": 0, "tools": {}}"#, "'lockVersion' must be an integer of at least 1, found 0")]
    #[case(r#"{"lockVersion": 1, "tools": []}"#, "'tools' must be an object, found an array")]
    #[case(r#"{"lockVersion": 1, "tools": {}, "tool": {}}"#, "unknown key 'tool'")]
    #[case(
        r#"{"lockVersion": 2, "gaps": 1}"#,
        "unsupported 'lockVersion' 2 (supported: 1): the file was written by a newer karat"
    )]
    #[case(
        r#"{"lockVersion": 1, "tools": {"a": {"descriptionHash": "x", "version": null}}}"#,
        "'schemaHash' is missing|'descriptionHash' must be 12 hex digits (0-9, a-f) or null"
    )]
    #[case(
        r#"{"lockVersion": 1, "tools": {"a": {"descriptionHash": null, "schemaHash": null, "version": null, "unknown": ["name"]}}}"#,
        "invalid value 'name' for 'unknown'[0]"
    )]
    fn reports_all_problems(#[case] text: &str, #[case] messages: &str) {
        let findings = ToolsLock::read(text.as_bytes()).expect_err("invalid");
        let actual: Vec<&str> = findings.iter().map(|finding| finding.message.as_str()).collect();
        assert_eq!(actual.join("|"), messages);
    }

    #[test]
    fn rejects_invalid_utf8() {
        assert_eq!(ToolsLock::read(&[0xff]).expect_err("invalid")[0].message, "the file is not valid UTF-8");
    }

    proptest! {
        #[test]
        fn round_trips(lock in strategy::lock()) {
            let text = lock.text().expect("JSON");
            prop_assert_eq!(ToolsLock::read(text.as_bytes()), Ok(lock));
        }
    }
}
