//! Opens the sandbox that eval functions run in.

use std::path::Path;

use karat_sandbox::{Guest, Sandbox};

use crate::error::Error;

pub fn open_sandbox(guest: Option<&Path>) -> Result<Sandbox, Error> {
    Ok(Sandbox::open(&find_guest(guest)?)?)
}

/// Returns the Python that `KARAT_GUEST` names, or else the program's own.
pub fn find_guest(guest: Option<&Path>) -> Result<Guest, Error> {
    Guest::find(guest).map_err(|error| {
        let error = Error::from(error);
        match guest {
            Some(_) => Error { message: format!("KARAT_GUEST: {}", error.message), ..error },
            None => error,
        }
    })
}
