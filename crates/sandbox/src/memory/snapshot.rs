//! Captures and restores the memory of an instance.

use std::ops::Range;
use std::sync::Arc;

use rustix::param::page_size;

use super::pages::RestoreMethod;
use super::region::Region;
#[cfg(target_os = "linux")]
use super::scan::{self, PageKind};

/// Size of the end of the memory, where Python's allocator keeps its end marker.
const TAIL_BYTES: usize = 64 << 10;

/// Pages that are unprotected are protected again after this many traces that did not change them.
const MAX_IDLE_TRACES: u8 = 64;

/// Maximum number of pages beyond the tracked ones that stay in memory between traces.
const MAX_SPARE_PAGES: usize = 1024;

/// Marks a page that has the content of the initial memory, or zeros beyond it.
const UNCHANGED: u32 = u32::MAX;

/// Page counts of one restore.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RestoreStats {
    /// Pages that may have been written.
    pub(crate) compared: usize,
    /// Pages that were different.
    pub(crate) changed: usize,
}

/// A memory's content: the pages that differ from the initial memory.
pub(crate) struct Snapshot {
    region: Arc<Region>,
    method: RestoreMethod,
    page: usize,
    size: usize,
    /// The end of the memory that was in use when it was captured; writes up to here are tracked. The rest is zero
    /// memory that Python has reserved, except for the tail.
    tracked: usize,
    /// For each page its index in `contents`, or `UNCHANGED`.
    index: Vec<u32>,
    contents: Vec<u8>,
    /// For each tracked page, while it is unprotected, the number of traces since its last change.
    idle: Vec<u8>,
}

impl Snapshot {
    /// Captures a memory. Returns `None` if the system does not allow it.
    pub(crate) fn capture(region: Arc<Region>, method: RestoreMethod) -> Option<Self> {
        // Without a mapping, every page is private.
        let must_copy = method == RestoreMethod::PrivatePages && !region.is_mapped();
        let method = if must_copy { RestoreMethod::FullCopy } else { method };
        let (page, size) = (page_size(), region.size());
        let pages = size.div_ceil(page);
        let mut snapshot = Self {
            region,
            method,
            page,
            size,
            tracked: 0,
            index: vec![UNCHANGED; pages],
            contents: Vec::new(),
            idle: Vec::new(),
        };
        let mut used = 0..snapshot.region.image().len().min(size);
        let mut changed = Vec::new();
        snapshot.touched_pages(|at| changed.push(at)).ok()?;
        for at in changed {
            let bytes = snapshot.bounds(at);
            if !snapshot.is_initial(&bytes) {
                let number = u32::try_from(snapshot.contents.len() / page).ok()?;
                let mut content = snapshot.region.copy(bytes.start, bytes.end);
                content.resize(page, 0);
                snapshot.contents.append(&mut content);
                snapshot.index[at / page] = number;
                if bytes.end + TAIL_BYTES <= size {
                    used.end = used.end.max(bytes.end);
                }
            }
        }
        snapshot.tracked = used.end;
        snapshot.idle = vec![0; used.end.div_ceil(page)];
        #[cfg(target_os = "linux")]
        if snapshot.method == RestoreMethod::WriteProtection {
            let start = snapshot.region.as_ptr();
            scan::register(start, used.end).and_then(|()| scan::protect(start, used.end)).ok()?;
        }
        Some(snapshot)
    }

    /// Returns the number of pages that differ from the initial memory.
    #[cfg(test)]
    pub(crate) fn changed_pages(&self) -> usize {
        self.contents.len() / self.page
    }

    /// Restores the memory. Returns `None` if that is not possible because the memory has grown or the system no longer
    /// reports pages. The instance must not be running.
    pub(crate) fn restore(&mut self) -> Option<RestoreStats> {
        if self.region.size() != self.size {
            return None;
        }
        match self.method {
            RestoreMethod::FullCopy => self.copy_all(),
            #[cfg(target_os = "linux")]
            RestoreMethod::WriteProtection => self.restore_pages(PageKind::Written),
            #[cfg(target_os = "linux")]
            RestoreMethod::PrivatePages => self.restore_pages(PageKind::Private),
            #[cfg(not(target_os = "linux"))]
            RestoreMethod::WriteProtection | RestoreMethod::PrivatePages => None,
        }
    }

    /// Calls `report` with each page that may differ from the initial memory.
    fn touched_pages(&self, mut report: impl FnMut(usize)) -> Result<(), ()> {
        #[cfg(target_os = "linux")]
        if self.method != RestoreMethod::FullCopy {
            let start = self.region.as_ptr();
            let report_range = |range: Range<usize>| range.step_by(self.page).for_each(&mut report);
            return scan::scan(start, self.size, PageKind::Private, report_range).map_err(drop);
        }
        (0..self.size).step_by(self.page).for_each(&mut report);
        Ok(())
    }

    /// Returns the range of a page; the last one may be shorter.
    fn bounds(&self, at: usize) -> Range<usize> {
        at..(at + self.page).min(self.size)
    }

