//! Matches strings against ECMAScript regular expressions within a fixed number of steps.
//!
//! A [`Pattern`] behaves like `new RegExp(source).test(text)` in JavaScript: no flags, Annex B
//! syntax, UTF-16 code units, a match anywhere in the text. Only the cost differs: JavaScript
//! engines may need exponential time, while this crate returns an error at a limit of steps. It
//! counts steps, not time, so the result is the same on every machine.
//!
//! Since only the existence of a match matters, the order in which a backtracking engine tries
//! alternatives is irrelevant, and so are captures, unless a back-reference reads them. There are
//! three engines:
//!
//! - a plain literal is a substring search;
//! - a pattern without back-references is simulated with all its states in parallel, in time
//!   proportional to program × text, which makes `^(a+)+$` harmless;
//! - a pattern with back-references is matched by backtracking, bounded only by the step limit.

mod backtrack;
mod captures;
mod class;
mod compile;
mod linear;
mod program;
mod source;
#[cfg(test)]
mod tests;

use program::Program;
use thiserror::Error;

/// A compiled ECMAScript regular expression.
#[derive(Debug, Clone)]
pub struct Pattern {
    engine: Engine,
}

/// The way a pattern is matched, chosen once when it is compiled.
#[derive(Debug, Clone)]
enum Engine {
    Literal(String),
    Linear(Program),
    Backtracking(Program),
}

impl Pattern {
    /// Compiles a pattern as `new RegExp(source)` would.
    ///
    /// # Errors
    ///
    /// Returns an error where JavaScript would throw a `SyntaxError`, and for patterns past the
    /// limits on length, nesting and repetition.
    pub fn compile(source: &str) -> Result<Self, PatternError> {
        let source = source::prepare(source)?;
        compile::compile(&source).map(|engine| Self { engine })
    }

    /// Whether the pattern matches anywhere in the text.
    ///
    /// # Errors
    ///
    /// Returns [`StepLimitExceeded`] if the match needs more steps than the limit.
    pub fn is_match(&self, text: &str) -> Result<bool, StepLimitExceeded> {
        let units = || text.encode_utf16().collect::<Vec<u16>>();
        match &self.engine {
            // In well-formed text, a well-formed literal occurs at the same places in code units and
            // in bytes.
            Engine::Literal(literal) => Ok(text.contains(literal.as_str())),
            Engine::Linear(program) => linear::is_match(program, &units()),
            Engine::Backtracking(program) => backtrack::is_match(program, &units()),
        }
    }
}

/// An error when compiling a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PatternError {
    /// The source is not valid in JavaScript either.
    #[error("{0}")]
    Syntax(String),
    /// The source is too long.
    #[error("longer than {} bytes", source::MAX_SOURCE_BYTES)]
    TooLong,
    /// Groups are nested too deeply.
    #[error("groups nested more than {} deep", source::MAX_DEPTH)]
    TooDeep,
    /// The program is too large because of counted repetitions.
    #[error("too large once its counted repetitions are expanded")]
    TooLarge,
}

impl PatternError {
    /// Returns the error for syntax that the parser does not reject without the flags u and v.
    fn needs_flag() -> Self {
        Self::Syntax("syntax that needs the flag u or v".to_owned())
    }
}

/// The match needed more steps than the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("gave up after {steps} steps: the pattern backtracks without end")]
pub struct StepLimitExceeded {
    /// The number of steps taken.
    pub steps: u64,
}
