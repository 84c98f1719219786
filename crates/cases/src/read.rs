//! Strict parser of eval files: unknown content is an error, never ignored.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::num::NonZero;
use std::thread::{self, available_parallelism};

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::injection::Security;
use super::read_expectation::read_expectation;
use super::read_rubric::{read_rubric_case, reject_other_tier};
use super::read_turns::{Dialog, read_dialog};
use super::table::{FilledCase, TableFiles, Tables};
use super::{Approval, Case, CaseLocation, Difficulty, EvalFile, Expectation, Metadata, RubricFile, SuiteFile, Tier};
use karat_json::hash::short_hash;
use karat_json::{
    Finding, Location, ObjectReader, Path, Position, Problem, Problems, Subject, SyntaxError, parse, read_array,
    read_count, read_enum, read_object_map, read_positive_count, read_string, type_name,
};

/// The source of an eval file.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'o> {
    /// The name without its folder: `get-weather.golden.json`.
    pub file_name: &'o str,
    /// Reads table files. Without it, a case whose rows are in a file stays a single case with its tokens.
    pub tables: Option<&'o dyn TableFiles>,
}

impl<'o> Origin<'o> {
    /// Creates an origin without table files.
    pub const fn new(file_name: &'o str) -> Self {
        Self { file_name, tables: None }
    }

    fn stem(&self) -> &str {
        let name = self.file_name.strip_suffix(".json").unwrap_or(self.file_name);
        match Tier::from_file_name(self.file_name) {
            Some(_) => name.rsplit_once('.').map_or(name, |(stem, _)| stem),
            None => name,
        }
    }
}

/// The problems of an eval file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} in the eval file", count_problems(.findings.len()))]
pub struct InvalidEvalFile {
    pub findings: Vec<Finding>,
}

impl InvalidEvalFile {
    /// Replaces the message for a file that is JSON neither by its name nor by its content.
    fn with_file_name(mut self, file_name: &str) -> Self {
        if let [finding] = self.findings.as_mut_slice()
            && !file_name.to_ascii_lowercase().ends_with(".json")
        {
            "not an eval file: expected JSON".clone_into(&mut finding.message);
        }
        self
    }
}

fn count_problems(count: usize) -> String {
    match count {
        1 => "1 problem".to_owned(),
        _ => format!("{count} problems"),
    }
}

impl EvalFile {
    pub fn parse(bytes: &[u8], origin: Origin<'_>) -> Result<Self, InvalidEvalFile> {
        Self::from_contents(&Contents::parse(bytes)?, bytes, origin)
    }

    fn from_contents(contents: &Contents<'_>, bytes: &[u8], origin: Origin<'_>) -> Result<Self, InvalidEvalFile> {
        let mut tables = Tables::new(origin.tables);
        let named_tier = contents.named_tier(origin);
        let read = |case: &Value, location: CaseLocation, path: &Path<'_>, problems: &mut Problems| {
            if location.row.is_some() {
                reject_regression_table(case, named_tier, path, problems);
            }
            read_case(case, location, path, problems)
        };
        let (metadata, cases) = contents.read(|_, _| {}, &mut tables, read)?;
        let declared = metadata.as_ref().and_then(|metadata| metadata.tier);
        let tier = declared
            .or(named_tier)
            .or_else(|| Tier::from_ids(cases.iter().map(|case| case.id.as_str())))
            .unwrap_or(Tier::Unknown);
        let tool_name = tool_name(metadata.as_ref(), origin);
        Ok(Self { metadata, tier, tool_name, hash: content_hash(bytes, &tables), cases })
    }
}

impl RubricFile {
    pub fn parse(bytes: &[u8], origin: Origin<'_>) -> Result<Self, InvalidEvalFile> {
        Self::from_contents(&Contents::parse(bytes)?, bytes, origin)
    }

    fn from_contents(contents: &Contents<'_>, bytes: &[u8], origin: Origin<'_>) -> Result<Self, InvalidEvalFile> {
        let mut tables = Tables::new(origin.tables);
        let (metadata, cases) = contents.read(reject_other_tier, &mut tables, read_rubric_case)?;
        let tool_name = tool_name(metadata.as_ref(), origin);
        Ok(Self { metadata, tool_name, hash: content_hash(bytes, &tables), cases })
    }
}

