//! Format of stdin, from the flag or its first bytes.

use std::io::{self, Read};

use karat_workflows::judge_stream::{Content, PeekedReader, detect_content};

use crate::args::InputFormat;
use crate::failure::Failure;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    JsonLines,
    Arrow,
}

/// Returns the format of the input, detected from its first bytes unless the flag sets it.
pub(super) fn resolve_format<R: Read>(input: R, flag: InputFormat) -> Result<(Format, PeekedReader<R>), Failure> {
    let unread = |input| io::Cursor::new(Vec::new()).chain(input);
    match flag {
        InputFormat::Jsonl => Ok((Format::JsonLines, unread(input))),
        InputFormat::Arrow => Ok((Format::Arrow, unread(input))),
        InputFormat::Auto => {
            let detected = detect_content(input);
            let (content, whole) = detected.map_err(|error| Failure::errored(format!("cannot read stdin: {error}")))?;
            match content {
                Content::JsonLines => Ok((Format::JsonLines, whole)),
                Content::Arrow => Ok((Format::Arrow, whole)),
                Content::Unsupported(known) => {
                    let message = format!("stdin is {}; expected JSON Lines or an Arrow stream", known.description);
                    Err(Failure::invalid(message).hint(match known.converter {
                        Some(program) => format!("{program} FILE | karat eval batch …"),
                        None => "send Arrow or JSON Lines instead".to_owned(),
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
    fn flag_overrides_detection() {
        let format = |flag| resolve_format(&b"PAR1"[..], flag).map(|(format, _)| format).ok();
        assert_eq!(format(InputFormat::Jsonl), Some(Format::JsonLines));
        assert_eq!(format(InputFormat::Arrow), Some(Format::Arrow));
        assert_eq!(format(InputFormat::Auto), None);
    }
}
