//! Turns panics on corrupt streams into errors.
//!
//! The Arrow library trusts some numbers in a stream and panics if they are wrong.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use arrow_schema::ArrowError;

thread_local! {
    /// Whether a panic of this thread is expected and reported as an error.
    static EXPECTS_PANIC: Cell<bool> = const { Cell::new(false) };
}

/// Runs a read and converts errors and panics to messages. The reader must not be used after an error.
pub(super) fn catch_panics<T>(read: impl FnOnce() -> Result<T, ArrowError>) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |panic| {
            if !EXPECTS_PANIC.get() {
                before(panic);
            }
        }));
    });
    EXPECTS_PANIC.set(true);
    let read = catch_unwind(AssertUnwindSafe(read));
    EXPECTS_PANIC.set(false);
    match read {
        Ok(Ok(read)) => Ok(read),
        Ok(Err(error)) => Err(error_message(&error)),
        Err(_) => Err("inconsistent data".to_owned()),
    }
}

/// Returns an error's message without the library's prefixes.
fn error_message(error: &ArrowError) -> String {
    let text = match error {
        ArrowError::IpcError(text) | ArrowError::ParseError(text) | ArrowError::InvalidArgumentError(text) => {
            text.clone()
        }
        ArrowError::IoError(_, error) => error.to_string(),
        other => other.to_string(),
    };
    if text.contains("decompression requires") {
        return "compressed streams are not supported".to_owned();
    }
    text
}
