//! All that is known when cases for a tool are drafted.

use karat_core::case::Case;
use karat_core::registry::{Registry, Tool};
use karat_core::token::TokenSources;

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

    /// Tells whether the tool changes something in the world.
    pub fn is_write(&self) -> bool {
        is_write(&self.tool)
    }

    /// Tells whether somebody has to agree before the tool runs: as its authors say, else where it changes something.
    pub fn asks_first(&self) -> bool {
        asks_first(&self.tool)
    }
}

fn is_write(tool: &Tool) -> bool {
    let changing = ["write", "destructive"];
    let is_changing = |category: &str| changing.iter().any(|word| category.eq_ignore_ascii_case(word));
    tool.category.as_deref().is_some_and(is_changing)
}

/// Tells whether somebody has to agree before any of the agent's tools runs.
pub(crate) fn asks_first(tool: &Tool) -> bool {
    tool.requires_confirmation.get().copied().unwrap_or_else(|| is_write(tool))
}
