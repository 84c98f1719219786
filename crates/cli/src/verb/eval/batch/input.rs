//! What stdin holds: as somebody says, or by its first bytes.

use std::io::{self, Read};

use karat_workflows::judge_stream::{Content, Whole, recognise};

use crate::args::InputFormat;
use crate::failure::Failure;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    JsonLines,
    Arrow,
}

/// Finds out what the input holds, unless somebody says it.
pub(super) fn find_format<R: Read>(input: R, asked: InputFormat) -> Result<(Format, Whole<R>), Failure> {
    let unread = |input| io::Cursor::new(Vec::new()).chain(input);
    match asked {
        InputFormat::Jsonl => Ok((Format::JsonLines, unread(input))),
        InputFormat::Arrow => Ok((Format::Arrow, unread(input))),
        InputFormat::Auto => {
            let recognised = recognise(input);
            let (content, whole) =
                recognised.map_err(|error| Failure::errored(format!("cannot read stdin: {error}")))?;
            match content {
                Content::JsonLines => Ok((Format::JsonLines, whole)),
                Content::Arrow => Ok((Format::Arrow, whole)),
                Content::Other(known) => {
                    let message = format!("stdin is {}, not JSON lines nor an Arrow stream", known.what);
                    Err(Failure::invalid(message).hint(match known.program {
                        Some(program) => format!("{program} FILE | karat eval batch …"),
                        None => "let the engine that wrote it send Arrow or JSON lines".to_owned(),
                    }))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_not_looked_for() {
        let format = |asked| find_format(&b"PAR1"[..], asked).map(|(format, _)| format).ok();
        assert_eq!(format(InputFormat::Jsonl), Some(Format::JsonLines));
        assert_eq!(format(InputFormat::Arrow), Some(Format::Arrow));
        assert_eq!(format(InputFormat::Auto), None);
    }
}
