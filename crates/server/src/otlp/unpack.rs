//! The unpacking of a request's body.

use std::io::{ErrorKind, Read};

use flate2::read::{MultiGzDecoder, ZlibDecoder};

use super::encoding::Packing;
use super::room::{NoRoom, Place};

/// How much is unpacked before room is asked for again.
const STEP: usize = 64 << 10;

/// Why a body could not be unpacked.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum UnpackProblem {
    TooLong,
    NoRoom,
    /// A lower-case fragment.
    Broken(String),
}

impl From<NoRoom> for UnpackProblem {
    fn from(_: NoRoom) -> Self {
        Self::NoRoom
    }
}

/// Unpacks as far as the limit; a few bytes can become many.
pub(super) fn unpack(
    packed: &[u8],
    packing: Packing,
    limit: usize,
    place: &mut Place,
) -> Result<Vec<u8>, UnpackProblem> {
    match packing {
        // Nobody asks to unpack what is plain, but it is no fault either.
        Packing::Plain => read(packed, limit, place),
        Packing::Gzip => read(MultiGzDecoder::new(packed), limit, place),
        Packing::Deflate => read(ZlibDecoder::new(packed), limit, place),
    }
}

fn read(mut unpacked: impl Read, limit: usize, place: &mut Place) -> Result<Vec<u8>, UnpackProblem> {
    let mut bytes = Vec::new();
    loop {
        place.grow(STEP)?;
        let before = bytes.len();
        let step = unpacked.by_ref().take(STEP as u64).read_to_end(&mut bytes).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => UnpackProblem::Broken("it ends too early".to_owned()),
            _ => UnpackProblem::Broken(error.to_string()),
        });
        step?;
        if bytes.len() > limit {
            return Err(UnpackProblem::TooLong);
        }
        if bytes.len() == before {
            return Ok(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};

    use super::*;
    use crate::otlp::room::Room;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn unpacked(packed: &[u8], packing: Packing, limit: usize) -> Result<Vec<u8>, UnpackProblem> {
        unpack(packed, packing, limit, &mut Room::new(8 << 20).place())
    }

    #[test]
    fn what_was_packed_is_unpacked() {
        let long = vec![7; 3 * STEP + 5];
        assert_eq!(unpacked(&gzip(&long), Packing::Gzip, long.len()), Ok(long.clone()));
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
        zlib.write_all(&long).unwrap();
        assert_eq!(unpacked(&zlib.finish().unwrap(), Packing::Deflate, long.len()), Ok(long.clone()));
        let twice = [gzip(b"one, "), gzip(b"two")].concat();
        assert_eq!(unpacked(&twice, Packing::Gzip, 100), Ok(b"one, two".to_vec()));
    }

    #[test]
    fn a_bomb_is_not_unpacked() {
        let bomb = gzip(&vec![0; 4 << 20]);
        assert!(bomb.len() < 5000, "{}", bomb.len());
        assert_eq!(unpacked(&bomb, Packing::Gzip, 1 << 20), Err(UnpackProblem::TooLong));
        let mut small = Room::new(1 << 20).place();
        assert_eq!(unpack(&bomb, Packing::Gzip, 4 << 20, &mut small), Err(UnpackProblem::NoRoom));
    }

    #[test]
    fn what_is_broken_is_said_to_be() {
        let whole = gzip(b"hello, hello");
        for broken in [&whole[..whole.len() - 3], &whole[..5], b"plain".as_slice(), &[whole.as_slice(), b"x"].concat()]
        {
            let problem = unpacked(broken, Packing::Gzip, 100);
            assert!(matches!(problem, Err(UnpackProblem::Broken(_))), "{problem:?}");
        }
    }
}
