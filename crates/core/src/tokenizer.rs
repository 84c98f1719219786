//! Counts the tokens of a string.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A token vocabulary, loaded on first use, since loading is slow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tokenizer {
    #[default]
    #[serde(rename = "o200k_base")]
    O200kBase,
    #[serde(rename = "cl100k_base")]
    Cl100kBase,
}

impl Tokenizer {
    pub const ALL: [Tokenizer; 2] = [Tokenizer::O200kBase, Tokenizer::Cl100kBase];

    pub fn name(self) -> &'static str {
        match self {
            Tokenizer::O200kBase => "o200k_base",
            Tokenizer::Cl100kBase => "cl100k_base",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tokenizer| tokenizer.name() == name)
    }

    pub fn count(self, text: &str) -> usize {
        tiktoken::get_encoding(self.name()).map_or(usize::MAX, |encoding| encoding.count(text))
    }
}
