//! Execution limits as users set them.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::Limits;
use karat_json::{ObjectReader, Path, Problems, read_positive_count};

const MAX_TIME_MS: u64 = 5000;
const MAX_MEMORY_MB: u64 = 50;

/// Limits set by the user, each at most the maximum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LowerLimits {
    /// Time limit for a function on one trace, in milliseconds (default and maximum: 5000).
    #[schemars(range(min = 1, max = 5000))]
    pub time_ms: Option<u64>,
    /// Memory limit, in megabytes (default and maximum: 50).
    #[schemars(range(min = 1, max = 50))]
    pub memory_mb: Option<u64>,
}

impl LowerLimits {
    pub fn read(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        let mut object = ObjectReader::open(value, path, problems)?;
        let time_ms = object.nullable("timeMs", path, problems, |value, path, problems| {
            read_count_up_to(MAX_TIME_MS, value, path, problems)
        });
        let memory_mb = object.nullable("memoryMb", path, problems, |value, path, problems| {
            read_count_up_to(MAX_MEMORY_MB, value, path, problems)
        });
        object.close(path, problems);
        Some(Self { time_ms, memory_mb })
    }

    /// Fills unset limits from `others`.
    #[must_use]
    pub fn or(self, others: Self) -> Self {
        Self { time_ms: self.time_ms.or(others.time_ms), memory_mb: self.memory_mb.or(others.memory_mb) }
    }

    /// Returns the limits, with the maximum for those that are unset.
    pub fn limits(self) -> Result<Limits, LimitOutOfRange> {
        let time_ms = self.time_ms.unwrap_or(MAX_TIME_MS);
        let memory_mb = self.memory_mb.unwrap_or(MAX_MEMORY_MB);
        if !(1..=MAX_TIME_MS).contains(&time_ms) {
            return Err(LimitOutOfRange::TimeMs(MAX_TIME_MS));
        }
        let memory = usize::try_from(memory_mb).ok().filter(|_| (1..=MAX_MEMORY_MB).contains(&memory_mb));
        let memory = memory.ok_or(LimitOutOfRange::MemoryMb(MAX_MEMORY_MB))?;
        Ok(Limits { time: Duration::from_millis(time_ms), memory_bytes: memory << 20 })
    }
}

/// A limit outside its range, which is from 1 to the given maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitOutOfRange {
    TimeMs(u64),
    MemoryMb(u64),
}

fn read_count_up_to(max: u64, value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<u64> {
    let count = read_positive_count(value, path, problems)?;
    if count > max {
        problems.at(path, format!("{} must be at most {max}, found {count}", path.name()));
        return None;
    }
    Some(count)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unset_limits_are_the_maximum() {
        assert_eq!(LowerLimits::default().limits(), Ok(Limits::MAX));
        let flags = LowerLimits { time_ms: Some(20), memory_mb: None };
        let file = LowerLimits { time_ms: Some(30), memory_mb: Some(4) };
        let limits = Limits { time: Duration::from_millis(20), memory_bytes: 4 << 20 };
        assert_eq!(flags.or(file).limits(), Ok(limits));
    }

    #[test]
    fn rejects_limits_out_of_range() {
        let too_long = LowerLimits { time_ms: Some(5001), memory_mb: None };
        assert_eq!(too_long.limits(), Err(LimitOutOfRange::TimeMs(5000)));
        let too_large = LowerLimits { time_ms: None, memory_mb: Some(u64::MAX) };
        assert_eq!(too_large.limits(), Err(LimitOutOfRange::MemoryMb(50)));
        let zero = LowerLimits { time_ms: None, memory_mb: Some(0) };
        assert_eq!(zero.limits(), Err(LimitOutOfRange::MemoryMb(50)));
        let mut problems = Problems::default();
        LowerLimits::read(&json!({"timeMs": 5001, "memoryMB": 1}), &Path::Root, &mut problems);
        let messages: Vec<String> = problems.into_list().into_iter().map(|problem| problem.message).collect();
        assert_eq!(messages, ["'timeMs' must be at most 5000, found 5001", "unknown key 'memoryMB'"]);
    }
}
