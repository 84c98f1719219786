//! The optional features that a project allows.

use karat_core::judgement::{DEFAULT_THRESHOLD, EvalOptions, ReturnForm};

/// Returns the source of the helper module with the given name, if there is one.
pub type FindHelper<'p> = &'p (dyn Fn(&str) -> Option<Vec<u8>> + Sync);

/// The optional features that a project allows in its eval functions.
#[derive(Clone, Copy)]
pub struct ProjectRules<'p> {
    /// Modules of the standard library that functions may import.
    pub imports: &'p [String],
    pub returns: ReturnForm,
    /// The lowest score that passes.
    pub threshold: f64,
    pub helper: FindHelper<'p>,
}

impl Default for ProjectRules<'_> {
    fn default() -> Self {
        Self { imports: &[], returns: ReturnForm::default(), threshold: DEFAULT_THRESHOLD, helper: &|_| None }
    }
}

impl<'p> ProjectRules<'p> {
    /// Returns the rules that allow exactly what a function with these options uses.
    pub fn of_options(options: &'p EvalOptions, helper: FindHelper<'p>) -> Self {
        Self {
            imports: &options.imports,
            returns: if options.threshold.is_some() { ReturnForm::Flexible } else { ReturnForm::Contract },
            threshold: options.threshold.unwrap_or(DEFAULT_THRESHOLD),
            helper,
        }
    }
}
