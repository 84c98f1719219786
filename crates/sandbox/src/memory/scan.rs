//! Finds written pages on Linux.

use std::ffi::c_void;
use std::fs::File;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::ptr;
use std::sync::LazyLock;

use linux_raw_sys::general::{
    PAGE_IS_FILE, PAGE_IS_PRESENT, PAGE_IS_SWAPPED, PAGE_IS_WRITTEN, PM_SCAN_CHECK_WPASYNC, UFFD_API,
    UFFD_FEATURE_WP_ASYNC, UFFD_USER_MODE_ONLY, UFFDIO_REGISTER_MODE_WP, page_region, pm_scan_arg, uffdio_api,
    uffdio_range, uffdio_register, uffdio_writeprotect,
};
use rustix::io;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, Updater, ioctl, opcode};
use rustix::mm::{MapFlags, ProtFlags, UserfaultfdFlags};
use rustix::param::page_size;

use super::pages::RestoreMethod;

/// Requests the protection of pages (`UFFDIO_WRITEPROTECT_MODE_WP`); without it, pages are unprotected.
const PROTECT: u64 = 1;

const UFFDIO_API: Opcode = opcode::read_write::<uffdio_api>(0xAA, 0x3F);
const UFFDIO_REGISTER: Opcode = opcode::read_write::<uffdio_register>(0xAA, 0x00);
const UFFDIO_WRITEPROTECT: Opcode = opcode::read_write::<uffdio_writeprotect>(0xAA, 0x06);
const PAGEMAP_SCAN: Opcode = opcode::read_write::<pm_scan_arg>(b'f', 16);

/// Maximum number of ranges per scan; more ranges need further scans.
const RANGES_PER_SCAN: usize = 512;

static PAGEMAP: LazyLock<Option<File>> = LazyLock::new(|| File::open("/proc/self/pagemap").ok());

static USERFAULTFD: LazyLock<Option<OwnedFd>> = LazyLock::new(|| {
    let flags = UserfaultfdFlags::CLOEXEC | UserfaultfdFlags::from_bits_retain(UFFD_USER_MODE_ONLY);
    // SAFETY: the descriptor is only used to protect pages of regions.
    #[expect(unsafe_code, reason = "creates a descriptor that can affect memory")]
    let descriptor = unsafe { rustix::mm::userfaultfd(flags) }.ok()?;
    let mut api = uffdio_api { api: UFFD_API.into(), features: UFFD_FEATURE_WP_ASYNC.into(), ioctls: 0 };
    // SAFETY: the argument has the type that this operation expects.
    #[expect(unsafe_code, reason = "negotiates features")]
    unsafe { ioctl(&descriptor, Updater::<UFFDIO_API, _>::new(&mut api)) }.ok()?;
    Some(descriptor)
});

/// The kind of pages that a scan reports.
#[derive(Debug, Clone, Copy)]
pub(super) enum PageKind {
    /// Pages that were written since they were protected. The whole range must have been protected before.
    Written,
    /// Pages in memory that are not those of a mapped file. Untouched pages are not reported.
    Private,
}

/// A scan of pages; returns the number of ranges that it found, and the address where it ended.
struct Scan(pm_scan_arg);

// SAFETY: the argument is what the operation expects.
#[expect(unsafe_code, reason = "an operation of the pagemap file")]
unsafe impl Ioctl for Scan {
    type Output = (usize, u64);
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        PAGEMAP_SCAN
    }

    fn as_ptr(&mut self) -> *mut c_void {
        (&raw mut self.0).cast()
    }

    unsafe fn output_from_ptr(count: IoctlOutput, argument: *mut c_void) -> io::Result<Self::Output> {
        let count = usize::try_from(count).map_err(|_| io::Errno::RANGE)?;
        // SAFETY: this is the pointer from `as_ptr`.
        let argument = unsafe { argument.cast::<pm_scan_arg>().read() };
        Ok((count, argument.walk_end))
    }
}

