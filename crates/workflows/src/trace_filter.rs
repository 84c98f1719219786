//! Filters for stored traces.

use std::collections::BTreeSet;

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use karat_core::port::TraceStore;
use karat_core::rating::Rating;
use karat_core::stored::TraceFilter;
use karat_json::nearest;
use karat_traces::TraceFormat;

use crate::error::Error;
use crate::hint::Hint;

/// The source of traces that `karat run` stores.
pub const RUN_SOURCE: &str = "run";

/// Whether traces come from test runs or from elsewhere.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TraceOrigin {
    /// Imported or received.
    #[default]
    Production,
    /// Stored by `karat run`.
    Runs,
    All,
}

impl TraceOrigin {
    pub const ALL: [Self; 3] = [Self::Production, Self::Runs, Self::All];

    pub fn name(self) -> &'static str {
        match self {
            Self::Production => "production",
            Self::Runs => "runs",
            Self::All => "all",
        }
    }

    /// Returns the source to select, and the one to exclude.
    pub(crate) fn sources(self) -> (Option<String>, Option<String>) {
        let runs = || Some(RUN_SOURCE.to_owned());
        match self {
            Self::Production => (None, runs()),
            Self::Runs => (runs(), None),
            Self::All => (None, None),
        }
    }
}

/// Number of traces to sample for tool names.
const MAX_SAMPLED_TRACES: u64 = 1000;

/// Maximum number of tools in a hint.
const MAX_LISTED_TOOLS: usize = 10;

