//! What an execution may use, as people set it.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::Limits;
use karat_json::{ObjectReader, Path, Problems, read_positive_count};

const LARGEST_TIME_MS: u64 = 5000;
const LARGEST_MEMORY_MB: u64 = 50;

/// Limits that are lower than the largest, where somebody wants that.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LowerLimits {
    /// How long a function may take for a trace, in milliseconds: 5000 if not given, which is the most.
    #[schemars(range(min = 1, max = 5000))]
    pub time_ms: Option<u64>,
    /// How much it may allocate, in megabytes: 50 if not given, which is the most.
    #[schemars(range(min = 1, max = 50))]
    pub memory_mb: Option<u64>,
}

impl LowerLimits {
    pub fn read(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        let mut object = ObjectReader::open(value, path, problems)?;
        let time_ms = object.nullable("timeMs", path, problems, |value, path, problems| {
            read_at_most(LARGEST_TIME_MS, value, path, problems)
        });
        let memory_mb = object.nullable("memoryMb", path, problems, |value, path, problems| {
            read_at_most(LARGEST_MEMORY_MB, value, path, problems)
        });
        object.close(path, problems);
        Some(Self { time_ms, memory_mb })
    }

    /// Returns these limits, and the others' where these say nothing.
    #[must_use]
    pub fn or(self, others: Self) -> Self {
        Self { time_ms: self.time_ms.or(others.time_ms), memory_mb: self.memory_mb.or(others.memory_mb) }
    }

    /// Returns the limits, or the largest that could have been asked for: of time in milliseconds, or of memory in
    /// megabytes.
    pub fn limits(self) -> Result<Limits, TooLarge> {
        let time_ms = self.time_ms.unwrap_or(LARGEST_TIME_MS);
        let memory_mb = self.memory_mb.unwrap_or(LARGEST_MEMORY_MB);
        if !(1..=LARGEST_TIME_MS).contains(&time_ms) {
            return Err(TooLarge::TimeMs(LARGEST_TIME_MS));
        }
        let memory = usize::try_from(memory_mb).ok().filter(|_| (1..=LARGEST_MEMORY_MB).contains(&memory_mb));
        let memory = memory.ok_or(TooLarge::MemoryMb(LARGEST_MEMORY_MB))?;
        Ok(Limits { time: Duration::from_millis(time_ms), memory_bytes: memory << 20 })
    }
}

/// A limit that is out of its range, which is from 1 to this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TooLarge {
    TimeMs(u64),
    MemoryMb(u64),
}

fn read_at_most(largest: u64, value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<u64> {
    let count = read_positive_count(value, path, problems)?;
    if count > largest {
        problems.at(path, format!("{} must be at most {largest}, found {count}", path.name()));
        return None;
    }
    Some(count)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_said_is_as_large_as_can_be() {
        assert_eq!(LowerLimits::default().limits(), Ok(Limits::LARGEST));
        let flags = LowerLimits { time_ms: Some(20), memory_mb: None };
        let file = LowerLimits { time_ms: Some(30), memory_mb: Some(4) };
        let limits = Limits { time: Duration::from_millis(20), memory_bytes: 4 << 20 };
        assert_eq!(flags.or(file).limits(), Ok(limits));
    }

    #[test]
    fn nobody_gets_more_than_the_largest() {
        let too_long = LowerLimits { time_ms: Some(5001), memory_mb: None };
        assert_eq!(too_long.limits(), Err(TooLarge::TimeMs(5000)));
        let too_large = LowerLimits { time_ms: None, memory_mb: Some(u64::MAX) };
        assert_eq!(too_large.limits(), Err(TooLarge::MemoryMb(50)));
        let none = LowerLimits { time_ms: None, memory_mb: Some(0) };
        assert_eq!(none.limits(), Err(TooLarge::MemoryMb(50)));
        let mut problems = Problems::default();
        LowerLimits::read(&json!({"timeMs": 5001, "memoryMB": 1}), &Path::Root, &mut problems);
        let messages: Vec<String> = problems.into_list().into_iter().map(|problem| problem.message).collect();
        assert_eq!(messages, ["'timeMs' must be at most 5000, found 5001", "unknown key 'memoryMB'"]);
    }
}