    fn is_initial(&self, bytes: &Range<usize>) -> bool {
        match self.region.image().get(bytes.clone()) {
            Some(initial) => self.region.equals(bytes.start, initial),
            None => self.region.is_zero(bytes.start, bytes.end),
        }
    }

    /// Returns the captured content of a page; `None` if it is zero.
    fn content(&self, at: usize) -> Option<&[u8]> {
        match self.index[at / self.page] {
            UNCHANGED => self.region.image().get(self.bounds(at)),
            number => {
                let start = number as usize * self.page;
                Some(&self.contents[start..start + self.bounds(at).len()])
            }
        }
    }

    /// Restores a page. Returns whether it differed.
    fn restore_page(&self, at: usize) -> bool {
        let bytes = self.bounds(at);
        match self.content(at) {
            Some(content) if self.region.equals(at, content) => return false,
            Some(content) => self.region.write(at, content),
            None if self.region.is_zero(bytes.start, bytes.end) => return false,
            None => self.region.zero(bytes.start, bytes.end),
        }
        true
    }

    fn copy_all(&self) -> Option<RestoreStats> {
        let image = self.region.image().len();
        let zeros = self.tracked.max(image);
        self.region.write(0, &self.region.image()[..image.min(self.size)]);
        self.region.zero(image, zeros);
        // The tail is not zero, but untouched pages are cheaper than zeroed ones.
        self.region.discard(zeros, self.size).ok()?;
        for at in (0..self.size).step_by(self.page) {
            if self.index[at / self.page] != UNCHANGED {
                self.region.write(at, self.content(at).unwrap_or_default());
            }
        }
        Some(RestoreStats { compared: self.index.len(), changed: self.index.len() })
    }
}

#[cfg(target_os = "linux")]
impl Snapshot {
    fn restore_pages(&mut self, kind: PageKind) -> Option<RestoreStats> {
        let mut stats = RestoreStats::default();
        let mut ranges: Vec<Range<usize>> = Vec::new();
        let start = self.region.as_ptr();
        scan::scan(start, self.tracked, kind, |range| ranges.push(range)).ok()?;
        let mut idle: Vec<Range<usize>> = Vec::new();
        for at in ranges.drain(..).flat_map(|range| range.step_by(self.page)) {
            let number = at / self.page;
            stats.compared += 1;
            if self.restore_page(at) {
                stats.changed += 1;
                self.idle[number] = 0;
            } else {
                self.idle[number] += 1;
                if self.idle[number] >= MAX_IDLE_TRACES {
                    self.idle[number] = 0;
                    match idle.last_mut() {
                        Some(last) if last.end == at => last.end += self.page,
                        _ => idle.push(at..at + self.page),
                    }
                }
            }
        }
        for range in idle {
            self.stop_comparing(kind, range)?;
        }
        self.restore_untracked(&mut stats)?;
        Some(stats)
    }

    /// Stops the reporting of pages that no longer change, until their next write.
    fn stop_comparing(&self, kind: PageKind, range: Range<usize>) -> Option<()> {
        match kind {
            PageKind::Written => scan::protect(self.region.as_ptr().wrapping_add(range.start), range.len()).ok(),
            PageKind::Private => {
                // Their content must be that of the file.
                for at in range.step_by(self.page) {
                    let is_initial = self.index[at / self.page] == UNCHANGED;
                    if is_initial && at + self.page <= self.region.image().len() {
                        self.region.discard(at, at + self.page).ok()?;
                    }
                }
                Some(())
            }
        }
    }

