//! Process groups and their descendants.
//!
//! A process that leaves the group, and whose parent exits, is found by a variable in its environment.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// The variable that all descendants of a process inherit.
pub(crate) const MARKER_VARIABLE: &str = "_KARAT_STARTED_BY";

/// Maximum number of searches for descendants; other programs may start processes all the time.
#[cfg(target_os = "linux")]
const MAX_SEARCHES: usize = 20;

/// Groups that have not been killed yet, with their markers.
static LIVE_GROUPS: Mutex<BTreeMap<u32, String>> = Mutex::new(BTreeMap::new());

/// Kills all processes that karat started and their descendants, for an exit without dropping handles.
pub fn kill_all() {
    let groups = std::mem::take(&mut *locked(&LIVE_GROUPS));
    for (group, marker) in groups {
        kill_tree(group, &marker);
    }
}

/// Returns a value of [`MARKER_VARIABLE`] that no other process has.
pub(crate) fn new_marker() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    format!("{}-{time}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// A process and its descendants. `None` once the group was killed, because the id may be reused.
#[derive(Debug)]
pub(crate) struct Group {
    leader: Mutex<Option<u32>>,
    marker: String,
}

impl Group {
    pub(crate) fn new(leader: Option<u32>, marker: String) -> Self {
        locked(&LIVE_GROUPS).extend(leader.map(|leader| (leader, marker.clone())));
        Self { leader: Mutex::new(leader), marker }
    }

    /// Kills the group of a process that has exited, and its descendants that left the group.
    pub(crate) fn kill(&self) {
        self.kill_with(|group, marker| {
            kill_group(group);
            kill_by_marker(marker);
        });
    }

    /// Kills the group of a process that may be running, and its descendants that left the group.
    pub(crate) fn kill_tree(&self) {
        self.kill_with(kill_tree);
    }

    fn kill_with(&self, kill: impl Fn(u32, &str)) {
        if let Some(group) = locked(&self.leader).take() {
            kill(group, &self.marker);
            locked(&LIVE_GROUPS).remove(&group);
        }
    }
}

fn kill_tree(leader: u32, marker: &str) {
    // Find them first: a process whose parent was killed is no longer a descendant.
    let descendants = descendants(leader);
    kill_group(leader);
    descendants.into_iter().for_each(kill_process);
    kill_by_marker(marker);
}

/// Returns the descendants of a running process, in any group or session. A process whose parent has exited is no
/// longer a descendant.
#[cfg(target_os = "linux")]
fn descendants(process: u32) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for pid in all_processes() {
        if let Some(parent) = parent_of(pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut descendants = Vec::new();
    let mut parents = vec![process];
    while let Some(parent) = parents.pop() {
        let children = children.remove(&parent).unwrap_or_default();
        parents.extend(&children);
        descendants.extend(children);
    }
    descendants
}

#[cfg(target_os = "linux")]
fn all_processes() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

#[cfg(target_os = "linux")]
fn parent_of(pid: u32) -> Option<u32> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // `PID (NAME) STATE PARENT …`, where the name may contain parentheses.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Kills all processes that inherited a marker, regardless of their parents, groups and sessions.
#[cfg(target_os = "linux")]
fn kill_by_marker(marker: &str) {
    let variable = format!("{MARKER_VARIABLE}={marker}");
    let mut before = None;
    for _ in 0..MAX_SEARCHES {
        let mut found = Vec::new();
        let mut others = Vec::new();
        for pid in all_processes() {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            if environment.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes()) {
                found.push(pid);
            } else {
                // While a process starts a program, and after its exit, its environment is empty.
                others.push((pid, environment.is_empty()));
            }
        }
        // A process may start another one and exit during a search, so that neither is found.
        let others = Some(others);
        if found.is_empty() && others == before {
            return;
        }
        before = others;
        found.into_iter().for_each(kill_process);
    }
}

#[cfg(not(target_os = "linux"))]
fn kill_by_marker(_marker: &str) {}

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
