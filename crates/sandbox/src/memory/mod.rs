//! Memory of Python instances, which is restored after each trace.
//!
//! An instance's memory starts as a private mapping of the guest's initial memory in the program file, so that starting
//! an instance copies nothing. `Snapshot` captures the memory before the first trace and restores it after each one.
//! The pages that a trace wrote are found in one of these ways (`RestoreMethod`):
//!
//! - Write protection: the system records the first write to each protected page (`userfaultfd`, asynchronous), and
//!   `PAGEMAP_SCAN` lists the written ones in about 10 µs. Pages that most traces write stay unprotected, since
//!   protecting a page and the fault of the next write take longer than comparing it.
//! - Private pages: `PAGEMAP_SCAN` lists the pages that no longer map the file. Containers often forbid
//!   `userfaultfd`.
//! - Otherwise all of the memory is copied.
//!
//! A page that is not reported was not written. A page that is reported is compared with the snapshot, so reporting too
//! many pages costs only time. The memory never grows during a trace: see `Instance::prepare`.
//!
//! This module and the loader of the guest's machine code (`code.rs`) contain the crate's `unsafe` code.

mod creator;
mod image;
mod pages;
mod region;
#[cfg(target_os = "linux")]
mod scan;
mod snapshot;

pub(crate) use creator::{RegionCreator, take_allocated_regions};
pub(crate) use image::MemoryImage;
pub use pages::RestoreMethod;
pub(crate) use region::Region;
pub(crate) use snapshot::{RestoreStats, Snapshot};
