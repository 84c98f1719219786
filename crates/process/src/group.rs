//! Process groups.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Groups that have not been killed yet.
static LIVE: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// Kills all processes that karat started and their descendants, for an exit without dropping handles.
pub fn kill_all() {
    let groups = std::mem::take(&mut *locked(&LIVE));
    for group in groups {
        kill_group(group);
    }
}

/// A process and its descendants. `None` once the group was killed, because the id may be reused.
#[derive(Debug)]
pub(crate) struct Group(Mutex<Option<u32>>);

impl Group {
    pub(crate) fn new(leader: Option<u32>) -> Self {
        locked(&LIVE).extend(leader);
        Self(Mutex::new(leader))
    }

    pub(crate) fn kill(&self) {
        if let Some(group) = locked(&self.0).take() {
            kill_group(group);
            locked(&LIVE).remove(&group);
        }
    }
}

#[cfg(unix)]
fn kill_group(group: u32) {
    use rustix::process::{Pid, Signal, kill_process_group};
    if let Some(group) = i32::try_from(group).ok().and_then(Pid::from_raw) {
        // Fails when the group is empty.
        kill_process_group(group, Signal::KILL).ok();
    }
}

#[cfg(not(unix))]
fn kill_group(_group: u32) {}

/// Locks a mutex and ignores poisoning: the values are always consistent.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
