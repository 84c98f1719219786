//! Tables: a case with `each` becomes one case per row.

use std::collections::HashMap;
use std::fmt;
use std::io;

use karat_json::text::text_form;
use karat_json::{ObjectReader, Path, Position, Problems, Subject, nearest, parse, read_string, type_name};
use serde_json::{Map, Value};

use crate::csv::Records;
use crate::token::is_empty;

/// Members of a case that belong to the whole table, not to a row.
const SHARED_KEYS: [&str; 3] = ["id", "tags", "skip"];

/// Keys of `expect` with strings to search for in the response.
const SEARCHED_KEYS: [&str; 7] = [
    "responseContains",
    "responseContainsAny",
    "responseNotContains",
    "responseMatches",
    "responseNotMatches",
    "responseStartsWith",
    "responseEndsWith",
];

/// Keys of `SEARCHED_KEYS` whose value is a list.
const LIST_KEYS: [&str; 5] =
    ["responseContains", "responseContainsAny", "responseNotContains", "responseMatches", "responseNotMatches"];

/// Keys of `expect` with conditions on values.
const CONDITION_KEYS: [&str; 4] = ["toolParams", "calls", "responseJson", "state"];

/// Assertions of conditions with a string to search for.
const SEARCH_CHECKS: [&str; 3] = ["contains", "notContains", "matches"];

const TOKEN_START: &str = "{{row:";

/// Reads the table files that `each` names.
pub trait TableFiles: fmt::Debug {
    /// Reads a file; the path is relative to the eval file.
    fn read(&self, path: &str) -> io::Result<Vec<u8>>;
}

/// The row of a table that a case was made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableRow {
    /// The number of the row, from 1.
    pub number: usize,
    /// The value of `name`; the number if the row has none.
    pub name: String,
}

/// A case with the values of a row filled in.
pub(super) struct FilledCase {
    pub(super) value: Value,
    pub(super) row: TableRow,
}

/// The tables of one eval file.
pub(super) struct Tables<'f> {
    files: Option<&'f dyn TableFiles>,
    /// The contents of the files read so far, in order.
    pub(super) contents: Vec<Vec<u8>>,
}

impl<'f> Tables<'f> {
    pub(super) fn new(files: Option<&'f dyn TableFiles>) -> Self {
        Self { files, contents: Vec::new() }
    }

    /// Whether the rows of a case are in a file, but files cannot be read.
    pub(super) fn is_unavailable(&self, each: &Value) -> bool {
        self.files.is_none() && each.is_object()
    }

    /// Checks `each` without reading the file that it names.
    pub(super) fn check_reference(&mut self, each: &Value, path: &Path<'_>, problems: &mut Problems) {
        self.rows(each, path, problems);
    }

    /// Returns a case per row; none if a row has a problem.
    pub(super) fn expand(
        &mut self,
        case: &Value,
        each: &Value,
        path: &Path<'_>,
        problems: &mut Problems,
    ) -> Vec<FilledCase> {
        let each_path = path.key("each");
        let Some(rows) = self.rows(each, &each_path, problems) else {
            return Vec::new();
        };
        if rows.is_empty() {
            problems.at(&each_path, "'each' has no rows, so the case would never run");
            return Vec::new();
        }
        let Some(names) = row_names(&rows, &each_path, problems) else {
            return Vec::new();
        };
        let Some(members) = case.as_object() else { return Vec::new() };
        let mut cases = Vec::with_capacity(rows.len());
        for (row, table_row) in rows.iter().zip(names) {
            let before = problems.len();
            reject_empty_searches(members, row, &table_row, path, problems);
            let value = fill_case(members, row, &table_row, path, problems);
            if problems.len() > before {
                // The other rows probably have the same problem.
                return Vec::new();
            }
            cases.push(FilledCase { value, row: table_row });
        }
        cases
    }

