//! Groups of synonyms: words that mean the same, any of which will do.

use std::collections::BTreeSet;

use karat_core::text::shorten;

use super::{DraftRule, Examination};

/// So many texts make a group.
const FEWEST: usize = 2;
const MOST: usize = 4;

impl Examination<'_> {
    pub(super) fn synonyms(&mut self) {
        for (index, group) in self.case.expect.response_contains_any.iter().flatten().enumerate() {
            let pointer = format!("/expect/responseContainsAny/{index}");
            let distinct: BTreeSet<&str> = group.iter().map(|text| text.trim()).collect();
            if distinct.len() < FEWEST {
                let what =
                    "a group of synonyms has 2 to 4 different texts: add the other words, or use 'responseContains'";
                self.error(DraftRule::SynonymGroup, &pointer, what);
                continue;
            }
            if group.len() > MOST {
                let what =
                    format!("a group of synonyms has 2 to 4 texts, found {}: nearly every answer has one", group.len());
                self.warning(DraftRule::SynonymGroup, &pointer, what);
                continue;
            }
            self.pointless(&pointer, group);
        }
    }

    /// Finds texts that are never needed, since wherever they stand, another one of the group stands too.
    fn pointless(&mut self, pointer: &str, group: &[String]) {
        for (index, text) in group.iter().enumerate() {
            let (before, behind) = (&group[..index], &group[index + 1..]);
            let is_within = |other: &&String| !other.is_empty() && text.contains(other.as_str());
            // Of two equal texts the first is the one that is needed.
            let shorter = before.iter().chain(behind.iter().filter(|other| *other != text)).find(is_within);
            if let Some(other) = shorter {
                let (text, other) = (shorten(text, 40), shorten(other, 40));
                let what = format!("'{text}' is never needed beside '{other}', which stands in it");
                self.warning(DraftRule::SynonymGroup, format!("{pointer}/{index}"), what);
            }
        }
    }
}