/// Calls `report` with the ranges of pages of a kind, as offsets from the start.
pub(super) fn scan(
    start: *const u8,
    length: usize,
    kind: PageKind,
    mut report: impl FnMut(Range<usize>),
) -> io::Result<()> {
    let pagemap = PAGEMAP.as_ref().ok_or(io::Errno::NOENT)?;
    let base = start as u64;
    let end = base + length as u64;
    let mut found = [page_region { start: 0, end: 0, categories: 0 }; RANGES_PER_SCAN];
    let mut argument = pm_scan_arg {
        size: size_of::<pm_scan_arg>() as u64,
        flags: 0,
        start: base,
        end,
        walk_end: base,
        vec: found.as_mut_ptr() as u64,
        vec_len: RANGES_PER_SCAN as u64,
        max_pages: 0,
        category_inverted: 0,
        category_mask: 0,
        category_anyof_mask: 0,
        return_mask: 0,
    };
    match kind {
        // The kernel has a fast path for exactly this query.
        PageKind::Written => {
            argument.flags = PM_SCAN_CHECK_WPASYNC.into();
            argument.category_mask = PAGE_IS_WRITTEN.into();
            argument.return_mask = PAGE_IS_WRITTEN.into();
        }
        PageKind::Private => {
            argument.category_inverted = PAGE_IS_FILE.into();
            argument.category_mask = PAGE_IS_FILE.into();
            argument.category_anyof_mask = (PAGE_IS_PRESENT | PAGE_IS_SWAPPED).into();
        }
    }
    while argument.start < end {
        // SAFETY: the scan writes only to its own argument and to `found`, which has `vec_len` elements.
        #[expect(unsafe_code, reason = "lists pages of this process")]
        let (count, walk_end) = unsafe { ioctl(pagemap, Scan(argument)) }?;
        for range in found.get(..count).ok_or(io::Errno::RANGE)? {
            let offset = |address: u64| usize::try_from(address - base).map_err(|_| io::Errno::RANGE);
            report(offset(range.start)?..offset(range.end)?);
        }
        if walk_end <= argument.start {
            return Err(io::Errno::RANGE);
        }
        argument.start = walk_end;
    }
    Ok(())
}

fn range_of(start: *const u8, length: usize) -> uffdio_range {
    uffdio_range { start: start as u64, len: length as u64 }
}

/// Registers pages for protection, until they are unmapped.
pub(super) fn register(start: *const u8, length: usize) -> io::Result<()> {
    let descriptor = USERFAULTFD.as_ref().ok_or(io::Errno::NOSYS)?;
    let mode = UFFDIO_REGISTER_MODE_WP.into();
    let mut argument = uffdio_register { range: range_of(start, length), mode, ioctls: 0 };
    // SAFETY: the argument has the type that this operation expects, and the pages belong to the caller.
    #[expect(unsafe_code, reason = "affects pages of this process")]
    unsafe {
        ioctl(descriptor, Updater::<UFFDIO_REGISTER, _>::new(&mut argument))
    }
}

/// Protects pages, so that the next write to each is recorded.
pub(super) fn protect(start: *const u8, length: usize) -> io::Result<()> {
    let descriptor = USERFAULTFD.as_ref().ok_or(io::Errno::NOSYS)?;
    let mut argument = uffdio_writeprotect { range: range_of(start, length), mode: PROTECT };
    // SAFETY: as in `register`. The system resolves faults of protected pages by itself.
    #[expect(unsafe_code, reason = "affects pages of this process")]
    unsafe {
        ioctl(descriptor, Updater::<UFFDIO_WRITEPROTECT, _>::new(&mut argument))
    }
}

/// Whether a method finds writes on this system, tested with a few pages.
pub(super) fn is_available(method: RestoreMethod) -> bool {
    match method {
        RestoreMethod::FullCopy => true,
        RestoreMethod::PrivatePages => finds_writes(PageKind::Private).unwrap_or(false),
        RestoreMethod::WriteProtection => finds_writes(PageKind::Written).unwrap_or(false),
    }
}

/// Maps the start of the program's file, writes to some of its pages, and compares them with the reported ones.
fn finds_writes(kind: PageKind) -> io::Result<bool> {
    const PAGES: usize = 8;
    /// Read before they are protected.
    const READ: [usize; 3] = [1, 2, 3];
    const WRITTEN: [usize; 3] = [0, 2, 5];

    let page = page_size();
    let file = File::open("/proc/self/exe").map_err(|_| io::Errno::NOENT)?;
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new private mapping; only its first pages are used, which every program file has.
    #[expect(unsafe_code, reason = "pages for a test")]
    let start = unsafe { rustix::mm::mmap(ptr::null_mut(), PAGES * page, access, MapFlags::PRIVATE, &file, 0) }?;
    let start = start.cast::<u8>();
    let run = || {
        // SAFETY: the page is one of the mapping above.
        #[expect(unsafe_code, reason = "pages for a test")]
        let read = |number: usize| unsafe { start.add(number * page).read_volatile() };
        for number in READ {
            read(number);
        }
        if let PageKind::Written = kind {
            register(start, PAGES * page)?;
            protect(start, PAGES * page)?;
        }
        for number in WRITTEN {
            // SAFETY: as above.
            #[expect(unsafe_code, reason = "pages for a test")]
            unsafe {
                start.add(number * page).write_volatile(1);
            }
        }
        read(7);
        let mut found = Vec::new();
        scan(start, PAGES * page, kind, |range| found.extend(range.step_by(page).map(|at| at / page)))?;
        Ok(found == WRITTEN)
    };
    let found = run();
    // SAFETY: nothing refers to the mapping any more.
    #[expect(unsafe_code, reason = "pages for a test")]
    let _ = unsafe { rustix::mm::munmap(start.cast(), PAGES * page) };
    found
}