    fn rows(&mut self, each: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Vec<Map<String, Value>>> {
        match each {
            Value::Array(rows) => {
                let mut all = Vec::with_capacity(rows.len());
                for (index, row) in rows.iter().enumerate() {
                    match row {
                        Value::Object(row) => all.push(row.clone()),
                        other => {
                            let message = format!("a row must be an object, found {}", type_name(other));
                            problems.at(&path.index(index), message);
                        }
                    }
                }
                (all.len() == rows.len()).then_some(all)
            }
            Value::Object(_) => {
                let mut object = ObjectReader::open(each, path, problems)?;
                let file = object.required("file", path, problems, read_string);
                object.close(path, problems);
                self.file_rows(&file?, &path.key("file"), problems)
            }
            other => {
                let message = format!("'each' must be a list of rows or {{\"file\": …}}, found {}", type_name(other));
                problems.at(path, message);
                None
            }
        }
    }

    fn file_rows(&mut self, name: &str, path: &Path<'_>, problems: &mut Problems) -> Option<Vec<Map<String, Value>>> {
        let parse_rows = if has_extension(name, ".csv") {
            csv_rows
        } else if has_extension(name, ".jsonl") {
            json_lines_rows
        } else {
            let help = "tables are .csv or .jsonl files; the path is relative to the eval file".to_owned();
            problems.push(path, Subject::Value, format!("'{name}' is not a .csv or .jsonl file"), Some(help));
            return None;
        };
        let bytes = match self.files?.read(name) {
            Ok(bytes) => bytes,
            Err(error) => {
                let help = "the path is relative to the eval file".to_owned();
                problems.push(path, Subject::Value, format!("cannot read the table {name}: {error}"), Some(help));
                return None;
            }
        };
        let rows = match std::str::from_utf8(&bytes) {
            Ok(text) => parse_rows(text.strip_prefix('\u{feff}').unwrap_or(text)),
            Err(error) => Err(format!("not valid UTF-8 (byte {})", error.valid_up_to())),
        };
        self.contents.push(bytes);
        rows.map_err(|message| problems.at(path, format!("invalid table {name}: {message}"))).ok()
    }
}

fn has_extension(name: &str, extension: &str) -> bool {
    name.len() > extension.len() && name.to_ascii_lowercase().ends_with(extension)
}

/// Parses CSV with a header. All values are strings.
fn csv_rows(text: &str) -> Result<Vec<Map<String, Value>>, String> {
    let line = |offset: usize| Position::of(text, offset).line;
    let mut header: Option<Vec<String>> = None;
    let mut rows = Vec::new();
    for record in Records::new(text) {
        let cells =
            record.map_err(|error| format!("line {}: {}; {}", line(error.range.start), error.message, error.help))?;
        let start = cells.first().map_or(0, |cell| cell.range.start);
        let Some(names) = &header else {
            header = Some(csv_header(cells.into_iter().map(|cell| cell.text.trim().to_owned()).collect())?);
            continue;
        };
        if cells.len() != names.len() {
            let (found, expected) = (cells.len(), names.len());
            return Err(format!("line {}: {found} fields, but the header has {expected}", line(start)));
        }
        let values = cells.into_iter().map(|cell| Value::from(cell.text.into_owned()));
        rows.push(names.iter().cloned().zip(values).collect());
    }
    Ok(rows)
}

fn csv_header(names: Vec<String>) -> Result<Vec<String>, String> {
    for (index, name) in names.iter().enumerate() {
        if name.is_empty() {
            return Err(format!("column {} of the header has no name", index + 1));
        }
        if names[..index].contains(name) {
            return Err(format!("the header has two columns '{name}'"));
        }
    }
    Ok(names)
}

/// Parses one object per line, skipping blank lines.
fn json_lines_rows(text: &str) -> Result<Vec<Map<String, Value>>, String> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let read = |(index, line): (usize, &str)| match parse(line) {
        Ok(Value::Object(row)) => Ok(row),
        Ok(other) => Err(format!("line {}: a row must be an object, found {}", index + 1, type_name(&other))),
        Err(error) => Err(format!("line {}: {}", index + 1, error.message)),
    };
    lines.map(read).collect()
}

