//! Shows findings in their source: file, line, column, the line itself, and what to do.

use std::sync::{Arc, OnceLock};

use karat_core::lint::Severity;
use karat_json::{Finding, Position};
use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError, MietteSpanContents, SourceCode,
    SourceSpan, SpanContents,
};

use crate::console::ConsoleSettings;
use crate::style::Symbols;
use crate::terminal_text::{harmless, printable};

/// Something to show in a source text.
#[derive(Debug)]
pub struct SourceProblem {
    finding: Finding,
    severity: Severity,
    rule: Option<String>,
    /// None where there are no lines to show.
    source: Option<Excerpt>,
    /// What it is in, where no lines say so.
    name: Option<String>,
}

impl SourceProblem {
    pub fn new(name: &str, text: &Arc<str>, finding: Finding, severity: Severity, rule: Option<String>) -> Self {
        let position = finding.place.position;
        let source = Excerpt {
            name: printable(name).into_owned(),
            text: Arc::clone(text),
            position,
            widest_line: usize::MAX,
            ellipsis: Symbols::UNICODE.ellipsis,
            span: OnceLock::new(),
            lines: OnceLock::new(),
        };
        Self { finding, severity, rule, source: Some(source), name: None }
    }

    /// Makes a problem of something that has no lines, such as a server, or that is not a file any more.
    pub fn without_source(name: &str, finding: Finding, severity: Severity, rule: Option<String>) -> Self {
        Self { finding, severity, rule, source: None, name: Some(name.to_owned()) }
    }

    /// Lays out the problem for a terminal.
    pub fn text(mut self, settings: ConsoleSettings) -> String {
        // The line's number and frame take their part.
        if let Some(source) = &mut self.source {
            source.widest_line = settings.columns.saturating_sub(10);
            source.ellipsis = settings.symbols.ellipsis;
        }
        let theme = match (settings.palette.color, settings.symbols.ascii) {
            (true, false) => GraphicalTheme::unicode(),
            (false, false) => GraphicalTheme::unicode_nocolor(),
            (_, true) => GraphicalTheme::none(),
        };
        let handler = GraphicalReportHandler::new_themed(theme)
            .with_width(settings.columns)
            .with_links(false)
            // Names with hyphens stay whole.
            .with_word_splitter(textwrap::WordSplitter::NoHyphenation);
        let mut out = String::new();
        let rendered = handler.render_report(&mut out, &self);
        if rendered.is_err() {
            return self.to_string();
        }
        out.trim_end().trim_start_matches('\n').to_owned()
    }
}

