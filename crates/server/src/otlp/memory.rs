//! Limits the memory of all requests in progress.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes per semaphore permit, so that large sizes fit into a permit count.
const BYTES_PER_PERMIT: usize = 1024;

/// The memory that all requests share.
#[derive(Debug, Clone)]
pub(super) struct MemoryBudget {
    permits: Arc<Semaphore>,
}

/// The memory of one request, released on drop.
#[derive(Debug)]
pub(super) struct MemoryReservation {
    budget: MemoryBudget,
    held: Option<OwnedSemaphorePermit>,
    bytes: usize,
}

/// A complete request body with its memory reservation.
#[derive(Debug)]
pub(super) struct ReservedBody {
    pub(super) bytes: Vec<u8>,
    _memory: MemoryReservation,
}

impl ReservedBody {
    pub(super) fn new(bytes: Vec<u8>, memory: MemoryReservation) -> Self {
        Self { bytes, _memory: memory }
    }
}

/// The memory budget is exhausted.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MemoryExceeded;

impl MemoryBudget {
    pub(super) fn new(bytes: usize) -> Self {
        Self { permits: Arc::new(Semaphore::new((bytes / BYTES_PER_PERMIT).clamp(1, Semaphore::MAX_PERMITS))) }
    }

    pub(super) fn reserve(&self) -> MemoryReservation {
        MemoryReservation { budget: self.clone(), held: None, bytes: 0 }
    }
}

impl MemoryReservation {
    /// Reserves more bytes. Does not wait: requests that hold memory while they wait for more could deadlock.
    pub(super) fn grow(&mut self, bytes: usize) -> Result<(), MemoryExceeded> {
        let total = self.bytes.saturating_add(bytes);
        let held = self.held.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let more = total.div_ceil(BYTES_PER_PERMIT).saturating_sub(held);
        if more > 0 {
            let more = u32::try_from(more).map_err(|_| MemoryExceeded)?;
            let permit = Arc::clone(&self.budget.permits).try_acquire_many_owned(more).map_err(|_| MemoryExceeded)?;
            match &mut self.held {
                Some(held) => held.merge(permit),
                None => self.held = Some(permit),
            }
        }
        self.bytes = total;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_reserved_and_released() {
        let budget = MemoryBudget::new(4 * BYTES_PER_PERMIT);
        let (mut first, mut second) = (budget.reserve(), budget.reserve());
        assert_eq!(first.grow(1), Ok(()));
        assert_eq!(first.grow(BYTES_PER_PERMIT - 1), Ok(()), "still the first permit");
        assert_eq!(second.grow(3 * BYTES_PER_PERMIT), Ok(()));
        assert_eq!(first.grow(1), Err(MemoryExceeded));
        assert_eq!(second.grow(usize::MAX), Err(MemoryExceeded));
        drop(second);
        assert_eq!(first.grow(3 * BYTES_PER_PERMIT), Ok(()));
        drop(first);
        assert_eq!(budget.reserve().grow(4 * BYTES_PER_PERMIT), Ok(()));
    }
}
