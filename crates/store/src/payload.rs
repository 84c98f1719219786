//! Compressed payloads.

use karat_core::port::StoreError;

const LEVEL: i32 = 3;

/// Compresses payloads; one of these serves many.
pub(crate) struct Packer(zstd::bulk::Compressor<'static>);

impl Packer {
    pub(crate) fn new() -> Result<Self, StoreError> {
        zstd::bulk::Compressor::new(LEVEL).map(Self).map_err(|error| broken("compressed", &error))
    }

    pub(crate) fn pack(&mut self, bytes: &[u8]) -> Result<Vec<u8>, StoreError> {
        self.0.compress(bytes).map_err(|error| broken("compressed", &error))
    }
}

pub(crate) fn unpack(packed: &[u8]) -> Result<Vec<u8>, StoreError> {
    zstd::stream::decode_all(packed).map_err(|error| broken("read", &error))
}

pub(crate) fn unpack_text(packed: &[u8]) -> Result<String, StoreError> {
    String::from_utf8(unpack(packed)?).map_err(|error| broken("read", &error))
}

fn broken(done: &str, error: &dyn std::error::Error) -> StoreError {
    StoreError { message: format!("a trace's payload cannot be {done}: {error}"), hint: None }
}
