//! Estimates with confidence intervals.

use schemars::JsonSchema;
use serde::Serialize;

use karat_core::statistics::{Z_95, rate, wilson};

/// A value with its 95% confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Estimate {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

impl Estimate {
    /// Returns a proportion with its Wilson interval; `None` if `whole` is 0.
    pub fn proportion(part: u64, whole: u64) -> Option<Self> {
        let (part, whole) = (to_usize(part), to_usize(whole));
        let interval = wilson(part, whole)?;
        Some(Self { value: rate(part, whole)?, low: interval.low, high: interval.high })
    }

    /// Returns an agreement coefficient with the interval from its standard error, clamped to -1..=1.
    pub(super) fn coefficient(value: f64, standard_error: f64) -> Self {
        let margin = Z_95 * standard_error;
        Self { value, low: (value - margin).max(-1.0), high: (value + margin).min(1.0) }
    }

    /// Returns a coefficient of unknown precision: its interval is the whole range.
    pub(super) fn with_full_interval(value: f64) -> Self {
        Self { value, low: -1.0, high: 1.0 }
    }
}

/// Converts a count to `usize`, saturating.
pub(super) fn to_usize(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
pub(super) fn to_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clamps_coefficients() {
        assert_eq!(Estimate::coefficient(0.9, 0.2).high.to_bits(), 1.0_f64.to_bits());
        assert_eq!(Estimate::coefficient(-0.9, 0.2).low.to_bits(), (-1.0_f64).to_bits());
        assert_eq!(Estimate::proportion(0, 0), None);
    }
}
