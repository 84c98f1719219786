//! Cases that run alone.

use karat_cases::Case;
use karat_core::port::StateSources;
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Keeps other cases from running beside one whose state sources they could change.
///
/// Fair: a waiting case is next, whatever it waits for. A case holds one lease and waits for nothing else with it, so
/// that there is no deadlock.
#[derive(Debug, Default)]
pub(crate) struct Exclusion(RwLock<()>);

/// The permission to run a case, until it is dropped.
#[expect(dead_code, reason = "the guards only need to be held")]
pub(crate) enum Lease<'e> {
    Shared(RwLockReadGuard<'e, ()>),
    Alone(RwLockWriteGuard<'e, ()>),
}

impl Exclusion {
    /// Waits until the case may run.
    pub(crate) async fn enter(&self, case: &Case, sources: Option<&dyn StateSources>) -> Lease<'_> {
        if runs_alone(case, sources) { Lease::Alone(self.0.write().await) } else { Lease::Shared(self.0.read().await) }
    }
}

/// Whether another case could change a state source of this case.
fn runs_alone(case: &Case, sources: Option<&dyn StateSources>) -> bool {
    let is_isolated = |name: &str| sources.is_some_and(|sources| sources.is_isolated(name));
    case.state_sources().any(|name| !is_isolated(name))
}
