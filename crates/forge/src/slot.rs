//! What a case is to test, before anybody has written it.

use karat_core::case::{Difficulty, Tier};
use serde::{Deserialize, Serialize};

/// A place for a case in the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Slot {
    /// The id that the case will have.
    pub id: String,
    pub purpose: Purpose,
}

/// What a case is to test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Purpose {
    /// Golden: the message is this trigger phrase.
    Trigger(String),
    /// Golden: what this trigger phrase means, in other words.
    Rephrasing(String),
    /// Golden: the answer holds no raw field names.
    NoLeak,
    /// Golden: the message could be taken for this other tool, but means ours.
    Disambiguation(String),
    /// Golden or straightforward: a tool that changes something has to ask before it does.
    AsksFirst,
    /// Straightforward: all of these tools are needed, ours among them.
    Together(Vec<String>),
    /// Ambiguous: several ways are right.
    Choice {
        combination: Combination,
        /// The other tools that the acceptable sets are to name: a neighbour, or all members of a cluster.
        others: Vec<String>,
    },
    /// Edge: somebody tries something.
    Edge(EdgeKind),
}

impl Purpose {
    pub fn tier(&self) -> Tier {
        match self {
            Purpose::Trigger(_)
            | Purpose::Rephrasing(_)
            | Purpose::NoLeak
            | Purpose::Disambiguation(_)
            | Purpose::AsksFirst => Tier::Golden,
            Purpose::Together(_) | Purpose::Choice { .. } | Purpose::Edge(_) => Tier::Labeled,
        }
    }

    /// Returns how hard a labeled case is.
    pub fn difficulty(&self) -> Option<Difficulty> {
        match self {
            Purpose::Together(_) => Some(Difficulty::Straightforward),
            Purpose::Choice { .. } => Some(Difficulty::Ambiguous),
            Purpose::Edge(_) => Some(Difficulty::Edge),
            _ => None,
        }
    }
}

/// How the acceptable sets of an ambiguous case relate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Combination {
    /// Either tool alone suffices: `[[a], [b]]`.
    Or,
    /// One tool alone, or with another: `[[a], [a, b]]`.
    AndOr,
    /// One set of tools or another, which share none: `[[a, b], [c, d]]`.
    Xor,
    /// All tools are needed, but how often is open: `[[a, b], [a, b, c]]`.
    VariableDepth,
    /// It looks as if a tool were needed: `[["__none__"]]`.
    Nor,
}

impl Combination {
    pub const ALL: [Combination; 5] =
        [Combination::Or, Combination::AndOr, Combination::Xor, Combination::VariableDepth, Combination::Nor];
}

/// What somebody tries in an edge case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EdgeKind {
    /// The message gives orders against the agent's own.
    PromptInjection,
    /// Something else, dressed as what the agent is for.
    OffTopic,
    /// What everybody knows, so that no tool is needed.
    GeneralKnowledge,
    /// Steps that cannot all be done.
    Contradiction,
}

impl EdgeKind {
    pub const ALL: [EdgeKind; 4] =
        [EdgeKind::PromptInjection, EdgeKind::OffTopic, EdgeKind::GeneralKnowledge, EdgeKind::Contradiction];
}
