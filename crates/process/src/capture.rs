//! Bounded output in whole lines, since a redactor cannot recognise half a secret.

use std::collections::VecDeque;
use std::fmt::Write as _;

/// The lines to keep of output that exceeds the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    First,
    Last,
    /// Some programs report the problem first, others last.
    Ends,
}

/// The part of a stream to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capture {
    pub keep: Keep,
    /// Limit of a line and of all lines together.
    pub max_bytes: usize,
}

/// Divisor of the share that the first lines get with `Keep::Ends`.
const HEAD_DIVISOR: usize = 4;

/// The captured lines of a stream, whole lines only.
#[derive(Debug)]
pub(crate) struct Lines {
    capture: Capture,
    head: Vec<String>,
    tail: VecDeque<String>,
    /// Bytes of all lines.
    size: usize,
    omitted: usize,
    /// The unfinished line; empty if it is too long to keep.
    partial: Vec<u8>,
    partial_length: usize,
    is_full: bool,
}

impl Lines {
    pub(crate) fn new(capture: Capture) -> Self {
        Self {
            capture,
            head: Vec::new(),
            tail: VecDeque::new(),
            size: 0,
            omitted: 0,
            partial: Vec::new(),
            partial_length: 0,
            is_full: false,
        }
    }

    pub(crate) fn push(&mut self, chunk: &[u8]) {
        for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
            if self.is_full {
                return;
            }
            let is_complete = piece.ends_with(b"\n");
            self.partial_length += piece.len() - usize::from(is_complete);
            if self.partial_length > self.capture.max_bytes {
                self.partial.clear();
            } else {
                self.partial.extend_from_slice(piece);
            }
            if is_complete {
                self.finish();
            }
        }
    }

    /// Ends the stream, including a last line without a line break.
    pub(crate) fn end(&mut self) {
        if self.partial_length > 0 {
            self.finish();
        }
    }

    fn finish(&mut self) {
        let (partial, length) = (std::mem::take(&mut self.partial), std::mem::take(&mut self.partial_length));
        let Capture { keep, max_bytes } = self.capture;
        let line = if length > max_bytes {
            format!("(a line of {length} bytes)\n")
        } else {
            String::from_utf8_lossy(&partial).into_owned()
        };
        if keep == Keep::First && self.size + line.len() > max_bytes && !self.tail.is_empty() {
            self.is_full = true;
            return;
        }
        self.size += line.len();
        if keep == Keep::Ends && self.tail.is_empty() && self.size <= max_bytes / HEAD_DIVISOR {
            self.head.push(line);
            return;
        }
        self.tail.push_back(line);
        while self.size > max_bytes && self.tail.len() > 1 {
            self.size -= self.tail.pop_front().map_or(0, |line| line.len());
            self.omitted += 1;
        }
    }

    /// Removes and returns the complete lines.
    pub(crate) fn take(&mut self) -> String {
        let (partial, partial_length) = (std::mem::take(&mut self.partial), std::mem::take(&mut self.partial_length));
        let text = self.text();
        *self = Self { partial, partial_length, ..Self::new(self.capture) };
        text
    }

    /// Returns the lines, and only the length of an unfinished line, since the rest may follow.
    pub(crate) fn text(&self) -> String {
        let mut text = self.head.concat();
        if self.omitted > 0 {
            match self.capture.keep {
                Keep::Last => text.push_str("…\n"),
                Keep::Ends if !self.head.is_empty() => {
                    let _ = writeln!(text, "({} lines omitted)", self.omitted);
                }
                Keep::Ends | Keep::First => {}
            }
        }
        text.extend(self.tail.iter().map(String::as_str));
        if self.partial_length > 0 {
            let _ = write!(text, "(a line of {} bytes, unfinished)", self.partial_length);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(Keep::First, "one\ntwo\nthree\n", "one\ntwo\n")]
    #[case(Keep::Ends, "one\ntwo\nthree\n", "two\nthree\n")]
    #[case(Keep::Ends, "1\ntwo\nthree\nfour\n", "1\n(2 lines omitted)\nfour\n")]
    #[case(Keep::Ends, "1\n2\n3\n4\n", "1\n2\n3\n4\n")]
    #[case(Keep::Last, "one\ntwo\nthree\n", "…\ntwo\nthree\n")]
    #[case(Keep::Last, "one\ntwo", "one\ntwo")]
    #[case(Keep::First, "a line that is long\nnext\n", "(a line of 19 bytes)\n")]
    #[case(Keep::Ends, "next\na line that is long\n", "(a line of 19 bytes)\n")]
    #[case(Keep::Ends, "a line that is long", "(a line of 19 bytes)\n")]
    #[case(Keep::Ends, "one\r\ntwo", "one\r\ntwo")]
    #[case(Keep::First, "one\n\n", "one\n\n")]
    #[case(Keep::Ends, "\n", "\n")]
    fn keeps_whole_lines(#[case] keep: Keep, #[case] output: &str, #[case] expected: &str) {
        let mut lines = Lines::new(Capture { keep, max_bytes: 10 });
        lines.push(output.as_bytes());
        lines.end();
        assert_eq!(lines.text(), expected);
    }

    #[test]
    fn hides_an_unfinished_line() {
        let mut lines = Lines::new(Capture { keep: Keep::Ends, max_bytes: 100 });
        lines.push(b"ready\ntoken: s3cr");
        assert_eq!(lines.text(), "ready\n(a line of 11 bytes, unfinished)");
        lines.push(b"3t\n");
        assert_eq!(lines.text(), "ready\ntoken: s3cr3t\n");
    }

    #[test]
    fn takes_complete_lines() {
        let mut lines = Lines::new(Capture { keep: Keep::Last, max_bytes: 10 });
        lines.push(b"one\ntwo\nthree\nfo");
        assert_eq!(lines.take(), "…\ntwo\nthree\n");
        assert_eq!(lines.take(), "");
        lines.push(b"ur\n");
        assert_eq!(lines.take(), "four\n");
    }

    proptest! {
        #[test]
        fn never_splits_a_secret(
            before in "[a-z\n]{0,60}", after in "[a-z\n]{0,60}", max_bytes in 1_usize..80, chunk in 1_usize..20,
            keep in prop::sample::select(vec![Keep::First, Keep::Last, Keep::Ends]),
        ) {
            const SECRET: &str = "0123456789";
            let mut lines = Lines::new(Capture { keep, max_bytes });
            for chunk in format!("{before}{SECRET}{after}").as_bytes().chunks(chunk) {
                lines.push(chunk);
                let masked = lines.text().replace(SECRET, "").replace("(a line of ", "");
                let numbers = masked.split('\n').filter(|line| !line.ends_with(" bytes)") && !line.ends_with(" unfinished)") && !line.ends_with(" omitted)"));
                prop_assert!(!numbers.into_iter().any(|line| line.contains(|digit: char| digit.is_ascii_digit())));
            }
        }
    }
}
