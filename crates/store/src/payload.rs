//! Compression of payloads.

use karat_core::port::StoreError;

const COMPRESSION_LEVEL: i32 = 3;

/// Compresses payloads; reusable.
pub(crate) struct Packer(zstd::bulk::Compressor<'static>);

impl Packer {
    pub(crate) fn new() -> Result<Self, StoreError> {
        zstd::bulk::Compressor::new(COMPRESSION_LEVEL).map(Self).map_err(|error| not_packed(&error))
    }

    pub(crate) fn pack(&mut self, bytes: &[u8]) -> Result<Vec<u8>, StoreError> {
        self.0.compress(bytes).map_err(|error| not_packed(&error))
    }
}

pub(crate) fn unpack(trace_id: &str, packed: &[u8]) -> Result<Vec<u8>, StoreError> {
    zstd::stream::decode_all(packed).map_err(|error| unreadable(trace_id, &error))
}

pub(crate) fn unpack_text(trace_id: &str, packed: &[u8]) -> Result<String, StoreError> {
    String::from_utf8(unpack(trace_id, packed)?).map_err(|error| unreadable(trace_id, &error))
}

fn unreadable(trace_id: &str, error: &dyn std::error::Error) -> StoreError {
    StoreError { message: format!("cannot read the payload of the trace '{trace_id}': {error}"), hint: None }
}

fn not_packed(error: &std::io::Error) -> StoreError {
    StoreError { message: format!("cannot compress a trace's payload: {error}"), hint: None }
}
