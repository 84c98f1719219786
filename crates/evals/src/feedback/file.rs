//! Feedback files: CSV or JSON lines.
//!
//! All problems are reported together, each with its position.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Unit, civil};
use serde_json::Value;

use super::{Feedback, RETRACTED, Rating};
use karat_cases::csv::{CsvError, Records, unescape_formula};
use karat_json::{Finding, locate, nearest, parse, pointer_key, type_name};

/// File format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedbackFormat {
    /// A table with a header.
    Csv,
    /// A JSON object on each line.
    JsonLines,
}

impl FeedbackFormat {
    /// Detects the format from the first character.
    pub fn detect(text: &str) -> Self {
        if text.trim_start().starts_with(['{', '[']) { FeedbackFormat::JsonLines } else { FeedbackFormat::Csv }
    }
}

/// Options for parsing a feedback file.
#[derive(Debug, Clone, Copy)]
pub struct FeedbackOptions<'r> {
    pub format: FeedbackFormat,
    /// Author of rows without one.
    pub author: Option<&'r str>,
    /// Time of rows without one.
    pub now: Timestamp,
    /// Whether to ignore unknown columns and keys.
    pub ignore_unknown: bool,
}

/// The content of a feedback file.
#[derive(Debug, Default)]
pub struct FeedbackFile {
    pub entries: Vec<FeedbackEntry>,
    /// Problems of rows that are not in `entries`.
    pub problems: Vec<RowProblem>,
    /// Number of rows equal to an earlier row.
    pub repeated: u64,
    pub rows: u64,
}

/// One row of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedbackEntry {
    pub feedback: Feedback,
    /// Whether the row has a time; otherwise it is about the present.
    pub is_dated: bool,
    /// Byte range of the trace id.
    pub trace_id_range: Range<usize>,
}

/// A problem in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowProblem {
    pub range: Range<usize>,
    /// A lower-case fragment.
    pub message: String,
    pub help: Option<String>,
}

impl RowProblem {
    pub fn new(range: Range<usize>, message: impl Into<String>, help: Option<String>) -> Self {
        Self { range, message: message.into(), help }
    }

    /// Locates problems in the text, in text order.
    pub fn locate(text: &str, problems: Vec<Self>) -> Vec<Finding> {
        let parts = problems.into_iter().map(|problem| (problem.range, problem.message, problem.help)).collect();
        Finding::from_ranges(text, parts)
    }
}

/// A known column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    TraceId,
    Rating,
    Note,
    Author,
    CreatedAt,
    Source,
}

const COLUMNS: [Column; 6] =
    [Column::TraceId, Column::Rating, Column::Note, Column::Author, Column::CreatedAt, Column::Source];

/// Column names, in the order of [`COLUMNS`].
const NAMES: [&str; 6] = ["trace_id", "rating", "note", "author", "created_at", "source"];

/// Tolerance for clock skew: since the newest rating counts, one from further in the future could never be replaced.
const MAX_CLOCK_SKEW: SignedDuration = SignedDuration::from_hours(24);

impl Column {
    fn of(name: &str) -> Option<Self> {
        NAMES.iter().position(|known| *known == name).map(|index| COLUMNS[index])
    }

    fn name(self) -> &'static str {
        NAMES[self as usize]
    }
}

/// A value of a row with its byte range; `text` is `None` for null.
#[derive(Debug)]
struct Field<'t> {
    column: Column,
    text: Option<Cow<'t, str>>,
    range: Range<usize>,
}

impl FeedbackFile {
    /// Parses a file's text. Fails if no row can be read: an invalid header makes all rows invalid.
    pub fn read(text: &str, options: FeedbackOptions<'_>) -> Result<Self, Vec<RowProblem>> {
        let mut reader = Reader { options, file: Self::default(), seen: HashMap::new() };
        match options.format {
            FeedbackFormat::Csv => reader.table(text)?,
            FeedbackFormat::JsonLines => reader.lines(text),
        }
        Ok(reader.file)
    }
}

/// Trace id, author and time of a rating.
type RatingKey = (String, String, Timestamp);

/// Rating, note and row number.
type SeenRating = (Option<Rating>, Option<String>, u64);

struct Reader<'r> {
    options: FeedbackOptions<'r>,
    file: FeedbackFile,
    seen: HashMap<RatingKey, SeenRating>,
}

