//! The Python that eval functions run in, which not every build has.

use std::ffi::OsStr;
use std::fmt::Display;

/// Passes a guest on that was found; where there is none, its tests say that they are skipped. On a build server
/// (`CI=true`) that is a failure.
pub fn needs_guest<T, E: Display>(found: Result<T, E>) -> Option<T> {
    match found {
        Ok(guest) => Some(guest),
        Err(why) => {
            assert!(std::env::var_os("CI").as_deref() != Some(OsStr::new("true")), "{why}");
            #[expect(clippy::print_stderr, reason = "whoever runs the tests should know that one did not happen")]
            {
                eprintln!("skipped: needs a build with Python ({why})");
            }
            None
        }
    }
}
