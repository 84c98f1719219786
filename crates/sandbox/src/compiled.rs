//! Machine code that is compiled once.

use std::fs;
use std::path::Path;

use wasmtime::Engine;
use wasmtime::component::Component;

use crate::engine::Stage;
use crate::error::SandboxError;
use crate::guest::Guest;

pub(crate) fn load(
    engine: &Engine,
    guest: &Guest,
    folder: &Path,
    told: &mut dyn FnMut(Stage),
) -> Result<Component, SandboxError> {
    let path = folder.join(format!("{}.cwasm", guest.hash()));
    if !path.exists() {
        told(Stage::Compiling);
        let code = engine.precompile_component(guest.wasm())?;
        fs::create_dir_all(folder).map_err(|source| SandboxError::Unwritable { path: folder.to_owned(), source })?;
        fs::write(&path, code).map_err(|source| SandboxError::Unwritable { path: path.clone(), source })?;
    }
    // SAFETY: to be checked.
    #[expect(unsafe_code, reason = "machine code that we made")]
    let component = unsafe { Component::deserialize_file(engine, &path)? };
    Ok(component)
}
