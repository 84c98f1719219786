//! Runs a program: a text to its stdin, its stdout and stderr back.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};

/// How many bytes of stderr are kept: the last ones.
const MAX_STDERR: usize = 64 * 1024;

/// How many characters of stderr an error quotes, in whole lines.
const MAX_QUOTED: usize = 300;

/// How long to keep reading pipes that a child process holds open after the program has ended.
const GRACE: Duration = Duration::from_millis(250);

/// Why a command line names no program.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    #[error("'command:' names no program")]
    Empty,
    #[error("the command cannot be split into words: a quotation mark is not closed")]
    Quotes,
    #[error("there is no program '{0}'")]
    Missing(String),
    #[error("'request.message': the body has no place '{0}'")]
    NoPlace(String),
}

/// A program, its arguments, and the folder that it runs in.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    pub(crate) arguments: Vec<String>,
    folder: PathBuf,
}

impl Program {
    /// Splits a command line into words as a shell does, without one; a program with a `/` is relative to `folder`.
    pub(crate) fn new(command: &str, folder: &Path) -> Result<Self, CommandError> {
        let words = shell_words::split(command).map_err(|_| CommandError::Quotes)?;
        let (name, arguments) = words.split_first().ok_or(CommandError::Empty)?;
        if name.is_empty() {
            return Err(CommandError::Empty);
        }
        let is_path = Path::new(name).components().count() > 1 || name.contains('/');
        let path = if is_path { folder.join(name) } else { PathBuf::from(name) };
        if is_path && !path.is_file() {
            return Err(CommandError::Missing(name.clone()));
        }
        Ok(Self { path, arguments: arguments.to_vec(), folder: folder.to_path_buf() })
    }

    fn start(&self) -> Result<Group, String> {
        let mut command = Command::new(&self.path);
        command.args(&self.arguments).current_dir(&self.folder).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        #[cfg(unix)]
        command.process_group(0);
        let child = command.spawn().map_err(|error| format!("cannot start {}: {error}", self.path.display()))?;
        Ok(Group {
            #[cfg(unix)]
            id: child.id(),
            child,
        })
    }

    /// Runs the program to its end. Dropping the future ends the program and its children.
    pub(crate) async fn run(
        &self,
        request: String,
        limit: usize,
        output: &mut Output,
    ) -> Result<(ExitStatus, Duration), String> {
        let started = Instant::now();
        let mut group = self.start()?;
        let (stdin, stdout, stderr) = (group.child.stdin.take(), group.child.stdout.take(), group.child.stderr.take());
        let talking = async {
            let answered = read_answer(stdout, &mut output.stdout, limit);
            let read = async { tokio::try_join!(answered, read_tail(stderr, &mut output.stderr)) };
            tokio::join!(feed(stdin, request), read).1
        };
        tokio::pin!(talking);
        let mut is_silent = false;
        let status = loop {
            tokio::select! {
                biased;
                talked = &mut talking, if !is_silent => {
                    talked?;
                    is_silent = true;
                }
                status = group.child.wait() => break status,
            }
        };
        let elapsed = started.elapsed();
        // A child that lives on may hold the pipes open for ever, but what the program wrote is in them by now.
        if !is_silent && let Ok(talked) = tokio::time::timeout(GRACE, &mut talking).await {
            talked?;
        }
        let status = status.map_err(|error| format!("cannot wait for the program: {error}"))?;
        Ok((status, elapsed))
    }
}

/// A program and all that it started, in a process group of their own. None of them outlives this.
struct Group {
    #[cfg(unix)]
    id: Option<u32>,
    child: Child,
}

impl Drop for Group {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Some(id) = self.id.and_then(|id| rustix::process::Pid::from_raw(id.cast_signed())) {
            // The group may have ended already.
            rustix::process::kill_process_group(id, rustix::process::Signal::KILL).ok();
        }
        // The program itself is ended, elsewhere too, and taken leave of by the runtime when it is dropped.
        self.child.start_kill().ok();
    }
}