impl Reader<'_> {
    fn problem(&mut self, range: Range<usize>, message: impl Into<String>, help: Option<String>) {
        self.file.problems.push(RowProblem::new(range, message, help));
    }

    fn table(&mut self, text: &str) -> Result<(), Vec<RowProblem>> {
        let unreadable =
            |error: CsvError| vec![RowProblem::new(error.range, error.message, Some(error.help.to_owned()))];
        let mut records = Records::new(text);
        let Some(header) = records.next() else {
            return Ok(());
        };
        let header = header.map_err(unreadable)?;
        let names: Vec<(&str, Range<usize>)> =
            header.iter().map(|cell| (cell.text.trim(), cell.range.clone())).collect();
        let columns = columns(&names, self.options.ignore_unknown)?;
        for record in records {
            self.file.rows += 1;
            let cells = match record {
                Ok(cells) => cells,
                Err(error) => {
                    // The start of the next row is unknown.
                    let mut problems = std::mem::take(&mut self.file.problems);
                    problems.extend(unreadable(error));
                    return Err(problems);
                }
            };
            if cells.len() != columns.len() {
                let first = cells.first().map_or(0, |cell| cell.range.start);
                let range = cells.get(columns.len()).map_or(first..first, |extra| extra.range.clone());
                let message = format!("expected {}, found {}", fields(columns.len()), cells.len());
                self.problem(range, message, Some("quote a field that contains a separator".to_owned()));
                continue;
            }
            let fields = cells.into_iter().zip(&columns).filter_map(|(cell, column)| {
                Some(Field { column: (*column)?, text: Some(unescape_formula(cell.text)), range: cell.range })
            });
            self.row(fields.collect());
        }
        Ok(())
    }

    fn lines(&mut self, text: &str) {
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let offset = start;
            start += line.len();
            let line = line.trim_end();
            if line.is_empty() {
                continue;
            }
            self.file.rows += 1;
            match parse(line) {
                Ok(Value::Object(object)) => self.object(line, offset, &object),
                Ok(other) => {
                    let help = matches!(other, Value::Array(_)).then(|| "write one object per line, not an array");
                    let message = format!("expected an object, found {}", type_name(&other));
                    self.problem(offset..offset + line.len(), message, help.map(str::to_owned));
                }
                Err(error) => {
                    let at = offset + error.offset;
                    let message = format!("invalid JSON: {}", error.message);
                    self.problem(at..at, message, None);
                }
            }
        }
    }

    fn object(&mut self, line: &str, offset: usize, object: &serde_json::Map<String, Value>) {
        let find = |key: &str, wants_key: bool| {
            let member = locate(line, &format!("/{}", pointer_key(key)));
            let range = member.map_or(0..line.len(), |member| match member.key {
                Some(key) if wants_key => key,
                _ => member.value,
            });
            offset + range.start..offset + range.end
        };
        let (mut fields, mut is_valid) = (Vec::with_capacity(NAMES.len()), true);
        for (key, value) in object {
            let Some(column) = Column::of(key) else {
                if !self.options.ignore_unknown {
                    let (message, help) = unknown("key", key);
                    self.problem(find(key, true), message, Some(help));
                    is_valid = false;
                }
                continue;
            };
            // Locating is expensive: done only if the range may be shown.
            let range = |is_wanted: bool| if is_wanted { find(key, false) } else { offset..offset };
            match value {
                Value::String(text) => {
                    let range = range(column == Column::TraceId || !is_always_valid(column, text));
                    fields.push(Field { column, text: Some(Cow::Borrowed(text.as_str())), range });
                }
                Value::Null => fields.push(Field { column, text: None, range: range(true) }),
                other => {
                    let message = format!("{key} must be a string, found {}", type_name(other));
                    self.problem(range(true), message, None);
                    is_valid = false;
                }
            }
        }
        for column in [Column::TraceId, Column::Rating] {
            if !object.contains_key(column.name()) {
                self.problem(offset..offset + line.len(), format!("{} is missing", column.name()), None);
                is_valid = false;
            }
        }
        if is_valid {
            self.row(fields);
        }
    }

    /// Adds a row. The fields must include the trace and the rating.
    fn row(&mut self, fields: Vec<Field<'_>>) {
        let before = self.file.problems.len();
        let trace_id_range =
            fields.iter().find(|field| field.column == Column::TraceId).map(|field| field.range.clone());
        let trace_id_range = trace_id_range.unwrap_or_default();
        let (mut trace_id, mut rating, mut note, mut author) = (String::new(), None, None, None);
        let (mut created_at, mut source) = (None, None);
        for Field { column, text, range } in fields {
            let is_null = text.is_none();
            let text = text.unwrap_or_default();
            if text.contains('\0') {
                self.problem(
                    range,
                    format!("{} contains a NUL character, which databases cannot store", column.name()),
                    None,
                );
                continue;
            }
            let word = text.trim();
            match column {
                Column::TraceId if word.is_empty() => self.problem(range, "trace_id is empty", None),
                Column::TraceId => word.clone_into(&mut trace_id),
                Column::Rating if is_null || word == RETRACTED => {}
                Column::Rating => {
                    rating = Rating::from_label(word);
                    if rating.is_none() {
                        let (message, help) = invalid_rating(word);
                        self.problem(range, message, Some(help));
                    }
                }
                Column::Note => note = (!word.is_empty()).then(|| text.clone().into_owned()),
                Column::Author => author = (!word.is_empty()).then(|| word.to_owned()),
                Column::Source => source = (!word.is_empty()).then(|| word.to_owned()),
                Column::CreatedAt if word.is_empty() => {}
                Column::CreatedAt => match parse_time(word) {
                    Some(time) if time > self.options.now.saturating_add(MAX_CLOCK_SKEW).unwrap_or(Timestamp::MAX) => {
                        self.problem(range, format!("created_at is in the future: {word}"), None);
                    }
                    Some(time) => created_at = Some(time),
                    None => {
                        let help = "expected 2026-11-16T12:00:00Z or 2026-11-16".to_owned();
                        self.problem(range, format!("created_at is not a valid time: '{word}'"), Some(help));
                    }
                },
            }
        }
        let Some(author) = author.or_else(|| self.options.author.map(str::to_owned)) else {
            self.problem(trace_id_range, "the row has no author", Some("pass --author NAME to set it".to_owned()));
            return;
        };
        if self.file.problems.len() > before {
            return;
        }
        let feedback = Feedback {
            trace_id,
            author,
            rating,
            note,
            source: source.unwrap_or_else(|| "import".to_owned()),
            created_at: created_at.unwrap_or(self.options.now),
        };
        self.add_entry(FeedbackEntry { feedback, is_dated: created_at.is_some(), trace_id_range });
    }

    /// Adds a row, unless the file already has it or contradicts it at the same time.
    fn add_entry(&mut self, entry: FeedbackEntry) {
        let Feedback { trace_id, author, rating, note, created_at, .. } = &entry.feedback;
        let key = (trace_id.clone(), author.clone(), *created_at);
        match self.seen.get(&key) {
            Some((seen, seen_note, _)) if seen == rating && seen_note == note => self.file.repeated += 1,
            Some((seen, _, row)) => {
                let seen = seen.map_or(RETRACTED, Rating::label);
                let message = format!("conflicts with row {row} (same trace and author, rated {seen})");
                let help = if entry.is_dated {
                    format!("both are dated {created_at}: give one a later created_at, since the newest counts")
                } else {
                    "give each a created_at: the newest counts".to_owned()
                };
                self.problem(entry.trace_id_range, message, Some(help));
            }
            None => {
                self.seen.insert(key, (*rating, note.clone(), self.file.rows));
                self.file.entries.push(entry);
            }
        }
    }
}

