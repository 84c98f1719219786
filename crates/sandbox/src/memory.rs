//! Memory of Python instances that can be restored to an earlier state.
//!
//! Copying 14 MB takes less than a millisecond, a new instance three times as long, and page faults on fresh memory ten
//! times as long. So memory is not returned to the system but restored, or reused for the next instance.

use std::cell::RefCell;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags};
use wasmtime::{LinearMemory, MemoryCreator, MemoryType};

/// Maximum number of free regions in the pool; more are returned to the system.
const MAX_FREE_REGIONS: usize = 8;

thread_local! {
    /// Regions allocated on this thread since the last call of `take_allocated_regions`. The engine does not expose an
    /// instance's memory, but it creates instances on the calling thread.
    static ALLOCATED: RefCell<Vec<Arc<Region>>> = const { RefCell::new(Vec::new()) };
}

/// Address space of one instance: its memory, followed by inaccessible guard pages.
pub(crate) struct Region {
    base: *mut c_void,
    reserved: usize,
    /// Size of the accessible part.
    size: AtomicUsize,
}

// SAFETY: the pointer is to pages that belong to this value alone; each use states when it may access them.
#[expect(unsafe_code, reason = "a pointer to owned pages may move between threads")]
unsafe impl Send for Region {}
// SAFETY: as above.
#[expect(unsafe_code, reason = "a pointer to owned pages may be shared between threads")]
unsafe impl Sync for Region {}

impl Region {
    fn reserve(reserved: usize) -> rustix::io::Result<Self> {
        // SAFETY: new pages at an address that the system chooses.
        #[expect(unsafe_code, reason = "pages for an instance")]
        let base =
            unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), reserved, ProtFlags::empty(), MapFlags::PRIVATE)? };
        Ok(Self { base, reserved, size: AtomicUsize::new(0) })
    }

    pub(crate) fn size(&self) -> usize {
        self.size.load(Ordering::Acquire)
    }

    /// Makes the first `size` bytes accessible; never shrinks.
    fn grow_to(&self, size: usize) -> rustix::io::Result<()> {
        let old = self.size();
        if size > old {
            // SAFETY: the caller ensures that the pages belong to this region.
            #[expect(unsafe_code, reason = "makes pages accessible")]
            unsafe {
                rustix::mm::mprotect(self.base.byte_add(old), size - old, MprotectFlags::READ | MprotectFlags::WRITE)?;
            }
            self.size.store(size, Ordering::Release);
        }
        Ok(())
    }

    /// Zeroes a part of the memory by replacing its pages.
    fn discard(&self, from: usize, to: usize) -> rustix::io::Result<()> {
        if from >= to {
            return Ok(());
        }
        // SAFETY: the pages belong to this region's memory, and nothing runs in it now.
        #[expect(unsafe_code, reason = "replaces pages with untouched ones")]
        unsafe {
            rustix::mm::mmap_anonymous(
                self.base.byte_add(from),
                to - from,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::FIXED,
            )?;
        }
        Ok(())
    }

    /// Zeroes the region and makes it inaccessible. The first `retained` bytes keep their pages.
    fn clear(&self, retained: usize) -> rustix::io::Result<()> {
        let size = self.size();
        let retained = retained.min(size);
        // SAFETY: the instance that used the memory was dropped, and the next one does not exist yet.
        #[expect(unsafe_code, reason = "memory that is reused soon is cheaper to zero than to replace")]
        unsafe {
            ptr::write_bytes(self.base.cast::<u8>(), 0, retained);
        }
        self.discard(retained, size)?;
        if size > 0 {
            // SAFETY: the pages belong to this region.
            #[expect(unsafe_code, reason = "makes the memory inaccessible")]
            unsafe {
                rustix::mm::mprotect(self.base, size, MprotectFlags::empty())?;
            }
        }
        self.size.store(0, Ordering::Release);
        Ok(())
    }

    /// Copies a part of the memory. The instance must not be running.
    fn copy(&self, from: usize, to: usize) -> Vec<u8> {
        debug_assert!(from <= to && to <= self.size());
        let mut bytes = Vec::with_capacity(to - from);
        // SAFETY: the range is memory of this region, and nothing writes to it now.
        #[expect(unsafe_code, reason = "the engine gives no access to a component's memory")]
        unsafe {
            ptr::copy_nonoverlapping(self.base.cast::<u8>().add(from), bytes.as_mut_ptr(), to - from);
            bytes.set_len(to - from);
        }
        bytes
    }

    fn write(&self, at: usize, bytes: &[u8]) {
        debug_assert!(at + bytes.len() <= self.size());
        // SAFETY: the range is memory of this region, and nothing runs in it now.
        #[expect(unsafe_code, reason = "the engine gives no access to a component's memory")]
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), self.base.cast::<u8>().add(at), bytes.len());
        }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: there are no other references to this region.
        #[expect(unsafe_code, reason = "returns pages to the system")]
        let _ = unsafe { rustix::mm::munmap(self.base, self.reserved) };
    }
}

