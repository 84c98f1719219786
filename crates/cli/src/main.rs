//! The `karat` binary.

use std::process::ExitCode;

/// Cases and results are many small pieces, made on one thread and freed on another, which the system's allocator is
/// slow with.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    karat_cli::main()
}
