//! The process of a server that talks over stdio, and everything that it started.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::lines::{Keep, Lines};

/// How much of what a server says on stderr is kept.
const STDERR_KEPT: usize = 4 * 1024;
/// How much of what a server says on stdout is kept, for the case that it is no MCP.
const STDOUT_KEPT: usize = 200;

/// How long the last words of a server that ended are waited for.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// The groups of all server processes that were not ended yet.
static LIVE: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// Ends every server process and its children, for a program that stops without dropping what it holds.
pub fn end_servers() {
    let groups = std::mem::take(&mut *locked(&LIVE));
    groups.into_iter().for_each(kill_group);
}

/// A running server; it and what it started are ended when this is dropped.
pub(crate) struct ServerProcess {
    group: Arc<Group>,
    status: watch::Receiver<Option<ExitStatus>>,
    stderr: Arc<Mutex<Lines>>,
    stdout: Arc<Mutex<Lines>>,
}

impl ServerProcess {
    /// Starts a command in a folder, with this environment and no other or else with karat's own; returns the ends of
    /// its pipes too.
    pub(crate) fn start(
        command: &[String],
        env: Option<&BTreeMap<String, String>>,
        folder: &Path,
    ) -> io::Result<(Self, Heard, ChildStdin)> {
        let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(arguments).current_dir(folder).kill_on_drop(true);
        if let Some(env) = env {
            command.env_clear().envs(env);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command.spawn()?;
        let group = child.id();
        let group = Arc::new(Group(Mutex::new(group)));
        locked(&LIVE).extend(*locked(&group.0));
        let pipes = child.stdin.take().zip(child.stdout.take()).zip(child.stderr.take());
        let ((stdin, stdout), stderr) = pipes.ok_or_else(|| io::Error::other("its pipes are missing"))?;
        let (ended, status) = watch::channel(None);
        let process = Self {
            group: Arc::clone(&group),
            status,
            stderr: Arc::new(Mutex::new(Lines::new(Keep::Ends, STDERR_KEPT))),
            stdout: Arc::new(Mutex::new(Lines::new(Keep::First, STDOUT_KEPT))),
        };
        let listening = tokio::spawn(keep_lines(stderr, Arc::clone(&process.stderr)));
        tokio::spawn(watch_over(child, group, listening, ended));
        let heard = Heard { stdout, kept: Arc::clone(&process.stdout) };
        Ok((process, heard, stdin))
    }

    /// Returns how the process ended; none when it goes on for this long.
    pub(crate) async fn ended_within(&self, patience: Duration) -> Option<ExitStatus> {
        let mut status = self.status.clone();
        let ended = tokio::time::timeout(patience, status.wait_for(Option::is_some)).await;
        *ended.ok()?.ok()?
    }

    /// Returns the beginning and the end of what the server said on stderr.
    pub(crate) fn stderr(&self) -> String {
        locked(&self.stderr).text()
    }

    /// Returns the beginning of what the server said on stdout.
    pub(super) fn stdout(&self) -> String {
        locked(&self.stdout).text()
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.group.end();
    }
}

/// A process and all that it started: its id is the group's too; none once it was ended.
struct Group(Mutex<Option<u32>>);

impl Group {
    fn end(&self) {
        if let Some(group) = locked(&self.0).take() {
            kill_group(group);
            locked(&LIVE).remove(&group);
        }
    }
}

/// Waits for the process and ends what it left behind, which would hold its pipes open; its end is told when its last
/// words were heard.
async fn watch_over(
    mut child: Child,
    group: Arc<Group>,
    listening: JoinHandle<()>,
    ended: watch::Sender<Option<ExitStatus>>,
) {
    let status = child.wait().await;
    group.end();
    // Somebody who left the group may still hold the pipe.
    tokio::time::timeout(LAST_WORDS, listening).await.ok();
    ended.send(status.ok()).ok();
}

/// A server's stdout, of which the beginning is kept.
pub(crate) struct Heard {
    stdout: ChildStdout,
    kept: Arc<Mutex<Lines>>,
}

impl AsyncRead for Heard {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let (before, has_room) = (buffer.filled().len(), buffer.remaining() > 0);
        let polled = Pin::new(&mut self.stdout).poll_read(context, buffer);
        let mut kept = locked(&self.kept);
        let new = &buffer.filled()[before..];
        kept.push(new);
        if new.is_empty() && has_room && polled.is_ready() {
            kept.end();
        }
        drop(kept);
        polled
    }
}

/// Reads to the end, so that the server never waits for a reader, and keeps the ends of it.
async fn keep_lines(mut stderr: ChildStderr, kept: Arc<Mutex<Lines>>) {
    let mut chunk = vec![0; 8 * 1024];
    while let Ok(count @ 1..) = stderr.read(&mut chunk).await {
        locked(&kept).push(&chunk[..count]);
    }
    locked(&kept).end();
}

#[cfg(unix)]
fn kill_group(group: u32) {
    use rustix::process::{Pid, Signal, kill_process_group};
    // Nobody may be left in it.
    if let Some(group) = i32::try_from(group).ok().and_then(Pid::from_raw) {
        kill_process_group(group, Signal::KILL).ok();
    }
}

/// Elsewhere the process alone is ended, by its handle.
#[cfg(not(unix))]
fn kill_group(_group: u32) {}

/// What is kept under these locks is whole at any time.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
