//! JSON that is safe to print on a terminal.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::terminal_text::is_hostile;

/// Escapes characters of a JSON document that control a terminal or reorder text, and `##[`, which starts a workflow
/// command on GitHub. They occur only in strings, so the value does not change.
pub fn escape_json(text: &str) -> Cow<'_, str> {
    // JSON escapes C0 controls itself; the others are layout.
    let is_escaped = |character: char| is_hostile(character) && character >= '\u{7f}';
    if !text.contains(is_escaped) && !text.contains("##[") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_escaped(character) {
            let _ = write!(out, "\\u{:04x}", u32::from(character));
        } else {
            out.push(character);
        }
    }
    Cow::Owned(out.replace("##[", "#\\u0023["))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn escapes_terminal_controls() {
        let text = serde_json::to_string("a\u{1b}\u{7f}\u{9b}31m\u{202e}\u{61c}\u{2028}é ##[x").unwrap();
        assert_eq!(escape_json(&text), r#""a\u001b\u007f\u009b31m\u202e\u061c\u2028é #\u0023[x""#);
        assert!(matches!(escape_json("{\n  \"é\": 1\n}"), Cow::Borrowed(_)));
    }

    proptest! {
        #[test]
        fn keeps_the_value(text in any::<String>(), marks in "[#\\[\u{80}-\u{9f}]{0,8}") {
            let value = format!("{text}{marks}");
            let json = serde_json::to_string_pretty(&[&value]).unwrap();
            let read: Vec<String> = serde_json::from_str(&escape_json(&json)).unwrap();
            prop_assert_eq!(read, [value]);
        }
    }
}
