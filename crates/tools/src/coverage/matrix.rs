//! The measured confusion, for reports.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::Serialize;

use crate::confusion::{ExcludedCounts, MeasuredConfusion};

/// Expected tool × called tool, counted over stored answers; `__none__` stands for no tool on either side.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfusionMatrix {
    /// Number of answers counted.
    pub answers: u64,
    /// Number of result files counted.
    pub results: usize,
    pub run_ids: Vec<String>,
    /// Agents that answered.
    pub agents: Vec<String>,
    /// Calls in place of another tool, most frequent first, then by highest rate.
    pub worst: Vec<ConfusedPair>,
    /// Correct calls of each expected tool.
    pub right: Vec<CorrectCalls>,
    pub left_out: ExcludedCounts,
}

/// A tool that was called in place of another.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfusedPair {
    pub expected: String,
    pub called: String,
    pub count: u64,
    /// Share of the answers that expected the tool; for `__none__`, of all answers.
    pub rate: f64,
    /// Whether the overlap map declares the pair.
    pub declared: bool,
}

/// Correct calls of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CorrectCalls {
    pub tool: String,
    pub count: u64,
    /// Number of answers that expected it.
    pub expected: u64,
}

impl ConfusionMatrix {
    /// Returns the tools in confused pairs, those of the worst pairs first.
    pub fn tools(&self) -> Vec<&str> {
        let mut seen = HashSet::new();
        let names = self.worst.iter().flat_map(|pair| [pair.expected.as_str(), pair.called.as_str()]);
        names.filter(|name| seen.insert(*name)).collect()
    }

    /// Returns how often `called` was called where `expected` was expected.
    pub fn count(&self, expected: &str, called: &str) -> u64 {
        if expected == called {
            return self.right.iter().find(|right| right.tool == expected).map_or(0, |right| right.count);
        }
        let pair = self.worst.iter().find(|pair| pair.expected == expected && pair.called == called);
        pair.map_or(0, |pair| pair.count)
    }

    /// Creates the matrix; `is_declared` returns whether two tools are declared to overlap.
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
        let right = confusion.expected().map(|(tool, expected)| CorrectCalls {
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
