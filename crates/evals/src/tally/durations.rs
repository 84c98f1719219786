//! A histogram of durations in constant memory.

use std::time::Duration;

/// Buckets per power of two, as a power of two.
const PART_BITS: u32 = 5;

/// Relative precision: one part in this many.
const PARTS: u64 = 1 << PART_BITS;

/// Number of buckets, enough for every `u64` of nanoseconds.
const BUCKETS: usize = (65 - PART_BITS as usize) << PART_BITS;

/// A histogram with fixed buckets, each about 3% wide.
#[derive(Debug, Clone)]
pub struct Durations {
    counts: Vec<u64>,
    total: u64,
    max: u64,
}

impl Default for Durations {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS], total: 0, max: 0 }
    }
}

impl Durations {
    pub fn add(&mut self, duration: Duration) {
        let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        if let Some(count) = self.counts.get_mut(bucket(nanoseconds)) {
            *count += 1;
            self.total += 1;
            self.max = self.max.max(nanoseconds);
        }
    }

    /// Returns the percentile by nearest rank: the upper bound of its bucket.
    pub fn percentile(&self, percent: u8) -> Option<Duration> {
        let rank = (u128::from(self.total) * u128::from(percent)).div_ceil(100).max(1);
        let mut seen = 0;
        let index = self.counts.iter().position(|count| {
            seen += u128::from(*count);
            seen >= rank
        })?;
        Some(Duration::from_nanos(highest(index).min(self.max)))
    }
}

/// Returns the bucket of a value: small values have one each, larger ones share [`PARTS`] per power of two.
fn bucket(value: u64) -> usize {
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(PART_BITS + 1);
    let index = u64::from(shift) * PARTS + (value >> shift);
    usize::try_from(index).unwrap_or(BUCKETS - 1)
}

/// Returns the largest value of a bucket.
fn highest(index: usize) -> u64 {
    let index = index as u64;
    let shift = (index / PARTS).saturating_sub(1);
    let lowest = u128::from(index - shift * PARTS) << shift;
    u64::try_from(lowest + (1 << shift) - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_empty_histogram_has_no_percentile() {
        assert_eq!(Durations::default().percentile(50), None);
    }

    #[test]
    fn percentiles_use_the_nearest_rank() {
        let mut durations = Durations::default();
        (1..=20).for_each(|value| durations.add(Duration::from_nanos(value)));
        let at = |percent| durations.percentile(percent).map(|duration| duration.as_nanos());
        assert_eq!((at(0), at(50), at(99), at(100)), (Some(1), Some(10), Some(20), Some(20)));
    }

    #[test]
    fn the_largest_duration_has_a_bucket() {
        let mut durations = Durations::default();
        durations.add(Duration::MAX);
        durations.add(Duration::ZERO);
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
        assert_eq!(durations.percentile(99), Some(Duration::from_nanos(u64::MAX)));
    }

    proptest! {
        #[test]
        fn a_value_lies_in_its_bucket(value in any::<u64>(), shift in 0_u32..64) {
            let value = value >> shift;
            let index = bucket(value);
            prop_assert!(value <= highest(index));
            prop_assert!(index == 0 || value > highest(index - 1));
            prop_assert!(highest(index) - value <= value / PARTS);
        }
    }
}
