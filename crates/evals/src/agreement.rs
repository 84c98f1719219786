//! Agreement of verdicts with people's ratings.
//!
//! Every figure has a confidence interval, and there is no figure without data. Only the four basic operations and
//! square roots are used, so that results are bit-identical on every machine.

mod comparison;
mod counts;
mod estimate;
mod figures;
mod kappa;
mod raters;
mod refinement;
mod report;
mod thresholds;
mod trend;

pub use comparison::{Change, ChangedVerdict, Direction, VerdictPair, VersionComparison, VersionFigures};
pub use counts::{AgreementCounts, AgreementDay};
pub use estimate::Estimate;
pub use figures::Figures;
pub use kappa::cohen_kappa;
pub use raters::{Rater, RaterAgreement, RatingPattern, krippendorff_alpha};
pub use refinement::{
    Candidate, RatedVerdict, RatingCounts, Refinement, RefusedCode, SetAgreement, SplitAgreement, rank,
};
pub use report::{AgreementReport, ContradictionList, EvalAgreement, ResolvedContradiction, VersionAgreement};
pub use thresholds::{Limits, Metric, ThresholdCheck, Thresholds};
pub use trend::{LatestWeek, Trend, WeekAgreement};
