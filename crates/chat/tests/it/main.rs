//! Tests of the public reader of replies.

mod exchange;
mod hostile;
mod protocols;
mod recorded;
mod streams;