impl SuiteFile {
    /// Parses an eval file or a rubric file, depending on its tier.
    pub fn parse(bytes: &[u8], origin: Origin<'_>) -> Result<Self, InvalidEvalFile> {
        let contents = Contents::parse(bytes).map_err(|error| error.with_file_name(origin.file_name))?;
        if contents.named_tier(origin) == Some(Tier::Rubric) {
            return RubricFile::from_contents(&contents, bytes, origin).map(Self::Rubric);
        }
        EvalFile::from_contents(&contents, bytes, origin).map(Self::Eval)
    }
}

fn tool_name(metadata: Option<&Metadata>, origin: Origin<'_>) -> String {
    metadata.and_then(|metadata| metadata.tool_name.clone()).unwrap_or_else(|| origin.stem().to_owned())
}

/// Returns the hash of the file and its tables.
fn content_hash(bytes: &[u8], tables: &Tables<'_>) -> String {
    if tables.contents.is_empty() {
        return short_hash(bytes);
    }
    let parts: Vec<&[u8]> = std::iter::once(bytes).chain(tables.contents.iter().map(Vec::as_slice)).collect();
    short_hash(&parts.concat())
}

/// Rejects a regression case with rows: it guards against one fixed bug and must not change.
fn reject_regression_table(case: &Value, tier: Option<Tier>, path: &Path<'_>, problems: &mut Problems) {
    let has_prefix = || {
        let prefix = Tier::Regression.id_prefix().unwrap_or_default();
        case.get("id").and_then(Value::as_str).is_some_and(|id| id.starts_with(prefix))
    };
    if tier.map_or_else(has_prefix, |tier| tier == Tier::Regression) {
        let message = "a regression case cannot have 'each'".to_owned();
        let help = "write a case per row: a regression case must not change".to_owned();
        problems.push(&path.key("each"), Subject::Key, message, Some(help));
    }
}

/// The text and structure of a file.
struct Contents<'t> {
    text: &'t str,
    layout: Layout<'t>,
}

impl<'t> Contents<'t> {
    fn parse(bytes: &'t [u8]) -> Result<Self, InvalidEvalFile> {
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text.strip_prefix('\u{feff}').unwrap_or(text),
            Err(error) => return Err(not_utf8(bytes, error.valid_up_to())),
        };
        Ok(Self { text, layout: Layout::parse(text)? })
    }

    /// Returns the tier of the metadata or the file name.
    fn named_tier(&self, origin: Origin<'_>) -> Option<Tier> {
        let declared = self.layout.envelope.pointer("/metadata/tier").and_then(Value::as_str);
        declared.and_then(Tier::from_name).or_else(|| Tier::from_file_name(origin.file_name))
    }

    /// Reads the metadata and the cases, or returns all their problems.
    fn read<T: Send>(
        &self,
        check: impl FnOnce(&Metadata, &mut Problems),
        tables: &mut Tables<'_>,
        read_case: impl Fn(&Value, CaseLocation, &Path<'_>, &mut Problems) -> Option<T> + Sync,
    ) -> Result<(Option<Metadata>, Vec<T>), InvalidEvalFile> {
        let mut problems = Problems::default();
        let mut unreadable = Vec::new();
        let metadata = self.layout.metadata(&mut problems);
        if let Some(metadata) = &metadata {
            check(metadata, &mut problems);
        }
        let cases = self.layout.cases(self.text, &mut problems, &mut unreadable, tables, read_case);
        if problems.is_empty() && unreadable.is_empty() {
            return Ok((metadata, cases));
        }
        let mut findings = Finding::locate_all(self.text, problems.into_list());
        findings.append(&mut unreadable);
        findings.sort_by_key(|finding| finding.location.range.start);
        Err(InvalidEvalFile { findings })
    }
}

fn not_utf8(bytes: &[u8], valid_up_to: usize) -> InvalidEvalFile {
    let valid = String::from_utf8_lossy(&bytes[..valid_up_to]);
    let text = valid.strip_prefix('\u{feff}').unwrap_or(&valid);
    let finding = Finding {
        location: Location { range: 0..0, position: Position::of(text, text.len()) },
        pointer: None,
        case_id: None,
        message: format!("the file is not valid UTF-8 (byte {valid_up_to})"),
        help: Some("save the file with UTF-8 encoding".to_owned()),
    };
    InvalidEvalFile { findings: vec![finding] }
}

fn syntax(text: &str, error: SyntaxError) -> InvalidEvalFile {
    InvalidEvalFile { findings: vec![Finding::syntax(text, error)] }
}

/// The parts of a file, split so that only one case at a time is held as a tree.
struct Layout<'t> {
    /// The members of the envelope other than the cases; empty for a bare array.
    envelope: Value,
    is_bare: bool,
    cases: Option<Vec<&'t RawValue>>,
}

