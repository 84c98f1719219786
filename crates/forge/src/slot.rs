//! Slots: what a case tests, before it is written.

use std::fmt;

use karat_cases::{Difficulty, Tier};
use serde::{Deserialize, Serialize};

/// A place for a case in the plan. The purpose is advice: a draft of the same tier and difficulty may test something
/// else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Slot {
    /// The id that the case will have.
    pub id: String,
    pub purpose: Purpose,
}

/// The purpose of a case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Purpose {
    /// Golden: the message is this trigger phrase.
    Trigger(String),
    /// Golden: the message rephrases this trigger phrase.
    Rephrasing(String),
    /// Golden: an ordinary message for the tool.
    Plain,
    /// Golden: the answer contains no raw field names.
    NoLeak,
    /// Golden: the message resembles one for another tool, but only this tool is right.
    Disambiguation {
        other: String,
        /// The reasons of the overlap map.
        reasons: Vec<String>,
        /// A trigger phrase to use as the message.
        phrase: Option<String>,
    },
    /// Golden: the agent asks for confirmation before it calls a tool that changes something.
    #[serde(rename = "asksFirst")]
    Confirmation,
    /// Straightforward: the task needs `count` tools, `tools` among them.
    Together { tools: Vec<String>, count: usize },
    /// Ambiguous: several sets of tools are right.
    Choice {
        combination: Combination,
        /// The other tools that the acceptable sets name: a neighbour, or all members of a cluster.
        others: Vec<String>,
    },
    /// Edge: the message tries to mislead the agent.
    Edge(EdgeKind),
}

impl Purpose {
    /// Returns a task for exactly these tools.
    pub fn together(tools: Vec<String>) -> Self {
        Self::Together { count: tools.len(), tools }
    }

    /// Returns a disambiguation from another tool, without reasons or phrase.
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

impl fmt::Display for Purpose {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Purpose::Trigger(phrase) => write!(out, "the trigger phrase '{phrase}'"),
            Purpose::Rephrasing(phrase) => write!(out, "'{phrase}' in other words"),
            Purpose::Plain => out.write_str("a message for the tool"),
            Purpose::NoLeak => out.write_str("no raw field names in the answer"),
            Purpose::Disambiguation { other, reasons, .. } => {
                write!(out, "a message that could be confused with {other}")?;
                if reasons.is_empty() { Ok(()) } else { write!(out, " ({})", reasons.join("; ")) }
            }
            Purpose::Confirmation => out.write_str("the agent asks before it changes anything"),
            Purpose::Together { tools, count } if tools.len() == *count => {
                write!(out, "a task that needs {}", tools.join(", "))
            }
            Purpose::Together { tools, count } => {
                let others = count.saturating_sub(tools.len());
                let noun = if others == 1 { "other tool" } else { "other tools" };
                write!(out, "a task that needs {} and {others} {noun}", tools.join(", "))
            }
            Purpose::Choice { combination, others } => {
                write!(out, "{}: {}", combination.name(), combination.description())?;
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
    /// Some tools are needed and others are optional: `[[a, b], [a, b, c]]`.
    VariableDepth,
    /// No tool is needed, although the message suggests one: `[["__none__"]]`.
    Nor,
}

impl Combination {
    pub const ALL: [Combination; 5] =
        [Combination::Or, Combination::AndOr, Combination::Xor, Combination::VariableDepth, Combination::Nor];

    /// Returns the name used in the spec.
    pub fn name(self) -> &'static str {
        match self {
            Self::Or => "OR",
            Self::AndOr => "AND/OR",
            Self::Xor => "XOR",
            Self::VariableDepth => "AND with variable depth",
            Self::Nor => "NOR",
        }
    }

    pub fn description(self) -> &'static str {
        match self {
            Self::Or => "either tool alone is enough",
            Self::AndOr => "one tool alone, or with another",
            Self::Xor => "one set of tools, or another",
            Self::VariableDepth => "all are needed, more are optional",
            Self::Nor => "no tool is needed, although the message suggests one",
        }
    }

    /// Whether the combination can be formed with this many other tools. With none, a case can only test whether the
    /// tool is called at all.
    pub(crate) fn is_possible_with(self, others: usize) -> bool {
        match self {
            Self::AndOr | Self::Nor => true,
            Self::Or => others >= 1,
            Self::Xor | Self::VariableDepth => others >= 2,
        }
    }
}

/// How an edge case tries to mislead the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EdgeKind {
    /// The message tries to override the agent's instructions.
    PromptInjection,
    /// A request out of scope, disguised as in scope.
    OffTopic,
    /// A question of common knowledge that needs no tool.
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

    /// Returns a name for the start of a description.
    pub(crate) fn short_name(self) -> &'static str {
        match self {
            Self::OffTopic => "off-topic request",
            Self::GeneralKnowledge => "general knowledge",
            Self::PromptInjection | Self::Contradiction => self.name(),
        }
    }
}
