//! The short hashes that files carry: the first twelve hex digits of SHA-256.

use sha2::{Digest, Sha256};

/// Returns the first twelve hex digits of the bytes' SHA-256.
pub fn short_hash(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let start = digest.iter().take(6).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    format!("{start:012x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_start_of_sha256() {
        assert_eq!(short_hash(b""), "e3b0c44298fc");
    }
}
