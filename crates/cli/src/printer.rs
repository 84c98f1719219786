//! All printing goes through here: stdout is data, stderr is talk.

use std::cell::RefCell;
use std::io::{self, Write};

use indicatif::ProgressBar;
use karat_core::redact::Redactor;
use karat_core::registry::Gap;
use karat_report::{ConsoleSettings, Palette, Symbols, Verbosity, printable};
use serde::Serialize;

use crate::args::{ColorChoice, GlobalArgs};
use crate::environment::Environment;
use crate::failure::Failure;

/// Knows where and how to print.
pub(crate) struct Printer {
    pub(crate) stdout_palette: Palette,
    pub(crate) stderr_palette: Palette,
    pub(crate) symbols: Symbols,
    /// How wide summaries are.
    pub(crate) columns: usize,
    /// Where stdout is a screen, how wide a line of it is.
    pub(crate) screen: Option<usize>,
    pub(crate) quiet: bool,
    redactor: RefCell<Redactor>,
    bar: RefCell<Option<ProgressBar>>,
}

/// Without a terminal; and no line gets so wide that the eye loses it.
const DEFAULT_COLUMNS: usize = 80;
const WIDEST: usize = 160;

/// How many lines of what somebody else said are shown, of its beginning and of its end: some programs say first what
/// is wrong, others last.
const MOST_QUOTED: usize = 5;

impl Printer {
    pub(crate) fn new(args: &GlobalArgs, environment: &Environment) -> Self {
        let color = |is_terminal: bool| match args.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => !environment.no_color && (environment.force_color || is_terminal),
        };
        let columns = environment.columns.unwrap_or(DEFAULT_COLUMNS).clamp(40, WIDEST);
        let ascii = args.ascii.unwrap_or(environment.ascii_locale);
        Self {
            stdout_palette: Palette { color: color(environment.stdout_is_terminal) },
            stderr_palette: Palette { color: color(environment.stderr_is_terminal) },
            symbols: if ascii { Symbols::ASCII } else { Symbols::UNICODE },
            columns,
            screen: environment.stdout_is_terminal.then_some(columns),
            quiet: args.quiet,
            redactor: RefCell::default(),
            bar: RefCell::default(),
        }
    }

    /// Returns how what goes to stdout is laid out.
    pub(crate) fn console(&self) -> ConsoleSettings {
        ConsoleSettings {
            columns: self.columns,
            symbols: self.symbols,
            palette: self.stdout_palette,
            verbosity: if self.quiet { Verbosity::Quiet } else { Verbosity::Normal },
        }
    }

    /// Masks these secrets in everything that is printed from here on.
    pub(crate) fn keep_secret(&self, redactor: Redactor) {
        self.redactor.replace(redactor);
    }

    /// Lets a progress bar step aside for what is printed.
    pub(crate) fn show_above(&self, bar: Option<ProgressBar>) {
        self.bar.replace(bar);
    }

    pub(crate) fn out(&self, text: &str) -> io::Result<()> {
        match self.suspended(|| write_all(&mut io::stdout().lock(), text)) {
            // Whoever closed our stdout has read enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written,
        }
    }

    /// Prints what a verb has to say.
    pub(crate) fn print(&self, text: &str) -> Result<(), Failure> {
        self.out(text).map_err(|error| Failure::errored(error.to_string()))
    }

    /// Prints one JSON document, as programs read it.
    pub(crate) fn print_json(&self, document: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(document).map_err(|error| Failure::errored(error.to_string()))?;
        self.print(&format!("{text}\n"))
    }

    /// Writes what was kept, byte for byte.
    pub(crate) fn out_bytes(&self, bytes: &[u8]) -> io::Result<()> {
        let written = self.suspended(|| {
            let mut out = io::stdout().lock();
            out.write_all(bytes)?;
            out.flush()
        });
        match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written,
        }
    }

    pub(crate) fn warn(&self, text: &str) {
        let label = self.stderr_palette.doubtful("warning:");
        self.talk(&format!("{label} {}", printable(text)));
    }

    /// Says what could not be read of the tools, and what somebody said of it.
    pub(crate) fn warn_of_gap(&self, gap: &Gap) {
        let (what, said) = gap.what.split_once('\n').unwrap_or((&gap.what, ""));
        self.warn(&format!("{}: {what}", gap.place));
        self.quote(said);
    }

    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            self.talk(&self.stderr_palette.dim(printable(text)));
        }
    }

    pub(crate) fn failure(&self, failure: &Failure) {
        if !failure.message.is_empty() {
            self.talk(&format!("{} {}", self.stderr_palette.alarm("error:"), printable(&failure.message)));
        }
        self.quote(&failure.quoted);
        for hint in &failure.hints {
            self.talk(&format!("{} {}", self.stderr_palette.bold("hint:"), printable(hint)));
        }
    }

    /// Prints the first and last lines of what somebody else said, so far to the right that they are nobody else's.
    fn quote(&self, text: &str) {
        // As a whole first: a secret of several lines is not found in one of them.
        let text = self.redactor.borrow().text(text).into_owned();
        for line in quoted_lines(&text, self.symbols.ellipsis) {
            self.talk(&format!("  {line}"));
        }
    }

    /// Prints lines that are already laid out to stderr.
    pub(crate) fn talk(&self, text: &str) {
        let redacted = self.redactor.borrow().text(text).into_owned();
        // Nobody is left to tell when stderr is gone.
        self.suspended(|| write_all(&mut io::stderr().lock(), &format!("{redacted}\n"))).ok();
    }

    /// Draws on the screen, of which stderr is a part.
    pub(crate) fn draw(&self, text: &str) -> io::Result<()> {
        let redacted = self.redactor.borrow().text(text).into_owned();
        write_all(&mut io::stderr().lock(), &redacted)
    }

    fn suspended<T>(&self, print: impl FnOnce() -> T) -> T {
        match &*self.bar.borrow() {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }
}

/// Returns the lines of what somebody else said, without the middle of many.
pub(crate) fn quoted_lines(text: &str, ellipsis: &str) -> Vec<String> {
    let mut lines: Vec<String> =
        text.lines().filter(|line| !line.trim().is_empty()).map(|line| printable(line).into_owned()).collect();
    if lines.len() > 2 * MOST_QUOTED {
        lines.splice(MOST_QUOTED..lines.len() - MOST_QUOTED, [ellipsis.to_owned()]);
    }
    lines
}

fn write_all(out: &mut impl Write, text: &str) -> io::Result<()> {
    out.write_all(text.as_bytes())?;
    out.flush()
}
