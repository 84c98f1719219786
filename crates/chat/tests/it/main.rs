//! Tests of the public reader of replies.

mod exchange;
mod recorded;
