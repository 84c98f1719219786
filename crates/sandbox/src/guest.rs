//! Python as a WebAssembly component.

use std::fs;
use std::path::{Path, PathBuf};

use karat_core::hash::short_hash;

use crate::error::SandboxError;

/// The guest: Python with our side of the conversation in it.
pub struct Guest {
    wasm: Vec<u8>,
    hash: String,
}

impl Guest {
    pub fn find(named: Option<&Path>) -> Result<Self, SandboxError> {
        let path = named
            .map(PathBuf::from)
            .ok_or_else(|| SandboxError::NoGuest { why: "name one with KARAT_GUEST".to_owned() })?;
        let wasm = fs::read(&path).map_err(|source| SandboxError::Unreadable { path, source })?;
        let hash = short_hash(&wasm);
        Ok(Self { wasm, hash })
    }

    pub fn hash(&self) -> &str {
        &self.hash
    }

    pub fn wasm(&self) -> &[u8] {
        &self.wasm
    }
}
