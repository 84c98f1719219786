//! Merges approved cases into the text of an eval file.
//!
//! Existing content is preserved byte for byte: cases are appended with unused ids. A case that the file already has is
//! not added again, so an interrupted write can be repeated.

use std::collections::{BTreeMap, BTreeSet};

use karat_cases::registry::Tool;
use karat_cases::regression::slug;
use karat_cases::{Approval, EvalFile, InvalidEvalFile, Metadata, Origin, Tier, next_ids};
use karat_json::{EditError, JsonText, Side, locate, parse};
use serde_json::{Map, Value, json};

/// The value of `generatedBy`.
const GENERATED_BY: &str = "karat forge";

/// The metadata of a new file.
#[derive(Debug, Clone)]
pub struct FileHeader<'h> {
    pub tool: &'h Tool,
    pub tier: Tier,
    /// `None` if a part of the registry could not be read.
    pub registry_size: Option<usize>,
    /// `None` if there is no overlap map.
    pub overlap_map_version: Option<String>,
    pub generated_at: String,
}

/// The text of a file with all approved cases.
#[derive(Debug, Clone, PartialEq)]
pub struct MergedFile {
    pub text: String,
    /// The ids of the cases that were added.
    pub added: Vec<String>,
    /// The number of cases in the file, new ones included.
    pub total: usize,
    /// Cases whose ids were taken in the meantime: the draft's id and the new id.
    pub renumbered: Vec<(String, String)>,
    /// Warnings for the user, as lower-case fragments.
    pub remarks: Vec<String>,
}

/// The reason why cases cannot be merged.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FileError {
    /// The existing file is invalid.
    #[error("{0}")]
    Invalid(InvalidEvalFile),
    /// The merged file would be invalid.
    #[error("the approved cases do not form a valid file: {0}")]
    InvalidResult(InvalidEvalFile),
    #[error("cannot edit the file: {0}")]
    Edit(#[from] EditError),
}

/// Returns the text of a new file, or of the existing file with the cases appended.
pub fn merge_cases(
    existing: Option<&[u8]>,
    file_name: &str,
    header: &FileHeader<'_>,
    cases: &[Value],
    approvals: &[Approval],
) -> Result<MergedFile, FileError> {
    let mut file = match existing {
        Some(bytes) => FileEdit::open(bytes, file_name)?,
        None => FileEdit::new(header),
    };
    let mut merged = MergedFile {
        text: String::new(),
        added: Vec::new(),
        total: 0,
        renumbered: Vec::new(),
        remarks: file.remarks(header),
    };
    let mut new_ids: BTreeMap<String, String> = BTreeMap::new();
    // Drafts are approved in any order. A taken id is replaced by the next free one.
    let mut ordered: Vec<&Value> = cases.iter().collect();
    ordered.sort_by_cached_key(|case| (file.ids.contains(id_of(case)), number_in(id_of(case))));
    for case in ordered {
        let id = id_of(case).to_owned();
        if let Some(existing_id) = file.find_same_case(case) {
            new_ids.insert(id, existing_id);
            continue;
        }
        let mut case = case.clone();
        if file.ids.contains(&id) {
            let taken = file.ids.iter().map(String::as_str).chain(cases.iter().map(id_of));
            let prefix = header.tier.id_prefix().unwrap_or_default();
            let new_id = next_ids(prefix, &header.tool.name, taken).next().unwrap_or_else(|| format!("{id}-2"));
            case["id"] = json!(new_id);
            new_ids.insert(id.clone(), new_id.clone());
            merged.renumbered.push((id, new_id));
        }
        merged.added.push(id_of(&case).to_owned());
        file.add(case)?;
    }
    file.record_approvals(&with_new_ids(approvals, &new_ids))?;
    merged.total = file.cases.len();
    merged.text = file.json.into_text();
    EvalFile::parse(merged.text.as_bytes(), Origin::new(file_name)).map_err(FileError::InvalidResult)?;
    Ok(merged)
}

/// Returns the number at the end of an id.
fn number_in(id: &str) -> Option<u64> {
    id.rsplit_once('-').and_then(|(_, number)| number.parse().ok())
}

/// Returns the name of a tool's eval file.
pub fn file_name(tool: &str, tier: Tier) -> String {
    format!("{}.{tier}.json", slug(tool))
}

