//! Flags that select stored traces.

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use karat_core::rating::Rating;
use karat_core::stored::TraceFilter;
use karat_workflows::trace_filter::{TraceFilterRequest, TraceOrigin};

use super::choice::Choice;
use crate::failure::Failure;

/// Filters of stored traces; a trace must match all of them.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Trace filters (combined with AND)")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct TraceFilterArgs {
    /// Traces since this time (UTC unless it has a time zone): 2026-11-16, 2026-11-16T12:00Z, or 30m, 12h, 7d, 2w ago
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Traces before this time
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Traces that called this tool (repeatable, all must match)
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Vec<String>,
    /// Traces of this model
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Traces of this session
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Traces from this source (repeatable, any may match): production (all but test runs), runs, all, or a format such
    /// as otlp or langfuse [default: production]
    #[arg(long, value_name = "KIND")]
    pub(crate) source: Vec<String>,
    /// Traces with an error
    #[arg(long, conflicts_with = "no_errors")]
    pub(crate) errors: bool,
    /// Traces without errors
    #[arg(long)]
    pub(crate) no_errors: bool,
    /// Traces with this overall rating
    #[arg(long, value_name = "RATING", conflicts_with = "unrated")]
    pub(crate) rating: Option<RatingName>,
    /// Rated traces
    #[arg(long, conflicts_with = "unrated")]
    pub(crate) rated: bool,
    /// Unrated traces
    #[arg(long)]
    pub(crate) unrated: bool,
    /// Traces with this text in their name, or near the start of their first message or last answer
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) search: Option<String>,
}

impl TraceFilterArgs {
    /// Returns the filter of the flags, without ids and limit.
    pub(crate) fn filter(&self, now: Timestamp) -> Result<TraceFilter, Failure> {
        let yes_or_no = |yes: bool, no: bool| (yes || no).then_some(yes);
        let request = TraceFilterRequest {
            since: self.since.clone(),
            until: self.until.clone(),
            sources: self.source.clone(),
            tools: self.tool.clone(),
            model: self.model.clone(),
            session: self.session.clone(),
            errors: yes_or_no(self.errors, self.no_errors),
            rating: self.rating.map(Into::into),
            rated: yes_or_no(self.rated, self.unrated),
            text: self.search.clone(),
        };
        Ok(request.resolve(now)?)
    }

    /// Whether any flag restricts the traces.
    pub(crate) fn has_filters(&self) -> bool {
        let filter = |args: &Self| args.filter(Timestamp::UNIX_EPOCH).ok();
        filter(self).is_none_or(|selected| Some(selected) != filter(&Self::default()))
    }
}

/// The values of `--source` for traces of either kind.
pub(super) const ORIGINS: &[Choice<TraceOrigin>] = &[
    ("production", None, TraceOrigin::Production),
    ("runs", None, TraceOrigin::Runs),
    ("all", None, TraceOrigin::All),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RatingName {
    #[value(alias = "positive")]
    Good,
    #[value(alias = "negative")]
    Bad,
    Neutral,
}

impl From<RatingName> for Rating {
    fn from(name: RatingName) -> Self {
        match name {
            RatingName::Good => Rating::Positive,
            RatingName::Bad => Rating::Negative,
            RatingName::Neutral => Rating::Neutral,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_narrow_the_filter() {
        let args = TraceFilterArgs { no_errors: true, unrated: true, ..TraceFilterArgs::default() };
        let filter = args.filter(Timestamp::UNIX_EPOCH).expect("a filter");
        assert_eq!((filter.errors, filter.rated), (Some(false), Some(false)));
        assert!(args.has_filters() && !TraceFilterArgs::default().has_filters());
    }
}
