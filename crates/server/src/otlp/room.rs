//! How much memory requests take together.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What is counted, so that a count fits whatever the size.
const UNIT: usize = 1024;

/// The memory that requests share.
#[derive(Debug, Clone)]
pub(super) struct Room {
    units: Arc<Semaphore>,
}

/// A request's part of it, which is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    room: Room,
    held: Option<OwnedSemaphorePermit>,
    bytes: usize,
}

/// A request that is here whole, and the room that it takes.
#[derive(Debug)]
pub(super) struct Arrived {
    pub(super) bytes: Vec<u8>,
    _place: Place,
}

impl Arrived {
    pub(super) fn new(bytes: Vec<u8>, place: Place) -> Self {
        Self { bytes, _place: place }
    }
}

/// There is no room left.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NoRoom;

impl Room {
    pub(super) fn new(bytes: usize) -> Self {
        Self { units: Arc::new(Semaphore::new((bytes / UNIT).clamp(1, Semaphore::MAX_PERMITS))) }
    }

    pub(super) fn place(&self) -> Place {
        Place { room: self.clone(), held: None, bytes: 0 }
    }
}

impl Place {
    /// Takes room for this many more bytes. Nobody waits here: requests that hold a part and wait for more could wait
    /// for each other.
    pub(super) fn grow(&mut self, bytes: usize) -> Result<(), NoRoom> {
        let total = self.bytes.saturating_add(bytes);
        let held = self.held.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let more = total.div_ceil(UNIT).saturating_sub(held);
        if more > 0 {
            let more = u32::try_from(more).map_err(|_| NoRoom)?;
            let permit = Arc::clone(&self.room.units).try_acquire_many_owned(more).map_err(|_| NoRoom)?;
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
    fn room_is_taken_and_given_back() {
        let room = Room::new(4 * UNIT);
        let (mut one, mut other) = (room.place(), room.place());
        assert_eq!(one.grow(1), Ok(()));
        assert_eq!(one.grow(UNIT - 1), Ok(()), "still the first unit");
        assert_eq!(other.grow(3 * UNIT), Ok(()));
        assert_eq!(one.grow(1), Err(NoRoom));
        assert_eq!(other.grow(usize::MAX), Err(NoRoom));
        drop(other);
        assert_eq!(one.grow(3 * UNIT), Ok(()));
        drop(one);
        assert_eq!(room.place().grow(4 * UNIT), Ok(()));
    }
}
