//! Tokens of drafts have a value, as far as that can be known before a run.

use karat_core::text::shorten;
use karat_core::token::{Source, Token, holds_token, tokens};

use super::asserted::{Kind, asserted, without_tokens};
use super::{DraftRule, Examination};

impl Examination<'_> {
    pub(super) fn tokens(&mut self) {
        for found in asserted(&self.case.expect) {
            for token in tokens(found.text) {
                // The lint of patterns says that no token has a value there.
                if !found.pointer.starts_with("/expect/responseMatches") {
                    self.token(&found.pointer, token);
                }
            }
            let rest = without_tokens(found.text);
            if found.kind != Kind::Pattern && looks_like_token(&rest) {
                self.stray(&found.pointer, &rest);
            }
        }
        let message = &self.case.input.message;
        if !holds_token(message) && looks_like_token(message) {
            self.stray("/input/message", message);
        }
    }

    fn token(&mut self, pointer: &str, token: Token<'_>) {
        let shown = shorten(token.text, 80);
        if !token.is_well_formed() {
            let what = format!("the path of '{shown}' leads nowhere: paths look like 'cities[0].name'");
            return self.error(DraftRule::UnresolvedToken, pointer, what);
        }
        let sources = &self.brief.sources;
        match (token.source, &sources.seed) {
            (Source::Snapshot, _) => {
                let what =
                    format!("what '{shown}' stands for is known only in a run: see to it that the snapshot has it");
                self.warning(DraftRule::SnapshotToken, pointer, what);
            }
            (Source::Seed, None) => {
                let what = format!("'{shown}' has no value, since there is no seed manifest");
                self.error(DraftRule::UnresolvedToken, pointer, what);
            }
            (Source::Seed, Some(_)) if sources.lookup(token).is_none() => {
                let near = sources.nearest_path(token);
                let near = near.map_or_else(String::new, |path| format!(" (did you mean '{{{{seed:{path}}}}}'?)"));
                let what = format!("'{shown}' has no value in the seed manifest{near}");
                self.error(DraftRule::UnresolvedToken, pointer, what);
            }
            (Source::Seed, Some(_)) => {}
        }
    }

    fn stray(&mut self, pointer: &str, text: &str) {
        let what = format!(
            "'{}' holds braces that nothing is put into: tokens are {{{{seed:…}}}} and {{{{snapshot:…}}}}, in assertions",
            shorten(text, 60)
        );
        self.warning(DraftRule::StrayToken, pointer, what);
    }
}

/// Tells whether a text without tokens holds what was meant as one.
fn looks_like_token(text: &str) -> bool {
    text.split_once("{{").is_some_and(|(_, behind)| behind.contains("}}"))
}