fn row_names(rows: &[Map<String, Value>], path: &Path<'_>, problems: &mut Problems) -> Option<Vec<TableRow>> {
    let mut names = Vec::with_capacity(rows.len());
    let mut seen: HashMap<String, usize> = HashMap::with_capacity(rows.len());
    for (row, number) in rows.iter().zip(1..) {
        let name = match row.get("name") {
            None | Some(Value::Null) => number.to_string(),
            Some(Value::String(name)) if name.trim().is_empty() => number.to_string(),
            Some(name @ (Value::String(_) | Value::Number(_))) => text_form(name).into_owned(),
            Some(other) => {
                let found = type_name(other);
                problems.at(path, format!("'name' of row {number} must be a string or a number, found {found}"));
                return None;
            }
        };
        if let Some(first) = seen.insert(name.clone(), number) {
            problems.at(path, format!("rows {first} and {number} have the same name '{name}'"));
            return None;
        }
        names.push(TableRow { number, name });
    }
    Some(names)
}

fn fill_case(
    members: &Map<String, Value>,
    row: &Map<String, Value>,
    table_row: &TableRow,
    path: &Path<'_>,
    problems: &mut Problems,
) -> Value {
    let mut filled = Map::with_capacity(members.len());
    for (key, member) in members.iter().filter(|(key, _)| *key != "each") {
        let value = match member {
            // Keep an empty id, so that it is rejected.
            Value::String(id) if key == "id" && !id.trim().is_empty() => {
                Value::from(format!("{id}#{}", table_row.name))
            }
            member if SHARED_KEYS.contains(&key.as_str()) => member.clone(),
            member => fill(member, row, table_row, &path.key(key), problems),
        };
        filled.insert(key.clone(), value);
    }
    Value::Object(filled)
}

/// Reports empty values in strings to search for: every response contains an empty string, so the assertion would prove
/// nothing. A list may be empty as a whole.
fn reject_empty_searches(
    members: &Map<String, Value>,
    row: &Map<String, Value>,
    table_row: &TableRow,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    for key in ["expect", "safety"] {
        if let Some(expect) = members.get(key) {
            reject_empty_searches_in(expect, row, table_row, &path.key(key), problems);
        }
    }
    let path = path.key("turns");
    for (index, turn) in members.get("turns").and_then(Value::as_array).into_iter().flatten().enumerate() {
        if let Some(expect) = turn.get("expect") {
            reject_empty_searches_in(expect, row, table_row, &path.index(index).key("expect"), problems);
        }
    }
}

fn reject_empty_searches_in(
    expect: &Value,
    row: &Map<String, Value>,
    table_row: &TableRow,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    for key in SEARCHED_KEYS {
        // A list may come from the row as a whole, and be empty.
        let searched = expect.get(key).filter(|value| value.is_array() || !LIST_KEYS.contains(&key));
        if let Some(value) = searched {
            reject_empty(value, row, table_row, &path.key(key), problems);
        }
    }
    for key in CONDITION_KEYS {
        if let Some(value) = expect.get(key) {
            reject_empty_conditions(value, row, table_row, &path.key(key), problems);
        }
    }
}

/// Reports empty values in conditions that search for a string, at any level.
fn reject_empty_conditions(
    value: &Value,
    row: &Map<String, Value>,
    table_row: &TableRow,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let is_search = |name: &str| SEARCH_CHECKS.contains(&name);
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                reject_empty_conditions(item, row, table_row, &path.index(index), problems);
            }
        }
        Value::Object(members) if members.get("assertion").and_then(Value::as_str).is_some_and(is_search) => {
            if let Some(value) = members.get("value") {
                reject_empty(value, row, table_row, &path.key("value"), problems);
            }
        }
        Value::Object(members) => {
            for (key, member) in members.iter().filter(|(key, _)| *key != "params") {
                reject_empty_conditions(member, row, table_row, &path.key(key), problems);
            }
        }
        _ => {}
    }
}

