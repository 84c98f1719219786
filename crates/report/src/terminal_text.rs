//! Text for a terminal: escaped, and measured in columns.

use std::borrow::Cow;
use std::fmt::Write as _;

pub use karat_json::text::display_width as width;
use karat_json::text::is_plain;
use unicode_width::UnicodeWidthChar;

/// Escapes all characters that could control a terminal.
pub fn printable(text: &str) -> Cow<'_, str> {
    if is_plain(text) || !text.chars().any(is_hostile) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            hostile if is_hostile(hostile) => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(hostile));
            }
            plain => out.push(plain),
        }
    }
    Cow::Owned(out)
}

/// Replaces characters that could control a terminal, in source text. Replacements have the same number of bytes, so
/// that offsets stay valid.
pub(crate) fn mask_control_chars(text: &str) -> Cow<'_, str> {
    if is_plain(text) || !text.chars().any(|character| is_hostile(character) && !matches!(character, '\n' | '\t')) {
        return Cow::Borrowed(text);
    }
    let replacement = |character: char| match (character, character.len_utf8()) {
        ('\n' | '\t', _) => character,
        // From CRLF line breaks.
        ('\r', _) => ' ',
        (hostile, 1) if is_hostile(hostile) => '?',
        (hostile, 2) if is_hostile(hostile) => '\u{bf}',
        (hostile, _) if is_hostile(hostile) => '\u{fffd}',
        (plain, _) => plain,
    };
    Cow::Owned(text.chars().map(replacement).collect())
}

/// Whether a character controls the terminal, reorders the text around it or breaks a line.
pub(crate) fn is_hostile(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}'
        )
}

/// Truncates the end of text to `columns`, ellipsis included.
pub fn truncate<'t>(text: &'t str, columns: usize, ellipsis: &str) -> Cow<'t, str> {
    if width(text) <= columns {
        return Cow::Borrowed(text);
    }
    let available = columns.saturating_sub(width(ellipsis));
    let mut used = 0;
    let rest: String = text
        .chars()
        .take_while(|character| {
            used += character.width().unwrap_or(0);
            used <= available
        })
        .collect();
    Cow::Owned(format!("{}{ellipsis}", rest.trim_end()))
}

/// Truncates the middle of text to `columns`, for names that differ at their ends.
pub(crate) fn truncate_middle<'t>(text: &'t str, columns: usize, ellipsis: &str) -> Cow<'t, str> {
    if width(text) <= columns {
        return Cow::Borrowed(text);
    }
    let available = columns.saturating_sub(width(ellipsis));
    let take = |characters: &mut dyn Iterator<Item = char>, available: usize| -> String {
        let mut used = 0;
        let fits = |character: &char| {
            used += character.width().unwrap_or(0);
            used <= available
        };
        characters.take_while(fits).collect()
    };
    let start = take(&mut text.chars(), available.div_ceil(2));
    let end: String = take(&mut text.chars().rev(), available / 2).chars().rev().collect();
    Cow::Owned(format!("{start}{ellipsis}{end}"))
}

/// Truncates the start of text to `columns`, for paths.
pub(crate) fn truncate_start<'t>(text: &'t str, columns: usize, ellipsis: &str) -> Cow<'t, str> {
    if width(text) <= columns {
        return Cow::Borrowed(text);
    }
    let available = columns.saturating_sub(width(ellipsis));
    let mut used = 0;
    let fits = |character: &char| {
        used += character.width().unwrap_or(0);
        used <= available
    };
    let rest: Vec<char> = text.chars().rev().take_while(fits).collect();
    Cow::Owned(format!("{ellipsis}{}", rest.iter().rev().collect::<String>()))
}

/// Pads text with spaces to `columns`.
pub(crate) fn pad(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// Wraps text to `columns` at spaces; a word longer than a line is broken. Runs in linear time.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split_inclusive(' ') {
        if used > 0 && used + width(word.trim_end()) > columns {
            lines.push(String::new());
            used = 0;
        }
        for character in word.chars() {
            let needed = character.width().unwrap_or(0);
            if used > 0 && used + needed > columns && character != ' ' {
                lines.push(String::new());
                used = 0;
            }
            used += needed;
            if let Some(line) = lines.last_mut() {
                line.push(character);
            }
        }
    }
    lines.into_iter().map(|line| line.trim_end().to_owned()).collect()
}

/// Maximum width of a message, which may quote a whole reply.
const MAX_MESSAGE_WIDTH: usize = 600;

/// Wraps a message to `columns`. A very long one loses its middle: the actual value is at the end.
pub(crate) fn wrap_truncated(text: &str, columns: usize, ellipsis: &str) -> Vec<String> {
    wrap(&truncate_middle(text, MAX_MESSAGE_WIDTH, ellipsis), columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masking_keeps_offsets() {
        let source = "a\u{1b}[31m\u{9b}\u{202e}é\u{feff}\tb\r\n\u{7f}";
        let masked = mask_control_chars(source);
        assert_eq!(masked, "a?[31m\u{bf}\u{fffd}é\u{fffd}\tb \n?");
        assert_eq!(masked.len(), source.len());
        assert!(matches!(mask_control_chars("plain\n\ttext é"), Cow::Borrowed(_)));
    }

    #[test]
    fn escapes_control_characters() {
        assert_eq!(printable("a\u{1b}[31mb\n\u{202e}c\u{7}"), "a\\u{1b}[31mb\\n\\u{202e}c\\u{7}");
        assert_eq!(printable("a\u{61c}b\u{2028}c\u{2029}"), "a\\u{61c}b\\u{2028}c\\u{2029}");
        assert_eq!(printable("plain — 日本"), "plain — 日本");
    }

    #[test]
    fn measures_display_columns() {
        assert_eq!(width("日本é"), 5);
        assert_eq!(truncate("日本語テキスト", 7, "…"), "日本語…");
        assert_eq!(truncate("short", 5, "…"), "short");
        assert_eq!(truncate("too long", 6, "..."), "too...");
        assert_eq!(pad("日", 4), "日  ");
        assert_eq!(truncate_middle("gs-get-weather-001", 10, "…"), "gs-ge…-001");
        assert_eq!(truncate_middle("日本語テキスト", 8, "..."), "日...ト");
        assert_eq!(truncate_middle("short", 5, "…"), "short");
        assert_eq!(truncate_start("tools/weather.tool.ts:12:3", 12, "…"), "…ool.ts:12:3");
        assert_eq!(truncate_start("日本語", 5, "…"), "…本語");
        assert_eq!(truncate_start("short", 5, "…"), "short");
    }

    #[test]
    fn keeps_both_ends_of_long_messages() {
        let message = format!("expected {} but got 'b'", "'a', ".repeat(1_000));
        let lines = wrap_truncated(&message, 70, "…");
        assert!(lines.len() < 12 && lines[0].starts_with("expected"), "{lines:?}");
        assert!(lines.last().is_some_and(|line| line.ends_with("but got 'b'")), "{lines:?}");
        assert_eq!(wrap_truncated("short", 70, "…"), ["short"]);
    }

    #[test]
    fn wraps_at_spaces_or_anywhere() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("日本語", 4), ["日本", "語"]);
        assert_eq!(wrap("", 4), [""]);
    }
}