/// Resolves the header's columns; `None` for ignored ones.
fn columns(names: &[(&str, Range<usize>)], ignore_unknown: bool) -> Result<Vec<Option<Column>>, Vec<RowProblem>> {
    let known = format!("expected columns: {}", NAMES.join(","));
    let is_header = |name: &str| Column::of(name).is_some() || near_column(name).is_some();
    if let Some((_, first)) = names.first()
        && !names.iter().any(|(name, _)| is_header(name))
    {
        return Err(vec![RowProblem::new(first.clone(), "missing header", Some(known))]);
    }
    let (mut problems, mut columns) = (Vec::new(), Vec::with_capacity(names.len()));
    for (name, range) in names {
        let column = Column::of(name);
        if column.is_none() && !ignore_unknown {
            let (message, help) = unknown("column", name);
            problems.push(RowProblem::new(range.clone(), message, Some(help)));
        } else if column.is_some() && columns.contains(&column) {
            problems.push(RowProblem::new(range.clone(), format!("duplicate column '{name}'"), None));
        }
        columns.push(column);
    }
    for needed in [Column::TraceId, Column::Rating] {
        let is_misnamed = || !ignore_unknown && names.iter().any(|(name, _)| near_column(name) == Some(needed.name()));
        if !columns.contains(&Some(needed)) && !is_misnamed() {
            let message = format!("missing column '{}'", needed.name());
            problems.push(RowProblem::new(0..0, message, Some(known.clone())));
        }
    }
    if problems.is_empty() { Ok(columns) } else { Err(problems) }
}