/// A copy of a memory's two ends; everything between them was untouched.
pub(crate) struct Snapshot {
    low: Vec<u8>,
    high: Vec<u8>,
    size: usize,
}

impl Snapshot {
    /// Copies a memory of which only the first `low` and the last `high` bytes were ever touched.
    pub(crate) fn take(region: &Region, low: usize, high: usize) -> Self {
        let size = region.size();
        let low = low.min(size);
        let high = high.min(size - low);
        Self { low: region.copy(0, low), high: region.copy(size - high, size), size }
    }

    /// Restores the memory. The instance must not be running. Returns false if the memory has grown, since it cannot
    /// shrink.
    pub(crate) fn restore(&self, region: &Region) -> bool {
        let high = self.size - self.high.len();
        if region.size() != self.size || region.discard(self.low.len(), high).is_err() {
            return false;
        }
        region.write(0, &self.low);
        region.write(high, &self.high);
        true
    }
}

/// The memory of an instance; returns its region to the pool when dropped.
struct InstanceMemory {
    region: Arc<Region>,
    capacity: usize,
    pool: Arc<RegionPool>,
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
        self.region.base.cast()
    }
}

impl Drop for InstanceMemory {
    fn drop(&mut self) {
        self.pool.release(&self.region);
    }
}

/// A pool of memory regions for instances.
#[derive(Default)]
pub(crate) struct RegionPool {
    free: Mutex<Vec<Arc<Region>>>,
}

impl RegionPool {
    /// Keeps a region for the next instance, unless there is another reference to it.
    fn release(&self, region: &Arc<Region>) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let is_unused = Arc::strong_count(region) == 1;
        if is_unused && free.len() < MAX_FREE_REGIONS && region.discard(RETAINED_BYTES, region.size()).is_ok() {
            free.push(Arc::clone(region));
        }
    }

    fn acquire(&self, reserved: usize) -> rustix::io::Result<Arc<Region>> {
        loop {
            let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
            match free {
                Some(region) if region.reserved == reserved => {
                    if region.clear(RETAINED_BYTES).is_ok() {
                        return Ok(region);
                    }
                }
                Some(_) => {}
                None => return Region::reserve(reserved).map(Arc::new),
            }
        }
    }
}

/// Pages that free regions keep: every instance uses them for Python itself.
const RETAINED_BYTES: usize = 16 << 20;

/// The engine's allocator for instance memory.
pub(crate) struct RegionCreator(pub(crate) Arc<RegionPool>);

// SAFETY: every region is zeroed, has the requested size, and ends with guard pages.
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
        let region = self.0.acquire(capacity + guard).map_err(|error| error.to_string())?;
        region.grow_to(minimum).map_err(|error| error.to_string())?;
        ALLOCATED.with_borrow_mut(|regions| regions.push(Arc::clone(&region)));
        Ok(Box::new(InstanceMemory { region, capacity, pool: Arc::clone(&self.0) }))
    }
}

/// Returns the regions that were allocated on this thread since the last call.
pub(crate) fn take_allocated_regions() -> Vec<Arc<Region>> {
    ALLOCATED.take()
}