/// A file while cases are added to it.
struct FileEdit {
    json: JsonText,
    /// The JSON pointer to the list of cases.
    list: &'static str,
    cases: Vec<Value>,
    ids: BTreeSet<String>,
    metadata: Option<Metadata>,
    is_new: bool,
}

impl FileEdit {
    fn new(header: &FileHeader<'_>) -> Self {
        let json = JsonText::of(&json!({"metadata": metadata(header), "cases": []}));
        Self { json, list: "/cases", cases: Vec::new(), ids: BTreeSet::new(), metadata: None, is_new: true }
    }

    fn open(bytes: &[u8], file_name: &str) -> Result<Self, FileError> {
        let file = EvalFile::parse(bytes, Origin::new(file_name)).map_err(FileError::Invalid)?;
        // The bytes were just parsed, so they are UTF-8 and JSON; the edited text is parsed again anyway.
        let json = JsonText::read(&String::from_utf8_lossy(bytes)).unwrap_or_else(|_| JsonText::of(&json!({})));
        let tree = parse(json.text()).unwrap_or_default();
        let list = if tree.is_array() { "" } else { "/cases" };
        let cases = tree.pointer(list).and_then(Value::as_array).cloned().unwrap_or_default();
        // The ids as written, since the cases of a table have row suffixes.
        let ids = cases.iter().map(|case| id_of(case).to_owned()).collect();
        Ok(Self { json, list, cases, ids, metadata: file.metadata, is_new: false })
    }

    fn is_bare(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the id of an equal case in the file, ids aside.
    fn find_same_case(&self, case: &Value) -> Option<String> {
        let is_same = |other: &&Value| without_id(other) == without_id(case);
        self.cases.iter().find(is_same).map(|other| id_of(other).to_owned())
    }

    fn add(&mut self, case: Value) -> Result<(), EditError> {
        self.json.append(self.list, &case)?;
        self.ids.insert(id_of(&case).to_owned());
        self.cases.push(case);
        Ok(())
    }

    /// Records the approvals that the file does not have yet.
    fn record_approvals(&mut self, approvals: &[Approval]) -> Result<(), EditError> {
        let recorded = self.metadata.as_ref().and_then(|metadata| metadata.approvals.clone()).unwrap_or_default();
        let new: Vec<&Approval> = approvals.iter().filter(|approval| !recorded.contains(approval)).collect();
        if self.is_bare() || new.is_empty() {
            return Ok(());
        }
        let exists = |text: &str, pointer: &str, opening: char| {
            locate(text, pointer).is_some_and(|location| text[location.value].starts_with(opening))
        };
        if exists(self.json.text(), "/metadata/approvals", '[') {
            new.into_iter().try_for_each(|approval| self.json.append("/metadata/approvals", &json!(approval)))
        } else if exists(self.json.text(), "/metadata", '{') {
            self.set("/metadata", "approvals", &json!(new), Side::Last)
        } else {
            self.set("", "metadata", &json!({ "approvals": new }), Side::First)
        }
    }

    /// Adds a member, or replaces its value if it is null.
    fn set(&mut self, object: &str, key: &str, value: &Value, side: Side) -> Result<(), EditError> {
        match self.json.insert(object, key, value, side) {
            Err(EditError::KeyTaken { .. }) => self.json.replace(&format!("{object}/{key}"), value),
            inserted => inserted,
        }
    }

    /// Returns what the metadata of an extended file does not express.
    fn remarks(&self, header: &FileHeader<'_>) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.is_bare() {
            remarks.push("a bare list of cases cannot record who approved them".to_owned());
        }
        let metadata = self.metadata.as_ref();
        let hash = metadata.and_then(|metadata| metadata.description_hash.as_ref());
        if !self.is_new && hash.is_some_and(|hash| header.tool.description_hash().as_ref() != Some(hash)) {
            remarks.push(
                "older cases were written for another description of the tool: 'descriptionHash' is not updated, so the \
                 file stays stale until they are reviewed"
                    .to_owned(),
            );
        }
        remarks
    }
}

