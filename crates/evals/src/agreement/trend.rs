//! Agreement over time.

use jiff::civil::Date;
use schemars::JsonSchema;
use serde::Serialize;

use super::counts::{AgreementCounts, AgreementDay};
use super::estimate::{Estimate, to_usize};
use karat_core::statistics::{JudgedTrials, SIGNIFICANCE, fisher_test};

/// Maximum number of weeks reported.
const MAX_WEEKS: usize = 8;

/// Agreement by the week in which traces began (or were stored, if they have no start time), oldest first: the latest
/// eight weeks with compared verdicts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Trend {
    pub weeks: Vec<WeekAgreement>,
    /// The latest week compared with the earlier ones; null if there are none.
    pub latest: Option<LatestWeek>,
}

/// One week's agreement.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct WeekAgreement {
    /// ISO 8601 year and week, such as `2026-W46`.
    pub week: String,
    /// The week's Monday.
    #[schemars(with = "String")]
    pub from: Date,
    /// Number of verdicts with a rating to compare with.
    pub compared: u64,
    pub contradictions: u64,
    pub accuracy: Option<Estimate>,
}

/// Comparison of the latest week with the earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct LatestWeek {
    /// Accuracy of the earlier weeks together.
    pub before: f64,
    pub now: f64,
    /// Probability of a difference at least this large by chance (Fisher's exact test).
    pub p_value: f64,
    /// Whether `p_value` is below 0.05.
    pub significant: bool,
}

impl Trend {
    /// Aggregates days into weeks.
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
        let weeks = &weeks[weeks.len().saturating_sub(MAX_WEEKS)..];
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
        accuracy: Estimate::proportion(counts.compared() - counts.contradictions(), counts.compared()),
    }
}

/// Returns the Monday of a day's week; the day itself if that Monday is out of range.
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
    let judged = |counts: &AgreementCounts| JudgedTrials {
        passed: to_usize(counts.compared() - counts.contradictions()),
        failed: to_usize(counts.contradictions()),
    };
    let (before, now) = (judged(&before), judged(newest));
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
    fn aggregates_days_into_iso_weeks() {
        // A Sunday and the Monday after it; the last days of 2025 are in the first week of 2026.
        let days = [day(date(2025, 12, 28), 1, 0), day(date(2025, 12, 29), 2, 1), day(date(2026, 1, 4), 3, 0)];
        let trend = Trend::of(&days);
        let weeks: Vec<_> = trend.weeks.iter().map(|week| (week.week.as_str(), week.from, week.compared)).collect();
        assert_eq!(weeks, [("2025-W52", date(2025, 12, 22), 1), ("2026-W01", date(2025, 12, 29), 6)]);
        assert_eq!(trend.weeks[1].accuracy, Estimate::proportion(5, 6));
        let latest = trend.latest.expect("a week before");
        assert!(!latest.significant && (latest.p_value - 1.0).abs() < 1e-9);
    }

    #[test]
    fn reports_the_latest_weeks() {
        let days: Vec<AgreementDay> = (0..12)
            .map(|week| day(date(2026, 1, 5).checked_add(jiff::Span::new().weeks(week)).unwrap(), 20, 0))
            .collect();
        assert_eq!(Trend::of(&days).weeks.len(), 8);
        assert_eq!(Trend::of(&days).weeks[7].week, "2026-W13");
        let mut declining = days;
        declining[11] = day(declining[11].day, 10, 10);
        let latest = Trend::of(&declining).latest.expect("weeks before");
        assert!(latest.significant && latest.now < latest.before);
        assert_eq!(Trend::of(&[]), Trend::default());
    }

    #[test]
    fn skips_weeks_without_comparisons() {
        let empty =
            AgreementDay { day: date(2026, 3, 2), counts: AgreementCounts { unrated: 3, ..Default::default() } };
        assert_eq!(Trend::of(&[empty]), Trend::default());
        assert_eq!(Trend::of(&[day(Date::MIN, 1, 0)]).weeks.len(), 1);
    }
}
