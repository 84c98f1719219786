//! How written pages are found.

use std::sync::OnceLock;

/// How Python's memory is put back after a trace. The result is the same; the time differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestoreMethod {
    /// The system records written pages (Linux 6.7 or newer, with `userfaultfd`), and only these are put back.
    WriteProtection,
    /// All pages that were ever written are compared and put back (Linux 6.7 or newer).
    PrivatePages,
    /// All of the memory is copied.
    FullCopy,
}

/// Selects a method in benchmarks and tests.
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

    /// Returns the fastest method that works on this system, or a slower one that the environment names.
    pub fn detect() -> Self {
        static FASTEST: OnceLock<RestoreMethod> = OnceLock::new();
        *FASTEST.get_or_init(|| {
            let named = std::env::var(VARIABLE).ok();
            let named = Self::ALL.into_iter().position(|method| Some(method.name()) == named.as_deref());
            let mut methods = Self::ALL.into_iter().skip(named.unwrap_or_default());
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
