//! Test utilities, for development only.
//!
//! - [`server`]: a scripted HTTP agent and model APIs, including misbehaving replies;
//! - [`clock`] and [`ids`]: a fixed clock and predictable ids;
//! - [`project`]: a temporary project, and commands that run in it with a clean environment;
//! - [`tools`] and [`litellm`]: third-party programs, such as MCP servers and a model proxy;
//! - [`agent_server`]: agents of many products, real and fake;
//! - [`mcp`]: a small MCP server;
//! - [`conformance`]: runs the files of the `conformance/` folder against the real binary.
//!
//! The binaries are for benchmarks: `karat-test-agent` replies immediately, `karat-test-model` takes two turns (both
//! use [`bench_server`]), and `karat-bare-client` only sends requests and reads replies, as a baseline.

#[cfg(unix)]
pub mod agent_server;
pub mod bench_server;
pub mod clock;
pub mod conformance;
pub mod ids;
#[cfg(unix)]
pub mod litellm;
pub mod mcp;
pub mod project;
pub mod server;
#[cfg(unix)]
pub mod tools;