fn reject_empty(
    value: &Value,
    row: &Map<String, Value>,
    table_row: &TableRow,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    match value {
        Value::String(text) => {
            if let Some((_, key)) = row_tokens(text).find(|(_, key)| row.get(*key).is_some_and(is_empty)) {
                let message =
                    format!("'{key}' of row '{}' is empty, so the assertion would prove nothing", table_row.name);
                let help = "give the row a value, or use another case for rows without one".to_owned();
                problems.push(path, Subject::Value, message, Some(help));
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                reject_empty(item, row, table_row, &path.index(index), problems);
            }
        }
        _ => {}
    }
}

/// Replaces `{{row:key}}` in all strings of a value.
fn fill(
    value: &Value,
    row: &Map<String, Value>,
    table_row: &TableRow,
    path: &Path<'_>,
    problems: &mut Problems,
) -> Value {
    match value {
        Value::String(text) => fill_text(text, row, table_row, path, problems),
        Value::Array(items) => {
            let fill_item = |(index, item): (usize, &Value)| fill(item, row, table_row, &path.index(index), problems);
            Value::Array(items.iter().enumerate().map(fill_item).collect())
        }
        Value::Object(members) => {
            let fill_member = |(key, member): (&String, &Value)| {
                (key.clone(), fill(member, row, table_row, &path.key(key), problems))
            };
            Value::Object(members.iter().map(fill_member).collect())
        }
        other => other.clone(),
    }
}

fn fill_text(
    text: &str,
    row: &Map<String, Value>,
    table_row: &TableRow,
    path: &Path<'_>,
    problems: &mut Problems,
) -> Value {
    let mut out = String::with_capacity(text.len());
    let mut end = 0;
    for (range, key) in row_tokens(text) {
        let Some(value) = row.get(key) else {
            let keys: Vec<&str> = row.keys().map(String::as_str).collect();
            let help = nearest(key, &keys).map(|near| format!("did you mean '{{{{row:{near}}}}}'?"));
            let message = format!("row '{}' has no '{key}'", table_row.name);
            problems.push(path, Subject::Value, message, help);
            return Value::Null;
        };
        if range.len() == text.len() {
            return value.clone();
        }
        out.push_str(&text[end..range.start]);
        out.push_str(&text_form(value));
        end = range.end;
    }
    out.push_str(&text[end..]);
    Value::String(out)
}

/// Whether a string contains a `{{row:…}}` token.
pub fn contains_row_token(text: &str) -> bool {
    row_tokens(text).next().is_some()
}

