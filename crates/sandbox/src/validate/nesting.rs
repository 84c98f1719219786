//! Finds what is nested too deeply, before it is parsed: a parser takes a piece of the stack for each level, and so
//! does whoever walks or drops the tree. Only tokens are looked at, which takes no stack.

use std::ops::Range;

use ruff_python_ast::token::TokenKind;
use ruff_python_parser::Mode;
use ruff_python_parser::lexer::lex;

use crate::function::{Finding, Rule};

/// How many brackets may stand in each other. Python allows 200, but what the parser of the guest has room for is less.
const MOST_BRACKETS: usize = 100;
/// How many comprehensions and lambdas may stand in each other; the guest's compiler has no room for 80.
const MOST_SCOPES: usize = 20;
/// How many blocks may stand in each other, as in Python itself.
const MOST_BLOCKS: usize = 100;
/// How many operators, calls and brackets may be within each other.
const MOST_LEVELS: usize = 1000;

/// Returns the place that is nested too deeply, or the bracket without an end that makes it look so.
pub(super) fn find_too_deep(source: &str) -> Option<Finding> {
    let measured = Measured::of(source);
    if !measured.is_too_deep {
        return None;
    }
    let unclosed = measured.unclosed.filter(|_| !measured.has_too_many_brackets);
    if let Some(ordinal) = unclosed {
        let range = last_of_prefix(source, |prefix| Measured::of(prefix).opened >= ordinal);
        let message = "a bracket is opened here and never closed".to_owned();
        return Some(Finding { rule: Rule::Syntax, message, help: None, range });
    }
    let range = last_of_prefix(source, |prefix| Measured::of(prefix).is_too_deep);
    let message = "this is nested too deeply".to_owned();
    let help = format!(
        "at most {MOST_BRACKETS} brackets, {MOST_BLOCKS} blocks, {MOST_SCOPES} comprehensions or {MOST_LEVELS} operators \
         may stand in each other"
    );
    Some(Finding { rule: Rule::Size, message, help: Some(help), range })
}

/// How deep a source goes.
#[derive(Default)]
struct Measured {
    is_too_deep: bool,
    has_too_many_brackets: bool,
    /// How many brackets it opens, those of interpolated strings as well.
    opened: usize,
    /// Which of them, counted from 1, is the outermost that is open at the end.
    unclosed: Option<usize>,
}

/// What stands between two brackets, so far.
#[derive(Default)]
struct Level {
    /// How many tokens there were that can put what follows, or what was before, one level deeper.
    deepening: usize,
    /// Where there are some, a comma may stand within a lambda's parameters, and ends nothing. One after the other
    /// looks as one in the other does; nobody has so many of either.
    lambdas: usize,
    /// It is a comprehension.
    has_for: bool,
    /// How many comprehensions and lambdas are within each other in what was opened and closed here.
    inner: usize,
    /// Which bracket opened it, counted from 1.
    ordinal: usize,
}

impl Measured {
    fn of(source: &str) -> Self {
        let mut lexer = lex(source, Mode::Module);
        let mut measured = Self::default();
        let (mut levels, mut depth, mut blocks) = (vec![Level::default()], 0_usize, 0_usize);
        loop {
            let kind = lexer.next_token();
            let Some(level) = levels.last_mut() else { return measured };
            match kind {
                TokenKind::EndOfFile => return measured,
                TokenKind::Newline => {
                    // There is one at the end of the source, whatever is open.
                    measured.unclosed = levels.get(1).map(|level| level.ordinal);
                    levels.truncate(1);
                    levels[0] = Level::default();
                    depth = 0;
                }
                TokenKind::Indent => blocks += 1,
                TokenKind::Dedent => blocks = blocks.saturating_sub(1),
                TokenKind::Lpar
                | TokenKind::Lsqb
                | TokenKind::Lbrace
                | TokenKind::FStringStart
                | TokenKind::TStringStart => {
                    // A call of a call is one deeper as well, after its bracket is closed.
                    level.deepening += 1;
                    depth += 1;
                    measured.opened += 1;
                    levels.push(Level { ordinal: measured.opened, ..Level::default() });
                }
                TokenKind::Rpar
                | TokenKind::Rsqb
                | TokenKind::Rbrace
                | TokenKind::FStringEnd
                | TokenKind::TStringEnd => {
                    if levels.len() > 1
                        && let Some(closed) = levels.pop()
                    {
                        depth -= closed.deepening;
                        let scopes = closed.inner + closed.lambdas + usize::from(closed.has_for);
                        if let Some(level) = levels.last_mut() {
                            level.inner = level.inner.max(scopes);
                        }
                        measured.is_too_deep |= scopes > MOST_SCOPES;
                    }
                }
                TokenKind::Comma if level.lambdas == 0 => depth -= std::mem::take(&mut level.deepening),
                TokenKind::Name
                | TokenKind::Int
                | TokenKind::Float
                | TokenKind::Complex
                | TokenKind::String
                | TokenKind::FStringMiddle
                | TokenKind::TStringMiddle
                | TokenKind::Comment
                | TokenKind::NonLogicalNewline => {}
                other => {
                    level.lambdas += usize::from(other == TokenKind::Lambda);
                    measured.is_too_deep |= level.lambdas > MOST_SCOPES;
                    level.has_for |= other == TokenKind::For;
                    level.deepening += 1;
                    depth += 1;
                }
            }
            measured.has_too_many_brackets |= levels.len() > MOST_BRACKETS + 1;
            measured.is_too_deep |= measured.has_too_many_brackets || depth > MOST_LEVELS || blocks > MOST_BLOCKS;
        }
    }
}

/// Returns the last character of the shortest beginning of which something is true; it stays true for longer ones.
fn last_of_prefix(source: &str, is_true: impl Fn(&str) -> bool) -> Range<usize> {
    let ends: Vec<usize> = source.char_indices().map(|(at, letter)| at + letter.len_utf8()).collect();
    let index = ends.partition_point(|end| !is_true(&source[..*end])).min(ends.len().saturating_sub(1));
    let end = ends.get(index).copied().unwrap_or_default();
    let start = index.checked_sub(1).map_or(0, |before| ends[before]);
    start..end
}
