//! Runs a binary with nothing in its environment that the machine put there.

use std::ffi::OsString;
use std::io::{ErrorKind, Read, Seek, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::NamedTempFile;

use super::{Filters, Output, TempProject};

/// The variables that a process needs to run at all, the one that coverage tools set, and the one that names the Python
/// of eval functions where none was built in.
const KEPT_VARIABLES: [&str; 8] = [
    "PATH",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "TMPDIR",
    "SYSTEMROOT",
    "TEMP",
    "LLVM_PROFILE_FILE",
    "KARAT_GUEST",
];

/// How long a command may take where a test does not say.
const PATIENCE: Duration = Duration::from_mins(1);

/// How long the first look at a command's state is waited for; later ones are waited for longer.
const FIRST_PAUSE: Duration = Duration::from_micros(500);

/// A command that was not started yet.
#[derive(Debug)]
pub struct Invocation {
    command: Command,
    input: Option<Vec<u8>>,
    patience: Duration,
    filters: Filters,
}

impl Invocation {
    pub(super) fn new(project: &TempProject, binary: &Path, arguments: Vec<OsString>) -> Self {
        let mut command = Command::new(binary);
        command.args(arguments).current_dir(project.path()).env_clear();
        command.envs(KEPT_VARIABLES.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        // As people see it: without a terminal, notes and warnings would be one line each.
        command.env("HOME", project.home()).env("NO_COLOR", "1").env("COLUMNS", "80");
        command.envs(project.variables().iter().map(|(name, value)| (name, value)));
        Self { command, input: None, patience: PATIENCE, filters: project.filters() }
    }

    /// Sets a variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.command.env(name.into(), value.into());
        self
    }

    /// Writes this to the command's standard input, which is else empty.
    #[must_use]
    pub fn stdin(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = Some(input.into());
        self
    }

    /// Bounds how long the command may take.
    #[must_use]
    pub fn within(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Starts the command and does not wait for it.
    pub fn start(mut self) -> Running {
        // Files, since a pipe is held open by whatever the command leaves behind.
        let collect = || NamedTempFile::new().expect("a test machine has a temporary folder that can be written");
        let (stdout, stderr) = (collect(), collect());
        let hand = |file: &NamedTempFile| Stdio::from(file.as_file().try_clone().expect("an open file can be shared"));
        self.command.stdout(hand(&stdout)).stderr(hand(&stderr));
        self.command.stdin(self.input.take().map_or_else(Stdio::null, |input| {
            let mut file = tempfile::tempfile().expect("a test machine has a temporary folder that can be written");
            file.write_all(&input).expect("a temporary file can be written");
            file.rewind().expect("a file can be rewound");
            Stdio::from(file)
        }));
        let child = self.spawn();
        Running { child, stdout, stderr, deadline: Instant::now() + self.patience, filters: self.filters }
    }

    fn spawn(&mut self) -> Child {
        loop {
            match self.command.spawn() {
                Ok(child) => return child,
                // A binary that was just written is still open in whatever process another thread is just starting.
                Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => std::thread::sleep(FIRST_PAUSE),
                Err(error) => panic!("could not start {}: {error}", self.command.get_program().to_string_lossy()),
            }
        }
    }

    /// Runs the command to its end. Panics where it takes too long.
    pub fn run(self) -> Output {
        let patience = self.patience;
        self.start().wait().unwrap_or_else(|TooLong(output)| {
            panic!("no end within {patience:?}\nstdout: {}\nstderr: {}", output.stdout, output.stderr);
        })
    }
}

/// A command under way, which is killed when this is dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
    stdout: NamedTempFile,
    stderr: NamedTempFile,
    deadline: Instant,
    filters: Filters,
}

/// What a command wrote that had to be killed.
#[derive(Debug)]
pub struct TooLong(pub Output);

impl Running {
    /// Interrupts the command as Ctrl-C does.
    #[cfg(unix)]
    pub fn interrupt(&self) {
        self.signal("INT");
    }

    /// Sends a signal to the command, by its name without `SIG`.
    #[cfg(unix)]
    pub fn signal(&self, name: &str) {
        let done = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status();
        assert!(done.is_ok_and(|status| status.success()), "the command is still there to be interrupted");
    }

    /// Returns what the command wrote to standard output so far.
    pub fn stdout_so_far(&self) -> String {
        read_all(&self.stdout)
    }

    /// Returns what the command wrote to standard error so far.
    pub fn stderr_so_far(&self) -> String {
        read_all(&self.stderr)
    }

    /// Waits for the command's end, and kills it when it takes too long.
    pub fn wait(mut self) -> Result<Output, TooLong> {
        let mut pause = FIRST_PAUSE;
        let code = loop {
            if let Some(status) = self.child.try_wait().expect("the state of a child can be asked for") {
                break Some(status.code());
            }
            if Instant::now() >= self.deadline {
                break None;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(10));
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
        if code.is_some() { Ok(output) } else { Err(TooLong(output)) }
    }

    fn kill(&mut self) {
        // It may have ended by itself in the meantime.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Reads what was written, through a handle of its own so that the writer's place in the file stays where it is.
fn read_all(file: &NamedTempFile) -> String {
    let mut bytes = Vec::new();
    file.reopen().and_then(|mut file| file.read_to_end(&mut bytes)).expect("a temporary file can be read");
    String::from_utf8_lossy(&bytes).into_owned()
}
