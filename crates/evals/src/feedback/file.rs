//! Files of feedback, as people keep them in spreadsheets and programs write them.
//!
//! Everything that is wrong is found at once, each problem with its place.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Unit, civil};
use serde_json::Value;

use super::cells::Records;
use super::{Feedback, RETRACTED, Rating};
use karat_json::{Finding, locate, nearest, parse, pointer_key, type_name};

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedbackFormat {
    /// A table with a header.
    Csv,
    /// A JSON object on each line.
    JsonLines,
}

impl FeedbackFormat {
    /// Tells by the first character.
    pub fn detect(text: &str) -> Self {
        if text.trim_start().starts_with(['{', '[']) { FeedbackFormat::JsonLines } else { FeedbackFormat::Csv }
    }
}

/// How a file is read.
#[derive(Debug, Clone, Copy)]
pub struct FeedbackReading<'r> {
    pub format: FeedbackFormat,
    /// Who speaks in rows that name nobody.
    pub author: Option<&'r str>,
    /// What is meant by rows without a time.
    pub now: Timestamp,
    /// Columns and keys that nobody knows are passed over.
    pub ignore_unknown: bool,
}

/// What a file says.
#[derive(Debug, Default)]
pub struct FeedbackFile {
    pub statements: Vec<Statement>,
    /// What is wrong with rows that are not among the statements.
    pub problems: Vec<RowProblem>,
    /// How many rows say the same as a row before.
    pub repeated: u64,
    pub rows: u64,
}

/// One row of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    pub feedback: Feedback,
    /// The row says when; otherwise it says what is so now.
    pub is_dated: bool,
    /// Where the trace's id stands.
    pub place: Range<usize>,
}

/// What is wrong with a row.
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

    /// Finds the places of problems, in the order of the text.
    pub fn locate(text: &str, problems: Vec<Self>) -> Vec<Finding> {
        let parts = problems.into_iter().map(|problem| (problem.range, problem.message, problem.help)).collect();
        Finding::place_all(text, parts)
    }
}

/// What a row can say.
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

/// The names of the columns, in their order.
const NAMES: [&str; 6] = ["trace_id", "rating", "note", "author", "created_at", "source"];

/// Clocks differ by a little; who is further ahead would have the last word for ever.
const MOST_AHEAD: SignedDuration = SignedDuration::from_hours(24);

impl Column {
    fn of(name: &str) -> Option<Self> {
        NAMES.iter().position(|known| *known == name).map(|place| COLUMNS[place])
    }

    fn name(self) -> &'static str {
        NAMES[self as usize]
    }
}

/// A value of a row, with its place; a null is no value.
#[derive(Debug)]
struct Field<'t> {
    column: Column,
    text: Option<Cow<'t, str>>,
    range: Range<usize>,
}

impl FeedbackFile {
    /// Reads a file's text, or says why no row of it can be read: a header that is wrong makes all rows wrong.
    pub fn read(text: &str, reading: FeedbackReading<'_>) -> Result<Self, Vec<RowProblem>> {
        let mut reader = Reader { reading, file: Self::default(), seen: HashMap::new() };
        match reading.format {
            FeedbackFormat::Csv => reader.table(text)?,
            FeedbackFormat::JsonLines => reader.lines(text),
        }
        Ok(reader.file)
    }
}

/// Of which trace, by whom, and when something is said.
type Occasion = (String, String, Timestamp);

/// What is said, and in which row.
type Said = (Option<Rating>, Option<String>, u64);

struct Reader<'r> {
    reading: FeedbackReading<'r>,
    file: FeedbackFile,
    seen: HashMap<Occasion, Said>,
}

