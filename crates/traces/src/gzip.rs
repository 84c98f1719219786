//! Decompresses gzip input.

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;

/// The maximum compression ratio. Deflate reaches at most 1,032; traces, which repeat their instructions in every
/// message, reach about a hundred.
const MAX_RATIO: u64 = 400;

/// The ratio is not checked below this size: small content is harmless.
const MIN_CHECKED_BYTES: u64 = 64 << 20;

/// The first bytes of a gzip file.
const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Returns the decompressed content, or the input itself if it is not compressed.
pub(crate) fn decompress(mut input: Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>> {
    let mut start = Vec::with_capacity(MAGIC.len());
    input.by_ref().take(MAGIC.len() as u64).read_to_end(&mut start)?;
    let is_compressed = start == MAGIC;
    let whole = io::Cursor::new(start).chain(input);
    if !is_compressed {
        return Ok(Box::new(whole));
    }
    Ok(Box::new(BoundedDecoder { content: MultiGzDecoder::new(CountingReader { input: whole, bytes: 0 }), bytes: 0 }))
}

struct CountingReader<R> {
    input: R,
    bytes: u64,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(into)?;
        self.bytes += count as u64;
        Ok(count)
    }
}

/// Fails when the content exceeds [`MAX_RATIO`].
struct BoundedDecoder<R> {
    content: MultiGzDecoder<CountingReader<R>>,
    bytes: u64,
}

impl<R: Read> Read for BoundedDecoder<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.content.read(into)?;
        self.bytes += count as u64;
        if self.bytes > MIN_CHECKED_BYTES && self.bytes / MAX_RATIO > self.content.get_ref().bytes {
            let message = format!("decompresses to more than {MAX_RATIO} times its size");
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn compress(content: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(content).expect("memory");
        encoder.finish().expect("memory")
    }

    fn read(bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        decompress(Box::new(io::Cursor::new(bytes)))?.read_to_end(&mut content)?;
        Ok(content)
    }

    #[test]
    fn decompresses_gzip_and_passes_other_input_through() {
        assert_eq!(read(b"{}".to_vec()).expect("plain"), b"{}");
        assert_eq!(read(b"{".to_vec()).expect("one byte"), b"{");
        assert_eq!(read(Vec::new()).expect("nothing"), b"");
        assert_eq!(read(compress(b"{\"a\":1}")).expect("compressed"), b"{\"a\":1}");
        let two = [compress(b"{}\n"), compress(b"[]\n")].concat();
        assert_eq!(read(two).expect("two members"), b"{}\n[]\n");
    }

    #[test]
    fn rejects_a_decompression_bomb() {
        let bomb = compress(&vec![b' '; 80 << 20]);
        let error = read(bomb).expect_err("a bomb");
        assert_eq!(error.to_string(), "decompresses to more than 400 times its size");
    }

    #[test]
    fn a_truncated_file_is_an_error() {
        let mut bytes = compress(&b"{\"trace_id\":\"a\",\"steps\":[]}\n".repeat(100));
        bytes.truncate(bytes.len() - 12);
        assert_eq!(read(bytes).expect_err("truncated").kind(), io::ErrorKind::UnexpectedEof);
    }
}
