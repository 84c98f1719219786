//! Address space of one instance.

use std::ffi::c_void;
use std::io;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags};
use rustix::param::page_size;

use super::image::MemoryImage;

/// An instance's memory, which starts with the guest's initial memory, followed by inaccessible pages.
pub(crate) struct Region {
    base: *mut c_void,
    reserved: usize,
    /// Size of the accessible part.
    size: AtomicUsize,
    image: Arc<MemoryImage>,
    /// Whether the start is a private mapping of the image's file, so that only written pages are copied.
    is_mapped: bool,
}

// SAFETY: the pointer is to pages that belong to this value alone; each use states when it may access them.
#[expect(unsafe_code, reason = "a pointer to owned pages may move between threads")]
unsafe impl Send for Region {}
// SAFETY: as above.
#[expect(unsafe_code, reason = "a pointer to owned pages may be shared between threads")]
unsafe impl Sync for Region {}

impl Region {
    /// Reserves address space. Its start is accessible and contains the image.
    pub(crate) fn new(reserved: usize, image: Arc<MemoryImage>) -> io::Result<Self> {
        // SAFETY: new pages at an address that the system chooses.
        #[expect(unsafe_code, reason = "pages for an instance")]
        let base =
            unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), reserved, ProtFlags::empty(), MapFlags::PRIVATE)? };
        let mut region = Self { base, reserved, size: AtomicUsize::new(0), image, is_mapped: false };
        region.disable_huge_pages();
        let length = region.image.bytes().len();
        if length > reserved {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        region.is_mapped = region.map_image();
        if region.is_mapped {
            region.size.store(length, Ordering::Release);
        } else {
            region.grow_to(length)?;
            region.write(0, region.image.bytes());
        }
        Ok(region)
    }

    /// Maps the image's file at the start of the region. Returns false if there is no file or this fails.
    fn map_image(&self) -> bool {
        let length = self.image.bytes().len();
        let Some((file, offset)) = self.image.file() else { return false };
        if !length.is_multiple_of(page_size()) {
            return false;
        }
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::FIXED;
        // SAFETY: the pages belong to this region, which no instance uses yet. The mapping is private, so the file does
        // not change.
        #[expect(unsafe_code, reason = "maps the initial memory")]
        let mapped = unsafe { rustix::mm::mmap(self.base, length, access, flags, file, *offset) };
        mapped.is_ok()
    }

    /// Disables huge pages, so that a write marks only a small page.
    fn disable_huge_pages(&self) {
        #[cfg(target_os = "linux")]
        // SAFETY: this only affects how the system manages the pages of this region.
        #[expect(unsafe_code, reason = "advice about owned pages")]
        let _ = unsafe { rustix::mm::madvise(self.base, self.reserved, Advice::LinuxNoHugepage) };
    }

    pub(crate) fn size(&self) -> usize {
        self.size.load(Ordering::Acquire)
    }

    pub(super) fn image(&self) -> &[u8] {
        self.image.bytes()
    }

    pub(super) fn is_mapped(&self) -> bool {
        self.is_mapped
    }

    pub(super) fn as_ptr(&self) -> *mut u8 {
        self.base.cast()
    }

    /// Makes the first `size` bytes accessible; never shrinks.
    pub(super) fn grow_to(&self, size: usize) -> rustix::io::Result<()> {
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

    /// Replaces whole pages by untouched ones, which have the content of the image's file, or zeros beyond it.
    pub(super) fn discard(&self, from: usize, to: usize) -> rustix::io::Result<()> {
        debug_assert!(from <= to && to <= self.size());
        #[cfg(target_os = "linux")]
        // SAFETY: the pages belong to this region, and nothing runs in it now.
        #[expect(unsafe_code, reason = "replaces pages with untouched ones")]
        unsafe {
            rustix::mm::madvise(self.base.byte_add(from), to - from, Advice::LinuxDontNeed)
        }
        // Other systems keep the content of pages after this advice, and do not map the image.
        #[cfg(not(target_os = "linux"))]
        // SAFETY: as above.
        #[expect(unsafe_code, reason = "replaces pages with untouched ones")]
        unsafe {
            let access = ProtFlags::READ | ProtFlags::WRITE;
            let flags = MapFlags::PRIVATE | MapFlags::FIXED;
            rustix::mm::mmap_anonymous(self.base.byte_add(from), to - from, access, flags).map(drop)
        }
    }

    /// Copies a part of the memory. The instance must not be running.
    pub(super) fn copy(&self, from: usize, to: usize) -> Vec<u8> {
        self.with_bytes(from, to, <[u8]>::to_vec)
    }

    /// Whether a part of the memory has this content. The instance must not be running.
    pub(super) fn equals(&self, at: usize, expected: &[u8]) -> bool {
        self.with_bytes(at, at + expected.len(), |bytes| bytes == expected)
    }

    /// Whether a part of the memory is zero. The instance must not be running.
    pub(super) fn is_zero(&self, from: usize, to: usize) -> bool {
        static ZEROS: [u8; 4096] = [0; 4096];
        self.with_bytes(from, to, |bytes| bytes.chunks(ZEROS.len()).all(|chunk| *chunk == ZEROS[..chunk.len()]))
    }

    fn with_bytes<T>(&self, from: usize, to: usize, read: impl FnOnce(&[u8]) -> T) -> T {
        assert!(from <= to && to <= self.size());
        // SAFETY: the range is accessible memory of this region, and nothing writes to it now: instances run on the
        // thread that calls this.
        #[expect(unsafe_code, reason = "the engine gives no access to a component's memory")]
        read(unsafe { std::slice::from_raw_parts(self.as_ptr().add(from), to - from) })
    }

    /// Writes to the memory. The instance must not be running.
    pub(super) fn write(&self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= self.size());
        // SAFETY: the range is accessible memory of this region, and nothing else uses it now.
        #[expect(unsafe_code, reason = "the engine gives no access to a component's memory")]
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), self.as_ptr().add(at), bytes.len());
        }
    }

    /// Zeroes a part of the memory. The instance must not be running.
    pub(super) fn zero(&self, from: usize, to: usize) {
        assert!(from <= to && to <= self.size());
        // SAFETY: as in `write`.
        #[expect(unsafe_code, reason = "the engine gives no access to a component's memory")]
        unsafe {
            ptr::write_bytes(self.as_ptr().add(from), 0, to - from);
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
