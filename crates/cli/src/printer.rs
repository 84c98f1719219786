//! All printing goes through here: stdout is data, stderr is talk.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use indicatif::ProgressBar;
use karat_core::lint::Severity;
use karat_core::redact::Redactor;
use karat_core::registry::Gap;
use karat_json::Finding;
use karat_report::{ConsoleSettings, Palette, SourceProblem, Symbols, Verbosity, printable};
use karat_workflows::Notices;
use serde::Serialize;
use textwrap::core::Word;

use crate::args::{ColorChoice, GlobalArgs};
use crate::environment::Environment;
use crate::failure::Failure;

/// How many invalid places of a text are printed.
const MAX_FINDINGS: usize = 50;

/// Knows where and how to print.
pub(crate) struct Printer {
    pub(crate) stdout_palette: Palette,
    pub(crate) stderr_palette: Palette,
    pub(crate) symbols: Symbols,
    /// How wide summaries are.
    pub(crate) columns: usize,
    /// How wide the lines of talk are, where they go to a terminal.
    talk_columns: Option<usize>,
    /// Where stdout is a screen, how wide a line of it is.
    pub(crate) screen: Option<usize>,
    pub(crate) quiet: bool,
    /// Masks secrets in everything that is printed.
    pub(crate) redactor: Redactor,
    bar: Mutex<Option<ProgressBar>>,
}

/// Without a terminal; and no line gets so wide that the eye loses it.
const DEFAULT_COLUMNS: usize = 80;
const NARROWEST: usize = 40;
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
        let fitting = |columns: usize| columns.clamp(NARROWEST, WIDEST);
        let columns = fitting(environment.columns.unwrap_or(DEFAULT_COLUMNS));
        let ascii = args.ascii.unwrap_or(environment.ascii_locale);
        Self {
            stdout_palette: Palette { color: color(environment.stdout_is_terminal) },
            stderr_palette: Palette { color: color(environment.stderr_is_terminal) },
            symbols: if ascii { Symbols::ASCII } else { Symbols::UNICODE },
            columns,
            talk_columns: environment.talk_columns.map(fitting),
            screen: environment.stdout_is_terminal.then_some(columns),
            quiet: args.quiet,
            redactor: Redactor::default(),
            bar: Mutex::default(),
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

    /// Lets a progress bar step aside for what is printed.
    pub(crate) fn show_above(&self, bar: Option<ProgressBar>) {
        *self.bar.lock().unwrap_or_else(PoisonError::into_inner) = bar;
    }

    pub(crate) fn out(&self, text: &str) -> io::Result<()> {
        match self.suspended(|| write_all(&mut io::stdout().lock(), text)) {
            // A closed stdout means that the reader has enough.
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
        self.talk(&self.labelled("warning:", text, |label| self.stderr_palette.doubtful(label)));
    }

    /// Says what could not be read of the tools, and what somebody said of it.
    pub(crate) fn warn_of_gap(&self, gap: &Gap) {
        let (what, said) = gap.parts();
        self.warn(&format!("{}: {what}", gap.place));
        self.quote(said);
    }

    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            let lines = self.lines("", text);
            self.talk(&lines.iter().map(|line| self.stderr_palette.dim(line)).collect::<Vec<_>>().join("\n"));
        }
    }

    /// Prints invalid places of a text to stderr, in order.
    pub(crate) fn findings(&self, name: &str, text: &str, findings: &[Finding]) {
        let text: Arc<str> = Arc::from(text);
        let settings = ConsoleSettings { palette: self.stderr_palette, ..self.console() };
        for finding in findings.iter().take(MAX_FINDINGS) {
            let problem = SourceProblem::new(name, &text, finding.clone(), Severity::Error, None);
            self.talk(&problem.text(settings));
        }
        if let Some(more) = findings.len().checked_sub(MAX_FINDINGS).filter(|more| *more > 0) {
            self.talk(&format!("… and {more} more in {name}"));
        }
    }

    pub(crate) fn failure(&self, failure: &Failure) {
        failure.files.iter().for_each(|file| self.findings(&file.name, &file.text, &file.findings));
        if !failure.message.is_empty() {
            // In one line, since it is what logs are searched for.
            self.talk(&format!("{} {}", self.stderr_palette.alarm("error:"), printable(&failure.message)));
        }
        self.quote(&failure.quoted);
        for hint in &failure.hints {
            self.talk(&self.labelled("hint:", hint, |label| self.stderr_palette.bold(label)));
        }
    }

    /// Lays out a text behind a label, which is painted.
    fn labelled(&self, label: &str, text: &str, paint: impl Fn(&str) -> String) -> String {
        let text = self.lines(&format!("{label} "), text).join("\n");
        match text.strip_prefix(label) {
            Some(rest) => paint(label) + rest,
            None => text,
        }
    }

    /// Breaks a text into lines that are no wider than the terminal, as far as its words allow. In a file it stays one line,
    /// since that is what logs are searched for.
    fn lines(&self, label: &str, text: &str) -> Vec<String> {
        // As a whole first: a secret with spaces is not found in parts.
        let text = self.redactor.text(text).into_owned();
        match self.talk_columns {
            Some(columns) => wrapped(label, &printable(&text), columns),
            None => vec![format!("{label}{}", printable(&text))],
        }
    }

    /// Prints the first and last lines of what somebody else said, so far to the right that they are nobody else's.
    fn quote(&self, text: &str) {
        // As a whole first: a secret of several lines is not found in one of them.
        let text = self.redactor.text(text).into_owned();
        for line in quoted_lines(&text, self.symbols.ellipsis) {
            self.talk(&format!("  {line}"));
        }
    }

    /// Prints lines that are already laid out to stderr.
    pub(crate) fn talk(&self, text: &str) {
        let redacted = self.redactor.text(text).into_owned();
        // Nobody is left to tell when stderr is gone.
        self.suspended(|| write_all(&mut io::stderr().lock(), &format!("{redacted}\n"))).ok();
    }

    /// Prints a line of the log to stderr.
    pub(crate) fn log(&self, line: &str) {
        // Secrets first: one with a line break is not found any more once that is escaped.
        let redacted = self.redactor.text(line.trim_end());
        self.talk(&printable(&redacted));
    }

    /// Draws on the screen, of which stderr is a part.
    pub(crate) fn draw(&self, text: &str) -> io::Result<()> {
        let redacted = self.redactor.text(text).into_owned();
        write_all(&mut io::stderr().lock(), &redacted)
    }

    fn suspended<T>(&self, print: impl FnOnce() -> T) -> T {
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
        self.warn_of_gap(gap);
    }
}

