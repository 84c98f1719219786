//! What a server said, in whole lines: half a secret would not be recognised and masked.

use std::collections::VecDeque;

/// Which lines of a stream are kept when it says more than there is room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    First,
    /// Some programs say first what is wrong, others last.
    Ends,
}

/// Which part of what is kept is the beginning's.
const HEAD: usize = 4;

/// The first lines of a stream, or the first and the last ones, never a part of one.
#[derive(Debug)]
pub(super) struct Lines {
    keep: Keep,
    /// In bytes, for a line and for all of them.
    limit: usize,
    head: Vec<String>,
    whole: VecDeque<String>,
    /// Of all of them.
    size: usize,
    left_out: usize,
    /// The line that did not end yet; empty when it is too long to be kept.
    begun: Vec<u8>,
    begun_length: usize,
    is_full: bool,
}

impl Lines {
    pub(super) fn new(keep: Keep, limit: usize) -> Self {
        Self {
            keep,
            limit,
            head: Vec::new(),
            whole: VecDeque::new(),
            size: 0,
            left_out: 0,
            begun: Vec::new(),
            begun_length: 0,
            is_full: false,
        }
    }

    pub(super) fn push(&mut self, chunk: &[u8]) {
        for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
            if self.is_full {
                return;
            }
            let line = piece.strip_suffix(b"\n").unwrap_or(piece);
            self.begun_length += line.len();
            if self.begun_length > self.limit {
                self.begun.clear();
            } else {
                self.begun.extend_from_slice(line);
            }
            if line.len() < piece.len() {
                self.finish();
            }
        }
    }

    /// Takes note that the stream ended, and its last line with it.
    pub(super) fn end(&mut self) {
        if self.begun_length > 0 {
            self.finish();
        }
    }

    fn finish(&mut self) {
        let (begun, length) = (std::mem::take(&mut self.begun), std::mem::take(&mut self.begun_length));
        let line = if length > self.limit {
            format!("(a line of {length} bytes)")
        } else {
            String::from_utf8_lossy(&begun).trim_end().to_owned()
        };
        let size = line.len() + 1;
        if self.keep == Keep::First && self.size + size > self.limit && !self.whole.is_empty() {
            self.is_full = true;
            return;
        }
        self.size += size;
        if self.keep == Keep::Ends && self.whole.is_empty() && self.size <= self.limit / HEAD {
            self.head.push(line);
            return;
        }
        self.whole.push_back(line);
        while self.size > self.limit && self.whole.len() > 1 {
            self.size -= self.whole.pop_front().map_or(0, |line| line.len() + 1);
            self.left_out += 1;
        }
    }

    /// Returns the lines; of one that did not end, only its length, since more of it may be on its way.
    pub(super) fn text(&self) -> String {
        let mut lines: Vec<&str> = self.head.iter().map(String::as_str).collect();
        let left_out = format!("({} lines left out)", self.left_out);
        if self.left_out > 0 && !lines.is_empty() {
            lines.push(&left_out);
        }
        lines.extend(self.whole.iter().map(String::as_str));
        let begun = format!("(a line of {} bytes and no end)", self.begun_length);
        if self.begun_length > 0 {
            lines.push(&begun);
        }
        lines.join("\n").trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(Keep::First, "one\ntwo\nthree\n", "one\ntwo")]
    #[case(Keep::Ends, "one\ntwo\nthree\n", "two\nthree")]
    #[case(Keep::Ends, "1\ntwo\nthree\nfour\n", "1\n(2 lines left out)\nfour")]
    #[case(Keep::Ends, "1\n2\n3\n4\n", "1\n2\n3\n4")]
    #[case(Keep::First, "a line that is long\nnext\n", "(a line of 19 bytes)")]
    #[case(Keep::Ends, "next\na line that is long\n", "(a line of 19 bytes)")]
    #[case(Keep::Ends, "a line that is long", "(a line of 19 bytes)")]
    #[case(Keep::Ends, "one\r\ntwo", "one\ntwo")]
    #[case(Keep::First, "one\n\n", "one")]
    #[case(Keep::Ends, "\n", "")]
    fn only_whole_lines_are_kept(#[case] keep: Keep, #[case] said: &str, #[case] kept: &str) {
        let mut lines = Lines::new(keep, 10);
        lines.push(said.as_bytes());
        lines.end();
        assert_eq!(lines.text(), kept);
    }

    #[test]
    fn a_line_that_may_go_on_is_not_shown() {
        let mut lines = Lines::new(Keep::Ends, 100);
        lines.push(b"ready\ntoken: s3cr");
        assert_eq!(lines.text(), "ready\n(a line of 11 bytes and no end)");
        lines.push(b"3t\n");
        assert_eq!(lines.text(), "ready\ntoken: s3cr3t");
    }

    proptest! {
        #[test]
        fn a_secret_is_there_whole_or_not_at_all(
            before in "[a-z\n]{0,60}", after in "[a-z\n]{0,60}", limit in 1_usize..80, chunk in 1_usize..20, ends: bool,
        ) {
            const SECRET: &str = "0123456789";
            let mut lines = Lines::new(if ends { Keep::Ends } else { Keep::First }, limit);
            for chunk in format!("{before}{SECRET}{after}").as_bytes().chunks(chunk) {
                lines.push(chunk);
                let masked = lines.text().replace(SECRET, "").replace("(a line of ", "");
                let numbers = masked.split('\n').filter(|line| !line.ends_with(" bytes)") && !line.ends_with(" no end)") && !line.ends_with(" left out)"));
                prop_assert!(!numbers.into_iter().any(|line| line.contains(|digit: char| digit.is_ascii_digit())));
            }
        }
    }
}
