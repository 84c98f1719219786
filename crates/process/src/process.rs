//! A running process.

use std::io;
use std::pin::Pin;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::capture::{Capture, Keep, Lines};
use crate::group::{Group, locked};

/// Maximum time that other processes may hold the pipes of an exited one, so that filters such as `tee` can finish.
pub(crate) const DRAIN_TIMEOUT: Duration = Duration::from_millis(250);

/// Part of stdout to keep, for reports of unexpected output.
const STDOUT_HEAD: Capture = Capture { keep: Keep::First, max_bytes: 200 };

/// How a process ended.
#[derive(Debug, Clone, Copy)]
pub struct Exit {
    pub status: ExitStatus,
    /// From start to exit.
    pub elapsed: Duration,
}

/// A running process. It and its descendants are killed on drop.
#[derive(Debug)]
pub struct Process {
    group: Arc<Group>,
    exit: watch::Receiver<Option<Exit>>,
    stderr: Arc<Mutex<Lines>>,
    /// Asks the reader of stderr to reply when it has read everything written so far.
    stderr_reader: mpsc::UnboundedSender<oneshot::Sender<()>>,
    stdout_head: Arc<Mutex<Lines>>,
}

impl Process {
    /// Supervises a child that leads its group, has this marker in its environment, and whose streams are piped.
    pub(crate) fn supervise(
        mut child: Child,
        marker: String,
        started: Instant,
        stderr: Capture,
    ) -> io::Result<(Self, ChildStdin, Stdout)> {
        let group = Arc::new(Group::new(child.id(), marker));
        let pipes = child.stdin.take().zip(child.stdout.take()).zip(child.stderr.take());
        let ((stdin, stdout), stderr_pipe) = pipes.ok_or_else(|| io::Error::other("missing pipes"))?;
        let (exited, exit) = watch::channel(None);
        let (is_open, closed) = oneshot::channel();
        let (stderr_reader, requests) = mpsc::unbounded_channel();
        let process = Self {
            group: Arc::clone(&group),
            exit,
            stderr: Arc::new(Mutex::new(Lines::new(stderr))),
            stderr_reader,
            stdout_head: Arc::new(Mutex::new(Lines::new(STDOUT_HEAD))),
        };
        let reading = tokio::spawn(read_lines(stderr_pipe, Arc::clone(&process.stderr), requests));
        let pipes = Pipes { stdout: closed, stderr: reading, lines: Arc::clone(&process.stderr) };
        tokio::spawn(wait(child, group, started, pipes, exited));
        let stdout = Stdout { pipe: stdout, head: Arc::clone(&process.stdout_head), is_open: Some(is_open) };
        Ok((process, stdin, stdout))
    }

    /// Waits for the exit; `None` if it cannot be determined.
    pub async fn exited(&self) -> Option<Exit> {
        let mut exit = self.exit.clone();
        *exit.wait_for(Option::is_some).await.ok()?
    }

    /// Waits for the exit; `None` on a timeout.
    pub async fn exited_within(&self, timeout: Duration) -> Option<Exit> {
        tokio::time::timeout(timeout, self.exited()).await.ok()?
    }

    /// Returns the captured stderr.
    pub fn stderr(&self) -> String {
        locked(&self.stderr).text()
    }

    /// Removes and returns the lines of stderr that were captured since the last call, including everything that the
    /// program wrote before the last output that was read.
    pub async fn take_stderr(&self) -> String {
        let (reply, replied) = oneshot::channel();
        if self.stderr_reader.send(reply).is_ok() {
            // Fails if the pipe is at its end.
            replied.await.ok();
        }
        locked(&self.stderr).take()
    }

    /// Returns the first lines of stdout read so far.
    pub fn stdout_head(&self) -> String {
        locked(&self.stdout_head).text()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.group.kill_tree();
    }
}

/// State of both output pipes.
struct Pipes {
    /// Resolves when stdout was read to the end, or its reader dropped.
    stdout: oneshot::Receiver<()>,
    stderr: JoinHandle<()>,
    lines: Arc<Mutex<Lines>>,
}

/// Waits for the process, kills its remaining descendants, and reports the exit after the last output was read.
///
/// Waits for the process, not for its group: as PID 1 of a container, karat inherits the rest of the group and would
/// wait for it too.
async fn wait(
    mut child: Child,
    group: Arc<Group>,
    started: Instant,
    pipes: Pipes,
    exited: watch::Sender<Option<Exit>>,
) {
    let status = child.wait().await;
    let elapsed = started.elapsed();
    let Pipes { stdout, stderr, lines } = pipes;
    let drained = async {
        stdout.await.ok();
        stderr.await.ok();
    };
    tokio::pin!(drained);
    let is_drained = tokio::time::timeout(DRAIN_TIMEOUT, &mut drained).await.is_ok();
    group.kill();
    if !is_drained {
        // A process that left the group may hold the pipes forever.
        tokio::time::timeout(DRAIN_TIMEOUT, drained).await.ok();
    }
    locked(&lines).end();
    if let Ok(status) = status {
        exited.send(Some(Exit { status, elapsed })).ok();
    }
}

/// Reads to the end, so that the process never blocks on a full pipe. Replies to requests when the pipe is empty.
async fn read_lines(
    mut stderr: ChildStderr,
    lines: Arc<Mutex<Lines>>,
    mut requests: mpsc::UnboundedReceiver<oneshot::Sender<()>>,
) {
    let mut chunk = vec![0; 8 * 1024];
    loop {
        tokio::select! {
            biased;
            read = stderr.read(&mut chunk) => match read {
                Ok(count @ 1..) => locked(&lines).push(&chunk[..count]),
                _ => break,
            },
            Some(reply) = requests.recv() => {
                reply.send(()).ok();
            }
        }
    }
    locked(&lines).end();
}

/// The stdout of a process.
#[derive(Debug)]
pub struct Stdout {
    pipe: ChildStdout,
    head: Arc<Mutex<Lines>>,
    /// Dropped at the end of the stream.
    is_open: Option<oneshot::Sender<()>>,
}

impl AsyncRead for Stdout {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let (before, has_room) = (buffer.filled().len(), buffer.remaining() > 0);
        let polled = Pin::new(&mut self.pipe).poll_read(context, buffer);
        let new = &buffer.filled()[before..];
        locked(&self.head).push(new);
        if new.is_empty() && has_room && polled.is_ready() {
            locked(&self.head).end();
            self.is_open = None;
        }
        polled
    }
}
