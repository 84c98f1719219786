//! Reads the entries of a zip file in order, without seeking.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::DeflateDecoder;
use ruzstd::decoding::StreamingDecoder;

use crate::values::MAX_VALUE_BYTES;

/// The first bytes of a zip file with entries.
pub(crate) const MAGIC: &[u8] = b"PK\x03\x04";

/// The length of an entry's header after its magic bytes.
const HEADER_BYTES: usize = 26;

/// Flag of an entry whose sizes follow its content.
const SIZES_FOLLOW: u16 = 1 << 3;
const ENCRYPTED: u16 = 1;

/// The size in a header if the actual one is in an extra field.
const SIZE_IN_EXTRA: u32 = u32::MAX;

const STORED: u16 = 0;
const DEFLATED: u16 = 8;
const ZSTANDARD: u16 = 93;

pub(crate) struct ZipReader {
    input: BufReader<Box<dyn Read + Send>>,
}

/// A file in a zip file.
pub(crate) struct ZipEntry {
    pub(crate) name: String,
    /// The content, or why it cannot be read.
    pub(crate) content: Result<Vec<u8>, String>,
}

struct Header {
    flags: u16,
    method: u16,
    compressed_bytes: u64,
    name: String,
}

impl ZipReader {
    pub(crate) fn new(input: Box<dyn Read + Send>) -> Self {
        Self { input: BufReader::with_capacity(256 << 10, input) }
    }

    /// Reads the next entry whose name is wanted, or `None` after the last one.
    pub(crate) fn next(&mut self, is_wanted: impl Fn(&str) -> bool) -> io::Result<Option<ZipEntry>> {
        self.find(is_wanted).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => io::Error::new(error.kind(), "the zip file is truncated"),
            _ => error,
        })
    }

    fn find(&mut self, is_wanted: impl Fn(&str) -> bool) -> io::Result<Option<ZipEntry>> {
        while let Some(header) = self.header()? {
            let content = self.content(&header)?;
            if is_wanted(&header.name) {
                return Ok(Some(ZipEntry { name: header.name, content }));
            }
        }
        Ok(None)
    }

    fn header(&mut self) -> io::Result<Option<Header>> {
        let mut magic = [0; 4];
        if self.input.fill_buf()?.is_empty() {
            return Ok(None);
        }
        self.input.read_exact(&mut magic)?;
        if magic != *MAGIC {
            // The central directory, which repeats the headers.
            return Ok(None);
        }
        let mut fields = [0; HEADER_BYTES];
        self.input.read_exact(&mut fields)?;
        let short = |at: usize| u16::from_le_bytes([fields[at], fields[at + 1]]);
        let compressed = u32::from_le_bytes([fields[14], fields[15], fields[16], fields[17]]);
        let mut name = vec![0; usize::from(short(22))];
        self.input.read_exact(&mut name)?;
        let mut extra = vec![0; usize::from(short(24))];
        self.input.read_exact(&mut extra)?;
        let compressed_bytes =
            if compressed == SIZE_IN_EXTRA { compressed_size(&extra).unwrap_or(0) } else { u64::from(compressed) };
        let name = String::from_utf8_lossy(&name).into_owned();
        Ok(Some(Header { flags: short(2), method: short(4), compressed_bytes, name }))
    }

    fn content(&mut self, header: &Header) -> io::Result<Result<Vec<u8>, String>> {
        let limit = MAX_VALUE_BYTES as u64 + 1;
        let mut content = Vec::new();
        let sizes_follow = header.flags & SIZES_FOLLOW != 0;
        let is_readable = header.flags & ENCRYPTED == 0 && matches!(header.method, STORED | DEFLATED | ZSTANDARD);
        if sizes_follow && (header.method != DEFLATED || !is_readable) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("cannot find the end of {}", header.name)));
        }
        if sizes_follow {
            let content_bytes = {
                let mut decoder = DeflateDecoder::new(&mut self.input);
                decoder.by_ref().take(limit).read_to_end(&mut content)?;
                io::copy(&mut decoder, &mut io::sink())?;
                decoder.total_out()
            };
            self.skip_sizes(content_bytes)?;
        } else {
            let mut compressed = self.input.by_ref().take(header.compressed_bytes);
            if is_readable {
                match header.method {
                    STORED => compressed.by_ref().take(limit).read_to_end(&mut content)?,
                    ZSTANDARD => {
                        let decoder = StreamingDecoder::new(&mut compressed).map_err(io::Error::other)?;
                        decoder.take(limit).read_to_end(&mut content)?
                    }
                    _ => DeflateDecoder::new(&mut compressed).take(limit).read_to_end(&mut content)?,
                };
            }
            io::copy(&mut compressed, &mut io::sink())?;
            if compressed.limit() > 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(match header.method {
            _ if header.flags & ENCRYPTED != 0 => Err("encrypted".to_owned()),
            method if !is_readable => Err(format!("unsupported compression method {method}")),
            _ if content.len() > MAX_VALUE_BYTES => Err(format!("longer than {} MB", MAX_VALUE_BYTES >> 20)),
            _ => Ok(content),
        })
    }

    /// Skips the checksum and the sizes after the content of an entry. Sizes have 4 or 8 bytes, and magic bytes may
    /// precede them.
    fn skip_sizes(&mut self, content_bytes: u64) -> io::Result<()> {
        let mut word = || {
            let mut word = [0; 4];
            self.input.read_exact(&mut word).map(|()| word)
        };
        if word()? == *b"PK\x07\x08" {
            word()?;
        }
        word()?;
        let is_short = word()? == content_bytes.to_le_bytes()[..4];
        if !is_short {
            word()?;
            word()?;
        }
        Ok(())
    }
}

