//! The use cases of karat, one module each: a typed request and the context in, typed events on the way, a typed result or
//! error out.
//!
//! Joins the capabilities, so that the command line, the server and workers share one implementation. Knows no argument
//! parser, no terminal and no HTTP framework, and never prints.

pub mod context;
mod error;
mod notice;
pub mod settings;

pub use error::{Error, ErrorKind};
pub use notice::Notices;
