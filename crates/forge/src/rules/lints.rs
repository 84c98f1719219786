//! What `karat check` would say of the case once it stands in a file.

use karat_core::case::{Case, EvalFile, Tier};
use karat_core::lint::{self, LintContext, Severity, lint};
use karat_core::token::Resolved;

use super::{DraftRule, Examination};
use crate::{DraftFinding, Purpose};

impl Examination<'_> {
    /// Takes over the lints of eval files, so that a case is not judged otherwise before it is written than after.
    pub(super) fn lints(&mut self) {
        let file = EvalFile {
            metadata: None,
            tier: self.tier,
            tool_name: self.brief.tool.name.clone(),
            hash: String::new(),
            cases: vec![self.with_seed_values()],
        };
        let context = LintContext { registry: Some(&self.brief.registry), ..LintContext::default() };
        for found in lint(&file, context) {
            let Some(rule) = DraftRule::of_lint(found.rule).filter(|_| !self.is_meant(&found)) else {
                continue;
            };
            let is_error = found.rule.severity() == Severity::Error
                || matches!(rule, DraftRule::EmptyValue | DraftRule::TokenInPattern);
            let finding = if is_error {
                DraftFinding::error(found.pointer, found.message)
            } else {
                DraftFinding::warning(found.pointer, found.message)
            };
            self.findings.push(finding.of(rule));
        }
    }

    /// Returns the case with the values of its proof, as they will be compared: a token can stand for a word of the
    /// message too.
    fn with_seed_values(&self) -> Case {
        let mut case = self.case.clone();
        for text in case.expect.response_contains.iter_mut().flatten() {
            if let Resolved::Text(value) = self.brief.sources.resolve(text) {
                *text = value;
            }
        }
        case
    }

    /// Tells whether the place asks for what the lint is about, or a rule for drafts says the same and more.
    fn is_meant(&self, found: &lint::Lint) -> bool {
        let asks_first = self.slot.purpose == Purpose::AsksFirst;
        match (found.rule, found.pointer.as_str()) {
            // Who must not call the tool yet has nothing to prove.
            (lint::Rule::FewProofValues, _) => asks_first,
            (lint::Rule::LabeledFieldInGolden, "/expect/toolsNotCalled") => {
                asks_first || matches!(self.slot.purpose, Purpose::Disambiguation(_))
            }
            (lint::Rule::LabeledFieldInGolden, "/difficulty" | "/expect/toolsAcceptable") => true,
            (lint::Rule::IdForm, _) => self.case.id != self.slot.id,
            // Said there of every tier's own kind.
            (lint::Rule::BothRoutingKinds, _) => self.tier == Tier::Golden || self.is_choice(),
            _ => false,
        }
    }

    fn is_choice(&self) -> bool {
        matches!(self.slot.purpose, Purpose::Choice { .. })
    }
}
