//! Which stored traces a request is about.

use std::collections::BTreeSet;

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use karat_core::port::TraceStore;
use karat_core::rating::Rating;
use karat_core::stored::TraceFilter;
use karat_json::nearest;
use karat_traces::Kind;

use crate::error::Error;

/// The source of traces that `karat run` stores.
pub const RUN_SOURCE: &str = "run";

/// How many of the newest traces are asked for the tools they call, and how many tools a hint names.
const MAX_SAMPLED: u64 = 1000;
const MAX_NAMED: usize = 10;

/// A filter as a user gives it, with times in words.
#[derive(Debug, Clone, Default)]
pub struct TraceFilterRequest {
    /// A date, a time, or how long ago: `2026-11-16`, `2026-11-16T12:00Z`, `7d`.
    pub since: Option<String>,
    pub until: Option<String>,
    /// The names of kinds of sources, or [`RUN_SOURCE`].
    pub sources: Vec<String>,
    pub tools: Vec<String>,
    pub model: Option<String>,
    pub session: Option<String>,
    pub errors: Option<bool>,
    pub rating: Option<Rating>,
    pub rated: Option<bool>,
    pub text: Option<String>,
}

impl TraceFilterRequest {
    /// Checks the names of sources and reads the times.
    pub fn resolve(self, now: Timestamp) -> Result<TraceFilter, Error> {
        let time = |name: &str, text: Option<String>| {
            text.map(|text| parse_time(&format!("--{name}"), &text, now)).transpose()
        };
        for source in &self.sources {
            check_source(source)?;
        }
        Ok(TraceFilter {
            ids: Vec::new(),
            sources: self.sources,
            since: time("since", self.since)?,
            until: time("until", self.until)?,
            tools: self.tools,
            model: self.model,
            session: self.session,
            errors: self.errors,
            rating: self.rating,
            rated: self.rated,
            text: self.text.filter(|text| !text.is_empty()),
            limit: None,
        })
    }
}

/// Explains that no trace fits, and suggests a tool where no trace calls the one that is named.
pub async fn nothing_fits(filter: &TraceFilter, store: &impl TraceStore) -> Result<Error, Error> {
    let error = Error::nothing_selected("no trace is as the filters say");
    if filter.tools.is_empty() {
        return Ok(error);
    }
    let newest = TraceFilter { limit: Some(MAX_SAMPLED), ..TraceFilter::default() };
    let listed = store.list_traces(&newest).await?;
    let known: BTreeSet<&str> = listed.iter().flat_map(|one| one.head.tools.iter().map(String::as_str)).collect();
    let known: Vec<&str> = known.into_iter().collect();
    let Some(unknown) = filter.tools.iter().find(|tool| !known.contains(&tool.as_str())) else {
        return Ok(error);
    };
    Ok(match nearest(unknown, &known) {
        Some(near) => error.hint(format!("did you mean '{near}'?")),
        None if known.is_empty() => error.hint("no stored trace calls a tool"),
        None => {
            let some = known.iter().take(MAX_NAMED).copied().collect::<Vec<&str>>().join(", ");
            error.hint(format!("stored traces call: {some}"))
        }
    })
}

fn check_source(name: &str) -> Result<(), Error> {
    let mut names: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
    names.push(RUN_SOURCE);
    if names.contains(&name) { Ok(()) } else { Err(unknown_source(name, &names)) }
}

/// Finds a kind of source by its name.
pub fn source_kind(name: &str) -> Result<Kind, Error> {
    let names: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
    Kind::from_name(name).ok_or_else(|| unknown_source(name, &names))
}

fn unknown_source(name: &str, names: &[&str]) -> Error {
    let error = Error::invalid(format!("there is no kind of source called '{name}'"));
    match nearest(name, names) {
        Some(near) => error.hint(format!("did you mean '{near}'?")),
        None => error.hint(format!("one of: {}", names.join(", "))),
    }
}

/// Reads a time that a user gives: a moment, a day or a time of one in UTC, or how long ago. `name` is the option it is
/// for.
pub fn parse_time(name: &str, text: &str, now: Timestamp) -> Result<Timestamp, Error> {
    moment(text, now).ok_or_else(|| {
        Error::invalid(format!("{name} is no time: '{text}'"))
            .hint("a date (2026-11-16), a time (2026-11-16T12:00Z), or how long ago (30m, 12h, 7d, 2w)")
    })
}

fn moment(text: &str, now: Timestamp) -> Option<Timestamp> {
    let text = text.trim();
    if let Some(ago) = ago(text) {
        return now.checked_sub(ago).ok();
    }
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Some(moment);
    }
    let local = match text.parse::<DateTime>() {
        Ok(local) => local,
        // Minutes are enough for a person, with or without a zone.
        Err(_) => text.parse::<Date>().ok()?.to_datetime(jiff::civil::Time::midnight()),
    };
    Some(local.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

/// Reads a number with its unit.
fn ago(text: &str) -> Option<SignedDuration> {
    let unit = text.chars().last()?;
    let number = &text[..text.len() - unit.len_utf8()];
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let seconds: i64 = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 24 * 3600,
        'w' => 7 * 24 * 3600,
        _ => return None,
    };
    Some(SignedDuration::from_secs(number.parse::<i64>().ok()?.checked_mul(seconds)?))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("2026-11-16", Some("2026-11-16T00:00:00Z"))]
    #[case("2026-11-16T12:30", Some("2026-11-16T12:30:00Z"))]
    #[case("2026-11-16 12:30:15", Some("2026-11-16T12:30:15Z"))]
    #[case("2026-11-16T12:30Z", Some("2026-11-16T12:30:00Z"))]
    #[case("2026-11-16T12:30:15.5+02:00", Some("2026-11-16T10:30:15.5Z"))]
    #[case("90s", Some("2026-11-16T11:58:30Z"))]
    #[case("30m", Some("2026-11-16T11:30:00Z"))]
    #[case("12h", Some("2026-11-16T00:00:00Z"))]
    #[case("7d", Some("2026-11-09T12:00:00Z"))]
    #[case("2w", Some("2026-11-02T12:00:00Z"))]
    #[case("d", None)]
    #[case("-3d", None)]
    #[case("7y", None)]
    #[case("yesterday", None)]
    #[case("2026-13-01", None)]
    #[case("99999999999999999999d", None)]
    #[case("9223372036854775807w", None)]
    #[case("999999999999d", None)]
    #[case("日", None)]
    #[case("", None)]
    fn reads_times(#[case] text: &str, #[case] expected: Option<&str>) {
        let now: Timestamp = "2026-11-16T12:00:00Z".parse().expect("a time");
        assert_eq!(moment(text, now), expected.map(|time| time.parse().expect("a time")), "{text}");
    }

    #[test]
    fn resolves_sources_and_empty_text() {
        let request = TraceFilterRequest { text: Some(String::new()), ..TraceFilterRequest::default() };
        assert_eq!(request.resolve(Timestamp::UNIX_EPOCH).expect("a filter"), TraceFilter::default());
        let sources = vec![RUN_SOURCE.to_owned(), "otlp".to_owned()];
        let request = TraceFilterRequest { sources: sources.clone(), ..TraceFilterRequest::default() };
        assert_eq!(request.resolve(Timestamp::UNIX_EPOCH).expect("a filter").sources, sources);
        let request = TraceFilterRequest { sources: vec!["langfuze".to_owned()], ..TraceFilterRequest::default() };
        let error = request.resolve(Timestamp::UNIX_EPOCH).expect_err("no such source");
        assert_eq!(error.hints, ["did you mean 'langfuse'?".into()]);
    }
}
