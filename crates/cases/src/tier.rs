//! The tier of an eval file.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kind of an eval file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    Golden,
    Labeled,
    Regression,
    Rubric,
    Security,
    #[serde(other)]
    Unknown,
}

impl Tier {
    /// All tiers except `Unknown`.
    pub const NAMED: [Tier; 5] = [Tier::Golden, Tier::Labeled, Tier::Regression, Tier::Rubric, Tier::Security];

    pub fn name(self) -> &'static str {
        match self {
            Tier::Golden => "golden",
            Tier::Labeled => "labeled",
            Tier::Regression => "regression",
            Tier::Rubric => "rubric",
            Tier::Security => "security",
            Tier::Unknown => "unknown",
        }
    }

    /// Returns the name of evals of this tier in headings.
    pub fn evals(self) -> &'static str {
        match self {
            Tier::Golden => "golden evals",
            Tier::Labeled => "labeled evals",
            Tier::Regression => "regression evals",
            Tier::Rubric => "rubric evals",
            Tier::Security => "security evals",
            Tier::Unknown => "evals",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMED.into_iter().find(|tier| tier.name() == name)
    }

    /// Returns the tier in a name such as `x.golden.json`.
    pub fn from_file_name(name: &str) -> Option<Self> {
        let stem = name.strip_suffix(".json")?;
        let (_, middle) = stem.rsplit_once('.')?;
        Self::from_name(middle)
    }

    /// Returns the tier whose prefix all ids have.
    pub fn from_ids<'i>(mut ids: impl Iterator<Item = &'i str>) -> Option<Self> {
        let first = Self::from_id(ids.next()?)?;
        ids.all(|id| Self::from_id(id) == Some(first)).then_some(first)
    }

    fn from_id(id: &str) -> Option<Self> {
        [Tier::Golden, Tier::Labeled, Tier::Regression, Tier::Security]
            .into_iter()
            .find(|tier| tier.id_prefix().is_some_and(|prefix| id.starts_with(prefix)))
    }

    /// Returns the prefix of the tier's case ids.
    pub fn id_prefix(self) -> Option<&'static str> {
        match self {
            Tier::Golden => Some("gs-"),
            Tier::Labeled => Some("ls-"),
            Tier::Regression => Some("rg-"),
            Tier::Security => Some("sc-"),
            Tier::Rubric | Tier::Unknown => None,
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.name())
    }
}