/// Returns the known column that an unknown one probably means.
fn near_column(name: &str) -> Option<&'static str> {
    let name = name.trim().to_lowercase();
    let synonyms = [
        (Column::TraceId, &["trace", "traceid", "id"][..]),
        (Column::Rating, &["label", "score", "verdict", "feedback"]),
        (Column::Note, &["comment", "reason"]),
        (Column::Author, &["user", "annotator", "reviewer"]),
        (Column::CreatedAt, &["time", "timestamp", "date"]),
    ];
    let synonym = synonyms.iter().find(|(_, words)| words.contains(&name.as_str()));
    synonym.map(|(column, _)| column.name()).or_else(|| nearest(&name, &NAMES))
}

fn unknown(kind: &str, name: &str) -> (String, String) {
    let help = match near_column(name) {
        Some(near) => format!("did you mean '{near}'?"),
        None => format!("expected one of: {}; pass --ignore-unknown to ignore others", NAMES.join(", ")),
    };
    (format!("unknown {kind} '{name}'"), help)
}

fn invalid_rating(word: &str) -> (String, String) {
    let labels = Rating::ALL.map(Rating::label);
    let names = Rating::ALL.map(Rating::name);
    let known: Vec<&str> = labels.into_iter().chain(names).chain([RETRACTED]).collect();
    let help = match nearest(word, &known) {
        Some(near) => format!("did you mean '{near}'?"),
        None => format!("expected one of: {}, {RETRACTED}", labels.join(", ")),
    };
    let message =
        if word.is_empty() { "rating is empty".to_owned() } else { format!("'{word}' is not a valid rating") };
    (message, help)
}

/// Whether a value cannot have a problem, so that its range is not needed.
fn is_always_valid(column: Column, text: &str) -> bool {
    let word = text.trim();
    !text.contains('\0')
        && match column {
            Column::TraceId | Column::CreatedAt => false,
            Column::Rating => word == RETRACTED || Rating::from_label(word).is_some(),
            Column::Note | Column::Author | Column::Source => true,
        }
}

/// Parses a time. Without an offset, or as a date alone, it is in UTC. Databases store microseconds.
fn parse_time(text: &str) -> Option<Timestamp> {
    let in_utc = |time: civil::DateTime| time.to_zoned(TimeZone::UTC).map(|zoned| zoned.timestamp()).ok();
    let time = text.parse::<Timestamp>().ok().or_else(|| text.parse::<civil::DateTime>().ok().and_then(in_utc))?;
    time.round(Unit::Microsecond).ok()
}

