//! Processes that hang, fork, write too much output or leave their group.

#![cfg(target_os = "linux")]

use std::path::Path;
use std::time::{Duration, Instant};

use karat_process::{Capture, Command, CommandOutput, Failure, Keep, Limits, LineProcess, LineProcessError, RunError};
use tempfile::TempDir;

const LIMITS: Limits = Limits { stdout_bytes: 1 << 20, time: Some(Duration::from_secs(20)) };

fn shell(script: &str) -> Command {
    Command::new("bash", &["-c".to_owned(), script.to_owned()], "/")
}

async fn run(script: &str) -> Result<CommandOutput, RunError> {
    shell(script).run(b"input", LIMITS).await
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

/// A folder in which processes record their ids.
struct Pids(TempDir);

impl Pids {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    /// Returns a shell command that records its id and hangs.
    fn hanging(&self, name: &str) -> String {
        format!("echo $BASHPID >{}; exec sleep 1000", self.0.path().join(name).display())
    }

    async fn of(&self, name: &str) -> String {
        let path = self.0.path().join(name);
        let read = || std::fs::read_to_string(&path).unwrap_or_default().trim().to_owned();
        wait_until("started", || !read().is_empty()).await;
        read()
    }
}

fn is_running(pid: &str) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat")).unwrap_or_default();
    // A zombie has exited.
    !stat.is_empty() && !stat.contains(") Z ")
}

