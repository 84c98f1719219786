//! Text for a terminal: harmless, and measured by what it takes on the screen.

use std::borrow::Cow;
use std::fmt::Write as _;

pub use karat_json::text::display_width as width;
use karat_json::text::is_plain;
use unicode_width::UnicodeWidthChar;

/// Returns the text with everything that could steer a terminal made visible instead.
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

/// Returns lines of a source with a stand-in for everything that could steer a terminal. Each is as many bytes as what
/// it stands for, so that places in the text stay where they are.
pub fn harmless(text: &str) -> Cow<'_, str> {
    if is_plain(text) || !text.chars().any(|character| is_hostile(character) && !matches!(character, '\n' | '\t')) {
        return Cow::Borrowed(text);
    }
    let stand_in = |character: char| match (character, character.len_utf8()) {
        ('\n' | '\t', _) => character,
        // Of a line's end in a file from Windows.
        ('\r', _) => ' ',
        (hostile, 1) if is_hostile(hostile) => '?',
        (hostile, 2) if is_hostile(hostile) => '\u{bf}',
        (hostile, _) if is_hostile(hostile) => '\u{fffd}',
        (plain, _) => plain,
    };
    Cow::Owned(text.chars().map(stand_in).collect())
}

/// Tells whether a character steers the terminal or reorders the text around it.
fn is_hostile(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Returns the text cut to at most `columns`, with `ellipsis` where something was cut.
pub fn cut<'t>(text: &'t str, columns: usize, ellipsis: &str) -> Cow<'t, str> {
    if width(text) <= columns {
        return Cow::Borrowed(text);
    }
    let room = columns.saturating_sub(width(ellipsis));
    let mut used = 0;
    let kept: String = text
        .chars()
        .take_while(|character| {
            used += character.width().unwrap_or(0);
            used <= room
        })
        .collect();
    Cow::Owned(format!("{}{ellipsis}", kept.trim_end()))
}

/// Returns the text cut to at most `columns` in its middle, where names that differ at their ends are alike.
pub fn cut_middle<'t>(text: &'t str, columns: usize, ellipsis: &str) -> Cow<'t, str> {
    if width(text) <= columns {
        return Cow::Borrowed(text);
    }
    let room = columns.saturating_sub(width(ellipsis));
    let take = |characters: &mut dyn Iterator<Item = char>, room: usize| -> String {
        let mut used = 0;
        let fits = |character: &char| {
            used += character.width().unwrap_or(0);
            used <= room
        };
        characters.take_while(fits).collect()
    };
    let start = take(&mut text.chars(), room.div_ceil(2));
    let end: String = take(&mut text.chars().rev(), room / 2).chars().rev().collect();
    Cow::Owned(format!("{start}{ellipsis}{end}"))
}

/// Returns the text cut to at most `columns` at its start: of a path, the end says most.
pub(crate) fn cut_start<'t>(text: &'t str, columns: usize, ellipsis: &str) -> Cow<'t, str> {
    if width(text) <= columns {
        return Cow::Borrowed(text);
    }
    let room = columns.saturating_sub(width(ellipsis));
    let mut used = 0;
    let fits = |character: &char| {
        used += character.width().unwrap_or(0);
        used <= room
    };
    let kept: Vec<char> = text.chars().rev().take_while(fits).collect();
    Cow::Owned(format!("{ellipsis}{}", kept.iter().rev().collect::<String>()))
}

/// Returns the text filled with spaces to `columns`.
pub fn pad(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// Breaks a text into lines of at most `columns`, at spaces where there are any; a word that is longer than a line is
/// broken where the line ends. Takes time by the text's length alone.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_source_keep_their_places() {
        let source = "a\u{1b}[31m\u{9b}\u{202e}é\u{feff}\tb\r\n\u{7f}";
        let shown = harmless(source);
        assert_eq!(shown, "a?[31m\u{bf}\u{fffd}é\u{fffd}\tb \n?");
        assert_eq!(shown.len(), source.len());
        assert!(matches!(harmless("plain\n\ttext é"), Cow::Borrowed(_)));
    }

    #[test]
    fn nothing_steers_the_terminal() {
        assert_eq!(printable("a\u{1b}[31mb\n\u{202e}c\u{7}"), "a\\u{1b}[31mb\\n\\u{202e}c\\u{7}");
        assert_eq!(printable("plain — 日本"), "plain — 日本");
    }

    #[test]
    fn columns_are_what_the_screen_shows() {
        assert_eq!(width("日本é"), 5);
        assert_eq!(cut("日本語テキスト", 7, "…"), "日本語…");
        assert_eq!(cut("short", 5, "…"), "short");
        assert_eq!(cut("too long", 6, "..."), "too...");
        assert_eq!(pad("日", 4), "日  ");
        assert_eq!(cut_middle("gs-get-weather-001", 10, "…"), "gs-ge…-001");
        assert_eq!(cut_middle("日本語テキスト", 8, "..."), "日...ト");
        assert_eq!(cut_middle("short", 5, "…"), "short");
        assert_eq!(cut_start("tools/weather.tool.ts:12:3", 12, "…"), "…ool.ts:12:3");
        assert_eq!(cut_start("日本語", 5, "…"), "…本語");
        assert_eq!(cut_start("short", 5, "…"), "short");
    }

    #[test]
    fn lines_break_at_spaces_or_anywhere() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("日本語", 4), ["日本", "語"]);
        assert_eq!(wrap("", 4), [""]);
    }
}
