//! Tests of the test utilities: a runner that misses failures or a server that is too lenient would make other tests
//! worthless.

#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

#[cfg(unix)]
mod conformance;
mod fixed;
#[cfg(unix)]
mod litellm;
mod matching;
mod models;
#[cfg(unix)]
mod project;
mod server;
mod test_model;
mod wire;