impl Reader<'_> {
    fn problem(&mut self, range: Range<usize>, message: impl Into<String>, help: Option<String>) {
        self.file.problems.push(RowProblem::new(range, message, help));
    }

    fn table(&mut self, text: &str) -> Result<(), Vec<RowProblem>> {
        let unreadable = |malformed: super::cells::Malformed| {
            vec![RowProblem::new(malformed.range, malformed.message, Some(malformed.help.to_owned()))]
        };
        let mut records = Records::new(text);
        let Some(header) = records.next() else {
            return Ok(());
        };
        let header = header.map_err(unreadable)?;
        let names: Vec<(&str, Range<usize>)> =
            header.iter().map(|cell| (cell.text.trim(), cell.range.clone())).collect();
        let columns = columns(&names, self.reading.ignore_unknown)?;
        for record in records {
            self.file.rows += 1;
            let cells = match record {
                Ok(cells) => cells,
                Err(malformed) => {
                    // Nobody knows where the next row begins.
                    let mut problems = std::mem::take(&mut self.file.problems);
                    problems.extend(unreadable(malformed));
                    return Err(problems);
                }
            };
            if cells.len() != columns.len() {
                let first = cells.first().map_or(0, |cell| cell.range.start);
                let range = cells.get(columns.len()).map_or(first..first, |extra| extra.range.clone());
                let message = format!("the row has {} where the header has {}", fields(cells.len()), columns.len());
                self.problem(range, message, Some("a text with a separator in it stands in quotes".to_owned()));
                continue;
            }
            let fields = cells.into_iter().zip(&columns).filter_map(|(cell, column)| {
                Some(Field { column: (*column)?, text: Some(cell.text), range: cell.range })
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
                    let help = matches!(other, Value::Array(_)).then(|| "one object on each line, not a list of them");
                    let message = format!("expected an object, got {}", type_name(&other));
                    self.problem(offset..offset + line.len(), message, help.map(str::to_owned));
                }
                Err(error) => {
                    let at = offset + error.offset;
                    let message = format!("the line is no JSON object: {}", error.message);
                    self.problem(at..at, message, None);
                }
            }
        }
    }

    fn object(&mut self, line: &str, offset: usize, object: &serde_json::Map<String, Value>) {
        let find = |key: &str, wants_key: bool| {
            let found = locate(line, &format!("/{}", pointer_key(key)));
            let range = found.map_or(0..line.len(), |found| match found.key {
                Some(key) if wants_key => key,
                _ => found.value,
            });
            offset + range.start..offset + range.end
        };
        let (mut fields, mut is_valid) = (Vec::with_capacity(NAMES.len()), true);
        for (key, value) in object {
            let Some(column) = Column::of(key) else {
                if !self.reading.ignore_unknown {
                    let (message, help) = unknown("key", key);
                    self.problem(find(key, true), message, Some(help));
                    is_valid = false;
                }
                continue;
            };
            // Only places that may be shown are looked for.
            let range = |is_wanted: bool| if is_wanted { find(key, false) } else { offset..offset };
            match value {
                Value::String(text) => {
                    let range = range(column == Column::TraceId || !is_good(column, text));
                    fields.push(Field { column, text: Some(Cow::Borrowed(text.as_str())), range });
                }
                Value::Null => fields.push(Field { column, text: None, range: range(true) }),
                other => {
                    let message = format!("{key} is {}, not a text", type_name(other));
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

    /// Takes a row in which both the trace and the rating have a field.
    fn row(&mut self, fields: Vec<Field<'_>>) {
        let before = self.file.problems.len();
        let place = fields.iter().find(|field| field.column == Column::TraceId).map(|field| field.range.clone());
        let place = place.unwrap_or_default();
        let (mut trace_id, mut rating, mut note, mut author) = (String::new(), None, None, None);
        let (mut created_at, mut source) = (None, None);
        for Field { column, text, range } in fields {
            let is_null = text.is_none();
            let text = text.unwrap_or_default();
            if text.contains('\0') {
                self.problem(range, format!("{} holds a NUL character, which no database keeps", column.name()), None);
                continue;
            }
            let word = text.trim();
            match column {
                Column::TraceId if word.is_empty() => self.problem(range, "trace_id is empty", None),
                Column::TraceId => word.clone_into(&mut trace_id),
                Column::Rating if is_null || word == RETRACTED => {}
                Column::Rating => {
                    rating = Rating::from_name(word);
                    if rating.is_none() {
                        let (message, help) = no_rating(word);
                        self.problem(range, message, Some(help));
                    }
                }
                Column::Note => note = (!word.is_empty()).then(|| text.clone().into_owned()),
                Column::Author => author = (!word.is_empty()).then(|| word.to_owned()),
                Column::Source => source = (!word.is_empty()).then(|| word.to_owned()),
                Column::CreatedAt if word.is_empty() => {}
                Column::CreatedAt => match time(word) {
                    Some(time) if time > self.reading.now.saturating_add(MOST_AHEAD).unwrap_or(Timestamp::MAX) => {
                        self.problem(range, format!("created_at is in the future: {word}"), None);
                    }
                    Some(time) => created_at = Some(time),
                    None => {
                        let help = "2026-11-16T12:00:00Z, or a date: 2026-11-16".to_owned();
                        self.problem(range, format!("created_at is no time: '{word}'"), Some(help));
                    }
                },
            }
        }
        let Some(author) = author.or_else(|| self.reading.author.map(str::to_owned)) else {
            self.problem(place, "the row names no author", Some("--author NAME says who speaks".to_owned()));
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
            created_at: created_at.unwrap_or(self.reading.now),
        };
        self.take(Statement { feedback, is_dated: created_at.is_some(), place });
    }

    /// Takes a statement, unless the file has it already or says the opposite at the same time.
    fn take(&mut self, statement: Statement) {
        let Feedback { trace_id, author, rating, note, created_at, .. } = &statement.feedback;
        let key = (trace_id.clone(), author.clone(), *created_at);
        match self.seen.get(&key) {
            Some((said, noted, _)) if said == rating && noted == note => self.file.repeated += 1,
            Some((said, _, row)) => {
                let said = said.map_or(RETRACTED, Rating::name);
                let message = format!("row {row} says something else of this trace for the same author: {said}");
                let help = if statement.is_dated {
                    format!("both are of {created_at}: give one a later created_at, since the newest counts")
                } else {
                    "give each its created_at: the newest counts".to_owned()
                };
                self.problem(statement.place, message, Some(help));
            }
            None => {
                self.seen.insert(key, (*rating, note.clone(), self.file.rows));
                self.file.statements.push(statement);
            }
        }
    }
}

/// Finds out which column is which; none for those that are passed over.
fn columns(names: &[(&str, Range<usize>)], ignore_unknown: bool) -> Result<Vec<Option<Column>>, Vec<RowProblem>> {
    let known = format!("it names the columns: {}", NAMES.join(","));
    if let Some((_, first)) = names.first()
        && names.iter().all(|(name, _)| Column::of(name).is_none())
    {
        return Err(vec![RowProblem::new(first.clone(), "the first line is no header", Some(known))]);
    }
    let (mut problems, mut columns) = (Vec::new(), Vec::with_capacity(names.len()));
    for (name, range) in names {
        let column = Column::of(name);
        if column.is_none() && !ignore_unknown {
            let (message, help) = unknown("column", name);
            problems.push(RowProblem::new(range.clone(), message, Some(help)));
        } else if column.is_some() && columns.contains(&column) {
            problems.push(RowProblem::new(range.clone(), format!("the column '{name}' stands twice"), None));
        }
        columns.push(column);
    }
    for needed in [Column::TraceId, Column::Rating] {
        if !columns.contains(&Some(needed)) {
            let message = format!("the header has no column '{}'", needed.name());
            problems.push(RowProblem::new(0..0, message, Some(known.clone())));
        }
    }
    if problems.is_empty() { Ok(columns) } else { Err(problems) }
}

fn unknown(what: &str, name: &str) -> (String, String) {
    let help = match nearest(name, &NAMES) {
        Some(near) => format!("did you mean '{near}'?"),
        None => format!("known are {}; --ignore-unknown passes others over", NAMES.join(", ")),
    };
    (format!("unknown {what} '{name}'"), help)
}

fn no_rating(word: &str) -> (String, String) {
    let words = [Rating::Positive.name(), Rating::Negative.name(), Rating::Neutral.name(), RETRACTED];
    let help = match nearest(word, &words) {
        Some(near) => format!("did you mean '{near}'?"),
        None => format!("a rating is {}", words.join(", ")),
    };
    let message = if word.is_empty() { "rating is empty".to_owned() } else { format!("'{word}' is no rating") };
    (message, help)
}

/// Tells whether a value will surely have no problem, so that its place need not be known.
fn is_good(column: Column, text: &str) -> bool {
    let word = text.trim();
    !text.contains('\0')
        && match column {
            Column::TraceId | Column::CreatedAt => false,
            Column::Rating => word == RETRACTED || Rating::from_name(word).is_some(),
            Column::Note | Column::Author | Column::Source => true,
        }
}

/// Reads a time; one without an offset, or a date alone, is in UTC. Databases keep microseconds.
fn time(text: &str) -> Option<Timestamp> {
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
        FeedbackFile::read(text, FeedbackReading { format: FeedbackFormat::detect(text), author, now, ignore_unknown })
    }

    /// Returns what is said, and what is wrong with its line and column.
    fn read(text: &str) -> (Vec<String>, Vec<String>) {
        let (statements, problems) = match read_as(text, Some("ada"), false) {
            Ok(file) => (file.statements, file.problems),
            Err(problems) => (Vec::new(), problems),
        };
        let said = |statement: Statement| {
            let word = statement.feedback.word();
            let Feedback { trace_id, author, note, created_at, .. } = statement.feedback;
            format!("{trace_id} {word} {author} {} {created_at}", note.unwrap_or_default())
        };
        let told = |finding: Finding| {
            let position = finding.place.position;
            let help = finding.help.map(|help| format!(" ({help})")).unwrap_or_default();
            format!("{}:{} {}{help}", position.line, position.column, finding.message)
        };
        let problems = RowProblem::locate(text, problems).into_iter().map(told).collect();
        (statements.into_iter().map(said).collect(), problems)
    }

    #[rstest]
    #[case::table("rating,trace_id\npositive,t1\n", "t1 positive ada  2026-11-16T12:00:00Z")]
    #[case::all_columns(
        "trace_id,rating,note,author,created_at,source\r\n t1 ,negative,\"too, late\",bob,2026-01-02T03:04:05+01:00,x\r\n",
        "t1 negative bob too, late 2026-01-02T02:04:05Z"
    )]
    #[case::a_date("trace_id;rating;created_at\nt1;neutral;2026-01-02\n", "t1 neutral ada  2026-01-02T00:00:00Z")]
    #[case::a_time_without_offset(
        "trace_id;rating;created_at\nt1;neutral;2026-01-02 03:04:05\n",
        "t1 neutral ada  2026-01-02T03:04:05Z"
    )]
    #[case::more_than_a_database_keeps(
        "trace_id,rating,created_at\nt1,retracted,2026-01-02T03:04:05.123456789Z\n",
        "t1 retracted ada  2026-01-02T03:04:05.123457Z"
    )]
    #[case::an_object(
        "{\"trace_id\": \"t1\", \"rating\": \"positive\", \"note\": null}\n\n",
        "t1 positive ada  2026-11-16T12:00:00Z"
    )]
    #[case::null_takes_back("{\"trace_id\": \"t1\", \"rating\": null}", "t1 retracted ada  2026-11-16T12:00:00Z")]
    fn rows_are_read(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(read(text), (vec![expected.to_owned()], Vec::new()));
    }

    #[rstest]
    #[case::rating("trace_id,rating\nt1,postive\n", "2:4 'postive' is no rating (did you mean 'positive'?)")]
    #[case::no_rating(
        "trace_id,rating\nt1,\n",
        "2:4 rating is empty (a rating is positive, negative, neutral, retracted)"
    )]
    #[case::no_trace("trace_id,rating\n  ,neutral\n", "2:1 trace_id is empty")]
    #[case::column("trace_id,rating,notes\n", "1:17 unknown column 'notes' (did you mean 'note'?)")]
    #[case::twice("trace_id,rating,rating\n", "1:17 the column 'rating' stands twice")]
    #[case::no_header(
        "trace_id\nt1\n",
        "1:1 the header has no column 'rating' (it names the columns: trace_id,rating,note,author,created_at,source)"
    )]
    #[case::too_many(
        "trace_id,rating\nt1,positive,3,4\n",
        "2:13 the row has 4 fields where the header has 2 (a text with a separator in it stands in quotes)"
    )]
    #[case::too_few(
        "trace_id,rating\nt1\n",
        "2:1 the row has 1 field where the header has 2 (a text with a separator in it stands in quotes)"
    )]
    #[case::quote(
        "trace_id,rating\n\"t1,positive\nt2,neutral\n",
        "2:1 this quote is not closed (a field that begins with a quote ends with one)"
    )]
    #[case::time(
        "trace_id,rating,created_at\nt1,neutral,yesterday\n",
        "2:12 created_at is no time: 'yesterday' (2026-11-16T12:00:00Z, or a date: 2026-11-16)"
    )]
    #[case::future(
        "trace_id,rating,created_at\nt1,neutral,2027-01-01\n",
        "2:12 created_at is in the future: 2027-01-01"
    )]
    #[case::nul("trace_id,rating,note\nt1,neutral,a\0b\n", "2:12 note holds a NUL character, which no database keeps")]
    #[case::key(
        "{\"trace_id\":\"t\",\"rating\":\"neutral\",\"raitng\":1}",
        "1:36 unknown key 'raitng' (did you mean 'rating'?)"
    )]
    #[case::kind("{\"trace_id\":7,\"rating\":\"neutral\"}", "1:13 trace_id is a number, not a text")]
    #[case::missing("{\"trace_id\":\"t\"}", "1:1 rating is missing")]
    #[case::key_twice(
        "{\"trace_id\":\"t\",\"trace_id\":\"u\",\"rating\":null}",
        "1:17 the line is no JSON object: the key 'trace_id' stands twice in one object"
    )]
    #[case::list("[1]", "1:1 expected an object, got an array (one object on each line, not a list of them)")]
    #[case::json("\n{\"trace_id\":", "2:13 the line is no JSON object: EOF while parsing a value")]
    fn problems_have_a_place(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(read(text), (Vec::new(), vec![expected.to_owned()]));
    }

    #[test]
    fn all_problems_are_found_and_the_rest_is_read() {
        let (said, problems) = read("trace_id,rating,created_at\n,good,now\nt2,neutral,\nt3,bad,\n");
        assert_eq!(said, ["t2 neutral ada  2026-11-16T12:00:00Z"]);
        assert_eq!(problems.len(), 4, "{problems:?}");
    }

    #[test]
    fn the_same_twice_is_once_and_the_opposite_is_asked_about() {
        let text = "trace_id,rating\nt1,positive\nt1,positive\nt1,negative\n";
        let file = read_as(text, Some("ada"), false).expect("a table");
        assert_eq!((file.statements.len(), file.repeated, file.problems.len()), (1, 1, 1));
        let message = &file.problems[0].message;
        assert_eq!(message, "row 1 says something else of this trace for the same author: positive");
        assert_eq!(file.problems[0].help.as_deref(), Some("give each its created_at: the newest counts"));
        let at_once = "trace_id,rating,created_at\nt1,positive,2026-01-01\nt1,negative,2026-01-01\n";
        let file = read_as(at_once, Some("ada"), false).expect("a table");
        let help = "both are of 2026-01-01T00:00:00Z: give one a later created_at, since the newest counts";
        assert_eq!(file.problems[0].help.as_deref(), Some(help));
        let dated = "trace_id,rating,created_at\nt1,positive,2026-01-01\nt1,negative,2026-01-02\n";
        assert_eq!(read(dated).0.len(), 2, "people change their minds");
    }

    #[test]
    fn somebody_must_have_said_it() {
        let file = read_as("trace_id,rating,author\nt1,positive,\nt2,positive,bob\n", None, false).expect("a table");
        assert_eq!((file.statements.len(), file.problems[0].message.as_str()), (1, "the row names no author"));
    }

    #[test]
    fn what_is_unknown_can_be_passed_over() {
        for text in ["trace_id,x,rating\nt1,2,neutral\n", "{\"trace_id\":\"t1\",\"x\":[2],\"rating\":\"neutral\"}"] {
            let file = read_as(text, Some("ada"), true).expect("a file");
            assert_eq!((file.statements.len(), file.problems.len()), (1, 0), "{text}");
        }
    }

    #[test]
    fn who_says_the_same_again_says_nothing_new() {
        let say = |rating, note: Option<&str>| Feedback {
            trace_id: "t".to_owned(),
            author: "ada".to_owned(),
            rating,
            note: note.map(str::to_owned),
            source: "cli".to_owned(),
            created_at: Timestamp::UNIX_EPOCH,
        };
        let noted = say(Some(Rating::Positive), Some("nice"));
        assert!(say(Some(Rating::Positive), None).repeats(Some(&noted)));
        assert!(!say(Some(Rating::Positive), Some("nicer")).repeats(Some(&noted)));
        assert!(!say(Some(Rating::Neutral), None).repeats(Some(&noted)));
        assert!(say(None, None).repeats(None) && !say(None, None).repeats(Some(&noted)));
    }
}
