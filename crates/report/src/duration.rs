//! Durations, as a person reads them.

/// Formats milliseconds: `980ms`, `16.1 s`, `2m 05s`, `1h 02m`. At most seven columns below a hundred hours.
pub(crate) fn duration_text(milliseconds: u64) -> String {
    let seconds = milliseconds / 1_000;
    match seconds {
        // As in the spec's summary.
        0..10 => format!("{milliseconds}ms"),
        10..60 => format!("{seconds}.{} s", milliseconds % 1_000 / 100),
        60..3_600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h {:02}m", seconds / 3_600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_follow_the_magnitude() {
        let shown = [0, 980, 9_999, 10_000, 16_052, 59_999, 60_000, 3_599_999, 3_720_000].map(duration_text);
        assert_eq!(shown, ["0ms", "980ms", "9999ms", "10.0 s", "16.0 s", "59.9 s", "1m 00s", "59m 59s", "1h 02m"]);
    }
}
