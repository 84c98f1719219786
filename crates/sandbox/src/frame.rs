//! Frames that Python returns: a kind, three lengths, a text, stdout and stderr.

/// A decoded frame.
pub(crate) struct Frame {
    pub(crate) kind: FrameKind,
    pub(crate) text: String,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameKind {
    Passed,
    Failed,
    Exception,
    Memory,
    Return,
    /// With flexible returns; the text starts with the score.
    PassedWithScore,
    FailedWithScore,
    NotApplicable,
    FlexibleReturn,
    Syntax,
    Ready,
}

const TEXT_COUNT: usize = 3;

/// Maximum length of each text. The guest truncates at 64 KB and adds a marker, unless it was tampered with.
const MAX_TEXT_BYTES: usize = 64 * 1024 + 64;

impl Frame {
    /// Splits the text into the score, if the frame has one, and the reason.
    pub(crate) fn score(&self) -> (Option<f64>, &str) {
        if !matches!(self.kind, FrameKind::PassedWithScore | FrameKind::FailedWithScore) {
            return (None, &self.text);
        }
        let (score, reason) = self.text.split_once('\n').unwrap_or((&self.text, ""));
        (score.parse().ok().filter(|score: &f64| score.is_finite()), reason)
    }

    /// Decodes a frame. It is untrusted input.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let (tag, mut rest) = bytes.split_first()?;
        let kind = match tag {
            b'P' => FrameKind::Passed,
            b'F' => FrameKind::Failed,
            b'E' => FrameKind::Exception,
            b'M' => FrameKind::Memory,
            b'R' => FrameKind::Return,
            b'p' => FrameKind::PassedWithScore,
            b'f' => FrameKind::FailedWithScore,
            b'N' => FrameKind::NotApplicable,
            b'r' => FrameKind::FlexibleReturn,
            b'S' => FrameKind::Syntax,
            b'Y' => FrameKind::Ready,
            _ => return None,
        };
        let mut lengths = [0_usize; TEXT_COUNT];
        for length in &mut lengths {
            let (number, after) = rest.split_first_chunk::<4>()?;
            *length = usize::try_from(u32::from_le_bytes(*number)).ok()?;
            rest = after;
        }
        if lengths.iter().any(|length| *length > MAX_TEXT_BYTES) {
            return None;
        }
        let mut texts = lengths.into_iter().map(|length| {
            let (text, after) = rest.split_at_checked(length)?;
            rest = after;
            // Lossy, since truncation may split a character.
            Some(String::from_utf8_lossy(text).into_owned())
        });
        let frame = Self { kind, text: texts.next()??, stdout: texts.next()??, stderr: texts.next()?? };
        drop(texts);
        rest.is_empty().then_some(frame)
    }
}
