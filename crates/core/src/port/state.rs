//! Ports to the systems behind an agent: state sources and hooks.

use serde_json::Value;

use super::BoxFuture;

/// Captures the state of systems behind the agent.
pub trait StateSources: Send + Sync {
    /// Captures the state of a source.
    fn capture<'a>(&'a self, source: &'a str, case_id: &'a str) -> BoxFuture<'a, Result<Value, HookError>>;

    /// Whether other cases cannot change the source during a case, so that they may run in parallel.
    fn is_isolated(&self, source: &str) -> bool;

    /// Returns how the source is captured, without secrets; a recorded state of another definition is not replayed.
    fn definition(&self, source: &str) -> Value;
}

/// Runs the hooks of a project.
pub trait Hooks: Send + Sync {
    /// Runs a hook, for a case if it belongs to one. Does nothing if the hook is not configured.
    fn run<'a>(&'a self, hook: Hook, case_id: Option<&'a str>) -> BoxFuture<'a, Result<(), HookError>>;
}

/// When a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    BeforeCase,
    AfterCase,
    BeforeRun,
    AfterRun,
}

impl Hook {
    pub const ALL: [Hook; 4] = [Hook::BeforeCase, Hook::AfterCase, Hook::BeforeRun, Hook::AfterRun];

    /// Returns the key in `hooks` of the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Hook::BeforeCase => "beforeCase",
            Hook::AfterCase => "afterCase",
            Hook::BeforeRun => "beforeRun",
            Hook::AfterRun => "afterRun",
        }
    }
}

/// Why a hook or a state source failed, with its standard error. It says nothing about the agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HookError(pub String);
