//! Renders findings with their source: file, line, column, excerpt and help.

use std::sync::{Arc, OnceLock};

use karat_json::{Finding, Position};
use karat_lints::Severity;
use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError, MietteSpanContents, SourceCode,
    SourceSpan, SpanContents,
};

use crate::console::ConsoleSettings;
use crate::style::Symbols;
use crate::terminal_text::{mask_control_chars, printable};

/// A finding in a source text.
#[derive(Debug)]
pub struct SourceProblem {
    finding: Finding,
    severity: Severity,
    rule: Option<String>,
    /// `None` if there are no lines to show.
    source: Option<Excerpt>,
    /// The name of the source, if there is no excerpt.
    name: Option<String>,
}

impl SourceProblem {
    pub fn new(name: &str, text: &Arc<str>, finding: Finding, severity: Severity, rule: Option<String>) -> Self {
        if text.trim().is_empty() {
            return Self::without_source(name, finding, severity, rule);
        }
        let position = finding.location.position;
        let source = Excerpt {
            name: printable(name).into_owned(),
            text: Arc::clone(text),
            position,
            max_line_width: usize::MAX,
            ellipsis: Symbols::UNICODE.ellipsis,
            span: OnceLock::new(),
            lines: OnceLock::new(),
        };
        Self { finding, severity, rule, source: Some(source), name: None }
    }

    /// Creates a problem without lines, such as of a server or a removed file.
    pub fn without_source(name: &str, finding: Finding, severity: Severity, rule: Option<String>) -> Self {
        Self { finding, severity, rule, source: None, name: Some(name.to_owned()) }
    }

    /// Renders the problem for a terminal.
    pub fn text(mut self, settings: ConsoleSettings) -> String {
        // Leave room for the line number and the frame.
        if let Some(source) = &mut self.source {
            source.max_line_width = settings.columns.saturating_sub(10);
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
            // Do not break paths, nor names at hyphens.
            .with_break_words(false)
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
        let range = &self.finding.location.range;
        let text = &source.text[range.start..range.end];
        let first_line = &text[..text.find('\n').unwrap_or(text.len())];
        let is_line_end = first_line.is_empty() && source.is_line_end(range.start);
        // Something missing at the end of a line is marked after it.
        let length = if is_line_end { 1 } else { underlined_length(first_line, source.max_line_width / 2) };
        Some(Box::new(std::iter::once(LabeledSpan::new(None, range.start, length))))
    }
}

/// Returns the length of the underlined part: of a long value, up to the end of a word.
fn underlined_length(line: &str, max_length: usize) -> usize {
    if line.len() <= max_length {
        return line.len();
    }
    let end = (0..=max_length).rev().find(|&at| line.is_char_boundary(at)).unwrap_or_default();
    match line[..end].rfind(char::is_whitespace).map(|at| line[..at].trim_end().len()) {
        Some(word_end @ 1..) => word_end,
        _ => end,
    }
}

/// A source text that shows only the lines around a span, up to the width of the screen.
#[derive(Debug)]
struct Excerpt {
    name: String,
    text: Arc<str>,
    /// The start of the span, so that lines need not be counted again.
    position: Position,
    /// Generated files can consist of a single long line.
    max_line_width: usize,
    /// Marks truncated lines.
    ellipsis: &'static str,
    /// The rendered span and the lines around it, without control characters.
    span: OnceLock<String>,
    lines: OnceLock<String>,
}

impl Excerpt {
    /// Whether a non-empty line ends here.
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
        // Without context lines, only the location of the span is requested.
        let start = if lines_before + lines_after == 0 {
            offset
        } else {
            let search_start = boundary(offset.saturating_sub(self.max_line_width));
            let line_start = text[search_start..offset].rfind('\n').map_or(search_start, |end| search_start + end + 1);
            let line_rest = &text[offset..boundary(offset.saturating_add(self.max_line_width).min(text.len()))];
            let line_end = offset + line_rest.find('\n').unwrap_or(line_rest.len());
            let is_whole = line_start == 0 || text.as_bytes()[line_start - 1] == b'\n';
            if is_whole && line_end - line_start <= self.max_line_width {
                line_start
            } else {
                line_start.max(boundary(offset.saturating_sub(self.max_line_width / 4)))
            }
        };
        let is_truncated = start > 0 && start < offset && text.as_bytes()[start - 1] != b'\n';
        // A truncated line starts with a whole word.
        let leading = &text[start..offset];
        let word = leading.find(char::is_whitespace).map(|at| offset - leading[at..].trim_start().len());
        let excerpt_start = word.filter(|_| is_truncated).unwrap_or(start);
        let search_end = boundary(excerpt_start.saturating_add(self.max_line_width).min(text.len())).max(offset);
        let end = text[offset..search_end].find('\n').map_or(search_end, |end| offset + end);
        let is_line_end = self.is_line_end(offset);
        let end = if is_line_end { offset } else { end.max(boundary((offset + span.len()).min(text.len()))) };
        let line = self.position.line - 1;
        let column = (self.position.column - 1).saturating_sub(text[excerpt_start..offset].chars().count());
        let cell = if lines_before + lines_after == 0 { &self.span } else { &self.lines };
        // The ellipsis replaces as many bytes before the word, so that offsets stay valid.
        let before = if is_truncated { format!("{} ", self.ellipsis) } else { String::new() };
        let start = excerpt_start.saturating_sub(before.len());
        // There is only one span, so the result can be cached.
        let excerpt = cell.get_or_init(|| {
            let has_more =
                lines_before + lines_after > 0 && text.as_bytes().get(end).is_some_and(|next| *next != b'\n');
            let after = match (has_more, is_line_end) {
                (_, true) => "\n",
                (true, false) => self.ellipsis,
                (false, false) => "",
            };
            format!("{before}{}{after}", mask_control_chars(&text[excerpt_start..end]))
        });
        Ok(Box::new(MietteSpanContents::new_named(
            self.name.clone(),
            excerpt.as_bytes(),
            (start, excerpt.len()).into(),
            line,
            column,
            line + 1,
        )))
    }
}
