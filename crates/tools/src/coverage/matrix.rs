//! The measured confusion, as a report shows it.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::Serialize;

use crate::confusion::{LeftOut, MeasuredConfusion};

/// Expected tool × called tool, counted over stored answers; `__none__` stands for no tool on either side.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfusionMatrix {
    /// How many answers were counted.
    pub answers: u64,
    /// How many result files they are from.
    pub results: usize,
    pub run_ids: Vec<String>,
    /// Who answered.
    pub agents: Vec<String>,
    /// What was called in place of something else, the most frequent first; of equals, the highest rate.
    pub worst: Vec<ConfusedPair>,
    /// How often each tool was called where it was expected.
    pub right: Vec<RightCalls>,
    pub left_out: LeftOut,
}

/// A tool that was called in place of another.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfusedPair {
    pub expected: String,
    pub called: String,
    pub count: u64,
    /// The share of the answers that expected the tool; for `__none__`, of all answers.
    pub rate: f64,
    /// The overlap map declares the two as neighbours.
    pub declared: bool,
}

/// How often a tool was called where it was expected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RightCalls {
    pub tool: String,
    pub count: u64,
    /// In how many answers it was expected.
    pub expected: u64,
}

impl ConfusionMatrix {
    /// Returns the tools that were taken for another or another for them, those of the worst pairs first.
    pub fn tools(&self) -> Vec<&str> {
        let mut seen = HashSet::new();
        let names = self.worst.iter().flat_map(|pair| [pair.expected.as_str(), pair.called.as_str()]);
        names.filter(|name| seen.insert(*name)).collect()
    }

    /// Returns how often a tool was called where a tool was expected.
    pub fn count(&self, expected: &str, called: &str) -> u64 {
        if expected == called {
            return self.right.iter().find(|right| right.tool == expected).map_or(0, |right| right.count);
        }
        let pair = self.worst.iter().find(|pair| pair.expected == expected && pair.called == called);
        pair.map_or(0, |pair| pair.count)
    }

    /// Lays out what was measured; `is_declared` tells whether two tools are known to overlap.
    pub fn of(measured: &MeasuredConfusion, is_declared: impl Fn(&str, &str) -> bool) -> Self {
        let confusion = &measured.confusion;
        let worst = confusion.worst().into_iter();
        let worst = worst.map(|(expected, called, count)| ConfusedPair {
            expected: expected.to_owned(),
            called: called.to_owned(),
            count,
            rate: confusion.rate(expected, called).unwrap_or_default(),
            declared: is_declared(expected, called),
        });
        let mut worst: Vec<ConfusedPair> = worst.collect();
        worst.sort_by(|left, right| right.count.cmp(&left.count).then(right.rate.total_cmp(&left.rate)));
        let right = confusion.expected().map(|(tool, expected)| RightCalls {
            tool: tool.to_owned(),
            count: confusion.of(tool, tool),
            expected,
        });
        Self {
            answers: confusion.answers(),
            results: measured.results,
            run_ids: measured.run_ids.iter().cloned().collect(),
            agents: measured.agents.iter().cloned().collect(),
            worst,
            right: right.collect(),
            left_out: measured.left_out.clone(),
        }
    }
}