fn metadata(header: &FileHeader<'_>) -> Map<String, Value> {
    let FileHeader { tool, tier, registry_size, overlap_map_version, generated_at } = header;
    // A description that is known only at run time is left out.
    let description = tool.description.get();
    let entries = [
        ("toolName", Some(json!(tool.name))),
        ("toolVersion", tool.version.get().map(|version| json!(version))),
        ("tier", Some(json!(tier))),
        ("description", description.map(|text| json!(text))),
        ("descriptionHash", description.and_then(|_| tool.description_hash()).map(|hash| json!(hash))),
        ("registrySize", registry_size.map(|size| json!(size))),
        ("overlapMapVersion", overlap_map_version.as_ref().map(|version| json!(version))),
        ("generatedAt", Some(json!(generated_at))),
        ("generatedBy", Some(json!(GENERATED_BY))),
    ];
    entries.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

fn id_of(case: &Value) -> &str {
    case.get("id").and_then(Value::as_str).unwrap_or_default()
}

fn without_id(case: &Value) -> Option<Map<String, Value>> {
    let mut case = case.as_object()?.clone();
    case.remove("id");
    Some(case)
}

/// Returns the approvals with the ids that the cases have in the file.
fn with_new_ids(approvals: &[Approval], new_ids: &BTreeMap<String, String>) -> Vec<Approval> {
    let mut approvals = approvals.to_vec();
    for id in approvals.iter_mut().flat_map(|approval| &mut approval.cases) {
        if let Some(new_id) = new_ids.get(id) {
            new_id.clone_into(id);
        }
    }
    approvals
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const NAME: &str = "get-weather.golden.json";

    fn tool() -> Tool {
        Tool {
            name: "get_weather".to_owned(),
            description: Some("Tells the weather. Use when somebody asks for it.".to_owned()).into(),
            version: Some("1.2.0".to_owned()).into(),
            ..Tool::default()
        }
    }

    fn header(tool: &Tool) -> FileHeader<'_> {
        FileHeader {
            tool,
            tier: Tier::Golden,
            registry_size: Some(3),
            overlap_map_version: Some("0123456789ab".to_owned()),
            generated_at: "2026-01-02T03:04:05Z".to_owned(),
        }
    }

    fn case(id: &str, message: &str) -> Value {
        json!({"id": id, "input": {"message": message}, "expect": {"toolsCalled": ["get_weather"]}})
    }

    fn approval(cases: &[&str]) -> Approval {
        Approval {
            approved_by: "Ada".to_owned(),
            approved_at: "2026-01-02T03:04:05Z".to_owned(),
            drafter: "template".to_owned(),
            model: None,
            cases: cases.iter().map(|id| (*id).to_owned()).collect(),
        }
    }

    fn write(existing: Option<&str>, cases: &[Value], approvals: &[Approval]) -> MergedFile {
        let tool = tool();
        merge_cases(existing.map(str::as_bytes), NAME, &header(&tool), cases, approvals).expect("a valid file")
    }

    #[test]
    fn writes_cases_in_the_order_of_their_ids() {
        let cases = ["gs-get-weather-010", "gs-get-weather-002", "gs-get-weather-001"];
        let cases: Vec<Value> = cases.iter().map(|id| case(id, id)).collect();
        let file = write(None, &cases, &[]);
        assert_eq!(file.added, ["gs-get-weather-001", "gs-get-weather-002", "gs-get-weather-010"]);
        // A case whose id is taken gets the next one.
        let more = [case("gs-get-weather-002", "Snow?"), case("gs-get-weather-011", "Wind?")];
        let file = write(Some(&file.text), &more, &[]);
        assert_eq!(file.added, ["gs-get-weather-011", "gs-get-weather-012"]);
    }

    #[test]
    fn a_new_file_has_metadata() {
        let file = write(None, &[case("gs-get-weather-001", "Rain?")], &[approval(&["gs-get-weather-001"])]);
        insta::assert_snapshot!(file.text, @r#"
        {
          "metadata": {
            "toolName": "get_weather",
            "toolVersion": "1.2.0",
            "tier": "golden",
            "description": "Tells the weather. Use when somebody asks for it.",
            "descriptionHash": "c37df5447cb9",
            "registrySize": 3,
            "overlapMapVersion": "0123456789ab",
            "generatedAt": "2026-01-02T03:04:05Z",
            "generatedBy": "karat forge",
            "approvals": [
              {
                "approvedBy": "Ada",
                "approvedAt": "2026-01-02T03:04:05Z",
                "drafter": "template",
                "cases": ["gs-get-weather-001"]
              }
            ]
          },
          "cases": [
            {
              "id": "gs-get-weather-001",
              "input": {
                "message": "Rain?"
              },
              "expect": {
                "toolsCalled": ["get_weather"]
              }
            }
          ]
        }
        "#);
        assert_eq!((file.added.len(), file.total, file.remarks), (1, 1, Vec::new()));
    }

    #[test]
    fn preserves_existing_content_byte_for_byte() {
        let old = "{\"metadata\": {\"descriptionHash\": \"x\"},\n\t\"cases\": [\n\t\t{\"id\": \"gs-a\",   \"input\": {\"message\": \"m\"}, \"expect\": {}}\n\t]}\n";
        let file = write(Some(old), &[case("gs-get-weather-001", "Rain?")], &[approval(&["gs-get-weather-001"])]);
        let (before, _) = old.split_once("\n\t]").expect("an end");
        let (_, cases) = before.split_once('\n').expect("a line");
        assert!(file.text.contains(cases), "{}", file.text);
        assert!(file.text.contains("\"descriptionHash\": \"x\""), "{}", file.text);
        assert_eq!(file.total, 2);
        assert!(file.remarks[0].contains("another description"), "{:?}", file.remarks);
    }

    #[rstest]
    #[case::new(None)]
    #[case::envelope(Some(r#"{"cases": []}"#))]
    #[case::null(Some(r#"{"metadata": null, "cases": []}"#))]
    #[case::null_approvals(Some(r#"{"metadata": {"approvals": null}, "cases": []}"#))]
    #[case::bare(Some("[]"))]
    #[case::marked(Some("\u{feff}{\"cases\": []}"))]
    fn merging_is_idempotent(#[case] existing: Option<&str>) {
        let cases = [case("gs-get-weather-001", "Rain?"), case("gs-get-weather-002", "Snow?")];
        let approvals = [approval(&["gs-get-weather-001"]), approval(&["gs-get-weather-002"])];
        let once = write(existing, &cases, &approvals);
        let twice = write(Some(&once.text), &cases, &approvals);
        assert_eq!((twice.text, twice.added, twice.total), (once.text, Vec::new(), 2));
    }

    #[test]
    fn a_bare_list_gets_no_metadata() {
        let file = write(Some("[]"), &[case("gs-get-weather-001", "Rain?")], &[approval(&["gs-get-weather-001"])]);
        assert!(file.text.starts_with('['));
        assert!(!file.text.contains("Ada"));
        assert!(file.remarks[0].contains("bare list"), "{:?}", file.remarks);
    }

    #[test]
    fn renumbers_cases_whose_ids_were_taken() {
        let old = json!({"cases": [case("gs-get_weather-001", "theirs"), case("gs-get-weather-002", "theirs too")]});
        let ours = [case("gs-get-weather-002", "ours"), case("gs-get-weather-003", "ours too")];
        let file = write(Some(&old.to_string()), &ours, &[approval(&["gs-get-weather-002", "gs-get-weather-003"])]);
        assert_eq!(file.renumbered, [("gs-get-weather-002".to_owned(), "gs-get-weather-004".to_owned())]);
        assert_eq!(file.added, ["gs-get-weather-003", "gs-get-weather-004"]);
        let tree: Value = serde_json::from_str(&file.text).expect("JSON");
        let approved = &tree["metadata"]["approvals"][0]["cases"];
        assert_eq!(*approved, json!(["gs-get-weather-004", "gs-get-weather-003"]));
        assert_eq!(tree["cases"][1], case("gs-get-weather-002", "theirs too"));
        // Repeating an interrupted write changes nothing.
        let again = write(Some(&file.text), &ours, &[approval(&["gs-get-weather-002", "gs-get-weather-003"])]);
        assert_eq!((again.text, again.added), (file.text, Vec::<String>::new()));
    }

    #[rstest]
    #[case("{\"cases\": [{}]}")]
    #[case("nothing")]
    fn rejects_invalid_files_and_invalid_results(#[case] text: &str) {
        let tool = tool();
        let refused = merge_cases(Some(text.as_bytes()), NAME, &header(&tool), &[], &[]);
        assert!(matches!(refused, Err(FileError::Invalid(_))), "{refused:?}");
        let invalid = merge_cases(None, NAME, &header(&tool), &[json!({"id": "x"})], &[]);
        assert!(matches!(invalid, Err(FileError::InvalidResult(_))), "{invalid:?}");
    }
}
