//! State sources and hooks.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use karat_core::redact::Redactor;
use karat_state::{HooksConfig, SourceConfig, SourceOrigin};

use super::config::Config;
use super::secrets::redact_arguments;
use super::{Resolver, WithBase};

const DEFAULT_LIMIT_MS: u64 = 30_000;

/// The settings of state sources and hooks; variables are not expanded yet.
#[derive(Debug)]
pub struct StateSettings {
    pub sources: WithBase<BTreeMap<String, SourceConfig>>,
    pub hooks: WithBase<HooksConfig>,
    /// The time limit of each hook and capture.
    pub limit: Duration,
}

impl StateSettings {
    pub(super) fn resolve(overrides: &Config, file: &Config, resolver: &Resolver<'_>, redactor: &Redactor) -> Self {
        let sources = resolver.with_base(overrides.state_sources.clone(), file.state_sources.clone());
        let hooks = resolver.with_base(overrides.hooks.clone(), file.hooks.clone());
        let sources = sources.unwrap_or_else(|| WithBase { value: BTreeMap::new(), base: PathBuf::new() });
        let hooks = hooks.unwrap_or_else(|| WithBase { value: HooksConfig::default(), base: PathBuf::new() });
        for source in sources.value.values() {
            if let SourceOrigin::Command { command } = &source.origin {
                redact_arguments(command, redactor);
            }
        }
        hooks.value.commands().for_each(|command| redact_arguments(command, redactor));
        let limit = overrides.hook_timeout_ms.or(file.hook_timeout_ms).unwrap_or(DEFAULT_LIMIT_MS);
        Self { sources, hooks, limit: Duration::from_millis(limit) }
    }
}
