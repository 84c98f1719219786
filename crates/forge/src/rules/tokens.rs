//! Tokens of drafts have a value, as far as that can be known before a run.

use karat_core::text::shorten;
use karat_core::token::{Source, Token, tokens};

use super::asserted::{Kind, asserted};
use super::{DraftRule, Examination};

impl Examination<'_> {
    pub(super) fn tokens(&mut self) {
        for found in asserted(&self.case.expect) {
            let mut rest = found.text.to_owned();
            for token in tokens(found.text) {
                rest = rest.replacen(token.text, "", 1);
                // The lint of patterns says that no token has a value there.
                if !found.pointer.starts_with("/expect/responseMatches") {
                    self.token(&found.pointer, token);
                }
            }
            if found.kind != Kind::Pattern && looks_like_token(&rest) {
                self.stray(&found.pointer, &rest);
            }
        }
        if looks_like_token(&self.case.input.message) {
            self.stray("/input/message", &self.case.input.message);
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
