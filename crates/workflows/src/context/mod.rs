//! What use cases work with, opened from the settings: agents, models, tools, store, sandbox, clock and ids.

pub mod agents;
pub mod chat_models;
pub mod clock;
pub mod models;
pub mod recordings;
pub mod sandbox;
pub mod snapshot;
pub mod store;
pub mod tools;

use karat_core::port::{Clock, Ids};
use karat_project::EditLock;
use karat_sandbox::Sandbox;
use karat_store::Store;

use crate::error::Error;
use crate::notice::Notices;
use crate::settings::{Settings, Surroundings};

/// The settings of a project, and what belongs to the process.
pub struct Context<'c> {
    pub settings: Settings,
    pub surroundings: &'c Surroundings,
    pub clock: &'c dyn Clock,
    pub ids: &'c dyn Ids,
    pub notices: &'c dyn Notices,
}

impl Context<'_> {
    /// Opens the store, and creates it where it does not exist yet.
    pub async fn open_store(&self) -> Result<Store, Error> {
        store::open_store(&self.settings).await
    }

    /// Works with a store that must exist, and closes it whatever the outcome.
    pub async fn read_store<T>(&self, work: impl AsyncFnOnce(&Store) -> Result<T, Error>) -> Result<T, Error> {
        store::with_store(store::open_store_to_read(&self.settings), work).await
    }

    /// Works with the store, which is created where it does not exist yet, and closes it whatever the outcome.
    pub async fn write_store<T>(&self, work: impl AsyncFnOnce(&Store) -> Result<T, Error>) -> Result<T, Error> {
        store::with_store(self.open_store(), work).await
    }

    /// Waits for other edits of the project; warns where its folder cannot be locked.
    pub fn edit_lock(&self) -> Result<EditLock, Error> {
        let layout = &self.settings.layout;
        let lock = EditLock::take(layout)?;
        if let Some(error) = &lock.unavailable {
            let root = layout.root.display();
            self.notices.warn(&format!("cannot lock {root} ({error}): make one edit at a time"));
        }
        Ok(lock)
    }

    pub fn open_sandbox(&self) -> Result<Sandbox, Error> {
        sandbox::open_sandbox(self.surroundings.guest.as_deref())
    }
}
