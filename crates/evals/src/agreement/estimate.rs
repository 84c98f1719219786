//! A figure and how sure it is.

use schemars::JsonSchema;
use serde::Serialize;

use karat_core::statistics::{Z_95, rate, wilson};

/// A figure with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Estimate {
    pub value: f64,
    /// Where the interval begins.
    pub low: f64,
    /// Where it ends.
    pub high: f64,
}

impl Estimate {
    /// Returns a share with Wilson's interval; none of nothing.
    pub fn share(part: u64, whole: u64) -> Option<Self> {
        let (part, whole) = (size(part), size(whole));
        let interval = wilson(part, whole)?;
        Some(Self { value: rate(part, whole)?, low: interval.low, high: interval.high })
    }

    /// Returns a coefficient of agreement with the interval that its standard error gives, as far as there are such
    /// coefficients: none is below -1 or above 1.
    pub(super) fn coefficient(value: f64, standard_error: f64) -> Self {
        let half = Z_95 * standard_error;
        Self { value, low: (value - half).max(-1.0), high: (value + half).min(1.0) }
    }

    /// Returns a coefficient of which nobody can say how sure it is: its interval is everything.
    pub(super) fn unsure(value: f64) -> Self {
        Self { value, low: -1.0, high: 1.0 }
    }
}

/// Returns a count as memory counts; more than fits is as good as endless.
pub(super) fn size(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
pub(super) fn number(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coefficients_end_at_one() {
        assert_eq!(Estimate::coefficient(0.9, 0.2).high.to_bits(), 1.0_f64.to_bits());
        assert_eq!(Estimate::coefficient(-0.9, 0.2).low.to_bits(), (-1.0_f64).to_bits());
        assert_eq!(Estimate::share(0, 0), None);
    }
}