fn fields(count: usize) -> String {
    if count == 1 { "1 field".to_owned() } else { format!("{count} fields") }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const NOW: &str = "2026-11-16T12:00:00Z";

    fn read_as(text: &str, author: Option<&str>, ignore_unknown: bool) -> Result<FeedbackFile, Vec<RowProblem>> {
        let now = NOW.parse().expect("a time");
        FeedbackFile::read(text, FeedbackOptions { format: FeedbackFormat::detect(text), author, now, ignore_unknown })
    }

    /// Returns the parsed rows and the problems with line and column.
    fn read(text: &str) -> (Vec<String>, Vec<String>) {
        let (entries, problems) = match read_as(text, Some("ada"), false) {
            Ok(file) => (file.entries, file.problems),
            Err(problems) => (Vec::new(), problems),
        };
        let describe = |entry: FeedbackEntry| {
            let word = entry.feedback.rating_name();
            let Feedback { trace_id, author, note, created_at, .. } = entry.feedback;
            format!("{trace_id} {word} {author} {} {created_at}", note.unwrap_or_default())
        };
        let describe_finding = |finding: Finding| {
            let position = finding.location.position;
            let help = finding.help.map(|help| format!(" ({help})")).unwrap_or_default();
            format!("{}:{} {}{help}", position.line, position.column, finding.message)
        };
        let problems = RowProblem::locate(text, problems).into_iter().map(describe_finding).collect();
        (entries.into_iter().map(describe).collect(), problems)
    }

    #[rstest]
    #[case::table("rating,trace_id\npositive,t1\n", "t1 positive ada  2026-11-16T12:00:00Z")]
    #[case::words("trace_id,rating\nt1,bad\n", "t1 negative ada  2026-11-16T12:00:00Z")]
    #[case::all_columns(
        "trace_id,rating,note,author,created_at,source\r\n t1 ,negative,\"too, late\",bob,2026-01-02T03:04:05+01:00,x\r\n",
        "t1 negative bob too, late 2026-01-02T02:04:05Z"
    )]
    #[case::a_date("trace_id;rating;created_at\nt1;neutral;2026-01-02\n", "t1 neutral ada  2026-01-02T00:00:00Z")]
    #[case::a_time_without_offset(
        "trace_id;rating;created_at\nt1;neutral;2026-01-02 03:04:05\n",
        "t1 neutral ada  2026-01-02T03:04:05Z"
    )]
    #[case::rounds_to_microseconds(
        "trace_id,rating,created_at\nt1,retracted,2026-01-02T03:04:05.123456789Z\n",
        "t1 retracted ada  2026-01-02T03:04:05.123457Z"
    )]
    #[case::an_object(
        "{\"trace_id\": \"t1\", \"rating\": \"positive\", \"note\": null}\n\n",
        "t1 positive ada  2026-11-16T12:00:00Z"
    )]
    #[case::null_retracts("{\"trace_id\": \"t1\", \"rating\": null}", "t1 retracted ada  2026-11-16T12:00:00Z")]
    fn parses_rows(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(read(text), (vec![expected.to_owned()], Vec::new()));
    }

    #[rstest]
    #[case::rating("trace_id,rating\nt1,postive\n", "2:4 'postive' is not a valid rating (did you mean 'positive'?)")]
    #[case::no_rating("trace_id,rating\nt1,\n", "2:4 rating is empty (expected one of: good, bad, neutral, retracted)")]
    #[case::no_trace("trace_id,rating\n  ,neutral\n", "2:1 trace_id is empty")]
    #[case::column("trace_id,rating,notes\n", "1:17 unknown column 'notes' (did you mean 'note'?)")]
    #[case::synonym("trace_id,label\n", "1:10 unknown column 'label' (did you mean 'rating'?)")]
    #[case::no_known_column(
        "t1,good\n",
        "1:1 missing header (expected columns: trace_id,rating,note,author,created_at,source)"
    )]
    #[case::twice("trace_id,rating,rating\n", "1:17 duplicate column 'rating'")]
    #[case::no_header(
        "trace_id\nt1\n",
        "1:1 missing column 'rating' (expected columns: trace_id,rating,note,author,created_at,source)"
    )]
    #[case::too_many(
        "trace_id,rating\nt1,positive,3,4\n",
        "2:13 expected 2 fields, found 4 (quote a field that contains a separator)"
    )]
    #[case::too_few(
        "trace_id,rating\nt1\n",
        "2:1 expected 2 fields, found 1 (quote a field that contains a separator)"
    )]
    #[case::quote(
        "trace_id,rating\n\"t1,positive\nt2,neutral\n",
        "2:1 unclosed quote (a field that begins with a quote must end with one)"
    )]
    #[case::time(
        "trace_id,rating,created_at\nt1,neutral,yesterday\n",
        "2:12 created_at is not a valid time: 'yesterday' (expected 2026-11-16T12:00:00Z or 2026-11-16)"
    )]
    #[case::future(
        "trace_id,rating,created_at\nt1,neutral,2027-01-01\n",
        "2:12 created_at is in the future: 2027-01-01"
    )]
    #[case::nul(
        "trace_id,rating,note\nt1,neutral,a\0b\n",
        "2:12 note contains a NUL character, which databases cannot store"
    )]
    #[case::key(
        "{\"trace_id\":\"t\",\"rating\":\"neutral\",\"raitng\":1}",
        "1:36 unknown key 'raitng' (did you mean 'rating'?)"
    )]
    #[case::kind("{\"trace_id\":7,\"rating\":\"neutral\"}", "1:13 trace_id must be a string, found a number")]
    #[case::missing("{\"trace_id\":\"t\"}", "1:1 rating is missing")]
    #[case::key_twice(
        "{\"trace_id\":\"t\",\"trace_id\":\"u\",\"rating\":null}",
        "1:17 invalid JSON: duplicate key 'trace_id'"
    )]
    #[case::list("[1]", "1:1 expected an object, found an array (write one object per line, not an array)")]
    #[case::json("\n{\"trace_id\":", "2:13 invalid JSON: EOF while parsing a value")]
    fn problems_have_a_position(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(read(text), (Vec::new(), vec![expected.to_owned()]));
    }

    #[test]
    fn names_all_misnamed_columns() {
        let expected = [
            "1:1 unknown column 'trace' (did you mean 'trace_id'?)",
            "1:7 unknown column 'label' (did you mean 'rating'?)",
        ];
        assert_eq!(read("trace,label\nt1,good\n"), (Vec::new(), expected.map(str::to_owned).to_vec()));
    }

    #[test]
    fn reports_all_problems_and_parses_the_rest() {
        let (rows, problems) = read("trace_id,rating,created_at\n,fine,now\nt2,neutral,\nt3,poor,\n");
        assert_eq!(rows, ["t2 neutral ada  2026-11-16T12:00:00Z"]);
        assert_eq!(problems.len(), 4, "{problems:?}");
    }

    #[test]
    fn deduplicates_equal_rows_and_rejects_conflicting_ones() {
        let text = "trace_id,rating\nt1,positive\nt1,positive\nt1,negative\n";
        let file = read_as(text, Some("ada"), false).expect("a table");
        assert_eq!((file.entries.len(), file.repeated, file.problems.len()), (1, 1, 1));
        let message = &file.problems[0].message;
        assert_eq!(message, "conflicts with row 1 (same trace and author, rated good)");
        assert_eq!(file.problems[0].help.as_deref(), Some("give each a created_at: the newest counts"));
        let same_time = "trace_id,rating,created_at\nt1,positive,2026-01-01\nt1,negative,2026-01-01\n";
        let file = read_as(same_time, Some("ada"), false).expect("a table");
        let help = "both are dated 2026-01-01T00:00:00Z: give one a later created_at, since the newest counts";
        assert_eq!(file.problems[0].help.as_deref(), Some(help));
        let dated = "trace_id,rating,created_at\nt1,positive,2026-01-01\nt1,negative,2026-01-02\n";
        assert_eq!(read(dated).0.len(), 2, "people change their minds");
    }

    #[test]
    fn a_row_requires_an_author() {
        let file = read_as("trace_id,rating,author\nt1,positive,\nt2,positive,bob\n", None, false).expect("a table");
        assert_eq!((file.entries.len(), file.problems[0].message.as_str()), (1, "the row has no author"));
    }

    #[test]
    fn ignores_unknown_columns_if_asked() {
        for text in ["trace_id,x,rating\nt1,2,neutral\n", "{\"trace_id\":\"t1\",\"x\":[2],\"rating\":\"neutral\"}"] {
            let file = read_as(text, Some("ada"), true).expect("a file");
            assert_eq!((file.entries.len(), file.problems.len()), (1, 0), "{text}");
        }
    }

    #[test]
    fn detects_repeated_feedback() {
        let feedback = |rating, note: Option<&str>| Feedback {
            trace_id: "t".to_owned(),
            author: "ada".to_owned(),
            rating,
            note: note.map(str::to_owned),
            source: "cli".to_owned(),
            created_at: Timestamp::UNIX_EPOCH,
        };
        let noted = feedback(Some(Rating::Positive), Some("nice"));
        assert!(feedback(Some(Rating::Positive), None).repeats(Some(&noted)));
        assert!(!feedback(Some(Rating::Positive), Some("nicer")).repeats(Some(&noted)));
        assert!(!feedback(Some(Rating::Neutral), None).repeats(Some(&noted)));
        assert!(feedback(None, None).repeats(None) && !feedback(None, None).repeats(Some(&noted)));
    }
}
