//! What a case tests, before anybody has written it.

use std::fmt;

use karat_core::case::{Difficulty, Tier};
use serde::{Deserialize, Serialize};

/// A place for a case in the plan. It is advice: a draft of the same tier and difficulty may test something else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Slot {
    /// The id that the case will have.
    pub id: String,
    pub purpose: Purpose,
}

/// What a case tests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Purpose {
    /// Golden: the message is this trigger phrase.
    Trigger(String),
    /// Golden: what this trigger phrase means, in other words.
    Rephrasing(String),
    /// Golden: an ordinary message that means the tool.
    Plain,
    /// Golden: the answer holds no raw field names.
    NoLeak,
    /// Golden: the message could be taken for another tool, but means ours.
    Disambiguation {
        other: String,
        /// Why the tools are confused, as the overlap map says.
        reasons: Vec<String>,
        /// A trigger phrase to use as the message.
        phrase: Option<String>,
    },
    /// Golden: a tool that changes something asks before it does.
    AsksFirst,
    /// Straightforward: so many tools are needed, these among them.
    Together { tools: Vec<String>, count: usize },
    /// Ambiguous: several ways are right.
    Choice {
        combination: Combination,
        /// The other tools that the acceptable sets name: a neighbour, or all members of a cluster.
        others: Vec<String>,
    },
    /// Edge: somebody tries to mislead the agent.
    Edge(EdgeKind),
}

impl Purpose {
    /// A task for exactly these tools.
    pub fn together(tools: Vec<String>) -> Self {
        Self::Together { count: tools.len(), tools }
    }

    /// A message that could be taken for another tool, of which nothing more is known.
    pub fn disambiguation(other: &str) -> Self {
        Self::Disambiguation { other: other.to_owned(), reasons: Vec::new(), phrase: None }
    }

    pub fn tier(&self) -> Tier {
        if self.difficulty().is_some() { Tier::Labeled } else { Tier::Golden }
    }

    /// Returns the difficulty of a labeled case.
    pub fn difficulty(&self) -> Option<Difficulty> {
        match self {
            Purpose::Together { .. } => Some(Difficulty::Straightforward),
            Purpose::Choice { .. } => Some(Difficulty::Ambiguous),
            Purpose::Edge(_) => Some(Difficulty::Edge),
            _ => None,
        }
    }
}

/// What the case tests, as a person reads it.
impl fmt::Display for Purpose {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Purpose::Trigger(phrase) => write!(out, "the trigger phrase '{phrase}'"),
            Purpose::Rephrasing(phrase) => write!(out, "'{phrase}' in other words"),
            Purpose::Plain => out.write_str("a message that means the tool"),
            Purpose::NoLeak => out.write_str("no raw field names in the answer"),
            Purpose::Disambiguation { other, reasons, .. } => {
                write!(out, "a message that could be taken for {other}")?;
                if reasons.is_empty() { Ok(()) } else { write!(out, " ({})", reasons.join("; ")) }
            }
            Purpose::AsksFirst => out.write_str("the agent asks before it changes anything"),
            Purpose::Together { tools, count } if tools.len() == *count => {
                write!(out, "a task for {} together", tools.join(", "))
            }
            Purpose::Together { tools, count } => {
                let others = count.saturating_sub(tools.len());
                let noun = if others == 1 { "other tool" } else { "other tools" };
                write!(out, "a task for {} with {others} {noun}", tools.join(", "))
            }
            Purpose::Choice { combination, others } => {
                write!(out, "{}: {}", combination.name(), combination.meaning())?;
                if others.is_empty() { Ok(()) } else { write!(out, " ({})", others.join(", ")) }
            }
            Purpose::Edge(kind) => out.write_str(kind.name()),
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
    /// One set of tools or another, with no tool in common: `[[a, b], [c, d]]`.
    Xor,
    /// All tools are needed, but how many more is open: `[[a, b], [a, b, c]]`.
    VariableDepth,
    /// No tool is needed, though it looks so: `[["__none__"]]`.
    Nor,
}

impl Combination {
    pub const ALL: [Combination; 5] =
        [Combination::Or, Combination::AndOr, Combination::Xor, Combination::VariableDepth, Combination::Nor];

    /// Returns the name that the source document gives it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Or => "OR",
            Self::AndOr => "AND/OR",
            Self::Xor => "XOR",
            Self::VariableDepth => "AND with variable depth",
            Self::Nor => "NOR",
        }
    }

    pub fn meaning(self) -> &'static str {
        match self {
            Self::Or => "either tool alone suffices",
            Self::AndOr => "one tool alone, or with another",
            Self::Xor => "one set of tools, or another",
            Self::VariableDepth => "all are needed, how many more is open",
            Self::Nor => "no tool is needed, though it looks so",
        }
    }

    /// Returns whether there are enough other tools. With none, the only question is whether the tool is called at all.
    pub(crate) fn is_possible_with(self, others: usize) -> bool {
        match self {
            Self::AndOr | Self::Nor => true,
            Self::Or => others >= 1,
            Self::Xor | Self::VariableDepth => others >= 2,
        }
    }
}

/// How somebody tries to mislead the agent in an edge case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EdgeKind {
    /// The message gives orders against the agent's own.
    PromptInjection,
    /// Something out of scope, disguised as what the agent is for.
    OffTopic,
    /// Common knowledge, so that no tool is needed.
    GeneralKnowledge,
    /// Steps that cannot all be done.
    Contradiction,
}

impl EdgeKind {
    pub const ALL: [EdgeKind; 4] =
        [EdgeKind::PromptInjection, EdgeKind::OffTopic, EdgeKind::GeneralKnowledge, EdgeKind::Contradiction];

    pub fn name(self) -> &'static str {
        match self {
            Self::PromptInjection => "prompt injection",
            Self::OffTopic => "an off-topic request disguised as in scope",
            Self::GeneralKnowledge => "general knowledge, for which no tool is needed",
            Self::Contradiction => "contradictory steps",
        }
    }
}