/// Returns the compressed size in the extra field of a large entry.
fn compressed_size(mut extra: &[u8]) -> Option<u64> {
    const LARGE_SIZES: u16 = 1;
    loop {
        let (header, rest) = extra.split_first_chunk::<4>()?;
        let (kind, length) = (u16::from_le_bytes([header[0], header[1]]), u16::from_le_bytes([header[2], header[3]]));
        let (field, rest) = rest.split_at_checked(usize::from(length))?;
        if kind == LARGE_SIZES {
            // The original size, then the compressed one.
            return Some(u64::from_le_bytes(*field.get(8..)?.first_chunk()?));
        }
        extra = rest;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::DeflateEncoder;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    fn entry(name: &str, content: &[u8], method: u16, sizes_follow: bool) -> Vec<u8> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(content).expect("memory");
        let packed = match method {
            DEFLATED => encoder.finish().expect("memory"),
            ZSTANDARD => compress_to_vec(content, CompressionLevel::Fastest),
            _ => content.to_vec(),
        };
        let size = u32::try_from(packed.len()).expect("small");
        let header_size = if sizes_follow { 0 } else { size };
        let mut bytes = MAGIC.to_vec();
        bytes.extend(20_u16.to_le_bytes());
        bytes.extend(if sizes_follow { SIZES_FOLLOW } else { 0 }.to_le_bytes());
        bytes.extend(method.to_le_bytes());
        bytes.extend([0; 8]);
        bytes.extend(header_size.to_le_bytes());
        bytes.extend(0_u32.to_le_bytes());
        bytes.extend(u16::try_from(name.len()).expect("short").to_le_bytes());
        bytes.extend(0_u16.to_le_bytes());
        bytes.extend(name.as_bytes());
        bytes.extend(packed);
        if sizes_follow {
            bytes.extend(b"PK\x07\x08");
            bytes.extend([0; 4]);
            bytes.extend(size.to_le_bytes());
            bytes.extend(u32::try_from(content.len()).expect("short").to_le_bytes());
        }
        bytes
    }

    fn read(bytes: Vec<u8>) -> io::Result<Vec<(String, Result<String, String>)>> {
        let mut zip = ZipReader::new(Box::new(io::Cursor::new(bytes)));
        let mut entries = Vec::new();
        while let Some(entry) = zip.next(|name| name != "skipped")? {
            entries.push((entry.name, entry.content.map(|content| String::from_utf8_lossy(&content).into_owned())));
        }
        Ok(entries)
    }

    #[test]
    fn reads_entries_in_order() {
        let bytes = [
            entry("a", b"one", DEFLATED, false),
            entry("skipped", b"none", STORED, false),
            entry("b", b"two", DEFLATED, true),
            entry("c", b"three", STORED, false),
            entry("zstd", b"nine", ZSTANDARD, false),
            entry("d", b"four", 12, false),
            b"PK\x01\x02 and the directory".to_vec(),
        ];
        let read = read(bytes.concat()).expect("readable");
        let ok = |name: &str, content: &str| (name.to_owned(), Ok(content.to_owned()));
        let refused = ("d".to_owned(), Err("unsupported compression method 12".to_owned()));
        assert_eq!(read, [ok("a", "one"), ok("b", "two"), ok("c", "three"), ok("zstd", "nine"), refused]);
    }

    #[test]
    fn a_truncated_file_is_an_error() {
        let bytes = entry("a", &b"a long text that does not fit".repeat(9), STORED, false);
        for length in [MAGIC.len(), 20, bytes.len() - 9] {
            let error = read(bytes[..length].to_vec()).expect_err("truncated");
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
            assert_eq!(error.to_string(), "the zip file is truncated");
        }
    }
}
