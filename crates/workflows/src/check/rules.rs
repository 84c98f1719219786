//! The list of rules for cases and drafts.

use karat_lints::{Rule, Severity};
use schemars::JsonSchema;
use serde::Serialize;

/// Output of `karat check --rules --format json`.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "karat check rules")]
pub struct RuleList {
    pub rules: Vec<RuleEntry>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuleEntry {
    pub rule: Rule,
    /// The severity of a finding in an eval file; null if the rule applies to drafts only.
    pub severity: Option<Severity>,
    /// The severity of a finding in a draft; a draft with an error cannot be approved.
    pub draft_severity: Severity,
    pub summary: &'static str,
    /// Part of a case that violates the rule.
    pub example: &'static str,
}

impl RuleList {
    /// Returns all rules.
    pub fn all() -> Self {
        let entry = |rule: &Rule| RuleEntry {
            rule: *rule,
            severity: (!rule.is_for_drafts_only()).then(|| rule.severity()),
            draft_severity: rule.draft_severity(),
            summary: rule.summary(),
            example: rule.example(),
        };
        Self { rules: Rule::ALL.iter().map(entry).collect() }
    }
}
