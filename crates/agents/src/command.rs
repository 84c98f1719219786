//! An agent that is a program: one process for each case, JSON in and JSON out.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use karat_core::assertion::Mode;
use karat_core::case::Case;
use karat_core::port::{Agent, AgentError, Ask, Pending};
use karat_core::trace::Trace;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};

use crate::http_config::{HttpConfig, RequestMap};

/// How many bytes of what a program says beside its answer are kept: the last ones.
const STDERR_LIMIT: usize = 64 * 1024;

/// How many characters of it are quoted in an error, in whole lines.
const QUOTED: usize = 300;

/// How long pipes are read on that somebody holds open when the program has ended.
const GRACE: Duration = Duration::from_millis(250);

/// Why a text names no program.
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

/// Starts a program for each message, writes the request to its stdin and reads the answer from its stdout.
#[derive(Debug)]
pub struct CommandAgent {
    identity: String,
    program: PathBuf,
    arguments: Vec<String>,
    /// Where the program works.
    folder: PathBuf,
    config: HttpConfig,
}

impl CommandAgent {
    /// Splits a command line into words as a shell does, without one; a program with a `/` is relative to `folder`.
    pub fn new(command: &str, folder: &Path, config: HttpConfig) -> Result<Self, CommandError> {
        let words = shell_words::split(command).map_err(|_| CommandError::Quotes)?;
        let (name, arguments) = words.split_first().ok_or(CommandError::Empty)?;
        if name.is_empty() {
            return Err(CommandError::Empty);
        }
        let is_path = Path::new(name).components().count() > 1 || name.contains('/');
        let program = if is_path { folder.join(name) } else { PathBuf::from(name) };
        if is_path && !program.is_file() {
            return Err(CommandError::Missing(name.clone()));
        }
        // A program has no query: the message stands in the body.
        let request = RequestMap { query: None, ..config.request.clone() };
        if request.body_with("").is_none() {
            return Err(CommandError::NoPlace(request.message));
        }
        Ok(Self {
            identity: format!("command:{command}"),
            program,
            arguments: arguments.to_vec(),
            folder: folder.to_path_buf(),
            config: HttpConfig { request, ..config },
        })
    }

    /// Returns the program, or its name when it is looked for as a shell does.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Returns what the program is started with.
    pub fn arguments(&self) -> &[String] {
        &self.arguments
    }

    fn start(&self) -> Result<Group, String> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).current_dir(&self.folder).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        #[cfg(unix)]
        command.process_group(0);
        let child = command.spawn().map_err(|error| format!("cannot start {}: {error}", self.program.display()))?;
        Ok(Group {
            #[cfg(unix)]
            id: child.id(),
            child,
        })
    }

    /// Runs the program to its end; whoever lets go of this ends the program and its children.
    async fn exchange(&self, message: &str, said: &mut Said) -> Result<(ExitStatus, Duration), String> {
        let request = self.config.request.body_with(message).unwrap_or_default().to_string();
        let started = Instant::now();
        let mut group = self.start()?;
        let (stdin, stdout, stderr) = (group.child.stdin.take(), group.child.stdout.take(), group.child.stderr.take());
        let limit = usize::try_from(self.config.max_response_bytes).unwrap_or(usize::MAX);
        let talking = async {
            let answered = read_answer(stdout, &mut said.stdout, limit);
            let read = async { tokio::try_join!(answered, read_tail(stderr, &mut said.stderr)) };
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

    fn read(&self, status: ExitStatus, said: &Said) -> Result<Trace, String> {
        let fail = |what: &str| Err(said.beside(what));
        if !status.success() {
            // As in "exit status: 3" and "signal: 9 (SIGKILL)".
            return fail(&format!("the program ended with {}", status.to_string().replacen(": ", " ", 1)));
        }
        if said.stdout.trim_ascii().is_empty() {
            return fail("the program wrote nothing to stdout");
        }
        let reply: Value = match serde_json::from_slice(&said.stdout) {
            Ok(reply) => reply,
            Err(error) => {
                // In whole, since half a secret is not recognised; whoever shows it shortens it.
                let stdout = String::from_utf8_lossy(&said.stdout);
                let what = said.beside(&format!("the program's answer is no JSON ({error})"));
                return Err(format!("{what}: {}", stdout.trim()));
            }
        };
        self.config.response.trace(&reply).or_else(|what| fail(&what))
    }
}

impl Agent for CommandAgent {
    fn identity(&self) -> String {
        self.identity.clone()
    }

    fn determinants(&self, case: &Case) -> Map<String, Value> {
        let HttpConfig { request, response, max_response_bytes, .. } = &self.config;
        let mut parts = Map::new();
        parts.insert("agent".to_owned(), self.identity().into());
        let mapping = json!({"request": request, "response": response, "maxResponseBytes": max_response_bytes});
        parts.insert("request".to_owned(), mapping);
        parts.insert("message".to_owned(), case.input.message.as_str().into());
        parts
    }

    fn mode(&self, _case: &Case) -> Mode {
        Mode::Endpoint
    }

    fn answer<'a>(&'a self, ask: Ask<'a>) -> Pending<'a, Result<Trace, AgentError>> {
        Box::pin(async move {
            let started = Instant::now();
            let mut said = Said::default();
            match self.exchange(&ask.case.input.message, &mut said).await {
                Err(what) => Err(AgentError::new(said.beside(&what), started.elapsed())),
                Ok((status, elapsed)) => {
                    let trace = self.read(status, &said).map_err(|what| AgentError::new(what, elapsed))?;
                    let stderr = Some(said.stderr.text()).filter(|text| !text.is_empty());
                    Ok(Trace { latency_ms: elapsed.as_secs_f64() * 1000.0, stderr, ..trace })
                }
            }
        })
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
            // That nobody is left of the group is fine.
            rustix::process::kill_process_group(id, rustix::process::Signal::KILL).ok();
        }
        // The program itself is ended, elsewhere too, and taken leave of by the runtime when it is dropped.
        self.child.start_kill().ok();
    }
}

/// What a program wrote.
#[derive(Default)]
struct Said {
    stdout: Vec<u8>,
    stderr: Tail,
}

impl Said {
    /// Returns what went wrong together with the last lines that the program wrote to stderr.
    fn beside(&self, what: &str) -> String {
        let text = self.stderr.text();
        let mut lines: Vec<&str> = Vec::new();
        let mut quoted = 0;
        for line in text.trim_end().lines().rev() {
            quoted += line.chars().count() + 1;
            // Only whole lines, since half a secret is not recognised.
            if !lines.is_empty() && quoted > QUOTED {
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
struct Tail {
    bytes: Vec<u8>,
    is_cut: bool,
}

impl Tail {
    fn push(&mut self, chunk: &[u8]) {
        self.bytes.extend_from_slice(chunk);
        // Seldom, so that it costs little for each byte.
        if self.bytes.len() > 2 * STDERR_LIMIT {
            self.cut();
        }
    }

    fn cut(&mut self) {
        let excess = self.bytes.len().saturating_sub(STDERR_LIMIT);
        self.is_cut |= excess > 0;
        self.bytes.drain(..excess);
    }

    /// Returns the text from its first whole line on, since half a secret is not recognised.
    fn text(&self) -> String {
        let excess = self.bytes.len().saturating_sub(STDERR_LIMIT);
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
