//! Output: results on stdout, messages on stderr.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use indicatif::ProgressBar;
use karat_cases::registry::Gap;
use karat_core::redact::Redactor;
use karat_json::Finding;
use karat_lints::Severity;
use karat_report::{
    ConsoleSettings, Palette, SourceProblem, Symbols, Verbosity, break_commands, escape_json, printable, quoted_lines,
    wrap_message,
};
use karat_workflows::Notices;
use serde::Serialize;

use crate::args::{ColorChoice, GlobalArgs, OutputFormat};
use crate::environment::Environment;
use crate::failure::Failure;

/// Maximum number of findings to print per file.
const MAX_FINDINGS: usize = 50;

pub(crate) struct Printer {
    pub(crate) stdout_palette: Palette,
    pub(crate) stderr_palette: Palette,
    pub(crate) symbols: Symbols,
    /// Width of text on stdout.
    pub(crate) columns: usize,
    /// Width of messages, if stderr is a terminal.
    stderr_columns: Option<usize>,
    /// Width of stdout, if it is a terminal.
    pub(crate) terminal_columns: Option<usize>,
    pub(crate) quiet: bool,
    /// Whether cases are shown in full.
    verbose: bool,
    /// Whether the output is the log of a GitHub workflow, in which untrusted text must not issue commands.
    is_github_log: bool,
    /// Masks secrets in everything that is printed.
    pub(crate) redactor: Redactor,
    bar: Mutex<Option<ProgressBar>>,
}

pub(crate) const DEFAULT_COLUMNS: usize = 80;
const MIN_COLUMNS: usize = 40;
const MAX_COLUMNS: usize = 160;

