//! Text as JavaScript has it: code units, of which some may be half a character.

use std::fmt;

/// A string of UTF-16 code units.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Text(Vec<u16>);

impl Text {
    /// Reads a text as oxc writes it when it has lone surrogates: U+FFFD, then four digits for a code unit.
    pub(super) fn from_lossy(encoded: &str) -> Self {
        let mut units = Vec::with_capacity(encoded.len());
        let mut rest = encoded.chars();
        let mut buffer = [0; 2];
        while let Some(character) = rest.next() {
            let escaped = (character == '\u{fffd}')
                .then(|| rest.as_str().get(..4).and_then(|digits| u16::from_str_radix(digits, 16).ok()))
                .flatten();
            if let Some(unit) = escaped {
                units.push(unit);
                rest.nth(3);
            } else {
                units.extend_from_slice(character.encode_utf16(&mut buffer));
            }
        }
        Self(units)
    }

    /// Returns the text as Rust has it; none where half of a character stands alone.
    pub(super) fn to_text(&self) -> Option<String> {
        String::from_utf16(&self.0).ok()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn push(&mut self, other: &Self) {
        self.0.extend_from_slice(&other.0);
    }

    pub(super) fn repeat(&self, times: usize) -> Self {
        Self(self.0.repeat(times))
    }

    /// Returns the text without JavaScript's white space at its start and end, as asked.
    pub(super) fn trimmed(&self, start: bool, end: bool) -> Self {
        let from = if start { self.0.iter().position(|&unit| !is_space(unit)).unwrap_or(self.0.len()) } else { 0 };
        let behind = if end {
            self.0.iter().rposition(|&unit| !is_space(unit)).map_or(0, |last| last + 1)
        } else {
            self.0.len()
        };
        Self(self.0.get(from..behind).unwrap_or_default().to_vec())
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(text.encode_utf16().collect())
    }
}

impl fmt::Display for Text {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&String::from_utf16_lossy(&self.0))
    }
}

/// ECMAScript's white space and line ends: those of Unicode, without U+0085, with the byte order mark.
fn is_space(unit: u16) -> bool {
    unit == 0xfeff || unit != 0x85 && char::from_u32(u32::from(unit)).is_some_and(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn halves_of_a_character_become_one_when_they_meet() {
        let mut text = Text::from_lossy("a\u{fffd}d83d");
        assert_eq!(text.to_text(), None);
        text.push(&Text::from_lossy("\u{fffd}de00\u{fffd}fffd"));
        assert_eq!(text.to_text().as_deref(), Some("a😀\u{fffd}"));
    }

    #[rstest]
    #[case("\u{feff} a\u{a0}b \n\u{2028}", "a\u{a0}b")]
    #[case("\u{85}", "\u{85}")]
    #[case(" \t", "")]
    fn trimming_is_ecmascripts(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(Text::from(text).trimmed(true, true).to_string(), expected);
    }
}
