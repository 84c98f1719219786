//! Prepares a pattern's source for the parser: checks limits and rewrites what the parser misreads.
//!
//! `oxc_regular_expression` 0.146 disagrees with JavaScript on a few forms of Annex B syntax:
//!
//! - `[\cA]`, `[\c1]` and `[\c_]` are read as a backslash, a `c` and the character;
//! - `\400` to `\777` lose their third digit, which is not part of the octal escape;
//! - a number too large for 64 bits is an error in `{…}` and in `\…`, and one too large for 32 bits
//!   wraps around in `\…`;
//! - `(?i:…)` counts as a capturing group when `\1` is distinguished from an octal escape.
//!
//! All of these are local, so the source is rewritten to an equivalent form that is read correctly:
//! `\xHH` for the escapes, a smaller number for an unreachable count, `\{` for a brace that is not
//! a quantifier. (Another bug, with duplicate names, is handled in [`super::captures`].)

use std::fmt::Write as _;

use super::PatternError;

/// Maximum length of a source, in bytes.
pub(super) const MAX_SOURCE_BYTES: usize = 64 * 1024;

/// Maximum nesting of parentheses. The parser and the compiler recurse; without optimization each level takes 20 KiB of
/// a thread's 2 MiB stack.
pub(super) const MAX_DEPTH: usize = 64;

/// A repetition count that no text can reach (JavaScript strings have fewer than 2^30 code units).
pub(super) const UNBOUNDED: u64 = 1 << 30;

/// Checks the limits on the source and rewrites it for the parser.
pub(super) fn prepare(source: &str) -> Result<String, PatternError> {
    if source.len() > MAX_SOURCE_BYTES {
        return Err(PatternError::TooLong);
    }
    let groups = count_groups(source)?;
    let mut prepared = String::with_capacity(source.len());
    let mut in_class = false;
    let mut rest = source;
    while let Some(at) = rest.find(['\\', '[', ']', '{']) {
        prepared.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = match rest.as_bytes()[0] {
            b'\\' => push_escape(&mut prepared, rest, in_class, groups),
            b'{' if !in_class => push_brace(&mut prepared, rest),
            byte => {
                in_class = byte == b'[' || (in_class && byte != b']');
                prepared.push(char::from(byte));
                1
            }
        };
        rest = &rest[length..];
    }
    prepared.push_str(rest);
    Ok(prepared)
}

/// Counts the capturing groups and rejects groups that are nested too deeply.
pub(super) fn count_groups(source: &str) -> Result<u64, PatternError> {
    let bytes = source.as_bytes();
    let (mut groups, mut depth, mut in_class) = (0, 0_usize, false);
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 1,
            b'[' => in_class = true,
            b']' => in_class = false,
            b'(' if !in_class => {
                let captures = match bytes.get(at + 1..) {
                    Some([b'?', b'<', b'=' | b'!', ..]) => false,
                    Some([b'?', next, ..]) => *next == b'<',
                    _ => true,
                };
                groups += u64::from(captures);
                depth += 1;
                if depth > MAX_DEPTH {
                    return Err(PatternError::TooDeep);
                }
            }
            b')' if !in_class => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    Ok(groups)
}

/// Writes the escape at the start of `rest` and returns its length in `rest`.
fn push_escape(prepared: &mut String, rest: &str, in_class: bool, groups: u64) -> usize {
    let bytes = rest.as_bytes();
    let (value, length) = match bytes.get(1..) {
        Some(&[b'c', control, ..]) if in_class && (control.is_ascii_alphanumeric() || control == b'_') => {
            (u32::from(control % 32), 3)
        }
        Some(&[digit @ b'0'..=b'9', ..]) => {
            let digits = leading_digits(&rest[1..]);
            let number = digits.parse().unwrap_or(u64::MAX);
            if !in_class && digit != b'0' && number <= groups {
                prepared.push_str(&rest[..=digits.len()]);
                return 1 + digits.len();
            }
            octal_escape(digits)
        }
        // This is a code point escape only in a group's name, where the braces must stay.
        Some([b'u', b'{', ..]) => {
            prepared.push_str(&rest[..3]);
            return 3;
        }
        _ => {
            let length = 1 + rest[1..].chars().next().map_or(0, char::len_utf8);
            prepared.push_str(&rest[..length]);
            return length;
        }
    };
    // Writing to a string cannot fail.
    let _ = write!(prepared, "\\x{value:02x}");
    length
}

/// Parses a legacy octal escape, or `\8` or `\9`, which mean the digit itself.
fn octal_escape(digits: &str) -> (u32, usize) {
    let mut value = 0;
    let mut length = 1;
    for digit in digits.chars().map_while(|digit| digit.to_digit(8)) {
        if value * 8 + digit > 0o377 || length > 3 {
            break;
        }
        value = value * 8 + digit;
        length += 1;
    }
    match length {
        1 => (u32::from(digits.as_bytes()[0]), 2),
        _ => (value, length),
    }
}

/// Writes the brace at the start of `rest` and returns its length in `rest`.
fn push_brace(prepared: &mut String, rest: &str) -> usize {
    let clamped = |digits: &str| digits.parse().unwrap_or(u64::MAX).min(UNBOUNDED);
    let min = leading_digits(&rest[1..]);
    let mut length = 1 + min.len();
    let mut quantifier = format!("{{{}", clamped(min));
    if rest[length..].starts_with(',') {
        let max = leading_digits(&rest[length + 1..]);
        length += 1 + max.len();
        quantifier.push(',');
        if !max.is_empty() {
            quantifier.push_str(&clamped(max).to_string());
        }
    }
    if min.is_empty() || !rest[length..].starts_with('}') {
        prepared.push_str("\\{");
        return 1;
    }
    prepared.push_str(&quantifier);
    length
}

fn leading_digits(text: &str) -> &str {
    &text[..text.bytes().take_while(u8::is_ascii_digit).count()]
}
