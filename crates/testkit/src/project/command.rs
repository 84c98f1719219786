//! Runs a binary with a clean environment.

use std::ffi::OsString;
use std::io::{ErrorKind, Read, Seek, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::NamedTempFile;

use super::{Filters, Output, TempProject};

/// The variables that a process needs to run, that of coverage tools, and that of the Python guest if none is built in.
const INHERITED_VARIABLES: [&str; 8] = [
    "PATH",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "TMPDIR",
    "SYSTEMROOT",
    "TEMP",
    "LLVM_PROFILE_FILE",
    "KARAT_GUEST",
];

const DEFAULT_TIMEOUT: Duration = Duration::from_mins(1);

/// The interval doubles with each poll.
const FIRST_POLL_INTERVAL: Duration = Duration::from_micros(500);

/// A command that has not been started.
#[derive(Debug)]
pub struct Invocation {
    command: Command,
    input: Option<Vec<u8>>,
    timeout: Duration,
    filters: Filters,
}

impl Invocation {
    pub(super) fn new(project: &TempProject, binary: &Path, arguments: Vec<OsString>) -> Self {
        let mut command = Command::new(binary);
        command.args(arguments).current_dir(project.path()).env_clear();
        command.envs(INHERITED_VARIABLES.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        // Wrap notes and warnings as on a terminal.
        command.env("HOME", project.home()).env("NO_COLOR", "1").env("COLUMNS", "80");
        command.envs(project.variables().iter().map(|(name, value)| (name, value)));
        Self { command, input: None, timeout: DEFAULT_TIMEOUT, filters: project.filters() }
    }

    /// Sets a variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.command.env(name.into(), value.into());
        self
    }

    /// Removes a variable.
    #[must_use]
    pub fn env_remove(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    /// Sets the standard input, which is empty by default.
    #[must_use]
    pub fn stdin(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = Some(input.into());
        self
    }

    /// Sets the timeout.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Starts the command without waiting for it.
    pub fn start(mut self) -> RunningCommand {
        // Files instead of pipes, which processes that the command leaves behind would hold open.
        let create = || NamedTempFile::new().expect("create a temporary file");
        let (stdout, stderr) = (create(), create());
        let share = |file: &NamedTempFile| Stdio::from(file.as_file().try_clone().expect("clone a file handle"));
        self.command.stdout(share(&stdout)).stderr(share(&stderr));
        self.command.stdin(self.input.take().map_or_else(Stdio::null, |input| {
            let mut file = tempfile::tempfile().expect("create a temporary file");
            file.write_all(&input).expect("write a temporary file");
            file.rewind().expect("rewind a file");
            Stdio::from(file)
        }));
        let child = self.spawn();
        RunningCommand { child, stdout, stderr, deadline: Instant::now() + self.timeout, filters: self.filters }
    }

    fn spawn(&mut self) -> Child {
        loop {
            match self.command.spawn() {
                Ok(child) => return child,
                // A new binary may still be open in a process that another thread is forking.
                Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => std::thread::sleep(FIRST_POLL_INTERVAL),
                Err(error) => panic!("cannot start {}: {error}", self.command.get_program().to_string_lossy()),
            }
        }
    }

    /// Runs the command to completion. Panics on timeout.
    pub fn run(self) -> Output {
        let timeout = self.timeout;
        self.start().wait().unwrap_or_else(|TimedOut(output)| {
            panic!("timed out after {timeout:?}\nstdout: {}\nstderr: {}", output.stdout, output.stderr);
        })
    }
}

/// A running command, which is killed when dropped.
#[derive(Debug)]
pub struct RunningCommand {
    child: Child,
    stdout: NamedTempFile,
    stderr: NamedTempFile,
    deadline: Instant,
    filters: Filters,
}

/// The output of a command that was killed after its timeout.
#[derive(Debug)]
pub struct TimedOut(pub Output);

impl RunningCommand {
    /// Interrupts the command like Ctrl-C.
    #[cfg(unix)]
    pub fn interrupt(&self) {
        self.signal("INT");
    }

    /// Sends a signal, named without `SIG`.
    #[cfg(unix)]
    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status();
        assert!(status.is_ok_and(|status| status.success()), "cannot send a signal to the command");
    }

    /// Returns the standard output so far.
    pub fn stdout_so_far(&self) -> String {
        read_all(&self.stdout)
    }

    /// Returns the standard error so far.
    pub fn stderr_so_far(&self) -> String {
        read_all(&self.stderr)
    }

    /// Waits for the command to exit, and kills it on timeout.
    pub fn wait(mut self) -> Result<Output, TimedOut> {
        let mut interval = FIRST_POLL_INTERVAL;
        let code = loop {
            if let Some(status) = self.child.try_wait().expect("query a child process") {
                break Some(status.code());
            }
            if Instant::now() >= self.deadline {
                break None;
            }
            std::thread::sleep(interval);
            interval = (interval * 2).min(Duration::from_millis(10));
        };
        if code.is_none() {
            self.kill();
        }
        let output = Output {
            code: code.flatten(),
            stdout: read_all(&self.stdout),
            stderr: read_all(&self.stderr),
            filters: self.filters.clone(),
        };
        if code.is_some() { Ok(output) } else { Err(TimedOut(output)) }
    }

    fn kill(&mut self) {
        // It may have exited in the meantime.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Reads through a separate handle, so that the writer's position does not change.
fn read_all(file: &NamedTempFile) -> String {
    let mut bytes = Vec::new();
    file.reopen().and_then(|mut file| file.read_to_end(&mut bytes)).expect("read a temporary file");
    String::from_utf8_lossy(&bytes).into_owned()
}