/// Returns the lines of what somebody else said, without the middle of many.
fn quoted_lines(text: &str, ellipsis: &str) -> Vec<String> {
    let mut lines: Vec<String> =
        text.lines().filter(|line| !line.trim().is_empty()).map(|line| printable(line).into_owned()).collect();
    if lines.len() > 2 * MOST_QUOTED {
        lines.splice(MOST_QUOTED..lines.len() - MOST_QUOTED, [ellipsis.to_owned()]);
    }
    lines
}

/// Breaks a text at its spaces, and nowhere else: a path that is cut in two is no path. What comes after the first line is
/// a bit to the right, so that it is not taken for a text of its own.
fn wrapped(label: &str, text: &str, columns: usize) -> Vec<String> {
    let options = textwrap::Options::new(columns)
        .initial_indent(label)
        .subsequent_indent("  ")
        .break_words(false)
        .word_splitter(textwrap::WordSplitter::NoHyphenation)
        .word_separator(textwrap::WordSeparator::Custom(words));
    textwrap::wrap(text, options).into_iter().map(|line| line.trim_end().to_owned()).collect()
}

/// What begins a command that a person may copy.
const COMMAND: &str = "karat ";

/// Finds the words of a line, with the spaces behind them. A command is one word, since it is copied whole: up to the
/// quote that ends it, or all that comes after a colon.
fn words(line: &str) -> Box<dyn Iterator<Item = Word<'_>> + '_> {
    let (mut rest, mut is_after_colon) = (line, false);
    Box::new(std::iter::from_fn(move || {
        let space_from = |begin: usize| rest[begin..].find(' ').map_or(rest.len(), |space| begin + space);
        let mut end = space_from(0);
        if is_after_colon && rest.starts_with(COMMAND) {
            end = rest.len();
        } else if let Some(begun) = rest.get(..=end).and_then(|word| word.strip_suffix(COMMAND))
            && begun.ends_with('\'')
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
    fn a_text_is_broken_at_its_spaces(#[values(40, 60, 80)] columns: usize) {
        let text = "evals/one-of-many/a-file-with-a-name-that-is-longer-than-a-line-of-a-terminal-has-columns.json is \
                    out-of-date: see --format=json for the well-known rest of what there is";
        let lines = wrapped("warning: ", text, columns);
        let words = |text: &str| text.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&lines.join(" ")), words(&format!("warning: {text}")));
        assert!(lines.iter().all(|line| line.len() <= columns || line.trim().split(' ').count() <= 2), "{lines:#?}");
    }

    #[test]
    fn a_command_is_not_torn() {
        let text = "no trace was judged by versions 1 and 2; 'karat eval run eval_tone --stored' judges with the \
                    newest, and that's what counts: 'karat eval add a file.py' or 'other words' follow";
        assert_snapshot!(wrapped("hint: ", text, 50).join("\n"), @r"
        hint: no trace was judged by versions 1 and 2;
          'karat eval run eval_tone --stored' judges
          with the newest, and that's what counts:
          'karat eval add a file.py' or 'other words'
          follow
        ");
        let text = "the rating still counts; to correct it: karat feedback add conversation-1 negative";
        assert_snapshot!(wrapped("", text, 50).join("\n"), @r"
        the rating still counts; to correct it:
          karat feedback add conversation-1 negative
        ");
    }

    #[test]
    fn a_short_text_is_one_line() {
        assert_eq!(wrapped("", "nothing changed", 40), ["nothing changed"]);
        assert_eq!(wrapped("", "'karat review", 40), ["'karat review"], "a quote that does not end is a quote");
    }
}
