//! Searches a response for strings, either exactly or ignoring case and typography.

use std::cell::OnceCell;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use karat_cases::TextMatch;

/// A response to search, with its loose form computed on demand.
pub(super) struct TextSearch<'t> {
    text: &'t str,
    text_match: Option<TextMatch>,
    loose: OnceCell<String>,
}

impl<'t> TextSearch<'t> {
    pub(super) fn new(text: &'t str, text_match: Option<TextMatch>) -> Self {
        Self { text, text_match, loose: OnceCell::new() }
    }

    pub(super) fn contains(&self, text: &str) -> bool {
        match self.text_match {
            None | Some(TextMatch::Exact) => self.text.contains(text),
            Some(TextMatch::Loose) => self.loose().contains(&loose_form(text)),
        }
    }

    pub(super) fn is_equal(&self, text: &str) -> bool {
        match self.text_match {
            None | Some(TextMatch::Exact) => self.text == text,
            Some(TextMatch::Loose) => self.loose() == loose_form(text),
        }
    }

    pub(super) fn starts_with(&self, text: &str) -> bool {
        match self.text_match {
            None | Some(TextMatch::Exact) => self.text.starts_with(text),
            Some(TextMatch::Loose) => self.loose().starts_with(&loose_form(text)),
        }
    }

    pub(super) fn ends_with(&self, text: &str) -> bool {
        match self.text_match {
            None | Some(TextMatch::Exact) => self.text.ends_with(text),
            Some(TextMatch::Loose) => self.loose().ends_with(&loose_form(text)),
        }
    }

    /// Returns the part that matches only in the loose form. `None` if the case sets `textMatch`.
    pub(super) fn near_miss(&self, text: &str) -> Option<&'t str> {
        if self.text_match.is_some() || self.text.contains(text) {
            return None;
        }
        let needle = Some(loose_form(text)).filter(|needle| !needle.trim().is_empty())?;
        let start = self.loose().find(&needle)?;
        let end = start + needle.len();
        let (mut length, mut from, mut to) = (0, 0, None);
        visit_loose(self.text, |offset, piece| {
            if length <= start {
                from = offset;
            }
            if length >= end {
                to.get_or_insert(offset);
            }
            length += piece.len();
        });
        self.text.get(from..to.unwrap_or(self.text.len()))
    }

    fn loose(&self) -> &str {
        self.loose.get_or_init(|| loose_form(self.text))
    }
}

/// Returns the form that `loose` compares: NFC, case folded, with ASCII quotation marks, dashes and spaces. Not NFKC,
/// which would make `10²` equal to `102`.
fn loose_form(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    if text.is_ascii() {
        push_loose_ascii(&mut out, text);
    } else {
        visit_loose(text, |_, piece| out.push_str(piece));
    }
    out
}

/// Does the same as `visit_loose` for ASCII text, ten times faster. Most responses are ASCII.
fn push_loose_ascii(out: &mut String, text: &str) {
    let mut after_space = false;
    for byte in text.bytes() {
        let is_space = matches!(byte, b'\t'..=b'\r' | b' ');
        if !is_space {
            out.push(char::from(if byte == b'`' { b'\'' } else { byte.to_ascii_lowercase() }));
        } else if !after_space {
            out.push(' ');
        }
        after_space = is_space;
    }
}

/// Calls `visit` with each piece of the loose form and its offset in the original.
fn visit_loose(text: &str, mut visit: impl FnMut(usize, &str)) {
    let mut piece = String::new();
    let mut after_space = false;
    let mut end = 0;
    while let Some(first) = text[end..].chars().next() {
        let start = end;
        end += first.len_utf8();
        if first.is_whitespace() {
            if !after_space {
                visit(start, " ");
            }
            after_space = true;
            continue;
        }
        after_space = false;
        end += text[end..].find(|next| !may_combine(next)).unwrap_or(text.len() - end);
        let cluster = &text[start..end];
        piece.clear();
        // ASCII text needs none of the steps below.
        if cluster.is_ascii() {
            piece.extend(cluster.chars().map(|character| to_ascii_form(character).to_ascii_lowercase()));
            visit(start, &piece);
            continue;
        }
        piece.extend(cluster.nfc().map(to_ascii_form).flat_map(fold_case).nfc());
        visit(start, &piece);
    }
}

