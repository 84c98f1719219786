//! The context for drafting cases of a tool, and its rendering for models and people.

mod document;
mod instructions;
mod kind;
mod schema;
mod text;

use karat_core::case::Case;
use karat_core::lint::Rule;
use karat_core::registry::{Registry, Tool};
use karat_core::token::TokenSources;

pub use self::document::{BriefDocument, OpenSlot};
pub(crate) use self::document::{Question, Returned};
pub(crate) use self::schema::tidy;

#[derive(Debug, Clone)]
pub struct Brief {
    pub tool: Tool,
    /// All tools of the agent, this one too.
    pub registry: Registry,
    /// What a person says who means this tool: from the registry, from flags, or asked for.
    pub triggers: Vec<String>,
    /// The tools that it could be confused with, by their names.
    pub overlaps: Vec<Overlap>,
    /// The distinct clusters that it is in, each by its members' names.
    pub clusters: Vec<Vec<String>>,
    /// What tokens are resolved from.
    pub sources: TokenSources,
    /// The rules that the project silences for this tool.
    pub silenced: Vec<Rule>,
    /// The tool's golden cases that the project has already.
    pub golden: Vec<Case>,
    /// The tool's labeled cases that the project has already.
    pub labeled: Vec<Case>,
}

/// A tool that another could be confused with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overlap {
    pub tool: String,
    /// Why, as either side of the map says.
    pub reasons: Vec<String>,
}

impl Brief {
    /// Returns the cases that the project has already.
    pub fn existing(&self) -> impl Iterator<Item = &Case> {
        self.golden.iter().chain(&self.labeled)
    }

    /// Returns the names of the agent's other tools, in the registry's order.
    pub fn others(&self) -> impl Iterator<Item = &str> {
        self.registry.tools().iter().map(|tool| tool.name.as_str()).filter(|name| *name != self.tool.name)
    }

    /// Returns the neighbours that the registry has: a case cannot name others.
    pub fn neighbours(&self) -> impl Iterator<Item = &Overlap> {
        let is_known = |name: &str| name != self.tool.name && self.registry.tool(name).is_some();
        self.overlaps.iter().filter(move |overlap| is_known(&overlap.tool))
    }

    /// Returns whether a person has to confirm before the tool runs: as declared, else if it changes something.
    pub fn asks_first(&self) -> bool {
        self.tool.requires_confirmation.get().copied().unwrap_or_else(|| is_write(&self.tool))
    }
}

/// Returns whether a tool changes something, as its category says.
pub(crate) fn is_write(tool: &Tool) -> bool {
    let changing = ["write", "destructive"];
    let is_changing = |category: &str| changing.iter().any(|word| category.eq_ignore_ascii_case(word));
    tool.category.as_deref().is_some_and(is_changing)
}
