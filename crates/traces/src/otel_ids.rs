//! OpenTelemetry ids of traces and spans.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Parses an id into lower-case hexadecimal digits. Accepts base64 as well, which protobuf's JSON mapping uses. Returns
/// ids of another form unchanged, and `None` for an empty or all-zero id.
pub(crate) fn parse(text: &str) -> Option<String> {
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
        return from_bytes(&bytes);
    }
    Some(text.to_owned())
}

/// Returns the hexadecimal digits of an id, or `None` if it is empty or all zeros.
pub(crate) fn from_bytes(bytes: &[u8]) -> Option<String> {
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

/// Parses a Jaeger id and pads it to its full length: older versions omit leading zeros.
pub(crate) fn parse_padded(text: &str, digits: usize) -> Option<String> {
    let id = parse(text)?;
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
    fn parses_ids(#[case] text: &str, #[case] expected: Option<&str>) {
        assert_eq!(parse(text).as_deref(), expected);
    }

    #[test]
    fn pads_jaeger_ids() {
        assert_eq!(parse_padded("f067aa0ba902b7", 16).as_deref(), Some("00f067aa0ba902b7"));
    }
}
