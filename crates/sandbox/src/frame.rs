//! What Python answers with: a kind, three lengths, a text and what was printed.

/// An answer that was taken apart.
pub(crate) struct Frame {
    pub(crate) answer: Answer,
    pub(crate) text: String,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// What an answer means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Passed,
    Failed,
    Exception,
    Memory,
    Return,
    Syntax,
    Ready,
}

const LENGTHS: usize = 3;

/// How long each text may be: the other side keeps to 64 KB and a mark where it cut, unless it was tampered with.
const MOST_TEXT: usize = 64 * 1024 + 64;

impl Frame {
    /// Takes an answer apart. It comes from the side that is not trusted, so it may be anything.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let (kind, mut rest) = bytes.split_first()?;
        let answer = match kind {
            b'P' => Answer::Passed,
            b'F' => Answer::Failed,
            b'E' => Answer::Exception,
            b'M' => Answer::Memory,
            b'R' => Answer::Return,
            b'S' => Answer::Syntax,
            b'Y' => Answer::Ready,
            _ => return None,
        };
        let mut lengths = [0_usize; LENGTHS];
        for length in &mut lengths {
            let (number, after) = rest.split_first_chunk::<4>()?;
            *length = usize::try_from(u32::from_le_bytes(*number)).ok()?;
            rest = after;
        }
        if lengths.iter().any(|length| *length > MOST_TEXT) {
            return None;
        }
        let mut texts = lengths.into_iter().map(|length| {
            let (text, after) = rest.split_at_checked(length)?;
            rest = after;
            // Whatever is cut in the middle of a character.
            Some(String::from_utf8_lossy(text).into_owned())
        });
        let frame = Self { answer, text: texts.next()??, stdout: texts.next()??, stderr: texts.next()?? };
        drop(texts);
        rest.is_empty().then_some(frame)
    }
}
