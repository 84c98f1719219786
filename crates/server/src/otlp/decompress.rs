//! Decompresses request bodies.

use std::io::{ErrorKind, Read};

use flate2::read::{MultiGzDecoder, ZlibDecoder};

use super::encoding::Compression;
use super::memory::{MemoryExceeded, MemoryReservation};

/// Bytes to decompress per memory reservation.
const CHUNK_BYTES: usize = 64 << 10;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum DecompressError {
    TooLarge,
    MemoryExceeded,
    /// With a lower-case message.
    Invalid(String),
}

impl From<MemoryExceeded> for DecompressError {
    fn from(_: MemoryExceeded) -> Self {
        Self::MemoryExceeded
    }
}

/// Decompresses a body up to the limit, which protects against decompression bombs.
pub(super) fn decompress(
    compressed: &[u8],
    compression: Compression,
    limit: usize,
    memory: &mut MemoryReservation,
) -> Result<Vec<u8>, DecompressError> {
    match compression {
        Compression::None => read(compressed, limit, memory),
        Compression::Gzip => read(MultiGzDecoder::new(compressed), limit, memory),
        Compression::Deflate => read(ZlibDecoder::new(compressed), limit, memory),
    }
}

fn read(mut reader: impl Read, limit: usize, memory: &mut MemoryReservation) -> Result<Vec<u8>, DecompressError> {
    let mut bytes = Vec::new();
    loop {
        memory.grow(CHUNK_BYTES)?;
        let previous_len = bytes.len();
        let result =
            reader.by_ref().take(CHUNK_BYTES as u64).read_to_end(&mut bytes).map_err(|error| match error.kind() {
                ErrorKind::UnexpectedEof => DecompressError::Invalid("unexpected end of data".to_owned()),
                _ => DecompressError::Invalid(error.to_string()),
            });
        result?;
        if bytes.len() > limit {
            return Err(DecompressError::TooLarge);
        }
        if bytes.len() == previous_len {
            return Ok(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression as Level;
    use flate2::write::{GzEncoder, ZlibEncoder};

    use super::*;
    use crate::otlp::memory::MemoryBudget;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Level::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn decompress_with_limit(
        compressed: &[u8],
        compression: Compression,
        limit: usize,
    ) -> Result<Vec<u8>, DecompressError> {
        decompress(compressed, compression, limit, &mut MemoryBudget::new(8 << 20).reserve())
    }

    #[test]
    fn decompresses_gzip_and_deflate() {
        let long = vec![7; 3 * CHUNK_BYTES + 5];
        assert_eq!(decompress_with_limit(&gzip(&long), Compression::Gzip, long.len()), Ok(long.clone()));
        let mut zlib = ZlibEncoder::new(Vec::new(), Level::fast());
        zlib.write_all(&long).unwrap();
        assert_eq!(decompress_with_limit(&zlib.finish().unwrap(), Compression::Deflate, long.len()), Ok(long.clone()));
        let twice = [gzip(b"one, "), gzip(b"two")].concat();
        assert_eq!(decompress_with_limit(&twice, Compression::Gzip, 100), Ok(b"one, two".to_vec()));
    }

    #[test]
    fn rejects_decompression_bombs() {
        let bomb = gzip(&vec![0; 4 << 20]);
        assert!(bomb.len() < 5000, "{}", bomb.len());
        assert_eq!(decompress_with_limit(&bomb, Compression::Gzip, 1 << 20), Err(DecompressError::TooLarge));
        let mut small = MemoryBudget::new(1 << 20).reserve();
        assert_eq!(decompress(&bomb, Compression::Gzip, 4 << 20, &mut small), Err(DecompressError::MemoryExceeded));
    }

    #[test]
    fn rejects_invalid_data() {
        let whole = gzip(b"hello, hello");
        for invalid in [&whole[..whole.len() - 3], &whole[..5], b"plain".as_slice(), &[whole.as_slice(), b"x"].concat()]
        {
            let result = decompress_with_limit(invalid, Compression::Gzip, 100);
            assert!(matches!(result, Err(DecompressError::Invalid(_))), "{result:?}");
        }
    }
}
