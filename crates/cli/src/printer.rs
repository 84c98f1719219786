//! Output: results on stdout, messages on stderr.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use indicatif::ProgressBar;
use karat_core::lint::Severity;
use karat_core::redact::Redactor;
use karat_core::registry::Gap;
use karat_json::Finding;
use karat_report::{
    ConsoleSettings, Palette, SourceProblem, Symbols, Verbosity, break_commands, escape_json, printable,
};
use karat_workflows::Notices;
use serde::Serialize;
use textwrap::core::Word;

use crate::args::{ColorChoice, GlobalArgs};
use crate::environment::Environment;
use crate::failure::Failure;

/// Findings of one file that are printed.
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
    /// Whether the output is the log of a GitHub workflow, which must not contain commands from other text.
    is_github_log: bool,
    /// Masks secrets in everything that is printed.
    pub(crate) redactor: Redactor,
    bar: Mutex<Option<ProgressBar>>,
}

const DEFAULT_COLUMNS: usize = 80;
const MIN_COLUMNS: usize = 40;
const MAX_COLUMNS: usize = 160;

/// Lines of another program's output that are shown, from its start and from its end.
const MAX_QUOTED_LINES: usize = 5;

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

    /// Breaks GitHub workflow commands in a text, if the output is a workflow's log.
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

    /// Prints a text to stdout.
    pub(crate) fn print(&self, text: &str) -> Result<(), Failure> {
        self.write_stdout(text).map_err(|error| Failure::errored(error.to_string()))
    }

    /// Prints a JSON document to stdout.
    pub(crate) fn print_json(&self, document: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(document).map_err(|error| Failure::errored(error.to_string()))?;
        self.print(&format!("{}\n", escape_json(&text)))
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
        self.print_stderr(&self.labelled("warning:", text, |label| self.stderr_palette.warning(label)));
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
            self.print_stderr(&self.labelled("error:", &failure.message, |label| self.stderr_palette.alert(label)));
        }
        self.quote(&failure.quoted);
        for hint in &failure.hints {
            self.print_stderr(&self.labelled("hint:", hint, |label| self.stderr_palette.bold(label)));
        }
    }

    /// Wraps a text behind a coloured label.
    fn labelled(&self, label: &str, text: &str, paint: impl Fn(&str) -> String) -> String {
        let text = self.wrap(&format!("{label} "), text).join("\n");
        match text.strip_prefix(label) {
            Some(rest) => paint(label) + rest,
            None => text,
        }
    }

    /// Wraps a text to the width of the terminal. Without a terminal it stays on one line, so that it can be found in
    /// logs.
    fn wrap(&self, label: &str, text: &str) -> Vec<String> {
        // Redact before wrapping: a secret may contain spaces.
        let text = self.redactor.text(text).into_owned();
        match self.stderr_columns {
            Some(columns) => wrap_text(label, &printable(&text), columns),
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

    /// Prints an indented text to stderr, wrapped to the width of the terminal.
    pub(crate) fn print_wrapped(&self, indent: &str, text: &str) {
        self.print_stderr(&self.wrap(indent, text).join("\n"));
    }

    /// Prints a text to stderr without wrapping it.
    pub(crate) fn print_stderr(&self, text: &str) {
        let redacted = self.redactor.text(text).into_owned();
        // There is no way to report that stderr is closed.
        let shown = self.without_commands(&redacted);
        self.with_bar_hidden(|| write_all(&mut io::stderr().lock(), &format!("{shown}\n"))).ok();
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

/// Returns the non-empty lines of a text, without the middle if there are many.
fn quoted_lines(text: &str, ellipsis: &str) -> Vec<String> {
    let mut lines: Vec<String> =
        text.lines().filter(|line| !line.trim().is_empty()).map(|line| printable(line).into_owned()).collect();
    if lines.len() > 2 * MAX_QUOTED_LINES {
        lines.splice(MAX_QUOTED_LINES..lines.len() - MAX_QUOTED_LINES, [ellipsis.to_owned()]);
    }
    lines
}

/// Wraps a text at spaces only, so that paths stay whole, and indents the lines after the first.
fn wrap_text(label: &str, text: &str, columns: usize) -> Vec<String> {
    let indent = " ".repeat(label.len() - label.trim_start().len() + 2);
    let options = textwrap::Options::new(columns)
        .initial_indent(label)
        .subsequent_indent(&indent)
        .break_words(false)
        .word_splitter(textwrap::WordSplitter::NoHyphenation)
        .word_separator(textwrap::WordSeparator::Custom(split_words));
    textwrap::wrap(text, options).into_iter().map(|line| line.trim_end().to_owned()).collect()
}

/// Start of a command that users may copy.
const COMMAND_PREFIX: &str = "karat ";

/// Splits a line into words with their trailing spaces. A command is one word, so that it can be copied: up to its
/// closing quote, or the rest of the line after a colon.
fn split_words(line: &str) -> Box<dyn Iterator<Item = Word<'_>> + '_> {
    let (mut rest, mut is_after_colon) = (line, false);
    Box::new(std::iter::from_fn(move || {
        let space_from = |start: usize| rest[start..].find(' ').map_or(rest.len(), |space| start + space);
        let mut end = space_from(0);
        if is_after_colon && rest.starts_with(COMMAND_PREFIX) {
            end = rest.len();
        } else if let Some(before) = rest.get(..=end).and_then(|word| word.strip_suffix(COMMAND_PREFIX))
            && before.ends_with('\'')
            && let Some(quote) = rest[end..].find('\'')
        {
            end = space_from(end + quote);
        }
        let spaces = rest[end..].len() - rest[end..].trim_start_matches(' ').len();
        is_after_colon = rest[..end].ends_with(':');
        let (word, after) = rest.split_at(end + spaces);
        rest = after;
        (!word.is_empty()).then(|| Word::from(word))
    }))
}

fn write_all(out: &mut impl Write, text: &str) -> io::Result<()> {
    out.write_all(text.as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use rstest::rstest;

    use super::*;

    #[rstest]
    fn wraps_at_spaces_only(#[values(40, 60, 80)] columns: usize) {
        let text = "evals/one-of-many/a-file-with-a-name-that-is-longer-than-a-line-of-a-terminal-has-columns.json is \
                    out-of-date: see --format=json for the well-known rest of what there is";
        let lines = wrap_text("warning: ", text, columns);
        let words = |text: &str| text.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&lines.join(" ")), words(&format!("warning: {text}")));
        assert!(lines.iter().all(|line| line.len() <= columns || line.trim().split(' ').count() <= 2), "{lines:#?}");
    }

    #[test]
    fn does_not_break_commands() {
        let text = "no trace was judged by versions 1 and 2; 'karat eval run eval_tone --stored' judges with the \
                    newest, and that's what counts: 'karat eval add a file.py' or 'other words' follow";
        assert_snapshot!(wrap_text("hint: ", text, 50).join("\n"), @r"
        hint: no trace was judged by versions 1 and 2;
          'karat eval run eval_tone --stored' judges
          with the newest, and that's what counts:
          'karat eval add a file.py' or 'other words'
          follow
        ");
        let text = "the rating still counts; to correct it: karat feedback add conversation-1 negative";
        assert_snapshot!(wrap_text("", text, 50).join("\n"), @r"
        the rating still counts; to correct it:
          karat feedback add conversation-1 negative
        ");
    }

    #[test]
    fn indents_below_an_indented_line() {
        let text = "get_order (tools.json:3:36): the description is too vague for reliable evals";
        assert_snapshot!(wrap_text("  ", text, 40).join("\n"), @r"
          get_order (tools.json:3:36): the
            description is too vague for
            reliable evals
        ");
    }

    #[test]
    fn keeps_short_text_on_one_line() {
        assert_eq!(wrap_text("", "nothing changed", 40), ["nothing changed"]);
        assert_eq!(wrap_text("", "'karat review", 40), ["'karat review"], "an unclosed quote is plain text");
    }
}
