//! Whether an eval file is known to match its current tool.

use schemars::JsonSchema;
use serde::Serialize;

use crate::lock::{LockDiff, LockedField, effects};
use crate::overlap::OverlapMap;
use karat_cases::registry::{Registry, ToolField};
use karat_cases::{EvalFile, Tier};
use karat_core::staleness::check_overlap_version;

/// An eval file whose freshness is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DoubtfulFile {
    pub file: String,
    pub tool: String,
    pub doubt: Doubt,
}

/// The reason that the freshness of an eval file is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Doubt {
    /// The file does not record a description hash, and there is no lock.
    NothingToCompare,
    /// The file does not record a description hash, and the tool is not in the lock.
    NotLocked,
    /// The registry does not have the tool.
    ToolMissing,
    /// The tool may be in a part of the registry that could not be read.
    ToolUnseen,
    /// The tool's description is known only at run time.
    DescriptionUnknown,
}

impl Doubt {
    /// Returns a fragment to follow the file's name.
    pub fn sentence(self, tool: &str) -> String {
        match self {
            Doubt::NothingToCompare => "no descriptionHash and no lock".to_owned(),
            Doubt::NotLocked => format!("no descriptionHash, and {tool} is not in the lock"),
            Doubt::ToolMissing => format!("{tool} is not in the registry"),
            Doubt::ToolUnseen => format!("{tool} is not in the readable part of the registry"),
            Doubt::DescriptionUnknown => format!("the description of {tool} is known only at run time"),
        }
    }

    /// Whether the author can resolve it by recording the description hash.
    pub fn is_fixable_by_author(self) -> bool {
        matches!(self, Doubt::NothingToCompare | Doubt::NotLocked)
    }
}

/// Freshness of an eval file.
pub(super) enum Freshness {
    Fresh,
    Stale(Vec<String>),
    Doubtful(Doubt),
}

/// The state that eval files are compared with.
#[derive(Clone, Copy)]
pub(super) struct CurrentState<'n> {
    pub(super) registry: &'n Registry,
    pub(super) overlaps: Option<&'n OverlapMap>,
    pub(super) lock: Option<&'n LockDiff>,
}

impl CurrentState<'_> {
    /// Checks a file; `None` for a regression file, which guards against a bug regardless of the description.
    pub(super) fn freshness(self, file: &EvalFile) -> Option<Freshness> {
        if file.tier == Tier::Regression {
            return None;
        }
        let empty = LockDiff::default();
        let effects = effects(file, self.lock.unwrap_or(&empty), self.registry);
        let mut reasons: Vec<String> = effects.iter().map(crate::lock::Effect::sentence).collect();
        let map = self.overlaps.and_then(|map| check_overlap_version(file, &map.version));
        reasons.extend(map.map(|changed| changed.sentence()));
        Some(match self.doubt(file) {
            _ if !reasons.is_empty() => Freshness::Stale(reasons),
            Some(doubt) => Freshness::Doubtful(doubt),
            None => Freshness::Fresh,
        })
    }

    fn doubt(self, file: &EvalFile) -> Option<Doubt> {
        let Some(tool) = self.registry.find(&file.tool_name) else {
            return Some(if self.registry.gaps().is_empty() { Doubt::ToolMissing } else { Doubt::ToolUnseen });
        };
        let has_description_hash = file.metadata.as_ref().is_some_and(|metadata| metadata.description_hash.is_some());
        if has_description_hash {
            return tool.unknown(ToolField::Description).map(|_| Doubt::DescriptionUnknown);
        }
        let Some(diff) = self.lock else {
            return Some(Doubt::NothingToCompare);
        };
        if diff.added.contains(&tool.name) || diff.renamed.iter().any(|pair| pair.now == tool.name) {
            return Some(Doubt::NotLocked);
        }
        let hidden = diff.not_comparable.iter().find(|hidden| hidden.tool == tool.name);
        hidden.filter(|hidden| hidden.fields.contains(&LockedField::Description)).map(|_| Doubt::DescriptionUnknown)
    }
}
