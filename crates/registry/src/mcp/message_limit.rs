//! Limits on the messages of a server. The protocol library ignores messages that it cannot read, and the client
//! would wait for an answer that has arrived.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

/// Maximum size of a message with its line break. The protocol library has the same limit for stdio.
pub(super) const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// Maximum nesting of a message. The JSON parser has the same limit.
const MAX_MESSAGE_DEPTH: usize = 127;

/// A limit that a message exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MessageLimit {
    #[error("larger than {} MB", MAX_MESSAGE_BYTES >> 20)]
    Size,
    #[error("nested more than {} levels deep", MAX_MESSAGE_DEPTH)]
    Depth,
}

/// The output of a server, which ends at the first message that exceeds a limit.
pub(super) struct LimitedMessages<R> {
    output: R,
    line: Line,
    exceeded: Arc<OnceLock<MessageLimit>>,
}

impl<R> LimitedMessages<R> {
    pub(super) fn new(output: R, exceeded: Arc<OnceLock<MessageLimit>>) -> Self {
        Self { output, line: Line::default(), exceeded }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for LimitedMessages<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if let Some(limit) = this.exceeded.get() {
            return Poll::Ready(Err(io::Error::other(*limit)));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.output).poll_read(context, buffer))?;
        if let Err(limit) = this.line.push(&buffer.filled()[before..]) {
            this.exceeded.set(limit).ok();
            buffer.set_filled(before);
            return Poll::Ready(Err(io::Error::other(limit)));
        }
        Poll::Ready(Ok(()))
    }
}

/// The current line: a message, or other output that is ignored.
#[derive(Debug, Default)]
struct Line {
    bytes: usize,
    depth: usize,
    state: State,
}

#[derive(Debug, Clone, Copy, Default)]
enum State {
    #[default]
    Start,
    Message,
    String,
    Escape,
    Other,
}

impl Line {
    fn push(&mut self, chunk: &[u8]) -> Result<(), MessageLimit> {
        for &byte in chunk {
            if byte == b'\n' {
                *self = Self::default();
                continue;
            }
            self.bytes += 1;
            self.depth = match (self.state, byte) {
                (State::Start | State::Message, b'{') | (State::Message, b'[') => self.depth + 1,
                (State::Message, b'}' | b']') => self.depth.saturating_sub(1),
                _ => self.depth,
            };
            self.state = match (self.state, byte) {
                (State::Start, byte) if byte.is_ascii_whitespace() => State::Start,
                (State::Message, b'"') => State::String,
                (State::Start, b'{') | (State::Message, _) | (State::String, b'"') => State::Message,
                (State::String, b'\\') => State::Escape,
                (State::String | State::Escape, _) => State::String,
                (State::Start | State::Other, _) => State::Other,
            };
            if self.bytes >= MAX_MESSAGE_BYTES {
                return Err(MessageLimit::Size);
            }
            if matches!(self.state, State::Message) && self.depth > MAX_MESSAGE_DEPTH {
                return Err(MessageLimit::Depth);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn nested(depth: usize) -> String {
        format!("{{\"a\":{}{}}}", "[".repeat(depth - 1), "]".repeat(depth - 1))
    }

    #[rstest]
    #[case(nested(127), Ok(()))]
    #[case(nested(128), Err(MessageLimit::Depth))]
    #[case(format!("{0}\n{0}\n", nested(127)), Ok(()))]
    #[case(format!("{{\"a\": \"\\\"{}\"}}", "[".repeat(200)), Ok(()))]
    #[case(format!("log {}", "[".repeat(200)), Ok(()))]
    #[case("x".repeat(MAX_MESSAGE_BYTES - 1), Ok(()))]
    #[case("x".repeat(MAX_MESSAGE_BYTES), Err(MessageLimit::Size))]
    fn limits_each_line(#[case] output: String, #[case] expected: Result<(), MessageLimit>) {
        let mut line = Line::default();
        assert_eq!(output.as_bytes().chunks(1000).try_for_each(|chunk| line.push(chunk)), expected);
    }
}