/// What a program wrote.
#[derive(Default)]
pub(crate) struct Output {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Tail,
}

impl Output {
    /// Reads the answer of a program that ended with this status.
    pub(crate) fn json(&self, status: ExitStatus) -> Result<Value, String> {
        if !status.success() {
            // As in "exit status: 3" and "signal: 9 (SIGKILL)".
            let how = status.to_string().replacen(": ", " ", 1);
            return Err(self.beside(&format!("the program ended with {how}")));
        }
        if self.stdout.trim_ascii().is_empty() {
            return Err(self.beside("the program wrote nothing to stdout"));
        }
        serde_json::from_slice(&self.stdout).map_err(|error| {
            // Not shortened here: the redactor does not recognise half a secret.
            let stdout = String::from_utf8_lossy(&self.stdout);
            let what = self.beside(&format!("the program's answer is no JSON ({error})"));
            format!("{what}: {}", stdout.trim())
        })
    }

    /// Returns what went wrong together with the last lines that the program wrote to stderr.
    pub(crate) fn beside(&self, what: &str) -> String {
        let text = self.stderr.text();
        let mut lines: Vec<&str> = Vec::new();
        let mut quoted = 0;
        for line in text.trim_end().lines().rev() {
            quoted += line.chars().count() + 1;
            // Only whole lines, since half a secret is not recognised.
            if !lines.is_empty() && quoted > MAX_QUOTED {
                break;
            }
            lines.push(line);
        }
        lines.reverse();
        let mut out = what.to_owned();
        if !lines.is_empty() {
            let _ = write!(out, "; its stderr: {}", lines.join("\n"));
        }
        out
    }
}

/// The last bytes of a stream.
#[derive(Default)]
pub(crate) struct Tail {
    bytes: Vec<u8>,
    is_cut: bool,
}

impl Tail {
    fn push(&mut self, chunk: &[u8]) {
        self.bytes.extend_from_slice(chunk);
        // Seldom, so that it costs little for each byte.
        if self.bytes.len() > 2 * MAX_STDERR {
            self.cut();
        }
    }

    fn cut(&mut self) {
        let excess = self.bytes.len().saturating_sub(MAX_STDERR);
        self.is_cut |= excess > 0;
        self.bytes.drain(..excess);
    }

    /// Returns the text from its first whole line on, since half a secret is not recognised.
    pub(crate) fn text(&self) -> String {
        let excess = self.bytes.len().saturating_sub(MAX_STDERR);
        let kept = &self.bytes[excess..];
        if !self.is_cut && excess == 0 {
            return String::from_utf8_lossy(kept).into_owned();
        }
        let start = kept.iter().position(|byte| *byte == b'\n').map_or(kept.len(), |end| end + 1);
        format!("…\n{}", String::from_utf8_lossy(&kept[start..]))
    }
}

/// Writes the request and closes the pipe. A program that does not want to hear it does no wrong.
async fn feed(stdin: Option<ChildStdin>, request: String) {
    if let Some(mut stdin) = stdin {
        stdin.write_all(request.as_bytes()).await.ok();
    }
}

async fn read_answer(from: Option<impl AsyncRead + Unpin>, out: &mut Vec<u8>, limit: usize) -> Result<(), String> {
    let Some(mut from) = from else {
        return Ok(());
    };
    loop {
        match from.read_buf(out).await {
            Ok(0) => return Ok(()),
            Ok(_) if out.len() > limit => {
                return Err(format!("the program's answer is larger than {limit} bytes ('maxResponseBytes')"));
            }
            Ok(_) => {}
            Err(error) => return Err(format!("cannot read the program's answer: {error}")),
        }
    }
}

async fn read_tail(from: Option<impl AsyncRead + Unpin>, out: &mut Tail) -> Result<(), String> {
    let Some(mut from) = from else {
        return Ok(());
    };
    let mut chunk = vec![0; 8 * 1024];
    // What was said before the pipe broke is all there is.
    while let Ok(count @ 1..) = from.read(&mut chunk).await {
        out.push(&chunk[..count]);
    }
    Ok(())
}
