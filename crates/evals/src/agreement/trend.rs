//! Whether agreement gets better or worse with the traces that come in.

use jiff::civil::Date;
use schemars::JsonSchema;
use serde::Serialize;

use super::counts::{AgreementCounts, AgreementDay};
use super::estimate::{Estimate, size};
use karat_core::statistics::{SIGNIFICANCE, Tries, fisher_test};

/// How many weeks are told of.
const MOST_WEEKS: usize = 8;

/// The agreement by the week in which traces began, or came into the store where they do not say when, the oldest first:
/// the newest eight weeks with compared verdicts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Trend {
    pub weeks: Vec<WeekAgreement>,
    /// The newest week beside all the other ones here; null where there are no others.
    pub latest: Option<LatestWeek>,
}

/// One week's agreement.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct WeekAgreement {
    /// The year and week of ISO 8601, as `2026-W46`.
    pub week: String,
    /// The week's Monday.
    #[schemars(with = "String")]
    pub from: Date,
    /// How many verdicts have a rating to be compared with.
    pub compared: u64,
    pub contradictions: u64,
    pub accuracy: Option<Estimate>,
}

/// Whether the newest week differs from those before.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct LatestWeek {
    /// The accuracy of the weeks before, together.
    pub before: f64,
    pub now: f64,
    /// How likely chance alone shows a difference like this one, by Fisher's exact test.
    pub p_value: f64,
    /// Whether chance is unlikely enough (under 0.05).
    pub significant: bool,
}

impl Trend {
    /// Sums days up to weeks.
    pub fn of(days: &[AgreementDay]) -> Self {
        let mut weeks: Vec<(Date, AgreementCounts)> = Vec::new();
        let mut days: Vec<&AgreementDay> = days.iter().filter(|day| day.counts.compared() > 0).collect();
        days.sort_by_key(|day| day.day);
        for day in days {
            let monday = monday(day.day);
            match weeks.last_mut() {
                Some((week, counts)) if *week == monday => counts.add(&day.counts),
                _ => weeks.push((monday, day.counts)),
            }
        }
        let weeks = &weeks[weeks.len().saturating_sub(MOST_WEEKS)..];
        Self { weeks: weeks.iter().map(|(monday, counts)| week(*monday, counts)).collect(), latest: latest(weeks) }
    }
}

fn week(monday: Date, counts: &AgreementCounts) -> WeekAgreement {
    let iso = monday.iso_week_date();
    WeekAgreement {
        week: format!("{:04}-W{:02}", iso.year(), iso.week()),
        from: monday,
        compared: counts.compared(),
        contradictions: counts.contradictions(),
        accuracy: Estimate::share(counts.compared() - counts.contradictions(), counts.compared()),
    }
}

/// Returns the Monday of a day's week; the first days of all time have none, and are their own.
fn monday(day: Date) -> Date {
    let since = i64::from(day.weekday().to_monday_zero_offset());
    day.checked_sub(jiff::Span::new().days(since)).unwrap_or(day)
}

fn latest(weeks: &[(Date, AgreementCounts)]) -> Option<LatestWeek> {
    let ((_, newest), others) = weeks.split_last()?;
    let mut before = AgreementCounts::default();
    for (_, counts) in others {
        before.add(counts);
    }
    let tries = |counts: &AgreementCounts| Tries {
        passed: size(counts.compared() - counts.contradictions()),
        failed: size(counts.contradictions()),
    };
    let (before, now) = (tries(&before), tries(newest));
    let p_value = fisher_test(before, now);
    Some(LatestWeek { before: before.rate()?, now: now.rate()?, p_value, significant: p_value < SIGNIFICANCE })
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    fn day(day: Date, right: u64, wrong: u64) -> AgreementDay {
        let counts = AgreementCounts {
            passed_positive: right,
            failed_positive: wrong,
            unrated: 7,
            ..AgreementCounts::default()
        };
        AgreementDay { day, counts }
    }

    #[test]
    fn days_become_weeks_of_their_iso_year() {
        // A Sunday and the Monday after it; the last days of 2025 are in the first week of 2026.
        let days = [day(date(2025, 12, 28), 1, 0), day(date(2025, 12, 29), 2, 1), day(date(2026, 1, 4), 3, 0)];
        let trend = Trend::of(&days);
        let found: Vec<_> = trend.weeks.iter().map(|week| (week.week.as_str(), week.from, week.compared)).collect();
        assert_eq!(found, [("2025-W52", date(2025, 12, 22), 1), ("2026-W01", date(2025, 12, 29), 6)]);
        assert_eq!(trend.weeks[1].accuracy, Estimate::share(5, 6));
        let latest = trend.latest.expect("a week before");
        assert!(!latest.significant && (latest.p_value - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_newest_weeks_are_told_of() {
        let days: Vec<AgreementDay> = (0..12)
            .map(|week| day(date(2026, 1, 5).checked_add(jiff::Span::new().weeks(week)).unwrap(), 20, 0))
            .collect();
        assert_eq!(Trend::of(&days).weeks.len(), 8);
        assert_eq!(Trend::of(&days).weeks[7].week, "2026-W13");
        let mut fallen = days;
        fallen[11] = day(fallen[11].day, 10, 10);
        let latest = Trend::of(&fallen).latest.expect("weeks before");
        assert!(latest.significant && latest.now < latest.before);
        assert_eq!(Trend::of(&[]), Trend::default());
    }

    #[test]
    fn weeks_without_comparisons_are_passed_over() {
        let empty =
            AgreementDay { day: date(2026, 3, 2), counts: AgreementCounts { unrated: 3, ..Default::default() } };
        assert_eq!(Trend::of(&[empty]), Trend::default());
        assert_eq!(Trend::of(&[day(Date::MIN, 1, 0)]).weeks.len(), 1);
    }
}