/// A filter as given by the user, with unparsed times.
#[derive(Debug, Clone, Default)]
pub struct TraceFilterRequest {
    /// A date, a time or an age: `2026-11-16`, `2026-11-16T12:00Z`, `7d`.
    pub since: Option<String>,
    pub until: Option<String>,
    /// Names of source formats, [`RUN_SOURCE`], or names of a [`TraceOrigin`]; production traces if empty.
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
    /// Validates the sources and parses the times.
    pub fn resolve(self, now: Timestamp) -> Result<TraceFilter, Error> {
        let time = |name: &str, text: Option<String>| {
            text.map(|text| parse_time(&format!("--{name}"), &text, now)).transpose()
        };
        let (sources, excluded_source) = select_sources(self.sources)?;
        Ok(TraceFilter {
            ids: Vec::new(),
            sources,
            excluded_source,
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

/// Returns the error for a filter without matches. Suggests traces of test runs if they match, or a tool if no trace
/// calls one of the filter's tools.
pub async fn no_match_error(filter: &TraceFilter, store: &impl TraceStore) -> Result<Error, Error> {
    if filter.excluded_source.is_some() {
        let with_runs = TraceFilter { excluded_source: None, ..filter.clone() };
        if store.count_traces(&with_runs).await? > 0 {
            return Ok(Error::nothing_selected("only traces of test runs match").hint(Hint::SelectRunTraces));
        }
    }
    let error = Error::nothing_selected("no trace matches the filters");
    if filter.tools.is_empty() {
        return Ok(error);
    }
    let newest = TraceFilter { limit: Some(MAX_SAMPLED_TRACES), ..TraceFilter::default() };
    let traces = store.list_traces(&newest).await?;
    let known: BTreeSet<&str> = traces.iter().flat_map(|trace| trace.head.tools.iter().map(String::as_str)).collect();
    let known: Vec<&str> = known.into_iter().collect();
    let Some(unknown) = filter.tools.iter().find(|tool| !known.contains(&tool.as_str())) else {
        return Ok(error);
    };
    Ok(match nearest(unknown, &known) {
        Some(near) => error.hint(format!("did you mean '{near}'?")),
        None if known.is_empty() => error.hint("no stored trace calls a tool"),
        None => {
            let some = known.iter().take(MAX_LISTED_TOOLS).copied().collect::<Vec<&str>>().join(", ");
            error.hint(format!("stored traces call: {some}"))
        }
    })
}

/// Returns the sources to include, or the source to exclude.
fn select_sources(names: Vec<String>) -> Result<(Vec<String>, Option<String>), Error> {
    let formats = TraceFormat::ALL.iter().map(|kind| kind.name());
    let known: Vec<&str> =
        TraceOrigin::ALL.map(TraceOrigin::name).into_iter().chain(formats).chain([RUN_SOURCE]).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(unknown_name("source", unknown, &known));
    }
    let contains = |name: &str| names.iter().any(|other| other == name);
    let has_production = names.is_empty() || contains(TraceOrigin::Production.name());
    let has_runs = contains(TraceOrigin::Runs.name()) || contains(RUN_SOURCE);
    if contains(TraceOrigin::All.name()) || has_production && has_runs {
        return Ok((Vec::new(), None));
    }
    if has_production {
        return Ok((Vec::new(), Some(RUN_SOURCE.to_owned())));
    }
    let mut sources: Vec<String> = names.into_iter().filter(|name| *name != TraceOrigin::Runs.name()).collect();
    if has_runs && !sources.iter().any(|source| source == RUN_SOURCE) {
        sources.push(RUN_SOURCE.to_owned());
    }
    Ok((sources, None))
}

/// Returns the source format with this name.
pub fn source_kind(name: &str) -> Result<TraceFormat, Error> {
    let names: Vec<&str> = TraceFormat::ALL.iter().map(|kind| kind.name()).collect();
    TraceFormat::from_name(name).ok_or_else(|| unknown_name("trace format", name, &names))
}

fn unknown_name(kind: &str, name: &str, names: &[&str]) -> Error {
    let error = Error::invalid(format!("unknown {kind} '{name}'"));
    match nearest(name, names) {
        Some(near) => error.hint(format!("did you mean '{near}'?")),
        None => error.hint(format!("expected one of: {}", names.join(", "))),
    }
}

/// Parses a time: a timestamp, a date, a date and time in UTC, or an age. `name` is the option, for errors.
pub fn parse_time(name: &str, text: &str, now: Timestamp) -> Result<Timestamp, Error> {
    parse_timestamp(text, now).ok_or_else(|| {
        Error::invalid(format!("invalid time '{text}' for {name}"))
            .hint("expected a date (2026-11-16), a time (2026-11-16T12:00Z) or an age (30m, 12h, 7d, 2w)")
    })
}

fn parse_timestamp(text: &str, now: Timestamp) -> Option<Timestamp> {
    let text = text.trim();
    if let Some(age) = parse_age(text) {
        return now.checked_sub(age).ok();
    }
    if let Ok(timestamp) = text.parse::<Timestamp>() {
        return Some(timestamp);
    }
    let local = match text.parse::<DateTime>() {
        Ok(local) => local,
        Err(_) => text.parse::<Date>().ok()?.to_datetime(jiff::civil::Time::midnight()),
    };
    Some(local.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

/// Parses a number with a unit, such as `7d`.
fn parse_age(text: &str) -> Option<SignedDuration> {
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
    fn parses_times(#[case] text: &str, #[case] expected: Option<&str>) {
        let now: Timestamp = "2026-11-16T12:00:00Z".parse().expect("valid time");
        assert_eq!(parse_timestamp(text, now), expected.map(|time| time.parse().expect("valid time")), "{text}");
    }

    #[test]
    fn resolves_sources_and_empty_text() {
        let request = TraceFilterRequest { text: Some(String::new()), ..TraceFilterRequest::default() };
        let production = TraceFilter { excluded_source: Some(RUN_SOURCE.to_owned()), ..TraceFilter::default() };
        assert_eq!(request.resolve(Timestamp::UNIX_EPOCH).expect("valid filter"), production);
        let sources = vec![RUN_SOURCE.to_owned(), "otlp".to_owned()];
        let request = TraceFilterRequest { sources: sources.clone(), ..TraceFilterRequest::default() };
        assert_eq!(request.resolve(Timestamp::UNIX_EPOCH).expect("valid filter").sources, sources);
        let request = TraceFilterRequest { sources: vec!["langfuze".to_owned()], ..TraceFilterRequest::default() };
        let error = request.resolve(Timestamp::UNIX_EPOCH).expect_err("unknown source");
        assert_eq!(error.hints, ["did you mean 'langfuse'?".into()]);
    }

    #[rstest]
    #[case(&[], &[], Some("run"))]
    #[case(&["production", "otlp"], &[], Some("run"))]
    #[case(&["all"], &[], None)]
    #[case(&["runs", "production"], &[], None)]
    #[case(&["runs"], &["run"], None)]
    #[case(&["run", "otlp"], &["run", "otlp"], None)]
    fn selects_production_traces_by_default(
        #[case] names: &[&str],
        #[case] sources: &[&str],
        #[case] excluded: Option<&str>,
    ) {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let (selected, found_excluded) = select_sources(names).expect("known sources");
        assert_eq!(
            (selected.iter().map(String::as_str).collect::<Vec<_>>().as_slice(), found_excluded.as_deref()),
            (sources, excluded)
        );
    }
}
