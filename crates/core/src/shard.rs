//! Shards: parts of a run, chosen by a stable hash of the case ids.

use std::fmt;
use std::str::FromStr;

use karat_json::hash::short_hash;
use serde::Deserialize;

/// One of `count` parts of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Shard {
    /// From 1.
    pub number: usize,
    pub count: usize,
}

/// The error for a string that is not a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected NUMBER/COUNT with a number from 1 to the count, such as 2/4")]
pub struct InvalidShard;

impl Shard {
    /// Whether a case belongs to this shard. The shard of a case is the same on every machine and in every version.
    pub fn contains(self, case_id: &str) -> bool {
        let hash = u64::from_str_radix(&short_hash(case_id.as_bytes()), 16).unwrap_or_default();
        hash % self.count as u64 == self.number as u64 - 1
    }
}

impl FromStr for Shard {
    type Err = InvalidShard;

    fn from_str(text: &str) -> Result<Self, InvalidShard> {
        let (number, count) = text.split_once('/').ok_or(InvalidShard)?;
        let read = |digits: &str| digits.parse::<usize>().map_err(|_| InvalidShard);
        let shard = Self { number: read(number)?, count: read(count)? };
        if (1..=shard.count).contains(&shard.number) { Ok(shard) } else { Err(InvalidShard) }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.number, self.count)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("1/1", Some((1, 1)))]
    #[case("2/4", Some((2, 4)))]
    #[case("0/4", None)]
    #[case("5/4", None)]
    #[case("1/0", None)]
    #[case("2", None)]
    #[case("a/b", None)]
    #[case("", None)]
    fn parses_shards(#[case] text: &str, #[case] expected: Option<(usize, usize)>) {
        assert_eq!(text.parse::<Shard>().ok().map(|shard| (shard.number, shard.count)), expected);
    }

    #[test]
    fn every_case_is_in_one_shard() {
        let mut sizes = [0; 4];
        for id in (0..1000).map(|number| format!("gs-tool-{number:03}")) {
            let shards: Vec<usize> =
                (1..=4).filter(|number| Shard { number: *number, count: 4 }.contains(&id)).collect();
            assert_eq!(shards.len(), 1, "{id}");
            sizes[shards[0] - 1] += 1;
        }
        assert!(sizes.iter().all(|size| (200..300).contains(size)), "{sizes:?}");
    }

    #[test]
    fn the_shard_of_an_id_never_changes() {
        // SHA-256 of "gs-tool-001", first twelve digits, modulo 4. Results of other versions must stay mergeable.
        let number = (1..=4).find(|number| Shard { number: *number, count: 4 }.contains("gs-tool-001"));
        assert_eq!(number, Some(2));
    }
}
