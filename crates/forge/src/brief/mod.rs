//! The context for drafting cases of a tool, and its rendering for models and people.

mod document;
mod instructions;
mod kind;
mod schema;
mod text;

use karat_cases::Case;
use karat_cases::registry::{Registry, Tool};
use karat_cases::token::TokenSources;
use karat_lints::Rule;

pub use self::document::{BriefDocument, OpenSlot};
pub(crate) use self::document::{Question, RejectedCase};
pub(crate) use self::schema::normalize_answer;

#[derive(Debug, Clone)]
pub struct Brief {
    pub tool: Tool,
    /// All tools of the agent, including this one.
    pub registry: Registry,
    /// Phrases of users who need this tool: from the registry, from flags, or entered by the user.
    pub triggers: Vec<String>,
    /// The tools that it could be confused with.
    pub overlaps: Vec<Overlap>,
    /// The names of the tools of each cluster that it is in.
    pub clusters: Vec<Vec<String>>,
    /// The data that tokens are resolved from.
    pub sources: TokenSources,
    /// The rules that the project silences for this tool.
    pub silenced: Vec<Rule>,
    /// The tool's existing golden cases.
    pub golden: Vec<Case>,
    /// The tool's existing labeled cases.
    pub labeled: Vec<Case>,
}

/// A tool that another could be confused with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overlap {
    pub tool: String,
    /// The reasons from either side of the overlap map.
    pub reasons: Vec<String>,
}

impl Brief {
    /// Returns the tool's existing cases.
    pub fn existing(&self) -> impl Iterator<Item = &Case> {
        self.golden.iter().chain(&self.labeled)
    }

    /// Returns the names of the agent's other tools, in registry order.
    pub fn others(&self) -> impl Iterator<Item = &str> {
        self.registry.tools().iter().map(|tool| tool.name.as_str()).filter(|name| *name != self.tool.name)
    }

    /// Returns the overlapping tools that the registry has; cases cannot name others.
    pub fn neighbours(&self) -> impl Iterator<Item = &Overlap> {
        let is_known = |name: &str| name != self.tool.name && self.registry.tool(name).is_some();
        self.overlaps.iter().filter(move |overlap| is_known(&overlap.tool))
    }

    /// Whether the user has to confirm before the tool runs: as declared, else if it changes something.
    pub fn needs_confirmation(&self) -> bool {
        self.tool.requires_confirmation.get().copied().unwrap_or_else(|| is_write(&self.tool))
    }
}

/// Whether a tool changes something, by its category.
pub(crate) fn is_write(tool: &Tool) -> bool {
    let changing = ["write", "destructive"];
    let is_changing = |category: &str| changing.iter().any(|word| category.eq_ignore_ascii_case(word));
    tool.category.as_deref().is_some_and(is_changing)
}