impl<'t> Layout<'t> {
    fn parse(text: &'t str) -> Result<Self, InvalidEvalFile> {
        let fail = |error: serde_json::Error| syntax(text, SyntaxError::new(text, &error));
        let start = text.trim_start();
        if start.starts_with('[') {
            let cases = serde_json::from_str(text).map_err(fail)?;
            return Ok(Self { envelope: Value::Object(Map::new()), is_bare: true, cases: Some(cases) });
        }
        if !start.starts_with('{') {
            let envelope = parse(text).map_err(|error| syntax(text, error))?;
            return Ok(Self { envelope, is_bare: false, cases: None });
        }
        let Members(members) = serde_json::from_str(text).map_err(fail)?;
        let mut envelope = Map::new();
        let mut cases = None;
        for (key, raw) in members {
            if envelope.contains_key(&key) {
                return Err(syntax(text, SyntaxError::duplicate_key(text, &key, offset_in(text, raw.get()))));
            }
            let value = if key == "cases" && raw.get().starts_with('[') {
                cases = Some(serde_json::from_str(raw.get()).map_err(fail)?);
                Value::Null
            } else {
                parse_part(text, raw)?
            };
            envelope.insert(key, value);
        }
        Ok(Self { envelope: Value::Object(envelope), is_bare: false, cases })
    }

    fn metadata(&self, problems: &mut Problems) -> Option<Metadata> {
        let path = Path::Root;
        if self.is_bare {
            return None;
        }
        if !self.envelope.is_object() {
            let found = type_name(&self.envelope);
            problems.at(&path, format!("the file must be an object with 'cases' or an array of cases, found {found}"));
            return None;
        }
        let mut object = ObjectReader::open(&self.envelope, &path, problems)?;
        object.optional("$schema", &path, problems, read_string);
        let metadata = object.nullable("metadata", &path, problems, read_metadata);
        match (object.raw("cases"), &self.cases) {
            (None, _) => problems.at(&path, "'cases' is missing"),
            (Some(other), None) => {
                let message = format!("'cases' must be an array, found {}", type_name(other));
                problems.at(&path.key("cases"), message);
            }
            (Some(_), Some(_)) => {}
        }
        object.close(&path, problems);
        metadata
    }