impl std::fmt::Display for SourceProblem {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(name) = &self.name {
            write!(out, "{}: ", printable(name))?;
        }
        if let Some(id) = &self.finding.case_id {
            write!(out, "{}: ", printable(id))?;
        }
        write!(out, "{}", printable(&self.finding.message))?;
        match &self.rule {
            Some(rule) => write!(out, " ({rule})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for SourceProblem {}

impl Diagnostic for SourceProblem {
    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.severity {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
        })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn std::fmt::Display + 'a>> {
        let help = self.finding.help.as_ref()?;
        let lines: Vec<_> = help.lines().map(printable).collect();
        Some(Box::new(lines.join("\n")))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.as_ref().map(|source| source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let source = self.source.as_ref()?;
        let range = &self.finding.place.range;
        let text = &source.text[range.start..range.end];
        let first_line = &text[..text.find('\n').unwrap_or(text.len())];
        let is_line_end = first_line.is_empty() && source.is_line_end(range.start);
        // What is missing at the end of a line is pointed at behind it.
        let length = if is_line_end { 1 } else { underlined(first_line, source.widest_line / 2) };
        Some(Box::new(std::iter::once(LabeledSpan::new(None, range.start, length))))
    }
}

/// Returns how much of a line is underlined: a long value is pointed at, up to the end of a word.
fn underlined(line: &str, most: usize) -> usize {
    if line.len() <= most {
        return line.len();
    }
    let cut = (0..=most).rev().find(|&at| line.is_char_boundary(at)).unwrap_or_default();
    match line[..cut].rfind(char::is_whitespace).map(|at| line[..at].trim_end().len()) {
        Some(end @ 1..) => end,
        _ => cut,
    }
}

/// A text of which only the lines around a span are ever shown, and of these not more than a screen's width.
#[derive(Debug)]
struct Excerpt {
    name: String,
    text: Arc<str>,
    /// Where the span begins; to count lines anew for each would take long.
    position: Position,
    /// A line of a machine-written file can be the whole file.
    widest_line: usize,
    /// What stands where a line was cut.
    ellipsis: &'static str,
    /// The span and the lines around it as they are shown: whoever wrote the file must not steer the terminal.
    span: OnceLock<String>,
    lines: OnceLock<String>,
}

impl Excerpt {
    /// Tells whether a line that holds something ends here.
    fn is_line_end(&self, at: usize) -> bool {
        let before = self.text[..at].chars().next_back();
        before.is_some_and(|before| before != '\n')
            && matches!(self.text.as_bytes().get(at), None | Some(b'\n' | b'\r'))
    }
}

impl SourceCode for Excerpt {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        lines_before: usize,
        lines_after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let text = &self.text;
        let boundary = |mut at: usize| {
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let offset = span.offset().min(text.len());
        // Without lines around it, only the span's own place is asked for.
        let start = if lines_before + lines_after == 0 {
            offset
        } else {
            let near = boundary(offset.saturating_sub(self.widest_line));
            let line_start = text[near..offset].rfind('\n').map_or(near, |end| near + end + 1);
            let line_rest = &text[offset..boundary(offset.saturating_add(self.widest_line).min(text.len()))];
            let line_end = offset + line_rest.find('\n').unwrap_or(line_rest.len());
            let is_whole = line_start == 0 || text.as_bytes()[line_start - 1] == b'\n';
            if is_whole && line_end - line_start <= self.widest_line {
                line_start
            } else {
                line_start.max(boundary(offset.saturating_sub(self.widest_line / 4)))
            }
        };
        let is_cut = start > 0 && start < offset && text.as_bytes()[start - 1] != b'\n';
        // A line that is cut begins with a whole word.
        let leading = &text[start..offset];
        let word = leading.find(char::is_whitespace).map(|at| offset - leading[at..].trim_start().len());
        let shown_from = word.filter(|_| is_cut).unwrap_or(start);
        let far = boundary(shown_from.saturating_add(self.widest_line).min(text.len())).max(offset);
        let end = text[offset..far].find('\n').map_or(far, |end| offset + end);
        let is_line_end = self.is_line_end(offset);
        let end = if is_line_end { offset } else { end.max(boundary((offset + span.len()).min(text.len()))) };
        let line = self.position.line - 1;
        let column = (self.position.column - 1).saturating_sub(text[shown_from..offset].chars().count());
        let cell = if lines_before + lines_after == 0 { &self.span } else { &self.lines };
        // What says that something is missing stands for as many bytes before the word, so that places stay.
        let before = if is_cut { format!("{} ", self.ellipsis) } else { String::new() };
        let start = shown_from.saturating_sub(before.len());
        // There is one span, so that what was made for it serves again.
        let shown = cell.get_or_init(|| {
            let goes_on = lines_before + lines_after > 0 && text.as_bytes().get(end).is_some_and(|next| *next != b'\n');
            let behind = match (goes_on, is_line_end) {
                (_, true) => "\n",
                (true, false) => self.ellipsis,
                (false, false) => "",
            };
            format!("{before}{}{behind}", harmless(&text[shown_from..end]))
        });
        Ok(Box::new(MietteSpanContents::new_named(
            self.name.clone(),
            shown.as_bytes(),
            (start, shown.len()).into(),
            line,
            column,
            line + 1,
        )))
    }
}