async fn wait_until(description: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(Instant::now() < deadline, "{description}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn runs_to_completion() {
    let finished = run("cat; echo message >&2; exit 3").await.expect("runs");
    assert_eq!((text(&finished.stdout), finished.stderr.as_str()), ("input", "message\n"));
    assert_eq!(finished.status.code(), Some(3));
    let missing = Command::new("karat-no-such-program", &[], "/").run(&[], LIMITS).await.expect_err("none");
    assert!(matches!(missing.failure, Failure::Start(error) if error.kind() == std::io::ErrorKind::NotFound));
}

#[tokio::test]
async fn sets_folder_and_environment() {
    let folder = tempfile::tempdir().expect("a folder");
    let environment = [("PATH", "/usr/bin:/bin"), ("A", "1")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    let command =
        Command { environment: Some(environment.into()), folder: folder.path().into(), ..shell("echo $A$HOME; pwd") };
    let finished = command.run(&[], LIMITS).await.expect("runs");
    let path = folder.path().canonicalize().expect("a path");
    assert_eq!(text(&finished.stdout), format!("1\n{}\n", path.display()));
}

#[tokio::test]
async fn limits_stdout() {
    let flooding = Limits { stdout_bytes: 1000, ..LIMITS };
    // The limit applies even if the program does not read its stdin.
    let error = shell("yes").run(&vec![0; 1 << 20], flooding).await.expect_err("too much");
    assert!(matches!(error.failure, Failure::TooLarge { limit: 1000 }), "{error:?}");
    let exact = shell("printf %01000d 0").run(&[], flooding).await.expect("just enough");
    assert_eq!(exact.stdout.len(), 1000);
}

#[tokio::test]
async fn limits_stderr() {
    let command = Command { stderr: Capture { keep: Keep::Last, max_bytes: 10 }, ..shell("seq 100 >&2; echo x") };
    let finished = command.run(&[], LIMITS).await.expect("runs");
    assert_eq!(finished.stderr, "…\n98\n99\n100\n");
}

#[tokio::test]
async fn kills_all_descendants_on_timeout() {
    let pids = Pids::new();
    let script = format!("({} ) & ({}); wait", pids.hanging("child"), pids.hanging("other"));
    let limits = Limits { time: Some(Duration::from_millis(700)), ..LIMITS };
    let error = shell(&format!("echo why >&2; {script}")).run(&[], limits).await.expect_err("hangs");
    assert!(matches!(error.failure, Failure::TimedOut { .. }), "{error:?}");
    assert_eq!(error.stderr, "why\n");
    for name in ["child", "other"] {
        let pid = pids.of(name).await;
        wait_until("killed", || !is_running(&pid)).await;
    }
}

#[tokio::test]
async fn kills_all_descendants_on_drop() {
    let pids = Pids::new();
    let script = format!("({}) & ({}) & wait", pids.hanging("child"), pids.hanging("other"));
    let (process, stdin, stdout) = shell(&script).start().expect("starts");
    let (child, other) = (pids.of("child").await, pids.of("other").await);
    assert!(is_running(&child) && is_running(&other));
    drop(process);
    wait_until("both killed", || !is_running(&child) && !is_running(&other)).await;
    drop((stdin, stdout));
}

#[tokio::test]
async fn kills_descendants_that_left_the_group() {
    let pids = Pids::new();
    let script = format!("setsid bash -c '{}' & wait", pids.hanging("child"));
    let (process, stdin, stdout) = shell(&script).start().expect("starts");
    let child = pids.of("child").await;
    drop(process);
    wait_until("killed", || !is_running(&child)).await;
    drop((stdin, stdout));
}

/// A daemon: in its own session, and its parent has exited.
#[tokio::test]
async fn kills_daemons() {
    let pids = Pids::new();
    let daemon = |name: &str| format!("(setsid bash -c '{}' >/dev/null 2>&1 &)", pids.hanging(name));
    let finished = run(&format!("{}; sleep 0.2; echo done", daemon("exited"))).await.expect("ends");
    assert_eq!(text(&finished.stdout), "done\n");
    let child = pids.of("exited").await;
    wait_until("killed after the exit", || !is_running(&child)).await;
    let (process, stdin, stdout) = shell(&format!("{}; sleep 1000", daemon("dropped"))).start().expect("starts");
    let child = pids.of("dropped").await;
    let (other, other_stdin, other_stdout) =
        shell(&format!("{}; sleep 1000", daemon("other"))).start().expect("starts");
    let other_child = pids.of("other").await;
    drop(process);
    wait_until("killed on drop", || !is_running(&child)).await;
    assert!(is_running(&other_child), "another process still runs");
    drop(other);
    wait_until("killed on drop", || !is_running(&other_child)).await;
    drop((stdin, stdout, other_stdin, other_stdout));
}

/// The program exits while its daemons are being started.
#[tokio::test]
async fn kills_daemons_that_are_starting() {
    let marker = format!("{}", 40_000_000 + std::process::id());
    let running = || {
        let entries = std::fs::read_dir("/proc").expect("processes").flatten();
        let command = |entry: std::fs::DirEntry| std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        entries.map(command).filter(|line| line.starts_with(format!("sleep\0{marker}").as_bytes())).count()
    };
    for _ in 0..50 {
        run(&format!("(setsid setsid setsid sleep {marker} >/dev/null 2>&1 &); echo done")).await.expect("ends");
    }
    wait_until("all killed", || running() == 0).await;
}

#[tokio::test]
async fn kills_remaining_descendants_after_exit() {
    let pids = Pids::new();
    let finished = run(&format!("({}) & echo done; echo bye >&2", pids.hanging("child"))).await.expect("ends");
    assert_eq!((text(&finished.stdout), finished.stderr.as_str()), ("done\n", "bye\n"));
    let child = pids.of("child").await;
    wait_until("killed", || !is_running(&child)).await;
}

#[tokio::test]
async fn waits_for_output_through_a_filter() {
    let finished = run("exec > >(sleep 0.05; cat); echo passed on").await.expect("ends");
    assert_eq!(text(&finished.stdout), "passed on\n");
}

#[tokio::test]
async fn does_not_wait_for_processes_that_left_the_group() {
    let started = Instant::now();
    let finished = run("setsid sleep 30 & echo done; printf bye >&2").await.expect("ends");
    assert_eq!((text(&finished.stdout), finished.stderr.as_str()), ("done\n", "bye"));
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    assert!(finished.elapsed < Duration::from_secs(5), "only the program's own time counts: {:?}", finished.elapsed);
}

#[tokio::test]
async fn keeps_the_head_of_stdout() {
    use tokio::io::AsyncReadExt as _;
    let (process, _stdin, mut stdout) = shell("echo first; yes | head -c 5000").start().expect("starts");
    let mut all = Vec::new();
    stdout.read_to_end(&mut all).await.expect("readable");
    assert_eq!(all.len(), 5006);
    let head = process.stdout_head();
    assert!(head.starts_with("first\ny\n") && head.len() <= 200, "{head}");
    let exit = process.exited_within(Duration::from_secs(10)).await.expect("ends");
    assert!(exit.status.success());
}

/// Starts a script that handles each line on stdin, in `$line`.
fn start_line_process(script: &str) -> LineProcess {
    LineProcess::start(&shell(&format!("while read -r line; do {script}; done"))).expect("starts")
}

#[tokio::test]
async fn answers_line_by_line_in_one_process() {
    let mut process = start_line_process("echo \"$$ $line\"");
    let first = process.request("a", 100).await.expect("an answer");
    let second = process.request("b é", 100).await.expect("an answer");
    let (id, _) = text(&first).split_once(' ').expect("an id");
    assert_eq!((text(&first), text(&second)), (format!("{id} a").as_str(), format!("{id} b é").as_str()));
    assert!(!process.is_unusable().await);
}

#[tokio::test]
async fn assigns_stderr_to_its_request() {
    let mut process = start_line_process("for i in $(seq 300); do echo \"$line $i\" >&2; done; echo done");
    for line in ["a", "b", "c", "d"] {
        process.request(line, 100).await.expect("an answer");
        let expected = (1..=300).map(|index| format!("{line} {index}\n")).collect::<Vec<_>>().concat();
        assert_eq!(process.take_stderr().await, expected);
    }
}

#[tokio::test]
async fn reports_why_there_is_no_answer() {
    let error = start_line_process("exit 3").request("a", 100).await.expect_err("exits");
    assert!(matches!(error, LineProcessError::Exited(exit) if exit.status.code() == Some(3)), "{error:?}");
    let error = start_line_process("yes | tr -d '\\n'").request("a", 1000).await.expect_err("endless");
    assert!(matches!(error, LineProcessError::TooLarge { limit: 1000 }), "{error:?}");
    let mut process = start_line_process("exec 1>&-; sleep 1000");
    let error = process.request("a", 100).await.expect_err("no output");
    assert!(matches!(error, LineProcessError::Closed), "{error:?}");
}

#[tokio::test]
async fn large_requests_and_answers_do_not_block_each_other() {
    let script = "import sys\nfor line in sys.stdin:\n    sys.stdout.write('x' * 300000); print(len(line), flush=True)";
    let command = Command::new("python3", &["-c".to_owned(), script.to_owned()], "/");
    let mut process = LineProcess::start(&command).expect("starts");
    let answer = process.request(&"y".repeat(1_000_000), 1 << 20).await.expect("an answer");
    assert!(text(&answer).ends_with("x1000001"));
}

#[tokio::test]
async fn detects_unrequested_output() {
    let mut process = start_line_process("echo one; echo two");
    process.request("a", 100).await.expect("an answer");
    // The second line may arrive later.
    let deadline = Instant::now() + Duration::from_secs(10);
    while !process.is_unusable().await {
        assert!(Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let mut process = start_line_process("echo one; exit 0");
    process.request("a", 100).await.expect("an answer");
    while !process.is_unusable().await {
        assert!(Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
