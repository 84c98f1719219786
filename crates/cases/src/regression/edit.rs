//! Edits eval files with regression cases and preserves their formatting.

use serde_json::{Map, Value, json};

use super::is_regression;
use crate::{EvalFile, InvalidEvalFile, Origin};
use karat_json::canonical::canonical_hash;
use karat_json::{EditError, JsonText, Side, locate, parse, pointer_key};

/// An editor of one eval file.
#[derive(Debug, Clone)]
pub struct RegressionEditor {
    json: JsonText,
    file_name: String,
}

/// An error when editing an eval file.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RegressionEditError {
    #[error("{0}")]
    Invalid(#[from] InvalidEvalFile),
    #[error("the file is a bare list of cases, which cannot store their hashes")]
    BareList,
    #[error("no case '{0}'")]
    NoCase(String),
    #[error("{0}")]
    Edit(#[from] EditError),
}

impl RegressionEditor {
    /// Creates a file with this metadata and no cases.
    pub fn new(metadata: &Map<String, Value>, file_name: &str) -> Self {
        let json = JsonText::of(&json!({"metadata": metadata, "cases": []}));
        Self { json, file_name: file_name.to_owned() }
    }

    /// Opens a file, which must be a valid eval file with an envelope.
    pub fn open(bytes: &[u8], file_name: &str) -> Result<Self, RegressionEditError> {
        EvalFile::parse(bytes, Origin::new(file_name))?;
        // It has just been parsed, so it is UTF-8 and JSON; otherwise parsing the edited text fails.
        let json = JsonText::read(&String::from_utf8_lossy(bytes)).unwrap_or_else(|_| JsonText::of(&json!({})));
        if json.text().trim_start().starts_with('[') {
            return Err(RegressionEditError::BareList);
        }
        Ok(Self { json, file_name: file_name.to_owned() })
    }

    /// Appends a case and its hash.
    pub fn add(&mut self, case: &Value) -> Result<(), RegressionEditError> {
        let id = case.get("id").and_then(Value::as_str).unwrap_or_default();
        self.json.append("/cases", case)?;
        self.add_hashes(&Map::from_iter([(id.to_owned(), json!(canonical_hash(case)))]))?;
        Ok(())
    }

    /// Removes a case and its hash; returns the case and the stored hash, if any.
    pub fn remove(&mut self, id: &str) -> Result<(Value, Option<String>), RegressionEditError> {
        let tree = self.tree();
        let (index, case) = raw_cases(&tree)
            .iter()
            .enumerate()
            .find(|(_, case)| case.get("id").and_then(Value::as_str) == Some(id))
            .ok_or_else(|| RegressionEditError::NoCase(id.to_owned()))?;
        self.json.remove(&format!("/cases/{index}"))?;
        let pointer = hash_pointer(id);
        let hash = tree.pointer(&pointer).and_then(Value::as_str).map(str::to_owned);
        if hash.is_some() {
            self.json.remove(&pointer)?;
        }
        Ok((case.clone(), hash))
    }

    /// Adds hashes to regression cases that have none and returns their ids. Existing hashes are kept.
    pub fn seal(&mut self) -> Result<Vec<String>, RegressionEditError> {
        let tree = self.tree();
        let file = self.file()?;
        let is_unsealed = |id: &str| tree.pointer(&hash_pointer(id)).is_none();
        let unsealed = file.cases.iter().zip(raw_cases(&tree)).filter(|(case, _)| is_regression(&file, case));
        let unsealed = unsealed.filter(|(case, _)| is_unsealed(&case.id));
        let hashes: Map<String, Value> =
            unsealed.map(|(case, raw)| (case.id.clone(), json!(canonical_hash(raw)))).collect();
        if !hashes.is_empty() {
            self.add_hashes(&hashes)?;
        }
        Ok(hashes.into_iter().map(|(id, _)| id).collect())
    }

    /// Parses the edited file.
    pub fn file(&self) -> Result<EvalFile, InvalidEvalFile> {
        EvalFile::parse(self.json.text().as_bytes(), Origin::new(&self.file_name))
    }

    /// Returns the text without its byte order mark.
    pub fn text(&self) -> &str {
        self.json.text()
    }

    pub fn into_text(self) -> String {
        self.json.into_text()
    }

    fn tree(&self) -> Value {
        parse(self.json.text()).unwrap_or_default()
    }

    fn add_hashes(&mut self, hashes: &Map<String, Value>) -> Result<(), EditError> {
        let is_object = |pointer: &str| {
            locate(self.json.text(), pointer).is_some_and(|member| self.json.text()[member.value].starts_with('{'))
        };
        if is_object("/metadata/caseHashes") {
            self.json.insert_all("/metadata/caseHashes", hashes)
        } else if is_object("/metadata") {
            self.set("/metadata", "caseHashes", &json!(hashes), Side::Last)
        } else {
            self.set("", "metadata", &json!({ "caseHashes": hashes }), Side::First)
        }
    }

    /// Adds a member, or replaces its value.
    fn set(&mut self, object: &str, key: &str, value: &Value, side: Side) -> Result<(), EditError> {
        match self.json.insert(object, key, value, side) {
            Err(EditError::KeyTaken { .. }) => self.json.replace(&format!("{object}/{key}"), value),
            inserted => inserted,
        }
    }
}

fn raw_cases(tree: &Value) -> &[Value] {
    tree.get("cases").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn hash_pointer(id: &str) -> String {
    format!("/metadata/caseHashes/{}", pointer_key(id))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const NAME: &str = "t.regression.json";

    fn case(id: &str) -> Value {
        json!({"id": id, "input": {"message": id}, "expect": {"toolsCalled": ["t"]}})
    }

    fn open(text: &str) -> RegressionEditor {
        RegressionEditor::open(text.as_bytes(), NAME).expect("valid eval file")
    }

    #[rstest]
    #[case::empty(r#"{"metadata": {"caseHashes": {}}, "cases": []}"#)]
    #[case::no_hashes(r#"{"metadata": {}, "cases": []}"#)]
    #[case::null_hashes(r#"{"metadata": {"caseHashes": null}, "cases": []}"#)]
    #[case::no_metadata("{\n  \"cases\": []\n}\n")]
    #[case::null_metadata(r#"{"cases": [], "metadata": null}"#)]
    #[case::byte_order_mark("\u{feff}{\"cases\": []}")]
    fn adds_and_removes_a_case_with_its_hash(#[case] text: &str) {
        let mut editor = open(text);
        editor.add(&case("rg-t-001")).expect("added");
        let file = editor.file().expect("valid");
        let hashes = file.metadata.and_then(|metadata| metadata.case_hashes).expect("hashes");
        assert_eq!(hashes["rg-t-001"], canonical_hash(&case("rg-t-001")));
        assert_eq!(file.cases[0].id, "rg-t-001");
        let (removed, hash) = editor.remove("rg-t-001").expect("existing case");
        assert_eq!((removed, hash), (case("rg-t-001"), Some(canonical_hash(&case("rg-t-001")))));
        assert!(editor.file().expect("valid").cases.is_empty());
        assert!(editor.remove("rg-t-001").is_err());
    }

    #[test]
    fn sealing_keeps_existing_hashes() {
        let golden = json!({"id": "gs-t-001", "input": {"message": "g"}, "expect": {}});
        let regression = json!({"id": "x", "difficulty": "regression", "input": {"message": "r"}, "expect": {}});
        let text = json!({"metadata": {"tier": "labeled", "caseHashes": {"y": "old"}}, "cases": [golden, regression]});
        let mut editor = open(&text.to_string());
        assert_eq!(editor.seal().expect("sealed"), ["x"]);
        assert_eq!(editor.seal().expect("sealed"), Vec::<String>::new());
        let tree = editor.tree();
        assert_eq!(tree["metadata"]["caseHashes"], json!({"y": "old", "x": canonical_hash(&regression)}));
    }

    #[test]
    fn rejects_a_bare_list() {
        let error = RegressionEditor::open(b"[]", NAME).expect_err("bare list");
        assert_eq!(error, RegressionEditError::BareList);
        assert!(matches!(RegressionEditor::open(b"{}", NAME), Err(RegressionEditError::Invalid(_))));
    }
}