impl Printer {
    pub(crate) fn new(args: &GlobalArgs, environment: &Environment) -> Self {
        let color = |is_terminal: bool| match args.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => !environment.no_color && (environment.force_color || is_terminal),
        };
        let clamp = |columns: usize| columns.clamp(MIN_COLUMNS, MAX_COLUMNS);
        let columns = clamp(environment.stdout_columns.unwrap_or(DEFAULT_COLUMNS));
        let ascii = args.ascii.unwrap_or(environment.ascii_locale);
        Self {
            stdout_palette: Palette { color: color(environment.stdout_is_terminal) },
            stderr_palette: Palette { color: color(environment.stderr_is_terminal) },
            symbols: if ascii { Symbols::ASCII } else { Symbols::UNICODE },
            columns,
            stderr_columns: environment.stderr_columns.map(clamp),
            terminal_columns: environment.stdout_is_terminal.then_some(columns),
            quiet: args.quiet,
            verbose: args.verbose > 0,
            is_github_log: environment.github_actions,
            redactor: Redactor::default(),
            bar: Mutex::default(),
        }
    }

    /// Returns the layout of stdout.
    pub(crate) fn console(&self) -> ConsoleSettings {
        ConsoleSettings {
            columns: self.columns,
            symbols: self.symbols,
            palette: self.stdout_palette,
            verbosity: match (self.quiet, self.verbose) {
                (true, _) => Verbosity::Quiet,
                (false, true) => Verbosity::Full,
                (false, false) => Verbosity::Normal,
            },
        }
    }

    /// Sets the progress bar, which is hidden while something else is printed.
    pub(crate) fn set_progress_bar(&self, bar: Option<ProgressBar>) {
        *self.bar.lock().unwrap_or_else(PoisonError::into_inner) = bar;
    }

    /// Removes the progress bar from the terminal.
    pub(crate) fn clear_progress_bar(&self) {
        if let Some(bar) = self.bar.lock().unwrap_or_else(PoisonError::into_inner).take() {
            bar.finish_and_clear();
        }
    }

    /// Breaks GitHub workflow commands in text, if the output is a workflow's log.
    fn without_commands<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.is_github_log { break_commands(text) } else { Cow::Borrowed(text) }
    }

    pub(crate) fn write_stdout(&self, text: &str) -> io::Result<()> {
        let text = &self.without_commands(text);
        match self.with_bar_hidden(|| write_all(&mut io::stdout().lock(), text)) {
            // A closed pipe is not an error: the reader has stopped reading.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written,
        }
    }

    /// Writes text that belongs on stdout to stderr, while stdout is a document.
    pub(crate) fn write_stderr(&self, text: &str) -> io::Result<()> {
        let text = &self.without_commands(text);
        self.with_bar_hidden(|| write_all(&mut io::stderr().lock(), text))
    }

    /// Prints text to stdout.
    pub(crate) fn print(&self, text: &str) -> Result<(), Failure> {
        self.write_stdout(text).map_err(|error| Failure::errored(error.to_string()))
    }

    /// Prints a JSON document to stdout.
    pub(crate) fn print_json(&self, document: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(document).map_err(|error| Failure::errored(error.to_string()))?;
        self.print(&format!("{}\n", escape_json(&text)))
    }

    /// Prints a result to stdout: as JSON, or as text in the layout of stdout.
    pub(crate) fn print_result<T: Serialize>(
        &self,
        format: OutputFormat,
        result: &T,
        text: impl FnOnce(&T, ConsoleSettings) -> String,
    ) -> Result<(), Failure> {
        match format {
            OutputFormat::Json => self.print_json(result),
            OutputFormat::Human => self.print(&text(result, self.console())),
        }
    }

    /// Prints a JSON document on one line of stdout.
    pub(crate) fn print_json_line(&self, document: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string(document).map_err(|error| Failure::errored(error.to_string()))?;
        self.print(&format!("{}\n", escape_json(&text)))
    }

    /// Writes bytes to stdout unchanged.
    pub(crate) fn write_stdout_bytes(&self, bytes: &[u8]) -> io::Result<()> {
        let written = self.with_bar_hidden(|| {
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
        self.print_stderr(&self.with_label("warning:", text, |label| self.stderr_palette.warning(label)));
    }

    /// Warns about a part of the registry that cannot be read, with the output of the failed program.
    pub(crate) fn warn_gap(&self, gap: &Gap) {
        let (message, output) = gap.parts();
        self.warn(&format!("{}: {message}", gap.location));
        self.quote(output);
    }

    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            let lines = self.wrap("", text);
            self.print_stderr(&lines.iter().map(|line| self.stderr_palette.dim(line)).collect::<Vec<_>>().join("\n"));
        }
    }

    pub(crate) fn notes(&self, texts: impl IntoIterator<Item = String>) {
        texts.into_iter().for_each(|text| self.note(&text));
    }

    /// Prints the findings of a file to stderr.
    pub(crate) fn findings(&self, name: &str, text: &str, findings: &[Finding]) {
        let text: Arc<str> = Arc::from(text);
        let settings = ConsoleSettings { palette: self.stderr_palette, ..self.console() };
        for finding in findings.iter().take(MAX_FINDINGS) {
            let problem = SourceProblem::new(name, &text, finding.clone(), Severity::Error, None);
            self.print_stderr(&problem.text(settings));
        }
        if let Some(more) = findings.len().checked_sub(MAX_FINDINGS).filter(|more| *more > 0) {
            self.print_stderr(&format!("… and {more} more in {name}"));
        }
    }

    pub(crate) fn failure(&self, failure: &Failure) {
        failure.files.iter().for_each(|file| self.findings(&file.name, &file.text, &file.findings));
        if !failure.message.is_empty() {
            self.print_stderr(&self.with_label("error:", &failure.message, |label| self.stderr_palette.alert(label)));
        }
        self.quote(&failure.quoted);
        for hint in &failure.hints {
            self.print_stderr(&self.with_label("hint:", hint, |label| self.stderr_palette.bold(label)));
        }
    }

    /// Wraps text after a coloured label.
    fn with_label(&self, label: &str, text: &str, paint: impl Fn(&str) -> String) -> String {
        let text = self.wrap(&format!("{label} "), text).join("\n");
        match text.strip_prefix(label) {
            Some(rest) => paint(label) + rest,
            None => text,
        }
    }

    /// Wraps text to the width of the terminal. Without a terminal it stays on one line, so that it can be found in
    /// logs.
    fn wrap(&self, label: &str, text: &str) -> Vec<String> {
        // Redact before wrapping: a secret may contain spaces.
        let text = self.redactor.text(text).into_owned();
        match self.stderr_columns {
            Some(columns) => wrap_message(label, &printable(&text), columns),
            None => vec![format!("{label}{}", printable(&text))],
        }
    }

    /// Prints the first and last lines of another program's output, indented.
    fn quote(&self, text: &str) {
        // Redact before splitting: a secret may span lines.
        let text = self.redactor.text(text).into_owned();
        for line in quoted_lines(&text, self.symbols.ellipsis) {
            self.print_stderr(&format!("  {line}"));
        }
    }

    /// Prints indented text to stderr, wrapped to the width of the terminal.
    pub(crate) fn print_wrapped(&self, indent: &str, text: &str) {
        self.print_stderr(&self.wrap(indent, text).join("\n"));
    }

    /// Prints text to stderr without wrapping it.
    pub(crate) fn print_stderr(&self, text: &str) {
        let redacted = self.redactor.text(text).into_owned();
        // There is no way to report that stderr is closed.
        let safe_text = self.without_commands(&redacted);
        self.with_bar_hidden(|| write_all(&mut io::stderr().lock(), &format!("{safe_text}\n"))).ok();
    }

    /// Prints a log line to stderr.
    pub(crate) fn log(&self, line: &str) {
        // Redact before escaping: a secret may contain line breaks.
        let redacted = self.redactor.text(line.trim_end());
        self.print_stderr(&printable(&redacted));
    }

    /// Writes terminal sequences to stderr.
    pub(crate) fn draw(&self, text: &str) -> io::Result<()> {
        let redacted = self.redactor.text(text).into_owned();
        write_all(&mut io::stderr().lock(), &redacted)
    }

    fn with_bar_hidden<T>(&self, print: impl FnOnce() -> T) -> T {
        let bar = self.bar.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }
}

impl Notices for Printer {
    fn warn(&self, text: &str) {
        Self::warn(self, text);
    }

    fn note(&self, text: &str) {
        Self::note(self, text);
    }

    fn gap(&self, gap: &Gap) {
        self.warn_gap(gap);
    }
}

fn write_all(out: &mut impl Write, text: &str) -> io::Result<()> {
    out.write_all(text.as_bytes())?;
    out.flush()
}
