//! Approved cases as the text of an eval file.
//!
//! What is in a file stays as it is, byte for byte: cases are added behind it, with ids that nobody has. A case that is
//! in the file already is not added again, so that a writing that was cut short can be done once more.

use std::collections::{BTreeMap, BTreeSet};

use karat_core::case::{Approval, EvalFile, InvalidEvalFile, Metadata, Origin, Tier, next_ids};
use karat_core::registry::Tool;
use karat_core::regression::slug;
use karat_json::{EditError, JsonText, Side, locate, parse};
use serde_json::{Map, Value, json};

/// Who says that a file was made here.
const GENERATED_BY: &str = "karat forge";

/// What a new file says of itself.
#[derive(Debug, Clone)]
pub struct Heading<'h> {
    pub tool: &'h Tool,
    pub tier: Tier,
    /// None where a part of the registry could not be read.
    pub registry_size: Option<usize>,
    /// None where there is no overlap map.
    pub overlap_map_version: Option<String>,
    pub generated_at: String,
}

/// A file's text with all approved cases in it.
#[derive(Debug, Clone, PartialEq)]
pub struct ForgedFile {
    pub text: String,
    /// The ids of the cases that were added.
    pub added: Vec<String>,
    /// How many cases the file has now.
    pub total: usize,
    /// Cases whose ids were taken in the meantime: the id of the draft, and the one in the file.
    pub renumbered: Vec<(String, String)>,
    /// What a person should know; lower-case fragments.
    pub remarks: Vec<String>,
}

/// Why there is no such text.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FileError {
    /// The file that is there cannot be read.
    #[error("{0}")]
    Invalid(InvalidEvalFile),
    /// What would be written cannot be read.
    #[error("the approved cases do not make a valid file: {0}")]
    Unreadable(InvalidEvalFile),
    #[error("cannot edit the file: {0}")]
    Edit(#[from] EditError),
}

/// Returns a new file's text, or that of the file that is there with the cases behind its own.
pub fn forged(
    existing: Option<&[u8]>,
    file_name: &str,
    heading: &Heading<'_>,
    cases: &[Value],
    approvals: &[Approval],
) -> Result<ForgedFile, FileError> {
    let mut file = match existing {
        Some(bytes) => FileEdit::open(bytes, file_name)?,
        None => FileEdit::begin(heading),
    };
    let mut forged = ForgedFile {
        text: String::new(),
        added: Vec::new(),
        total: 0,
        renumbered: Vec::new(),
        remarks: file.remarks(heading),
    };
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    for case in cases {
        let id = id_of(case).to_owned();
        if let Some(there) = file.same_case(case) {
            names.insert(id, there);
            continue;
        }
        let mut case = case.clone();
        if file.ids.contains(&id) {
            let taken = file.ids.iter().map(String::as_str).chain(cases.iter().map(id_of));
            let prefix = heading.tier.id_prefix().unwrap_or_default();
            let free = next_ids(prefix, &heading.tool.name, taken).next().unwrap_or_else(|| format!("{id}-2"));
            case["id"] = json!(free);
            names.insert(id.clone(), free.clone());
            forged.renumbered.push((id, free));
        }
        forged.added.push(id_of(&case).to_owned());
        file.add(case)?;
    }
    file.approve(&renamed(approvals, &names))?;
    forged.total = file.cases.len();
    forged.text = file.json.into_text();
    EvalFile::read(forged.text.as_bytes(), Origin { file_name }).map_err(FileError::Unreadable)?;
    Ok(forged)
}

/// Returns the name of a tool's file.
pub fn file_name(tool: &str, tier: Tier) -> String {
    format!("{}.{tier}.json", slug(tool))
}

/// A file while cases are added to it.
struct FileEdit {
    json: JsonText,
    /// Where its cases are.
    list: &'static str,
    cases: Vec<Value>,
    ids: BTreeSet<String>,
    metadata: Option<Metadata>,
    is_new: bool,
}

impl FileEdit {
    fn begin(heading: &Heading<'_>) -> Self {
        let json = JsonText::of(&json!({"metadata": metadata(heading), "cases": []}));
        Self { json, list: "/cases", cases: Vec::new(), ids: BTreeSet::new(), metadata: None, is_new: true }
    }

    fn open(bytes: &[u8], file_name: &str) -> Result<Self, FileError> {
        let file = EvalFile::read(bytes, Origin { file_name }).map_err(FileError::Invalid)?;
        // It was just read, so that it is UTF-8 and JSON; what is not shows when the edited text is read.
        let json = JsonText::read(&String::from_utf8_lossy(bytes)).unwrap_or_else(|_| JsonText::of(&json!({})));
        let tree = parse(json.text()).unwrap_or_default();
        let list = if tree.is_array() { "" } else { "/cases" };
        let cases = tree.pointer(list).and_then(Value::as_array).cloned().unwrap_or_default();
        let ids = file.cases.iter().map(|case| case.id.clone()).collect();
        Ok(Self { json, list, cases, ids, metadata: file.metadata, is_new: false })
    }

