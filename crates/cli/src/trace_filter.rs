//! Which stored traces are meant: from flags to the store's filter.

use std::collections::BTreeSet;

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use karat_core::port::TraceStore;
use karat_core::stored::TraceFilter;
use karat_json::nearest;
use karat_report::printable;
use karat_traces::Kind;

use crate::args::TraceFilterArgs;
use crate::failure::Failure;

/// How many of the newest traces are asked which tools there are, and how many tools a hint names.
const MOST_LOOKED_AT: u64 = 1000;
const MOST_NAMED: usize = 10;

/// The source of what `karat run` keeps.
pub(crate) const RUN_SOURCE: &str = "run";

impl TraceFilterArgs {
    /// Returns the filter that is meant, without ids and without a limit.
    pub(crate) fn filter(&self, now: Timestamp) -> Result<TraceFilter, Failure> {
        let time =
            |flag: &str, text: &Option<String>| text.as_deref().map(|text| flag_moment(flag, text, now)).transpose();
        for source in &self.source {
            known_source(source)?;
        }
        let either = |yes: bool, no: bool| (yes || no).then_some(yes);
        Ok(TraceFilter {
            ids: Vec::new(),
            sources: self.source.clone(),
            since: time("since", &self.since)?,
            until: time("until", &self.until)?,
            tools: self.tool.clone(),
            model: self.model.clone(),
            session: self.session.clone(),
            errors: either(self.errors, self.no_errors),
            rating: self.rating.map(Into::into),
            rated: either(self.rated, self.unrated),
            text: self.search.clone().filter(|text| !text.is_empty()),
            limit: None,
        })
    }

    /// Tells whether any trace is left out.
    pub(crate) fn is_narrow(&self) -> bool {
        let all = TraceFilter::default();
        self.filter(Timestamp::UNIX_EPOCH).map_or(true, |filter| filter != all)
    }
}

/// Says that no trace is meant, and which tool may be meant where no trace calls the one that is named.
pub(crate) async fn nothing_meant(filter: &TraceFilter, store: &impl TraceStore) -> Result<Failure, Failure> {
    let failure = Failure::nothing_selected("no trace is as the filters say");
    if filter.tools.is_empty() {
        return Ok(failure);
    }
    let newest = TraceFilter { limit: Some(MOST_LOOKED_AT), ..TraceFilter::default() };
    let listed = store.list_traces(&newest).await?;
    let known: BTreeSet<&str> = listed.iter().flat_map(|one| one.head.tools.iter().map(String::as_str)).collect();
    let known: Vec<&str> = known.into_iter().collect();
    let Some(unknown) = filter.tools.iter().find(|tool| !known.contains(&tool.as_str())) else {
        return Ok(failure);
    };
    Ok(match nearest(unknown, &known) {
        Some(near) => failure.hint(format!("did you mean '{}'?", printable(near))),
        None if known.is_empty() => failure.hint("no stored trace calls a tool"),
        None => {
            let some = known.iter().take(MOST_NAMED).copied().collect::<Vec<&str>>().join(", ");
            failure.hint(format!("stored traces call: {}", printable(&some)))
        }
    })
}

fn known_source(name: &str) -> Result<(), Failure> {
    let mut names: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
    names.push(RUN_SOURCE);
    if names.contains(&name) {
        return Ok(());
    }
    let failure = Failure::invalid(format!("there is no kind of source called '{name}'"));
    Err(match nearest(name, &names) {
        Some(near) => failure.hint(format!("did you mean '{near}'?")),
        None => failure.hint(format!("one of: {}", names.join(", "))),
    })
}

/// Reads the time that a flag gives.
pub(crate) fn flag_moment(flag: &str, text: &str, now: Timestamp) -> Result<Timestamp, Failure> {
    moment(text, now).ok_or_else(|| {
        Failure::invalid(format!("--{flag} is no time: '{text}'"))
            .hint("a date (2026-11-16), a time (2026-11-16T12:00Z), or how long ago (30m, 12h, 7d, 2w)")
    })
}

/// Reads a time as people say it: a moment, a day or a time of one in UTC, or how long ago.
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
    fn times_are_read_as_people_say_them(#[case] text: &str, #[case] expected: Option<&str>) {
        let now: Timestamp = "2026-11-16T12:00:00Z".parse().expect("a time");
        assert_eq!(moment(text, now), expected.map(|time| time.parse().expect("a time")), "{text}");
    }

    #[test]
    fn flags_narrow_the_filter() {
        let args = TraceFilterArgs { no_errors: true, unrated: true, ..TraceFilterArgs::default() };
        let filter = args.filter(Timestamp::UNIX_EPOCH).expect("a filter");
        assert_eq!((filter.errors, filter.rated), (Some(false), Some(false)));
        assert!(args.is_narrow() && !TraceFilterArgs::default().is_narrow());
        let args = TraceFilterArgs { source: vec!["langfuze".to_owned()], ..TraceFilterArgs::default() };
        let failure = args.filter(Timestamp::UNIX_EPOCH).expect_err("no such source");
        assert_eq!(failure.hints, ["did you mean 'langfuse'?"]);
    }
}
