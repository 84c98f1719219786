//! Truncated SHA-256 hashes.

use sha2::{Digest, Sha256};

/// Returns the first twelve hex digits of the bytes' SHA-256.
pub fn short_hash(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let start = digest.iter().take(6).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    format!("{start:012x}")
}

/// Returns the first 32 hex digits of the bytes' SHA-256, to avoid collisions among millions of values.
pub fn long_hash(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let start = digest.iter().take(16).fold(0_u128, |number, byte| number << 8 | u128::from(*byte));
    format!("{start:032x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_a_prefix_of_sha256() {
        assert_eq!(short_hash(b""), "e3b0c44298fc");
        assert_eq!(long_hash(b""), "e3b0c44298fc1c149afbf4c8996fb924");
    }
}
