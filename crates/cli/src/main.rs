//! The `karat` binary.

use std::process::ExitCode;

/// The system allocator is slow with many small values that are freed on another thread.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    karat_cli::main()
}
