//! The engine's allocator for instance memory.

use std::cell::RefCell;
use std::sync::Arc;

use wasmtime::{LinearMemory, MemoryCreator, MemoryType};

use super::image::MemoryImage;
use super::region::Region;

thread_local! {
    /// Regions allocated on this thread since the last call of `take_allocated_regions`. The engine does not expose an
    /// instance's memory, but it creates instances on the calling thread.
    static ALLOCATED: RefCell<Vec<Arc<Region>>> = const { RefCell::new(Vec::new()) };
}

/// Returns the regions that were allocated on this thread since the last call.
pub(crate) fn take_allocated_regions() -> Vec<Arc<Region>> {
    ALLOCATED.take()
}

/// Creates memories that start with the guest's initial memory.
pub(crate) struct RegionCreator(pub(crate) Arc<MemoryImage>);

// SAFETY: every region is new, has the requested size, and ends with guard pages. Its content is that of the data
// segments that the build extracted from the guest.
#[expect(unsafe_code, reason = "the engine relies on this implementation")]
unsafe impl MemoryCreator for RegionCreator {
    fn new_memory(
        &self,
        _type: MemoryType,
        minimum: usize,
        _maximum: Option<usize>,
        reserved: Option<usize>,
        guard: usize,
    ) -> Result<Box<dyn LinearMemory>, String> {
        let capacity = reserved.unwrap_or(minimum);
        if self.0.bytes().len() > minimum {
            return Err("the initial memory is larger than the guest's memory".to_owned());
        }
        let region = Region::new(capacity + guard, Arc::clone(&self.0)).map_err(|error| error.to_string())?;
        region.grow_to(minimum).map_err(|error| error.to_string())?;
        let region = Arc::new(region);
        ALLOCATED.with_borrow_mut(|regions| regions.push(Arc::clone(&region)));
        Ok(Box::new(InstanceMemory { region, capacity }))
    }
}

/// The memory of an instance.
struct InstanceMemory {
    region: Arc<Region>,
    capacity: usize,
}

// SAFETY: the region has the requested size, never moves, and is followed by inaccessible pages.
#[expect(unsafe_code, reason = "the engine relies on this implementation")]
unsafe impl LinearMemory for InstanceMemory {
    fn byte_size(&self) -> usize {
        self.region.size()
    }

    fn byte_capacity(&self) -> usize {
        self.capacity
    }

    fn grow_to(&mut self, new_size: usize) -> wasmtime::Result<()> {
        if new_size > self.capacity {
            return Err(wasmtime::format_err!("cannot grow memory to {new_size} bytes"));
        }
        Ok(self.region.grow_to(new_size)?)
    }

    fn as_ptr(&self) -> *mut u8 {
        self.region.as_ptr()
    }
}
