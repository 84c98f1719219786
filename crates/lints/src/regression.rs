//! Rules for regression cases, which must not change.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Lint, Linter, Rule};
use karat_cases::EvalFile;
use karat_cases::regression::{any_text, is_regression};
use karat_cases::token;
use karat_json::canonical::canonical_hash;
use karat_json::pointer_key;

/// Finds cases that have a hash but are neither in the file nor in its archive.
pub(super) fn find_removed(file: &EvalFile, archived: Option<&BTreeSet<String>>) -> Vec<Lint> {
    let hashes = file.metadata.as_ref().and_then(|metadata| metadata.case_hashes.as_ref());
    let (Some(hashes), Some(archived)) = (hashes, archived) else {
        return Vec::new();
    };
    let present: BTreeSet<&str> = file.cases.iter().map(|case| case.id.as_str()).collect();
    let is_removed = |id: &&String| !present.contains(id.as_str()) && !archived.contains(*id);
    let lint = |id: &String| Lint {
        rule: Rule::RemovedRegression,
        case_id: id.clone(),
        case_index: None,
        pointer: format!("/metadata/caseHashes/{}", pointer_key(id)),
        message: "this regression case was removed: restore it, and archive it with 'karat regress archive'".to_owned(),
    };
    hashes.keys().filter(is_removed).map(lint).collect()
}

impl Linter<'_, '_> {
    pub(super) fn regression(&mut self) {
        let hashes = self.file.metadata.as_ref().and_then(|metadata| metadata.case_hashes.as_ref());
        let stored_hash = hashes.and_then(|hashes| hashes.get(&self.case.id));
        let raw = self.context.raw_cases.and_then(|cases| cases.get(self.case.location.index));
        if let (Some(stored_hash), Some(raw)) = (stored_hash, raw)
            && canonical_hash(raw) != *stored_hash
        {
            let message = format!(
                "this case was edited after it was created (hash {}, 'caseHashes' has {stored_hash}): restore it, or \
                 archive it and add a new one",
                canonical_hash(raw)
            );
            self.add(Rule::EditedRegression, "", message);
        }
        if !is_regression(self.file, self.case) {
            return;
        }
        // A file without any hashes is ignored, unless the case has metadata of `karat regress add`.
        let has_history = self.case.created_at.is_some() || self.case.bug_ref.is_some();
        if (hashes.is_some() || has_history) && stored_hash.is_none() {
            let message = "'caseHashes' lacks this case, so edits go unnoticed: run 'karat regress seal'";
            self.add(Rule::UnsealedRegression, "/id", message);
        }
        let id = &self.case.id;
        if self.context.archived.is_some_and(|archived| archived.contains(id)) {
            let message = format!(
                "this case is also in the archive, so archiving it was interrupted or undone: run 'karat regress \
                 archive {id}' again"
            );
            self.add(Rule::ArchivedRegression, "/id", message);
        }
        self.snapshot_tokens();
    }

    fn snapshot_tokens(&mut self) {
        let case = self.case;
        for (pointer, expect) in case.located_expectations() {
            let Ok(Value::Object(expect)) = serde_json::to_value(expect) else { continue };
            for (key, value) in &expect {
                if any_text(value, &token::contains_snapshot_token) {
                    let message =
                        format!("'{key}' uses a snapshot token: a regression case must only use stable values");
                    self.add(Rule::SnapshotInRegression, format!("{pointer}/{key}"), message);
                }
            }
        }
    }
}
