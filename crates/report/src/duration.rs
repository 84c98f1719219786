//! Durations, as a person reads them.

/// Formats milliseconds: `980 ms`, `9.9 s`, `2m 05s`, `1h 02m`, `3d 04h`. At most seven columns below a hundred days.
pub fn duration_text(milliseconds: u64) -> String {
    let seconds = milliseconds / 1_000;
    match seconds {
        0 => format!("{milliseconds} ms"),
        1..60 => format!("{seconds}.{} s", milliseconds % 1_000 / 100),
        60..3_600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h {:02}m", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{}d {:02}h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

/// Formats a measured number of milliseconds, rounded.
pub(crate) fn rounded_duration_text(milliseconds: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a duration is small and not negative")]
    let rounded = milliseconds.round() as u64;
    duration_text(rounded)
}

/// Formats milliseconds, with fractions of short ones.
pub(crate) fn precise_duration_text(milliseconds: f64) -> String {
    match milliseconds {
        ..1.0 => format!("{milliseconds:.3} ms"),
        1.0..10.0 => format!("{milliseconds:.1} ms"),
        _ => rounded_duration_text(milliseconds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_follow_the_magnitude() {
        let texts = [0, 850, 999, 1_000, 9_999, 16_052, 59_999, 60_000, 3_599_999, 3_720_000].map(duration_text);
        let expected =
            ["0 ms", "850 ms", "999 ms", "1.0 s", "9.9 s", "16.0 s", "59.9 s", "1m 00s", "59m 59s", "1h 02m"];
        assert_eq!(texts, expected);
        assert_eq!(duration_text(7_937_538_000), "91d 20h");
    }

    #[test]
    fn shows_fractions_only_for_short_durations() {
        assert_eq!([0.04, 1.25, 12.6, 5000.4].map(precise_duration_text), ["0.040 ms", "1.2 ms", "13 ms", "5.0 s"]);
        assert_eq!([252.4, 999.6].map(rounded_duration_text), ["252 ms", "1.0 s"]);
    }
}
