//! The memory in which Python lives, so that it can be put back to an earlier state.
//!
//! A copy of 14 MB takes less than a millisecond, a new instance three times as long, and pages that the system must
//! hand out one by one ten times. So memory is never given back while the program runs: it is put back, or handed to
//! the next instance.

use std::cell::RefCell;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags};
use wasmtime::{LinearMemory, MemoryCreator, MemoryType};

/// How many regions wait for a next instance; the rest goes back to the system.
const MOST_SPARE: usize = 8;

thread_local! {
    /// The regions that were handed out on this thread since it last asked: the engine tells nobody which instance
    /// lives where, but makes an instance on the thread that asks for it.
    static HANDED_OUT: RefCell<Vec<Arc<Region>>> = const { RefCell::new(Vec::new()) };
}

/// Address space of one instance: its memory, then pages that nobody may touch.
pub(crate) struct Region {
    base: *mut c_void,
    reserved: usize,
    /// How much of it is memory.
    size: AtomicUsize,
}

// SAFETY: the pointer is to pages that belong to this value alone; who may use them when is said at each use.
#[expect(unsafe_code, reason = "a pointer to pages of our own may move between threads")]
unsafe impl Send for Region {}
// SAFETY: as above.
#[expect(unsafe_code, reason = "a pointer to pages of our own may be seen by several threads")]
unsafe impl Sync for Region {}

impl Region {
    fn reserve(reserved: usize) -> rustix::io::Result<Self> {
        // SAFETY: new pages at a place of the system's choice.
        #[expect(unsafe_code, reason = "pages for an instance")]
        let base =
            unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), reserved, ProtFlags::empty(), MapFlags::PRIVATE)? };
        Ok(Self { base, reserved, size: AtomicUsize::new(0) })
    }

    pub(crate) fn size(&self) -> usize {
        self.size.load(Ordering::Acquire)
    }

    /// Makes the region's first bytes memory; it must not shrink.
    fn grow_to(&self, size: usize) -> rustix::io::Result<()> {
        let old = self.size();
        if size > old {
            // SAFETY: the pages are of this region, which the caller saw to.
            #[expect(unsafe_code, reason = "pages become memory")]
            unsafe {
                rustix::mm::mprotect(self.base.byte_add(old), size - old, MprotectFlags::READ | MprotectFlags::WRITE)?;
            }
            self.size.store(size, Ordering::Release);
        }
        Ok(())
    }

    /// Makes a part of the memory zero by giving its pages back.
    fn forget(&self, from: usize, to: usize) -> rustix::io::Result<()> {
        if from >= to {
            return Ok(());
        }
        // SAFETY: the pages are of this region's memory, and nothing runs in it now.
        #[expect(unsafe_code, reason = "pages are exchanged for untouched ones")]
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

    /// Makes the region as good as new: no memory, and zero where it was.
    fn clear(&self, keep: usize) -> rustix::io::Result<()> {
        let size = self.size();
        let kept = keep.min(size);
        // SAFETY: the memory's instance is gone, and the next one is not there yet.
        #[expect(unsafe_code, reason = "memory that will be used again at once is cheaper to clear than to give back")]
        unsafe {
            ptr::write_bytes(self.base.cast::<u8>(), 0, kept);
        }
        self.forget(kept, size)?;
        if size > 0 {
            // SAFETY: the pages are of this region.
            #[expect(unsafe_code, reason = "memory becomes untouchable")]
            unsafe {
                rustix::mm::mprotect(self.base, size, MprotectFlags::empty())?;
            }
        }
        self.size.store(0, Ordering::Release);
        Ok(())
    }

    /// Copies a part of the memory. Nothing may run in it meanwhile.
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
        // SAFETY: nobody has this region any more.
        #[expect(unsafe_code, reason = "pages go back to the system")]
        let _ = unsafe { rustix::mm::munmap(self.base, self.reserved) };
    }
}

