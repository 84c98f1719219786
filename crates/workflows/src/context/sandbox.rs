//! Opens the sandbox that eval functions run in.

use std::path::Path;
use std::sync::Arc;

use karat_core::judgement::Limits;
use karat_sandbox::Isolation;
use karat_sandbox::{Function, Guest, Sandbox, Task};

use crate::error::Error;

/// Options for running eval functions.
#[derive(Debug, Clone, Copy)]
pub struct SandboxOptions {
    pub limits: Limits,
    pub isolation: Isolation,
    /// Number of traces to judge in parallel.
    pub jobs: usize,
}

impl SandboxOptions {
    pub(crate) fn task(self, functions: Vec<Arc<Function>>) -> Task {
        let Self { limits, isolation, jobs } = self;
        Task { functions, limits, isolation, jobs }
    }
}

pub fn open_sandbox(guest: Option<&Path>) -> Result<Sandbox, Error> {
    Ok(Sandbox::open(&find_guest(guest)?)?)
}

/// Loads the guest from the path in `KARAT_GUEST`, or else the built-in one.
pub fn find_guest(guest: Option<&Path>) -> Result<Guest, Error> {
    Guest::find(guest).map_err(|error| {
        let error = Error::from(error);
        match guest {
            Some(_) => Error { message: format!("KARAT_GUEST: {}", error.message), ..error },
            None => error,
        }
    })
}
