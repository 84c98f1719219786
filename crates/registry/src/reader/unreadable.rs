//! Why a source file gives no module.

use karat_json::Position;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unreadable {
    pub(crate) position: Option<Position>,
    /// A lower-case fragment.
    pub(crate) why: String,
}

impl Unreadable {
    pub(crate) fn whole(why: impl Into<String>) -> Self {
        Self { position: None, why: why.into() }
    }
}
