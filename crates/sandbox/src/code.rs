//! Loads the guest's machine code from the program's image or from a file.

use std::ptr::NonNull;
use std::sync::Arc;

use rustix::mm::MprotectFlags;
use rustix::param::page_size;
use wasmtime::component::Component;
use wasmtime::{CustomCodeMemory, Engine};

use crate::error::SandboxError;
use crate::guest::{Code, Guest, Layout, read_file};
use crate::memory::MemoryImage;

/// Returns the initial memory of the guest's instances.
pub(crate) fn image(guest: &Guest) -> Result<MemoryImage, SandboxError> {
    match guest.code() {
        Code::Embedded(file) => {
            let layout =
                Layout::of(file).ok_or_else(|| SandboxError::Engine("the embedded guest is damaged".into()))?;
            Ok(MemoryImage::embedded(&file[layout.image]))
        }
        Code::File(path) => {
            let invalid = |reason: &str| SandboxError::InvalidGuest { path: path.clone(), reason: reason.to_owned() };
            let mut file = read_file(path)?;
            let layout = Layout::of(&file).ok_or_else(|| invalid("it has no initial memory"))?;
            let offset = layout.image.start as u64;
            file.truncate(layout.image.end);
            let bytes = file.split_off(layout.image.start);
            MemoryImage::in_file(bytes, path, offset)
                .map_err(|source| SandboxError::Unreadable { path: path.clone(), source })
        }
    }
}

/// Loads the guest's code. Pages are read from disk on first use.
pub(crate) fn load(engine: &Engine, guest: &Guest) -> Result<Component, SandboxError> {
    match guest.code() {
        Code::Embedded(file) => {
            let layout =
                Layout::of(file).ok_or_else(|| SandboxError::Engine("the embedded guest is damaged".into()))?;
            // SAFETY: the build compiled this code with wasmtime; it is a static that nothing writes.
            #[expect(unsafe_code, reason = "wasmtime cannot verify machine code")]
            let component = unsafe { Component::deserialize_raw(engine, NonNull::from(&file[layout.code])) };
            Ok(component?)
        }
        Code::File(path) => {
            // SAFETY: the user chose this file as code to run. It must come from wasmtime and must not change while it
            // is mapped; docs/explanation/sandbox.md documents this.
            #[expect(unsafe_code, reason = "wasmtime cannot verify machine code")]
            let component = unsafe { Component::deserialize_file(engine, path) };
            component.map_err(|error| SandboxError::InvalidGuest { path: path.clone(), reason: format!("{error:#}") })
        }
    }
}

/// Makes the guest's code executable in place: wasmtime does not change the protection of memory that it does not own.
struct InPlaceCodeMemory;

/// Returns the engine's hook for making code executable.
pub(crate) fn code_memory() -> Arc<dyn CustomCodeMemory> {
    Arc::new(InPlaceCodeMemory)
}

impl CustomCodeMemory for InPlaceCodeMemory {
    fn required_alignment(&self) -> usize {
        page_size()
    }

    fn publish_executable(&self, start: *const u8, length: usize) -> wasmtime::Result<()> {
        // SAFETY: the pages contain only the guest's code and are never written.
        #[expect(unsafe_code, reason = "read-only pages become executable")]
        unsafe {
            rustix::mm::mprotect(start.cast_mut().cast(), length, MprotectFlags::READ | MprotectFlags::EXEC)?;
        }
        Ok(())
    }

    fn unpublish_executable(&self, _start: *const u8, _length: usize) -> wasmtime::Result<()> {
        // A file's pages are unmapped next; embedded pages remain mapped.
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use karat_core::judgement::Conclusion;

    use super::*;
    use crate::Sandbox;

    #[test]
    fn loads_embedded_code_and_files() {
        let embedded = Guest::find(None).expect("a build with Python");
        let Code::Embedded(code) = embedded.code() else { panic!("expected an embedded guest") };
        let folder = tempfile::tempdir().expect("a temporary directory");
        let path = folder.path().join("guest.cwasm");
        std::fs::write(&path, code).expect("written");
        let from_file = Guest::find(Some(&path)).expect("a guest");
        let first = Sandbox::open(&embedded).expect("loaded");
        drop(Sandbox::open(&embedded).expect("loaded"));
        for sandbox in [first, Sandbox::open(&from_file).expect("loaded")] {
            let function = crate::validate(b"def eval_x(trace):\n    return True, 'fine'\n").expect("valid");
            let task = crate::Task {
                functions: vec![Arc::new(function)],
                limits: karat_core::judgement::Limits::default(),
                isolation: crate::Isolation::default(),
                jobs: 1,
            };
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
            let inputs = vec![crate::Input { key: (), text: Ok(b"{}".to_vec()) }];
            let judged = runtime.block_on(sandbox.judge_all(&task, inputs)).expect("judged");
            let conclusion = &judged[0].judgements[0].conclusion;
            assert!(matches!(conclusion, Conclusion::Verdict { passed: true, .. }), "{conclusion:?}");
        }
    }
}
