//! The short hashes that files carry: the first twelve hex digits of SHA-256.

use sha2::{Digest, Sha256};

/// Returns the first twelve hex digits of the bytes' SHA-256.
pub fn short_hash(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_start_of_sha256() {
        assert_eq!(short_hash(b""), "e3b0c44298fc");
    }
}
