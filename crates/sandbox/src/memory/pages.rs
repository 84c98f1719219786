//! Methods of restoring written pages.

use std::sync::OnceLock;

/// A method of restoring Python's memory after a trace. The methods differ only in speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestoreMethod {
    /// The system records written pages (Linux 6.7 or newer, with `userfaultfd`), and only these are restored.
    WriteProtection,
    /// All pages that were ever written are compared and restored (Linux 6.7 or newer).
    PrivatePages,
    /// All of the memory is copied.
    FullCopy,
}

/// The environment variable that selects a method in benchmarks and tests.
const VARIABLE: &str = "KARAT_RESTORE_METHOD";

impl RestoreMethod {
    pub const ALL: [Self; 3] = [Self::WriteProtection, Self::PrivatePages, Self::FullCopy];

    pub fn name(self) -> &'static str {
        match self {
            Self::WriteProtection => "write-protection",
            Self::PrivatePages => "private-pages",
            Self::FullCopy => "full-copy",
        }
    }

    /// Returns the fastest method that works on this system, or a slower one from the environment variable.
    pub fn detect() -> Self {
        static FASTEST: OnceLock<RestoreMethod> = OnceLock::new();
        *FASTEST.get_or_init(|| {
            let requested = std::env::var(VARIABLE).ok();
            let first = Self::ALL.into_iter().position(|method| Some(method.name()) == requested.as_deref());
            let mut methods = Self::ALL.into_iter().skip(first.unwrap_or_default());
            methods.find(|method| method.is_available()).unwrap_or(Self::FullCopy)
        })
    }

    fn is_available(self) -> bool {
        #[cfg(target_os = "linux")]
        return super::scan::is_available(self);
        #[cfg(not(target_os = "linux"))]
        return self == Self::FullCopy;
    }
}