/// Whether a character may combine with the one before it: a mark, or a Hangul vowel or final consonant.
fn may_combine(character: char) -> bool {
    !character.is_ascii()
        && (is_combining_mark(character) || matches!(character, '\u{1161}'..='\u{1175}' | '\u{11a8}'..='\u{11c2}'))
}

/// Replaces typographic punctuation and full-width characters with their ASCII form.
fn to_ascii_form(character: char) -> char {
    let character = match character {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(character) - 0xfee0).unwrap_or(character),
        other => other,
    };
    match character {
        '\u{2018}'..='\u{201b}' | '\u{2032}' | '\u{2bc}' | '\u{b4}' | '`' => '\'',
        '\u{201c}'..='\u{201f}' | '\u{2033}' | '\u{ab}' | '\u{bb}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        other => other,
    }
}

/// Folds case: two characters become equal if and only if Unicode's full case folding makes them equal.
fn fold_case(character: char) -> impl Iterator<Item = char> {
    // The dotless i is the only character that upper case would make equal to another one.
    let is_unchanged = character == 'ı';
    // Lower case first: the capital ẞ has no upper case of its own.
    let folded = character.to_lowercase().flat_map(char::to_uppercase).flat_map(char::to_lowercase);
    std::iter::once(character).filter(move |_| is_unchanged).chain(folded.filter(move |_| !is_unchanged))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("I don’t KNOW", "i don't know")]
    #[case("“a” «b» ″c″", "\"a\" \"b\" \"c\"")]
    #[case("10\u{a0}–\r\n 12\tkm", "10 - 12 km")]
    #[case("−5 ‐ ―", "-5 - -")]
    #[case("Ｔｏｔａｌ　１５", "total 15")]
    #[case("Cafe\u{301}", "café")]
    #[case("STRASSE Straße ẞ", "strasse strasse ss")]
    #[case("ΣΊΣΥΦΟΣ σίσυφος", "σίσυφοσ σίσυφοσ")]
    #[case("ıI", "ıi")]
    #[case("10² ﬁ", "10² fi")]
    #[case("\u{1112}\u{1161}\u{11ab}", "한")]
    #[case("`´ʼ＇", "''''")]
    fn ignores_case_and_typography(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(loose_form(text), expected);
    }

    #[rstest]
    #[case("Sorry, I don’t  know.", "I don't know", Some("I don’t  know"))]
    #[case("Straßen", "STRASSE", Some("Straße"))]
    #[case("at the CAFE\u{301}", "café", Some("CAFE\u{301}"))]
    #[case("Tokyo tokyo", "tokyo", None)]
    #[case("Oslo", "tokyo", None)]
    #[case("Oslo x", "\u{a0}", None)]
    #[case("", "", None)]
    fn finds_near_misses(#[case] text: &str, #[case] expected: &str, #[case] found: Option<&str>) {
        assert_eq!(TextSearch::new(text, None).near_miss(expected), found);
        assert_eq!(TextSearch::new(text, Some(TextMatch::Exact)).near_miss(expected), None);
        assert_eq!(TextSearch::new(text, Some(TextMatch::Loose)).near_miss(expected), None);
    }

    proptest! {
        #[test]
        fn ascii_has_the_same_form_on_both_paths(text in "[\\x00-\\x7f]{0,32}") {
            let mut whole = String::new();
            visit_loose(&text, |_, piece| whole.push_str(piece));
            prop_assert_eq!(loose_form(&text), whole);
        }

        #[test]
        fn pieces_equal_the_form_of_the_whole_string(text in "[a-zA-Z’' \u{301}\u{1100}\u{1161}\u{11a8}ßéＡ–]{0,16}") {
            let whole: String = text.as_str().nfc().map(to_ascii_form).flat_map(fold_case).nfc().collect();
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            prop_assert_eq!(words(&loose_form(&text)), words(&whole));
        }
    }
}