    /// Reads the cases; a case with a syntax error does not hide the problems of the others.
    fn cases<T: Send>(
        &self,
        text: &str,
        problems: &mut Problems,
        unreadable: &mut Vec<Finding>,
        tables: &mut Tables<'_>,
        read_case: impl Fn(&Value, CaseLocation, &Path<'_>, &mut Problems) -> Option<T> + Sync,
    ) -> Vec<T> {
        let raws = self.cases.as_deref().unwrap_or_default();
        let root = Path::Root;
        let list = if self.is_bare { root } else { root.key("cases") };
        if let Some(cases) = read_valid(text, raws, &list, &read_case) {
            return cases;
        }
        let mut cases = Vec::with_capacity(raws.len());
        let mut seen: HashMap<String, usize> = HashMap::with_capacity(raws.len());
        let mut lines = LineCounter::default();
        for (index, raw) in raws.iter().enumerate() {
            let path = list.index(index);
            let value = match parse_part(text, raw) {
                Ok(value) => value,
                Err(invalid) => {
                    let case_id = id_of_unreadable(raw);
                    unreadable.extend(
                        invalid.findings.into_iter().map(|finding| Finding { case_id: case_id.clone(), ..finding }),
                    );
                    continue;
                }
            };
            let id = value.get("id").and_then(Value::as_str);
            problems.in_case(id.map(str::to_owned));
            let line = lines.advance_to(text, offset_in(text, raw.get()));
            let mut check_id = |value: &Value, problems: &mut Problems| {
                if let Some(id) = value.get("id").and_then(Value::as_str)
                    && let Some(first) = seen.insert(id.to_owned(), line)
                {
                    let message = format!("duplicate id '{id}', first used on line {first}");
                    problems.push(&path.key("id"), Subject::Value, message, None);
                }
            };
            let location = CaseLocation { line, index, row: None };
            let Some(each) = value.get("each") else {
                check_id(&value, problems);
                cases.extend(read_case(&value, location, &path, problems));
                continue;
            };
            if tables.is_unavailable(each) {
                check_id(&value, problems);
                tables.check_reference(each, &path.key("each"), problems);
                // The case still has tokens in place of values of other types.
                cases.extend(read_case(&value, location, &path, &mut Problems::default()));
                continue;
            }
            for FilledCase { value, row } in tables.expand(&value, each, &path, problems) {
                let before = problems.len();
                problems.in_case(value.get("id").and_then(Value::as_str).map(str::to_owned));
                check_id(&value, problems);
                cases.extend(read_case(&value, CaseLocation { row: Some(row), ..location.clone() }, &path, problems));
                if problems.len() > before {
                    // The other rows probably have the same problem.
                    break;
                }
            }
        }
        problems.in_case(None);
        cases
    }
}

/// Number of cases below which starting threads takes longer than it saves.
const MIN_PARALLEL_CASES: usize = 1000;

/// Reads the cases of a large file on several threads. Returns `None` if the file is small, or if a case has a problem
/// or a table: then the cases are read in order.
fn read_valid<T: Send>(
    text: &str,
    raws: &[&RawValue],
    list: &Path<'_>,
    read_case: &(impl Fn(&Value, CaseLocation, &Path<'_>, &mut Problems) -> Option<T> + Sync),
) -> Option<Vec<T>> {
    if raws.len() < MIN_PARALLEL_CASES {
        return None;
    }
    let threads = available_parallelism().map_or(1, NonZero::get).min(4);
    let size = raws.len().div_ceil(threads);
    // Each thread reads a part of the list and returns the ids.
    let read_part = &|(number, (raws, cases)): (usize, (&[&RawValue], &mut [Option<T>]))| {
        let (mut problems, mut lines) = (Problems::default(), LineCounter::default());
        let mut ids = Vec::with_capacity(raws.len());
        for (index, (raw, case)) in (number * size..).zip(raws.iter().zip(cases)) {
            let value = parse(raw.get()).ok()?;
            let Some(Value::String(id)) = value.get("id").filter(|_| value.get("each").is_none()) else { return None };
            let line = lines.advance_to(text, offset_in(text, raw.get()));
            *case = read_case(&value, CaseLocation { line, index, row: None }, &list.index(index), &mut problems);
            ids.push(id.clone());
        }
        problems.is_empty().then_some(ids)
    };
    let mut cases = Vec::new();
    cases.resize_with(raws.len(), || None);
    let ids: Vec<Option<Vec<String>>> = thread::scope(|scope| {
        let start = |part| scope.spawn(move || read_part(part));
        let parts: Vec<_> = raws.chunks(size).zip(cases.chunks_mut(size)).enumerate().map(start).collect();
        parts.into_iter().map(|part| part.join().ok().flatten()).collect()
    });
    let ids = ids.into_iter().collect::<Option<Vec<_>>>()?;
    let mut seen = HashSet::with_capacity(raws.len());
    if !ids.iter().flatten().all(|id| seen.insert(id)) {
        return None;
    }
    cases.into_iter().collect()
}

/// Counts lines incrementally, so that a long file is scanned once.
#[derive(Default)]
struct LineCounter {
    offset: usize,
    newlines: usize,
}

impl LineCounter {
    fn advance_to(&mut self, text: &str, offset: usize) -> usize {
        self.newlines += text[self.offset..offset].matches('\n').count();
        self.offset = offset;
        self.newlines + 1
    }
}

fn parse_part(text: &str, raw: &RawValue) -> Result<Value, InvalidEvalFile> {
    parse(raw.get()).map_err(|error| {
        let offset = offset_in(text, raw.get()) + error.offset;
        syntax(text, SyntaxError { offset, ..error })
    })
}

/// Returns the id of a case that the strict parser rejects, if a lenient one finds it.
fn id_of_unreadable(raw: &RawValue) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct IdOnly {
        id: String,
    }

    serde_json::from_str(raw.get()).ok().map(|IdOnly { id }| id)
}

/// Returns the offset in `text` of `part`, which is borrowed from it.
fn offset_in(text: &str, part: &str) -> usize {
    part.as_ptr() as usize - text.as_ptr() as usize
}

/// The members of an object in order, each as raw text.
struct Members<'t>(Vec<(String, &'t RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;

        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = entries.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(MembersVisitor)
    }
}