    fn is_bare(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the id of the file's case that is this one, whatever its id.
    fn same_case(&self, case: &Value) -> Option<String> {
        let is_same = |other: &&Value| without_id(other) == without_id(case);
        self.cases.iter().find(is_same).map(|other| id_of(other).to_owned())
    }

    fn add(&mut self, case: Value) -> Result<(), EditError> {
        self.json.append(self.list, &case)?;
        self.ids.insert(id_of(&case).to_owned());
        self.cases.push(case);
        Ok(())
    }

    /// Records approvals; one that is there already is not recorded again.
    fn approve(&mut self, approvals: &[Approval]) -> Result<(), EditError> {
        let recorded = self.metadata.as_ref().and_then(|metadata| metadata.approvals.clone()).unwrap_or_default();
        let new: Vec<&Approval> = approvals.iter().filter(|approval| !recorded.contains(approval)).collect();
        if self.is_bare() || new.is_empty() {
            return Ok(());
        }
        let is_there = |text: &str, pointer: &str, opening: char| {
            locate(text, pointer).is_some_and(|found| text[found.value].starts_with(opening))
        };
        if is_there(self.json.text(), "/metadata/approvals", '[') {
            new.into_iter().try_for_each(|approval| self.json.append("/metadata/approvals", &json!(approval)))
        } else if is_there(self.json.text(), "/metadata", '{') {
            self.set("/metadata", "approvals", &json!(new), Side::Last)
        } else {
            self.set("", "metadata", &json!({ "approvals": new }), Side::First)
        }
    }

    /// Adds a member, or gives it a value where it is null.
    fn set(&mut self, object: &str, key: &str, value: &Value, side: Side) -> Result<(), EditError> {
        match self.json.insert(object, key, value, side) {
            Err(EditError::KeyTaken { .. }) => self.json.replace(&format!("{object}/{key}"), value),
            inserted => inserted,
        }
    }

    /// Says what an old file does not say after it was extended.
    fn remarks(&self, heading: &Heading<'_>) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.is_bare() {
            remarks.push("it is a bare list of cases, which has no place for who approved them".to_owned());
        }
        let metadata = self.metadata.as_ref();
        let hash = metadata.and_then(|metadata| metadata.description_hash.as_ref());
        if !self.is_new && hash.is_some_and(|hash| heading.tool.description_hash().as_ref() != Some(hash)) {
            remarks.push(
                "its older cases were made for another description of the tool: its 'descriptionHash' stays, so that \
                 it is stale until somebody has looked at them"
                    .to_owned(),
            );
        }
        remarks
    }
}

fn metadata(heading: &Heading<'_>) -> Map<String, Value> {
    let Heading { tool, tier, registry_size, overlap_map_version, generated_at } = heading;
    // What shows only when a source is run is not known.
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
fn renamed(approvals: &[Approval], names: &BTreeMap<String, String>) -> Vec<Approval> {
    let mut approvals = approvals.to_vec();
    for id in approvals.iter_mut().flat_map(|approval| &mut approval.cases) {
        if let Some(name) = names.get(id) {
            name.clone_into(id);
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

    fn heading(tool: &Tool) -> Heading<'_> {
        Heading {
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

    fn write(existing: Option<&str>, cases: &[Value], approvals: &[Approval]) -> ForgedFile {
        let tool = tool();
        forged(existing.map(str::as_bytes), NAME, &heading(&tool), cases, approvals).expect("a file")
    }

    #[test]
    fn a_new_file_says_what_it_was_made_for() {
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
    fn what_is_there_stays_byte_for_byte() {
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
    fn writing_twice_is_writing_once(#[case] existing: Option<&str>) {
        let cases = [case("gs-get-weather-001", "Rain?"), case("gs-get-weather-002", "Snow?")];
        let approvals = [approval(&["gs-get-weather-001"]), approval(&["gs-get-weather-002"])];
        let once = write(existing, &cases, &approvals);
        let twice = write(Some(&once.text), &cases, &approvals);
        assert_eq!((twice.text, twice.added, twice.total), (once.text, Vec::new(), 2));
    }

    #[test]
    fn a_bare_list_gets_cases_and_nothing_else() {
        let file = write(Some("[]"), &[case("gs-get-weather-001", "Rain?")], &[approval(&["gs-get-weather-001"])]);
        assert!(file.text.starts_with('['));
        assert!(!file.text.contains("Ada"));
        assert!(file.remarks[0].contains("bare list"), "{:?}", file.remarks);
    }

    #[test]
    fn an_id_that_was_taken_in_the_meantime_is_not_taken_again() {
        let old = json!({"cases": [case("gs-get_weather-001", "theirs"), case("gs-get-weather-002", "theirs too")]});
        let ours = [case("gs-get-weather-002", "ours"), case("gs-get-weather-003", "ours too")];
        let file = write(Some(&old.to_string()), &ours, &[approval(&["gs-get-weather-002", "gs-get-weather-003"])]);
        assert_eq!(file.renumbered, [("gs-get-weather-002".to_owned(), "gs-get-weather-004".to_owned())]);
        assert_eq!(file.added, ["gs-get-weather-004", "gs-get-weather-003"]);
        let tree: Value = serde_json::from_str(&file.text).expect("JSON");
        let approved = &tree["metadata"]["approvals"][0]["cases"];
        assert_eq!(*approved, json!(["gs-get-weather-004", "gs-get-weather-003"]));
        assert_eq!(tree["cases"][1], case("gs-get-weather-002", "theirs too"));
        // Once more after the writing was cut short: nothing changes.
        let again = write(Some(&file.text), &ours, &[approval(&["gs-get-weather-002", "gs-get-weather-003"])]);
        assert_eq!((again.text, again.added), (file.text, Vec::<String>::new()));
    }

    #[rstest]
    #[case("{\"cases\": [{}]}")]
    #[case("nothing")]
    fn what_cannot_be_read_is_not_edited(#[case] text: &str) {
        let tool = tool();
        let refused = forged(Some(text.as_bytes()), NAME, &heading(&tool), &[], &[]);
        assert!(matches!(refused, Err(FileError::Invalid(_))), "{refused:?}");
        let invalid = forged(None, NAME, &heading(&tool), &[json!({"id": "x"})], &[]);
        assert!(matches!(invalid, Err(FileError::Unreadable(_))), "{invalid:?}");
    }
}
