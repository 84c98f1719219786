//! Compression of payloads.

use karat_core::port::StoreError;

const COMPRESSION_LEVEL: i32 = 3;

/// Smaller payloads are not compressed: compressing takes longer than writing the bytes it would save.
const MAX_UNCOMPRESSED_BYTES: usize = 1024;

/// Compresses payloads; reusable.
pub(crate) struct PayloadCompressor(zstd::bulk::Compressor<'static>);

impl PayloadCompressor {
    pub(crate) fn new() -> Result<Self, StoreError> {
        zstd::bulk::Compressor::new(COMPRESSION_LEVEL).map(Self).map_err(|error| compression_error(&error))
    }

    pub(crate) fn compress(&mut self, bytes: &[u8]) -> Result<Vec<u8>, StoreError> {
        if bytes.len() <= MAX_UNCOMPRESSED_BYTES {
            return Ok(uncompressed_frame(bytes));
        }
        self.0.compress(bytes).map_err(|error| compression_error(&error))
    }
}

/// Returns a zstd frame with one raw block (RFC 8878, section 3.1.1), which is read like a compressed one.
fn uncompressed_frame(bytes: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(bytes.len() + 10);
    frame.extend([0x28, 0xb5, 0x2f, 0xfd]);
    // Single segment; the content size takes one byte, or two from 256 on.
    let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    if let Ok(length) = u8::try_from(length) {
        frame.extend([0x20, length]);
    } else {
        frame.push(0x60);
        frame.extend((length - 256).to_le_bytes());
    }
    // Last block, raw.
    frame.extend(&((u32::from(length) << 3) | 1).to_le_bytes()[..3]);
    frame.extend(bytes);
    frame
}

pub(crate) fn decompress(trace_id: &str, bytes: &[u8]) -> Result<Vec<u8>, StoreError> {
    zstd::stream::decode_all(bytes).map_err(|error| unreadable(trace_id, &error))
}

pub(crate) fn decompress_text(trace_id: &str, bytes: &[u8]) -> Result<String, StoreError> {
    String::from_utf8(decompress(trace_id, bytes)?).map_err(|error| unreadable(trace_id, &error))
}

fn unreadable(trace_id: &str, error: &dyn std::error::Error) -> StoreError {
    StoreError { message: format!("cannot read the payload of the trace '{trace_id}': {error}"), hint: None }
}

fn compression_error(error: &std::io::Error) -> StoreError {
    StoreError { message: format!("cannot compress a trace's payload: {error}"), hint: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decompresses_payloads_of_any_length() {
        let mut compressor = PayloadCompressor::new().expect("compressor");
        for length in [0, 1, 255, 256, 257, 1023, 1024, 1025, 100_000] {
            let bytes = "abcdefg".repeat(length / 7 + 1).into_bytes()[..length].to_vec();
            let frame = compressor.compress(&bytes).expect("compressed");
            assert_eq!(decompress("t", &frame).expect("read"), bytes, "{length}");
        }
    }
}
