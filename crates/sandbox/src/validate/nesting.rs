//! Rejects sources that are nested too deeply. This uses tokens, since parsing, walking and dropping a tree take stack
//! for each level.

use std::ops::Range;

use ruff_python_ast::token::TokenKind;
use ruff_python_parser::Mode;
use ruff_python_parser::lexer::lex;

use crate::function::{Finding, Rule};

/// Maximum depth of brackets. Python allows 200, but the guest's parser has less stack.
const MAX_BRACKETS: usize = 100;
/// Maximum depth of comprehensions and lambdas; the guest's compiler fails at 80.
const MAX_SCOPES: usize = 20;
/// Maximum depth of blocks, as in Python.
const MAX_BLOCKS: usize = 100;
/// Maximum depth of operators, calls and brackets.
const MAX_LEVELS: usize = 1000;

/// Returns a finding for nesting that is too deep, or for the unclosed bracket that causes it.
pub(super) fn find_too_deep(source: &str) -> Option<Finding> {
    let measured = Nesting::measure(source);
    if !measured.is_too_deep {
        return None;
    }
    let unclosed = measured.unclosed.filter(|_| !measured.has_too_many_brackets);
    if let Some(ordinal) = unclosed {
        let range = last_of_prefix(source, |prefix| Nesting::measure(prefix).opened >= ordinal);
        let message = "unclosed bracket".to_owned();
        return Some(Finding { rule: Rule::Syntax, message, help: None, range });
    }
    let range = last_of_prefix(source, |prefix| Nesting::measure(prefix).is_too_deep);
    let message = "nested too deeply".to_owned();
    let help = format!(
        "the maximum depth is {MAX_BRACKETS} brackets, {MAX_BLOCKS} blocks, {MAX_SCOPES} comprehensions and \
         {MAX_LEVELS} operators"
    );
    Some(Finding { rule: Rule::Size, message, help: Some(help), range })
}

/// The nesting of a source.
#[derive(Default)]
struct Nesting {
    is_too_deep: bool,
    has_too_many_brackets: bool,
    /// Number of opening brackets, including those of interpolated strings.
    opened: usize,
    /// Ordinal, from 1, of the outermost bracket that is open at the end.
    unclosed: Option<usize>,
}

/// The content of a bracket so far.
#[derive(Default)]
struct Level {
    /// Number of tokens that can add a level of nesting.
    deepening: usize,
    /// Number of lambdas. With a lambda, a comma may separate its parameters and does not end an expression.
    /// Consecutive lambdas count as nested, which does not matter in practice.
    lambdas: usize,
    /// Whether it is a comprehension.
    has_for: bool,
    /// Maximum depth of comprehensions and lambdas in closed brackets within this one.
    inner: usize,
    /// Ordinal of the opening bracket, from 1.
    ordinal: usize,
}

impl Nesting {
    fn measure(source: &str) -> Self {
        let mut lexer = lex(source, Mode::Module);
        let mut measured = Self::default();
        let (mut levels, mut depth, mut blocks) = (vec![Level::default()], 0_usize, 0_usize);
        loop {
            let kind = lexer.next_token();
            let Some(level) = levels.last_mut() else { return measured };
            match kind {
                TokenKind::EndOfFile => return measured,
                TokenKind::Newline => {
                    // The lexer emits one at the end of the source even if brackets are open.
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
                    // `f()()` is one level deeper even after its brackets are closed.
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
                        measured.is_too_deep |= scopes > MAX_SCOPES;
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
                    measured.is_too_deep |= level.lambdas > MAX_SCOPES;
                    level.has_for |= other == TokenKind::For;
                    level.deepening += 1;
                    depth += 1;
                }
            }
            measured.has_too_many_brackets |= levels.len() > MAX_BRACKETS + 1;
            measured.is_too_deep |= measured.has_too_many_brackets || depth > MAX_LEVELS || blocks > MAX_BLOCKS;
        }
    }
}

/// Returns the last character of the shortest prefix for which a monotonic predicate is true.
fn last_of_prefix(source: &str, is_true: impl Fn(&str) -> bool) -> Range<usize> {
    let ends: Vec<usize> = source.char_indices().map(|(at, letter)| at + letter.len_utf8()).collect();
    let index = ends.partition_point(|end| !is_true(&source[..*end])).min(ends.len().saturating_sub(1));
    let end = ends.get(index).copied().unwrap_or_default();
    let start = index.checked_sub(1).map_or(0, |before| ends[before]);
    start..end
}
