//! Ids of traces and spans.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Returns an id as it is kept: hexadecimal digits in lower case, also where JSON has base64 of the bytes, as protobuf's own
/// JSON does. An id of another shape stays as it is. Nothing where there is none, or only zeros.
pub(crate) fn read(text: &str) -> Option<String> {
    let text = text.trim();
    let text = text.strip_prefix("0x").unwrap_or(text);
    let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if text.is_empty() || text.bytes().all(|byte| byte == b'0') {
        return None;
    }
    if is_hex {
        return Some(text.to_ascii_lowercase());
    }
    if matches!(text.len(), 12 | 24)
        && let Ok(bytes) = STANDARD.decode(text)
        && matches!(bytes.len(), 8 | 16)
    {
        return of_bytes(&bytes);
    }
    Some(text.to_owned())
}

/// Returns the hexadecimal digits of an id; nothing where it is empty or only zeros.
pub(crate) fn of_bytes(bytes: &[u8]) -> Option<String> {
    const DIGITS: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    if bytes.iter().all(|byte| *byte == 0) {
        return None;
    }
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(DIGITS[usize::from(byte >> 4)]);
        text.push(DIGITS[usize::from(byte & 15)]);
    }
    Some(text)
}

/// Returns an id of Jaeger's at its full length: older versions leave out zeros at the beginning.
pub(crate) fn padded(text: &str, digits: usize) -> Option<String> {
    let id = read(text)?;
    if id.bytes().all(|byte| byte.is_ascii_hexdigit()) && id.len() < digits {
        return Some(format!("{id:0>digits$}"));
    }
    Some(id)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::hex("4BF92F3577B34DA6A3CE929D0E0E4736", Some("4bf92f3577b34da6a3ce929d0e0e4736"))]
    #[case::base64("S/kvNXezTaajzpKdDg5HNg==", Some("4bf92f3577b34da6a3ce929d0e0e4736"))]
    #[case::base64_of_a_span("APBnqgupArc=", Some("00f067aa0ba902b7"))]
    #[case::python("0x00f067aa0ba902b7", Some("00f067aa0ba902b7"))]
    #[case::zeros("0000000000000000", None)]
    #[case::empty("", None)]
    #[case::any_text("span-1", Some("span-1"))]
    fn ids(#[case] text: &str, #[case] expected: Option<&str>) {
        assert_eq!(read(text).as_deref(), expected);
    }

    #[test]
    fn jaeger_leaves_out_zeros() {
        assert_eq!(padded("f067aa0ba902b7", 16).as_deref(), Some("00f067aa0ba902b7"));
    }
}
