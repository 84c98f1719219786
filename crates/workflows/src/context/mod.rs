//! The context of workflows: agents, models, tools, store, sandbox, clock and ids.

pub mod agents;
pub mod chat_models;
pub mod clock;
pub mod models;
pub mod recordings;
pub mod sandbox;
pub mod snapshot;
pub mod store;
pub mod tools;

use karat_cases::registry::{GapKind, Registry};
use karat_core::port::{Clock, Ids};
use karat_project::EditLock;
use karat_sandbox::{Guest, Sandbox};
use karat_store::Store;

use crate::error::Error;
use crate::notice::Notices;
use crate::settings::{ProcessEnv, Settings};

/// The settings of a project, and the services of the process.
pub struct Context<'c> {
    pub settings: Settings,
    pub process_env: &'c ProcessEnv,
    pub clock: &'c dyn Clock,
    pub ids: &'c dyn Ids,
    pub notices: &'c dyn Notices,
}

impl Context<'_> {
    /// Opens the store; creates it if it does not exist.
    pub async fn open_store(&self) -> Result<Store, Error> {
        store::open_store(&self.settings).await
    }

    /// Runs `work` with the store, which must exist, and closes it.
    pub async fn read_store<T>(&self, work: impl AsyncFnOnce(&Store) -> Result<T, Error>) -> Result<T, Error> {
        store::with_store(store::open_existing_store(&self.settings), work).await
    }

    /// Runs `work` with the store, which is created if it does not exist, and closes it.
    pub async fn write_store<T>(&self, work: impl AsyncFnOnce(&Store) -> Result<T, Error>) -> Result<T, Error> {
        store::with_store(self.open_store(), work).await
    }

    /// Locks the project for edits, waiting for other processes. Warns if locking is not supported.
    pub fn edit_lock(&self) -> Result<EditLock, Error> {
        let layout = &self.settings.layout;
        let lock = EditLock::acquire(layout)?;
        if let Some(error) = &lock.unavailable {
            let root = layout.root.display();
            self.notices.warn(&format!("cannot lock {root} ({error}): avoid concurrent edits"));
        }
        Ok(lock)
    }

    /// Reads the tool registry and reports its broken parts.
    pub async fn list_tools(&self) -> Result<Option<Registry>, Error> {
        let registry = tools::list_tools(&self.settings, self.notices).await?;
        let gaps = registry.iter().flat_map(Registry::gaps);
        gaps.filter(|gap| gap.kind == GapKind::Broken).for_each(|gap| self.notices.gap(gap));
        Ok(registry)
    }

    /// Reads the tool registry; an error if none is configured.
    pub async fn require_tools(&self) -> Result<Registry, Error> {
        let registry = tools::list_tools(&self.settings, self.notices).await?;
        registry.ok_or_else(|| {
            let default = self.settings.display_path(&self.settings.tool_registry.path);
            Error::invalid("no tool registry is configured")
                .hint(format!("the default {default} does not exist"))
                .hint("pass --tool-registry-path, or set 'toolRegistryPath' in karat.json")
        })
    }

    pub fn open_sandbox(&self) -> Result<Sandbox, Error> {
        sandbox::open_sandbox(self.process_env.guest.as_deref())
    }

    pub(crate) fn find_guest(&self) -> Result<Guest, Error> {
        sandbox::find_guest(self.process_env.guest.as_deref())
    }
}
