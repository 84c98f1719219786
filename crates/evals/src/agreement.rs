//! Is the eval right? Verdicts measured against what people said.
//!
//! A figure is worth what its interval is worth, so none stands without one. Where there is nothing to measure, there is
//! no figure. Only the four operations and square roots are used, which give the same bits on every machine.

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
    Candidate, PartAgreement, PartSize, PartedAgreement, RatedVerdict, Refinement, RefusedCode, rank,
};
pub use report::{AgreementReport, ContradictionList, EvalAgreement, ResolvedContradiction, VersionAgreement};
pub use thresholds::{Limits, Measured, ThresholdCheck, Thresholds};
pub use trend::{LatestWeek, Trend, WeekAgreement};