    /// Restores the pages beyond the tracked ones.
    fn restore_untracked(&self, stats: &mut RestoreStats) -> Option<()> {
        let mut spare = 0;
        let mut ranges: Vec<Range<usize>> = Vec::new();
        let start = self.region.as_ptr().wrapping_add(self.tracked);
        scan::scan(start, self.size - self.tracked, PageKind::Private, |range| ranges.push(range)).ok()?;
        for range in ranges {
            let mut unneeded: Option<Range<usize>> = None;
            for at in range.step_by(self.page).map(|at| at + self.tracked) {
                spare += 1;
                stats.compared += 1;
                if spare <= MAX_SPARE_PAGES || self.index[at / self.page] != UNCHANGED {
                    stats.changed += usize::from(self.restore_page(at));
                } else {
                    stats.changed += 1;
                    unneeded = Some(unneeded.map_or(at, |range| range.start)..self.bounds(at).end);
                }
            }
            if let Some(unneeded) = unneeded {
                self.region.discard(unneeded.start, unneeded.end).ok()?;
                // Captured pages lie in between.
                for at in unneeded.step_by(self.page) {
                    if self.index[at / self.page] != UNCHANGED {
                        self.restore_page(at);
                    }
                }
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;
    use crate::memory::MemoryImage;

    const IMAGE_PAGES: usize = 48;
    const PAGES: usize = 200;

    /// Returns an image in a temporary file with random content, and one without a file.
    fn images() -> [(Arc<MemoryImage>, Option<tempfile::NamedTempFile>); 2] {
        let bytes: Vec<u8> = (0..IMAGE_PAGES * page_size()).map(|at| (at * 7 / 3).to_le_bytes()[0]).collect();
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(&bytes).expect("written");
        let image = MemoryImage::in_file(bytes.clone(), file.path(), 0).expect("a file");
        [(Arc::new(image), Some(file)), (Arc::new(MemoryImage::without_file(bytes)), None)]
    }

    fn region(image: &Arc<MemoryImage>) -> Arc<Region> {
        let region = Region::new(2 * PAGES * page_size(), Arc::clone(image)).expect("address space");
        region.grow_to(PAGES * page_size()).expect("memory");
        Arc::new(region)
    }

    fn content(region: &Region) -> Vec<u8> {
        region.copy(0, region.size())
    }

    fn available() -> Vec<RestoreMethod> {
        let fastest = RestoreMethod::detect();
        RestoreMethod::ALL.into_iter().skip_while(|method| *method != fastest).collect()
    }

    #[test]
    fn a_region_starts_with_the_image() {
        for (image, _file) in images() {
            let region = region(&image);
            assert!(content(&region).starts_with(image.bytes()));
            assert!(region.is_zero(image.bytes().len(), region.size()));
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_embedded_image_is_mapped_from_the_program() {
        static BYTES: [u8; 1 << 20] = {
            let mut bytes = [0; 1 << 20];
            bytes[77_777] = 7;
            bytes
        };
        // Static arrays of a test program need not start at a page, so use a part that does.
        let skipped = BYTES.as_ptr().align_offset(page_size());
        let bytes = &BYTES[skipped..skipped + (900 << 10) / page_size() * page_size()];
        let image = MemoryImage::embedded(bytes);
        let region = Region::new(2 << 20, Arc::new(image)).expect("address space");
        assert!(region.is_mapped());
        assert!(content(&region) == bytes);
    }

    #[test]
    fn does_not_restore_a_memory_that_has_grown() {
        for (image, _file) in images() {
            let region = region(&image);
            let mut snapshot = Snapshot::capture(Arc::clone(&region), RestoreMethod::detect()).expect("captured");
            assert!(snapshot.restore().is_some());
            region.grow_to((PAGES + 1) * page_size()).expect("memory");
            assert_eq!(snapshot.restore(), None);
        }
    }

    /// A write of one byte, or of many pages.
    #[derive(Debug, Clone)]
    struct Write {
        page: usize,
        offset: usize,
        byte: u8,
        pages: usize,
    }

    fn writes() -> impl Strategy<Value = Vec<Write>> {
        let pages = prop_oneof![9 => Just(0_usize), 1 => 1..PAGES];
        let write = (0..PAGES, any::<usize>(), any::<u8>(), pages).prop_map(|(page, offset, byte, pages)| Write {
            page,
            offset: offset % page_size(),
            byte,
            pages: pages.min(PAGES - page),
        });
        prop::collection::vec(write, 0..12)
    }

    fn apply(region: &Region, writes: &[Write]) {
        for Write { page, offset, byte, pages } in writes {
            let at = page * page_size();
            match pages {
                0 => region.write(at + offset, &[*byte]),
                pages => region.write(at, &vec![*byte; pages * page_size()]),
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Restores the captured memory after any writes before the capture and between restores.
        #[test]
        fn restores_every_byte(before in writes(), rounds in prop::collection::vec(writes(), 1..6), with_file in any::<bool>()) {
            let [mapped, copied] = images();
            let (image, _file) = if with_file { mapped } else { copied };
            for method in available() {
                let region = region(&image);
                apply(&region, &before);
                let expected = content(&region);
                let mut snapshot = Snapshot::capture(Arc::clone(&region), method).expect("captured");
                for writes in &rounds {
                    apply(&region, writes);
                    prop_assert!(snapshot.restore().is_some());
                    prop_assert!(content(&region) == expected, "{method:?}");
                }
            }
        }
    }

    #[rstest]
    fn protects_idle_pages_again(#[values(true, false)] with_file: bool) {
        let [mapped, copied] = images();
        let (image, _file) = if with_file { mapped } else { copied };
        for method in available() {
            let region = region(&image);
            region.write(5 * page_size(), b"captured");
            let expected = content(&region);
            let mut snapshot = Snapshot::capture(Arc::clone(&region), method).expect("captured");
            assert_eq!(snapshot.changed_pages(), 1);
            for round in 0..3 * usize::from(MAX_IDLE_TRACES) {
                // Two pages are written rarely, one always.
                if round % 100 == 0 {
                    region.write(5 * page_size() + 3, b"rare");
                    region.write(7 * page_size(), b"rare");
                }
                region.write(9 * page_size(), &round.to_le_bytes());
                assert!(snapshot.restore().is_some());
                assert!(content(&region) == expected, "{method:?}, round {round}");
            }
        }
    }
}
