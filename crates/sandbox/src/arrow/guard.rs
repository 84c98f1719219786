//! Keeps a damaged stream from ending the program.
//!
//! The library that reads Arrow trusts some numbers of a stream that its writer could have got wrong, and panics.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use arrow_schema::ArrowError;

thread_local! {
    /// Whether a panic of this thread is expected and said in other words.
    static EXPECTED: Cell<bool> = const { Cell::new(false) };
}

/// Reads something, and says in our words why it cannot be read. What was reading must not be used after that.
pub(super) fn guarded<T>(read: impl FnOnce() -> Result<T, ArrowError>) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |panic| {
            if !EXPECTED.get() {
                before(panic);
            }
        }));
    });
    EXPECTED.set(true);
    let read = catch_unwind(AssertUnwindSafe(read));
    EXPECTED.set(false);
    match read {
        Ok(Ok(read)) => Ok(read),
        Ok(Err(error)) => Err(said(&error)),
        Err(_) => Err("it says one thing and holds another".to_owned()),
    }
}

/// Leaves out what only users of the library understand.
fn said(error: &ArrowError) -> String {
    let text = match error {
        ArrowError::IpcError(text) | ArrowError::ParseError(text) | ArrowError::InvalidArgumentError(text) => {
            text.clone()
        }
        ArrowError::IoError(_, error) => error.to_string(),
        other => other.to_string(),
    };
    if text.contains("decompression requires") {
        return "it is compressed, and only plain ones are read".to_owned();
    }
    text
}
