//! Unpacks what is compressed.

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;

/// How often longer the content may be than the file. Deflate cannot do more than 1,032; traces, which repeat their
/// instructions in every message, do up to a hundred or so.
const MOST_TIMES: u64 = 400;

/// As long as no more than this came out, nothing is counted: a small file is no danger, however well it is packed.
const FREE: u64 = 64 << 20;

/// The first bytes of a gzip file.
const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Returns the content of what may be compressed by gzip.
pub(crate) fn unpacked(mut input: Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>> {
    let mut start = Vec::with_capacity(MAGIC.len());
    input.by_ref().take(MAGIC.len() as u64).read_to_end(&mut start)?;
    let packed = start == MAGIC;
    let whole = io::Cursor::new(start).chain(input);
    if !packed {
        return Ok(Box::new(whole));
    }
    Ok(Box::new(Unpacking { content: MultiGzDecoder::new(Counted { input: whole, bytes: 0 }), bytes: 0 }))
}

struct Counted<R> {
    input: R,
    bytes: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(into)?;
        self.bytes += count as u64;
        Ok(count)
    }
}

/// Gives the content out, until there is more than can be honest.
struct Unpacking<R> {
    content: MultiGzDecoder<Counted<R>>,
    bytes: u64,
}

impl<R: Read> Read for Unpacking<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.content.read(into)?;
        self.bytes += count as u64;
        if self.bytes > FREE && self.bytes / MOST_TIMES > self.content.get_ref().bytes {
            let why = format!("unpacks to more than {MOST_TIMES} times its size");
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
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

    fn packed(content: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(content).expect("memory");
        encoder.finish().expect("memory")
    }

    fn read(bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        unpacked(Box::new(io::Cursor::new(bytes)))?.read_to_end(&mut content)?;
        Ok(content)
    }

    #[test]
    fn what_is_packed_is_unpacked_and_the_rest_stays() {
        assert_eq!(read(b"{}".to_vec()).expect("plain"), b"{}");
        assert_eq!(read(b"{".to_vec()).expect("one byte"), b"{");
        assert_eq!(read(Vec::new()).expect("nothing"), b"");
        assert_eq!(read(packed(b"{\"a\":1}")).expect("packed"), b"{\"a\":1}");
        let two = [packed(b"{}\n"), packed(b"[]\n")].concat();
        assert_eq!(read(two).expect("two members"), b"{}\n[]\n");
    }

    #[test]
    fn a_bomb_is_not_unpacked() {
        let bomb = packed(&vec![b' '; 80 << 20]);
        let error = read(bomb).expect_err("a bomb");
        assert_eq!(error.to_string(), "unpacks to more than 400 times its size");
    }

    #[test]
    fn a_cut_off_file_is_an_error() {
        let mut bytes = packed(&b"{\"trace_id\":\"a\",\"steps\":[]}\n".repeat(100));
        bytes.truncate(bytes.len() - 12);
        assert_eq!(read(bytes).expect_err("cut off").kind(), io::ErrorKind::UnexpectedEof);
    }
}