/// What a memory held at one time. All between its two parts was untouched then.
pub(crate) struct Image {
    low: Vec<u8>,
    high: Vec<u8>,
    size: usize,
}

impl Image {
    /// Takes a picture of a memory in which only the first and the last bytes were ever touched.
    pub(crate) fn take(region: &Region, low: usize, high: usize) -> Self {
        let size = region.size();
        let low = low.min(size);
        let high = high.min(size - low);
        Self { low: region.copy(0, low), high: region.copy(size - high, size), size }
    }

    /// Puts the memory back. Nothing may run in it meanwhile. False when that cannot be, since it has grown: memory
    /// does not shrink.
    pub(crate) fn put_back(&self, region: &Region) -> bool {
        let high = self.size - self.high.len();
        if region.size() != self.size || region.forget(self.low.len(), high).is_err() {
            return false;
        }
        region.write(0, &self.low);
        region.write(high, &self.high);
        true
    }
}

/// An instance's hold on its memory.
struct Held {
    region: Arc<Region>,
    capacity: usize,
    home: Arc<Regions>,
}

// SAFETY: the region is as large as was asked for, never moves, and what follows its memory cannot be touched.
#[expect(unsafe_code, reason = "the engine trusts what is said here")]
unsafe impl LinearMemory for Held {
    fn byte_size(&self) -> usize {
        self.region.size()
    }

    fn byte_capacity(&self) -> usize {
        self.capacity
    }

    fn grow_to(&mut self, new_size: usize) -> wasmtime::Result<()> {
        if new_size > self.capacity {
            return Err(wasmtime::format_err!("a memory of {new_size} bytes does not fit"));
        }
        Ok(self.region.grow_to(new_size)?)
    }

    fn as_ptr(&self) -> *mut u8 {
        self.region.base.cast()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.home.take_back(&self.region);
    }
}

/// Hands out memory to instances, and takes it back.
#[derive(Default)]
pub(crate) struct Regions {
    spare: Mutex<Vec<Arc<Region>>>,
}

impl Regions {
    /// Keeps a region for the next instance, unless somebody other than the one who brings it still has it.
    fn take_back(&self, region: &Arc<Region>) {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        // What a function used beyond that is not to be kept for nothing.
        if Arc::strong_count(region) == 1 && spare.len() < MOST_SPARE && region.forget(KEPT, region.size()).is_ok() {
            spare.push(Arc::clone(region));
        }
    }

    fn find(&self, reserved: usize) -> rustix::io::Result<Arc<Region>> {
        loop {
            let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
            match spare {
                Some(region) if region.reserved == reserved => {
                    if region.clear(KEPT).is_ok() {
                        return Ok(region);
                    }
                }
                Some(_) => {}
                None => return Region::reserve(reserved).map(Arc::new),
            }
        }
    }
}

/// How much of a memory the next instance uses for certain: Python's own part.
const KEPT: usize = 16 << 20;

/// The creator that the engine knows; instances keep the regions alive.
pub(crate) struct Creator(pub(crate) Arc<Regions>);

// SAFETY: every region is zero, as large as was asked for, and guarded at its end.
#[expect(unsafe_code, reason = "the engine trusts what is said here")]
unsafe impl MemoryCreator for Creator {
    fn new_memory(
        &self,
        _type: MemoryType,
        minimum: usize,
        _maximum: Option<usize>,
        reserved: Option<usize>,
        guard: usize,
    ) -> Result<Box<dyn LinearMemory>, String> {
        let capacity = reserved.unwrap_or(minimum);
        let region = self.0.find(capacity + guard).map_err(|error| error.to_string())?;
        region.grow_to(minimum).map_err(|error| error.to_string())?;
        HANDED_OUT.with_borrow_mut(|regions| regions.push(Arc::clone(&region)));
        Ok(Box::new(Held { region, capacity, home: Arc::clone(&self.0) }))
    }
}

/// Returns the memories that were handed out on this thread since this was last asked.
pub(crate) fn handed_out() -> Vec<Arc<Region>> {
    HANDED_OUT.take()
}
