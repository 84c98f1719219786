//! What the project's tests are made of; for development only.
//!
//! - [`server`]: an HTTP agent and both model APIs that play a script, rude replies among them;
//! - [`clock`] and [`ids`]: the world's accidents, fixed;
//! - [`project`]: a folder with files, and a command that runs in it with a clean environment;
//! - [`tools`] and [`litellm`]: programs that nobody here wrote, MCP servers and a model proxy; [`mcp`]: one that
//!   somebody here wrote;
//! - [`conformance`]: plays the files of the project's `conformance/` folder against the real binary.
//!
//! Beside the library stand the ends of the benchmarks: `karat-test-agent`, which answers at once, `karat-test-model`,
//! which takes two turns (both listen by [`partner`]), and `karat-bare-client`, the yardstick that does nothing but
//! send and read.

pub mod clock;
pub mod conformance;
pub mod ids;
#[cfg(unix)]
pub mod litellm;
pub mod mcp;
pub mod partner;
pub mod project;
pub mod server;
#[cfg(unix)]
pub mod tools;
