//! Ctrl-C, and the machine's wish that the program ends.

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

/// Whether the alternate screen is shown: who leaves it without having entered it moves the cursor.
pub(crate) static ON_ALTERNATE_SCREEN: AtomicBool = AtomicBool::new(false);

/// How long a terminal may take to be given back: one that is halted takes nothing, and must not keep the program.
const GIVING_BACK: Duration = Duration::from_millis(300);

/// Hears and remembers that the program was asked to stop: once the signals are taken from the system, nobody else does.
#[derive(Clone)]
pub(crate) struct Interrupts(watch::Receiver<bool>);

impl Interrupts {
    /// Listens from here on. Who asks twice is obeyed at once, whatever is under way.
    pub(crate) fn listen(runtime: &Runtime) -> Self {
        let (asked, interrupts) = watch::channel(false);
        let _guard = runtime.enter();
        // Without them the system ends the program, as it does any other.
        if let Ok(mut signals) = Signals::take() {
            runtime.spawn(async move {
                signals.next().await;
                asked.send(true).ok();
                signals.next().await;
                end_at_once();
            });
        }
        Self(interrupts)
    }

    /// Waits until the program is asked to stop, if it was not yet.
    pub(crate) async fn asked(&self) {
        if self.0.clone().wait_for(|asked| *asked).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

pub(crate) fn end_at_once() {
    karat_process::kill_all();
    // In a thread of its own, since another one may be writing to the terminal and never finish. Where none can be
    // started, nobody is waited for.
    let (given_back, waiting) = channel();
    let giving_back = move || {
        give_terminal_back();
        given_back.send(()).ok();
    };
    std::thread::Builder::new().spawn(giving_back).ok();
    waiting.recv_timeout(GIVING_BACK).ok();
    #[expect(clippy::disallowed_methods, clippy::exit, reason = "asked to stop: nothing is worth waiting for")]
    std::process::exit(i32::from(ExitStatus::Interrupted.code()))
}

/// Leaves the terminal as it was before a prompt or a screen took it: nobody who did so comes to it any more. Nobody is
/// left to tell when it is gone.
fn give_terminal_back() {
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
    fn take() -> std::io::Result<Self> {
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
    fn take() -> std::io::Result<Self> {
        tokio::signal::windows::ctrl_c().map(Self)
    }

    async fn next(&mut self) {
        self.0.recv().await;
    }
}
