//! Process groups.

#[cfg(target_os = "linux")]
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Groups that have not been killed yet.
static LIVE: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// Kills all processes that karat started and their descendants, for an exit without dropping handles.
pub fn kill_all() {
    let groups = std::mem::take(&mut *locked(&LIVE));
    for group in groups {
        kill_tree(group);
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

    /// Kills the group of a process that has exited.
    pub(crate) fn kill(&self) {
        self.kill_with(kill_group);
    }

    /// Kills the group of a process that may be running, and its descendants that left the group.
    pub(crate) fn kill_tree(&self) {
        self.kill_with(kill_tree);
    }

    fn kill_with(&self, kill: fn(u32)) {
        if let Some(group) = locked(&self.0).take() {
            kill(group);
            locked(&LIVE).remove(&group);
        }
    }
}

fn kill_tree(leader: u32) {
    // Find them first: a process whose parent was killed is no longer a descendant.
    let descendants = descendants(leader);
    kill_group(leader);
    descendants.into_iter().for_each(kill_process);
}

/// Returns the descendants of a running process, in any group or session. A process whose parent has exited is no
/// longer a descendant.
#[cfg(target_os = "linux")]
fn descendants(process: u32) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    for pid in entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()) {
        if let Some(parent) = parent_of(pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = Vec::new();
    let mut parents = vec![process];
    while let Some(parent) = parents.pop() {
        let children = children.remove(&parent).unwrap_or_default();
        parents.extend(&children);
        found.extend(children);
    }
    found
}

#[cfg(target_os = "linux")]
fn parent_of(pid: u32) -> Option<u32> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // `PID (NAME) STATE PARENT …`, where the name may contain parentheses.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(not(target_os = "linux"))]
fn descendants(_process: u32) -> Vec<u32> {
    Vec::new()
}

#[cfg(unix)]
fn kill_group(group: u32) {
    use rustix::process::{Pid, Signal, kill_process_group};
    if let Some(group) = i32::try_from(group).ok().and_then(Pid::from_raw) {
        // Fails when the group is empty.
        kill_process_group(group, Signal::KILL).ok();
    }
}

#[cfg(unix)]
fn kill_process(process: u32) {
    use rustix::process::{Pid, Signal, kill_process};
    if let Some(process) = i32::try_from(process).ok().and_then(Pid::from_raw) {
        // Fails when the process was killed with its group.
        kill_process(process, Signal::KILL).ok();
    }
}

#[cfg(not(unix))]
fn kill_group(_group: u32) {}

#[cfg(not(unix))]
fn kill_process(_process: u32) {}

/// Locks a mutex and ignores poisoning: the values are always consistent.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