fn read_metadata(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Metadata> {
    let mut object = ObjectReader::open(value, path, problems)?;
    let metadata = Metadata {
        tool_name: object.nullable("toolName", path, problems, read_string),
        tool_version: object.nullable("toolVersion", path, problems, read_string),
        description_hash: object.nullable("descriptionHash", path, problems, read_string),
        description: object.nullable("description", path, problems, read_string),
        registry_size: object.nullable("registrySize", path, problems, read_count),
        generated_at: object.nullable("generatedAt", path, problems, read_string),
        generated_by: object.nullable("generatedBy", path, problems, read_string),
        tier: object.nullable("tier", path, problems, |value, path, problems| {
            read_enum(value, path, problems, &Tier::NAMED.map(Tier::name), Tier::from_name)
        }),
        overlap_map_version: object.nullable("overlapMapVersion", path, problems, read_string),
        case_hashes: object.nullable("caseHashes", path, problems, read_hashes),
        approvals: object.nullable("approvals", path, problems, |value, path, problems| {
            read_array(value, path, problems, Approval::read)
        }),
    };
    object.close(path, problems);
    Some(metadata)
}

fn read_hashes(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<BTreeMap<String, String>> {
    let map = read_object_map(value, path, problems)?;
    let read = |(id, hash): (&String, &Value)| Some((id.clone(), read_string(hash, &path.key(id), problems)?));
    // Collected first, so that the problems of all hashes are reported.
    let hashes: Vec<Option<(String, String)>> = map.iter().map(read).collect();
    hashes.into_iter().collect()
}

impl Case {
    /// Reads a single case, or returns all its problems.
    pub fn read_one(value: &Value) -> Result<Self, Vec<Problem>> {
        let mut problems = Problems::default();
        let case = read_case(value, CaseLocation::default(), &Path::Root, &mut problems);
        match case {
            Some(case) if problems.is_empty() => Ok(case),
            _ => Err(problems.into_list()),
        }
    }
}

fn read_case(value: &Value, location: CaseLocation, path: &Path<'_>, problems: &mut Problems) -> Option<Case> {
    let mut object = ObjectReader::open(value, path, problems)?;
    if value.get("rubric").is_some() {
        let message = "a case with a 'rubric' belongs in a rubric file".to_owned();
        let help = "move it to a rubric file, named x.rubric.json".to_owned();
        problems.push(&path.key("rubric"), Subject::Key, message, Some(help));
        return None;
    }
    let id = object.required("id", path, problems, read_id);
    let description = object.optional("description", path, problems, read_string).unwrap_or_default();
    let difficulty = object.optional("difficulty", path, problems, |value, path, problems| {
        read_enum(value, path, problems, &Difficulty::ALL.map(Difficulty::name), Difficulty::from_name)
    });
    let created_at = object.optional("createdAt", path, problems, read_string);
    let bug_ref = object.optional("bugRef", path, problems, read_string);
    let dialog = read_dialog(&mut object, true, path, problems);
    let stubs = object.optional("stubs", path, problems, read_object_map);
    let security = Security::read(&mut object, path, problems);
    let max_turns = object.optional("maxTurns", path, problems, read_positive_count);
    let expect = read_case_expectation(&mut object, dialog.as_ref(), path, problems);
    let tags = object.optional("tags", path, problems, read_tags).unwrap_or_default();
    let skip = object.optional("skip", path, problems, read_non_empty_string);
    // Read by `Tables`; listed here so that the key is known.
    object.raw("each");
    object.close(path, problems);
    let Dialog { input, turns, user, on_turn_failure } = dialog?;
    let Security { injections, safety } = security?;
    Some(Case {
        id: id?,
        description,
        difficulty,
        created_at,
        bug_ref,
        input,
        turns,
        user,
        on_turn_failure,
        stubs,
        injections,
        max_turns,
        expect: expect?,
        safety,
        tags,
        skip,
        location,
    })
}

/// Reads the expectations of a case. A conversation does not need them if a turn has some.
fn read_case_expectation(
    object: &mut ObjectReader<'_>,
    dialog: Option<&Dialog>,
    path: &Path<'_>,
    problems: &mut Problems,
) -> Option<Expectation> {
    if object.raw("expect").is_some() {
        return object.required("expect", path, problems, read_expectation);
    }
    if object.raw("turns").is_none() {
        problems.at(path, "'expect' is missing");
    } else if dialog.is_some_and(|dialog| !dialog.has_expectation()) {
        problems.at(path, "'expect' is missing: add it to the case or to a turn");
    }
    Some(Expectation::default())
}

pub(super) fn read_tags(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Vec<String>> {
    read_array(value, path, problems, read_non_empty_string)
}

pub(super) fn read_non_empty_string(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<String> {
    let text = read_string(value, path, problems)?;
    if text.trim().is_empty() {
        problems.at(path, format!("{} is empty", path.name()));
        return None;
    }
    Some(text)
}

pub(super) fn read_id(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<String> {
    let id = read_string(value, path, problems)?;
    if id.trim().is_empty() {
        problems.at(path, "'id' is empty");
        return None;
    }
    Some(id)
}