fn row_tokens(text: &str) -> impl Iterator<Item = (std::ops::Range<usize>, &str)> {
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let start = from + text[from..].find(TOKEN_START)?;
            let key_start = start + TOKEN_START.len();
            from = key_start;
            let close = key_start + text[key_start..].find('}')?;
            if text[close..].starts_with("}}") {
                from = close + 2;
                return Some((start..from, &text[key_start..close]));
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case("{{row:n}}", json!(3))]
    #[case("{{row:list}}", json!([1, "a"]))]
    #[case("{{row:none}}", json!(null))]
    #[case("n={{row:n}}, {{row:text}}!", json!("n=3, a \"b\"!"))]
    #[case("{{row:text}}{{row:n}}", json!("a \"b\"3"))]
    #[case("{{{row:n}}}", json!("{3}"))]
    #[case("{{row:token}}", json!("{{row:n}}"))]
    #[case("{{seed:n}} {{row:n} {{ row:n }}", json!("{{seed:n}} {{row:n} {{ row:n }}"))]
    fn fills_strings(#[case] text: &str, #[case] expected: Value) {
        let row = json!({"n": 3, "text": "a \"b\"", "list": [1, "a"], "none": null, "token": "{{row:n}}"});
        let table_row = TableRow { number: 1, name: "1".to_owned() };
        let mut problems = Problems::default();
        let row = row.as_object().expect("object");
        assert_eq!(fill_text(text, row, &table_row, &Path::Root, &mut problems), expected);
        assert!(problems.is_empty());
    }

    #[rstest]
    #[case(json!({"responseContains": ["a", "{{row:empty}}"]}), "/expect/responseContains/1")]
    #[case(json!({"responseContainsAny": [["x", "{{row:n}} {{row:none}} km"]]}), "/expect/responseContainsAny/0/1")]
    #[case(json!({"responseNotContains": ["{{row:list}}"]}), "/expect/responseNotContains/0")]
    #[case(json!({"responseMatches": ["{{row:empty}}"]}), "/expect/responseMatches/0")]
    #[case(json!({"toolParams": [{"assertion": "contains", "value": "{{row:empty}}"}]}), "/expect/toolParams/0/value")]
    #[case(json!({"toolParams": [{"assertion": "equals", "value": "{{row:empty}}"}]}), "")]
    #[case(json!({"toolsCalled": "{{row:list}}", "responseContains": "{{row:list}}"}), "")]
    #[case(json!({"responseContains": ["{{row:n}}"]}), "")]
    #[case(json!({"responseStartsWith": "{{row:empty}}"}), "/expect/responseStartsWith")]
    #[case(json!({"responseEquals": "{{row:empty}}"}), "")]
    #[case(json!({"responseJson": [{"assertion": "contains", "value": "{{row:empty}}"}]}), "/expect/responseJson/0/value")]
    #[case(json!({"state": [{"source": "db", "assertion": "contains", "value": "{{row:empty}}"}]}), "/expect/state/0/value")]
    #[case(json!({"calls": {"anyOf": [[{"where": [{"assertion": "matches", "value": "{{row:none}}"}]}]]}}), "/expect/calls/anyOf/0/0/where/0/value")]
    #[case(json!({"calls": {"list": [{"params": {"a": "{{row:empty}}"}}]}}), "")]
    fn rejects_empty_search_strings(#[case] expect: Value, #[case] pointer: &str) {
        let row = json!({"n": 0, "empty": "", "none": null, "list": []});
        let table_row = TableRow { number: 1, name: "1".to_owned() };
        let case = json!({"input": {"message": "{{row:empty}}"}, "expect": expect});
        let (case, row) = (case.as_object().expect("object"), row.as_object().expect("object"));
        let mut problems = Problems::default();
        reject_empty_searches(case, row, &table_row, &Path::Root, &mut problems);
        let pointers: Vec<String> = problems.into_list().into_iter().map(|problem| problem.pointer).collect();
        assert_eq!(pointers.join(" "), pointer);
    }

    #[rstest]
    #[case::quotes_and_line_breaks("a,b\n\"x, \"\"y\"\"\nz\",2\n", Ok(json!([{"a": "x, \"y\"\nz", "b": "2"}])))]
    #[case::only_a_header("a,b\n", Ok(json!([])))]
    #[case::short_row("a,b\n1\n", Err("line 2: 1 fields, but the header has 2"))]
    #[case::same_column("a,a\n1,2\n", Err("the header has two columns 'a'"))]
    #[case::unnamed_column("a,\n1,2\n", Err("column 2 of the header has no name"))]
    #[case::unclosed("a\n\"1\n", Err("line 2: unclosed quote; a field that begins with a quote must end with one"))]
    fn reads_csv(#[case] text: &str, #[case] expected: Result<Value, &str>) {
        let rows = csv_rows(text).map(|rows| json!(rows));
        assert_eq!(rows, expected.map_err(str::to_owned));
    }

    #[rstest]
    #[case("{\"a\": 1}\n\n{\"a\": [2]}\r\n", Ok(json!([{"a": 1}, {"a": [2]}])))]
    #[case("{\"a\": 1}\n3\n", Err("line 2: a row must be an object, found a number"))]
    fn reads_json_lines(#[case] text: &str, #[case] expected: Result<Value, &str>) {
        let rows = json_lines_rows(text).map(|rows| json!(rows));
        assert_eq!(rows, expected.map_err(str::to_owned));
    }
}
