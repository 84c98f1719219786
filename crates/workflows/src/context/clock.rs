//! The system clock and id generator.

use karat_core::port::{Clock, Ids};

pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the port's implementation")]
    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::now().round(jiff::Unit::Millisecond).unwrap_or_default()
    }
}

/// Ids that sort by creation time.
pub struct TimeOrderedIds;

impl Ids for TimeOrderedIds {
    #[expect(clippy::disallowed_methods, reason = "this is the port's implementation")]
    fn run_id(&self) -> String {
        uuid::Uuid::now_v7().to_string()
    }
}
