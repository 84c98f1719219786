//! Helpers that judge traces in a sandbox.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use std::{fs, io};

use karat_core::judgement::{Conclusion, Judgement, Limits};
use karat_sandbox::{Function, Guest, Input, Isolation, Position, Sandbox, StreamError, Task, read_lines, validate};

pub(crate) type Judged = karat_sandbox::Judged<Position>;

/// Returns the shared sandbox of this process.
pub(crate) fn sandbox() -> &'static Sandbox {
    static SANDBOX: OnceLock<Sandbox> = OnceLock::new();
    SANDBOX.get_or_init(|| Sandbox::open(&Guest::find(None).expect("a build with Python")).unwrap())
}

/// A Python file of the corpus.
pub(crate) struct Source {
    /// The file's name without its extension.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

impl Source {
    /// Returns the function even if validation rejects it, since validation is not the security boundary.
    pub(crate) fn function(&self) -> Arc<Function> {
        let rejected = |_| Function::unvalidated(&format!("eval_{}", self.name), &self.text);
        Arc::new(validate(self.text.as_bytes()).unwrap_or_else(rejected))
    }
}

pub(crate) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// Returns the Python files of a fixture folder, sorted by name.
pub(crate) fn sources(folder: &str) -> Vec<Source> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(fixtures().join(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "py"));
    paths.sort();
    let read = |path: PathBuf| Source {
        name: path.file_stem().unwrap().to_string_lossy().into_owned(),
        text: fs::read_to_string(&path).unwrap(),
        path,
    };
    paths.into_iter().map(read).collect()
}

pub(crate) fn task(functions: &[Arc<Function>], isolation: Isolation) -> Task {
    Task { functions: functions.to_vec(), limits: Limits::default(), isolation, jobs: 1 }
}

pub(crate) fn with_time(task: Task, milliseconds: u64) -> Task {
    Task { limits: Limits { time: Duration::from_millis(milliseconds), ..task.limits }, ..task }
}

/// Judges JSON Lines and returns the results.
pub(crate) fn judge(sandbox: &Sandbox, task: &Task, lines: impl Into<Vec<u8>>) -> Vec<Judged> {
    judge_batches(sandbox, task, read_lines(io::Cursor::new(lines.into())))
}

pub(crate) fn judge_batches(
    sandbox: &Sandbox,
    task: &Task,
    batches: impl Iterator<Item = io::Result<Vec<Input<Position>>>> + Send + 'static,
) -> Vec<Judged> {
    let mut all = Vec::new();
    let receive = |judged: Judged| {
        all.push(judged);
        ControlFlow::Continue(())
    };
    judge_each(sandbox, task, batches, receive).unwrap();
    all
}

/// Calls `receive` with each result until there are no more or it breaks.
pub(crate) fn judge_each(
    sandbox: &Sandbox,
    task: &Task,
    batches: impl Iterator<Item = io::Result<Vec<Input<Position>>>> + Send + 'static,
    mut receive: impl FnMut(Judged) -> ControlFlow<()>,
) -> Result<(), StreamError<io::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let mut stream = sandbox.judge_stream(task, batches)?;
        loop {
            let ready = stream.next().await?;
            if ready.is_empty() {
                return Ok(());
            }
            for judged in ready {
                if receive(judged).is_break() {
                    return Ok(());
                }
            }
        }
    })
}

/// Returns `pass`, `fail` or the kind of the error.
pub(crate) fn outcome(judgement: &Judgement) -> &'static str {
    match &judgement.conclusion {
        Conclusion::Verdict { passed: true, .. } => "pass",
        Conclusion::Verdict { passed: false, .. } => "fail",
        Conclusion::NotApplicable { .. } => "not applicable",
        Conclusion::Error(error) => error.kind.name(),
    }
}

/// Returns the resident memory of this process in bytes, if the system reports it.
pub(crate) fn resident_memory() -> Option<usize> {
    let statm = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: usize = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * 4096)
}

/// Runs a test in its own process, since other tests use memory too. Returns true in that process; false in the parent,
/// after the test passed there.
pub(crate) fn is_own_process(test: &str) -> bool {
    if std::env::var_os("KARAT_TEST_ALONE").is_some() {
        return true;
    }
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--include-ignored", "--nocapture"])
        .env("KARAT_TEST_ALONE", "1")
        .status()
        .unwrap();
    assert!(status.success(), "{test} failed in its own process");
    false
}
