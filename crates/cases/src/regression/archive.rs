//! Archives of regression cases that no longer run, stored next to the eval file.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use karat_json::canonical::canonical_hash;
use karat_json::{
    EditError, Finding, JsonText, ObjectReader, Path, Problems, SyntaxError, parse, read_array, read_object_map,
    read_string,
};

/// A parsed archive, with its text for edits.
#[derive(Debug, Clone)]
pub struct Archive {
    pub cases: Vec<ArchivedCase>,
    json: JsonText,
}

/// A case that no longer runs.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ArchivedCase {
    /// When it was archived.
    pub archived_at: String,
    /// Why it was archived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The hash of the archived case.
    pub hash: String,
    /// The hash of the original case, if it was edited before it was archived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sealed_hash: Option<String>,
    /// The case as it was in its eval file.
    pub case: Value,
}

/// A case that was edited in its archive.
#[derive(Debug, Clone, PartialEq)]
pub struct EditedCase<'a> {
    /// Its index in the list.
    pub index: usize,
    pub case: &'a ArchivedCase,
    /// The hash of the case as it is now.
    pub current_hash: String,
}

/// An archive of regression cases.
#[derive(Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "karat regression archive")]
pub struct ArchiveSchema {
    /// Location of this file's schema, for editors.
    #[serde(rename = "$schema")]
    schema: Option<String>,
    archived: Vec<ArchivedCase>,
}

impl ArchivedCase {
    pub fn id(&self) -> &str {
        self.case.get("id").and_then(Value::as_str).unwrap_or_default()
    }
}

impl Archive {
    /// Creates an empty archive.
    pub fn empty() -> Self {
        Self { cases: Vec::new(), json: JsonText::of(&json!({"archived": []})) }
    }

    /// Parses an archive strictly.
    pub fn parse(bytes: &[u8]) -> Result<Self, Vec<Finding>> {
        let Ok(text) = std::str::from_utf8(bytes) else {
            let error = SyntaxError { offset: 0, message: "the file is not valid UTF-8".to_owned() };
            return Err(vec![Finding::syntax("", error)]);
        };
        let json_text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let value = parse(json_text).map_err(|error| vec![Finding::syntax(json_text, error)])?;
        let mut problems = Problems::default();
        let cases = read_archive(&value, &Path::Root, &mut problems);
        let json = JsonText::read(text).map_err(|error| vec![Finding::syntax(json_text, error)])?;
        match cases.filter(|_| problems.is_empty()) {
            Some(cases) => Ok(Self { cases, json }),
            None => Err(Finding::locate_all(json_text, problems.into_list())),
        }
    }

    /// Returns the cases that do not match their hash.
    pub fn edited(&self) -> Vec<EditedCase<'_>> {
        let edited = self.cases.iter().enumerate().map(|(index, case)| {
            let current_hash = canonical_hash(&case.case);
            EditedCase { index, case, current_hash }
        });
        edited.filter(|edited| edited.current_hash != edited.case.hash).collect()
    }

    /// Adds a case to the end.
    pub fn add(&mut self, case: ArchivedCase) -> Result<(), EditError> {
        let mut written = json!({"archivedAt": case.archived_at});
        if let Some(reason) = &case.reason {
            written["reason"] = json!(reason);
        }
        written["hash"] = json!(case.hash);
        if let Some(sealed) = &case.sealed_hash {
            written["sealedHash"] = json!(sealed);
        }
        written["case"] = case.case.clone();
        self.json.append("/archived", &written)?;
        self.cases.push(case);
        Ok(())
    }

    pub fn into_text(self) -> String {
        self.json.into_text()
    }
}

/// The suffix of archive file names.
pub const ARCHIVE_SUFFIX: &str = ".archived.json";

/// Returns the name of the archive of an eval file: `x.regression.archived.json` for `x.regression.json`.
pub fn archive_name(eval_file_name: &str) -> String {
    let stem = eval_file_name.strip_suffix(".json").unwrap_or(eval_file_name);
    format!("{stem}{ARCHIVE_SUFFIX}")
}

fn read_archive(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Vec<ArchivedCase>> {
    let mut object = ObjectReader::open(value, path, problems)?;
    object.nullable("$schema", path, problems, read_string);
    let cases = object
        .required("archived", path, problems, |value, path, problems| read_array(value, path, problems, read_archived));
    object.close(path, problems);
    cases
}

fn read_archived(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<ArchivedCase> {
    let mut object = ObjectReader::open(value, path, problems)?;
    let archived_at = object.required("archivedAt", path, problems, read_string);
    let reason = object.nullable("reason", path, problems, read_string);
    let hash = object.required("hash", path, problems, read_string);
    let sealed_hash = object.nullable("sealedHash", path, problems, read_string);
    let case = object.required("case", path, problems, |value, path, problems| {
        let case = read_object_map(value, path, problems)?;
        if !case.get("id").is_some_and(Value::is_string) {
            problems.at(path, "an archived case needs an 'id'");
        }
        Some(case)
    });
    object.close(path, problems);
    Some(ArchivedCase { archived_at: archived_at?, reason, hash: hash?, sealed_hash, case: Value::Object(case?) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_through_its_text() {
        let mut archive = Archive::empty();
        let case = ArchivedCase {
            archived_at: "2026-01-01T00:00:00Z".to_owned(),
            reason: Some("the tool is gone".to_owned()),
            hash: "0123456789ab".to_owned(),
            sealed_hash: None,
            case: json!({"id": "rg-t-001"}),
        };
        archive.add(case.clone()).expect("added");
        let text = archive.into_text();
        insta::assert_snapshot!(text, @r#"
        {
          "archived": [
            {
              "archivedAt": "2026-01-01T00:00:00Z",
              "reason": "the tool is gone",
              "hash": "0123456789ab",
              "case": {
                "id": "rg-t-001"
              }
            }
          ]
        }
        "#);
        let mut archive = Archive::parse(text.as_bytes()).expect("valid");
        assert_eq!(archive.cases, std::slice::from_ref(&case));
        assert_eq!(archive.edited().len(), 1);
        let (hash, sealed_hash) = (canonical_hash(&case.case), Some("0123456789ab".to_owned()));
        let whole = ArchivedCase { hash, sealed_hash, reason: None, ..case.clone() };
        archive.add(whole.clone()).expect("added");
        let archive = Archive::parse(archive.into_text().as_bytes()).expect("valid");
        assert_eq!(archive.cases, [case, whole]);
        assert_eq!(archive.edited().iter().map(|edited| edited.index).collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn reports_all_problems() {
        let text = r#"{"archived": [{"archivedAt": 1, "hash": "x", "case": {}, "reasons": ""}]}"#;
        let findings = Archive::parse(text.as_bytes()).expect_err("invalid");
        let messages: Vec<&str> = findings.iter().map(|finding| finding.message.as_str()).collect();
        assert_eq!(
            messages,
            [
                "'archivedAt' must be a string, found a number",
                "an archived case needs an 'id'",
                "unknown key 'reasons'"
            ]
        );
    }

    #[test]
    fn rejects_invalid_utf8() {
        let findings = Archive::parse(b"{\"archived\": [], \"\xff\": 1}").expect_err("invalid");
        assert_eq!(findings[0].message, "the file is not valid UTF-8");
    }

    #[test]
    fn archive_names_have_no_tier() {
        assert_eq!(archive_name("get-weather.regression.json"), "get-weather.regression.archived.json");
        assert_eq!(crate::Tier::from_file_name("get-weather.regression.archived.json"), None);
    }
}
