//! Ctrl-C and termination signals.

use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use crossterm::cursor::Show;
use crossterm::event::DisableBracketedPaste;
use crossterm::execute;
use crossterm::terminal::{LeaveAlternateScreen, disable_raw_mode, is_raw_mode_enabled};
use karat_core::exit::ExitStatus;
use tokio::runtime::Runtime;
use tokio::sync::watch;

/// Whether the alternate screen is active. Leaving it without having entered it moves the cursor.
pub(crate) static ON_ALTERNATE_SCREEN: AtomicBool = AtomicBool::new(false);

/// Restoring a suspended terminal blocks, which must not keep the program alive.
const RESTORE_TIMEOUT: Duration = Duration::from_millis(300);

/// Remembers whether a signal asked the program to stop.
#[derive(Clone)]
pub(crate) struct Interrupts(watch::Receiver<bool>);

impl Interrupts {
    /// Registers the signal handlers. The second signal ends the program immediately.
    pub(crate) fn listen(runtime: &Runtime) -> Self {
        let (sender, receiver) = watch::channel(false);
        let _guard = runtime.enter();
        // Without handlers, the default action of a signal ends the program.
        if let Ok(mut signals) = Signals::register() {
            runtime.spawn(async move {
                signals.next().await;
                sender.send(true).ok();
                signals.next().await;
                exit_now();
            });
        }
        Self(receiver)
    }

    /// Waits for the first signal.
    pub(crate) async fn wait(&self) {
        if self.0.clone().wait_for(|is_interrupted| *is_interrupted).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

pub(crate) fn exit_now() {
    karat_process::kill_all();
    // In its own thread, because another thread may be blocked while it writes to the terminal.
    let (sender, restored) = channel();
    let restore = move || {
        restore_terminal();
        sender.send(()).ok();
    };
    std::thread::Builder::new().spawn(restore).ok();
    restored.recv_timeout(RESTORE_TIMEOUT).ok();
    #[expect(clippy::disallowed_methods, clippy::exit, reason = "the user asked to stop without waiting")]
    std::process::exit(i32::from(ExitStatus::Interrupted.code()))
}

/// Restores the terminal after a prompt or a screen, whose destructors do not run. Errors are ignored: the terminal may
/// be closed.
fn restore_terminal() {
    if !is_raw_mode_enabled().unwrap_or(false) {
        return;
    }
    disable_raw_mode().ok();
    let mut stderr = io::stderr();
    if stderr.is_terminal() {
        execute!(stderr, DisableBracketedPaste, Show).ok();
        if ON_ALTERNATE_SCREEN.load(Ordering::SeqCst) {
            execute!(stderr, LeaveAlternateScreen).ok();
        }
    }
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    /// The terminal was closed.
    hang_up: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn register() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hang_up.recv() => {}
        }
    }
}

#[cfg(windows)]
struct Signals(tokio::signal::windows::CtrlC);

#[cfg(windows)]
impl Signals {
    fn register() -> std::io::Result<Self> {
        tokio::signal::windows::ctrl_c().map(Self)
    }

    async fn next(&mut self) {
        self.0.recv().await;
    }
}
