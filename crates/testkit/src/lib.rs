//! What the project's tests are made of; for development only.
//!
//! - [`server`]: an HTTP agent that plays a script, rude replies among them;
//! - [`clock`] and [`ids`]: the world's accidents, fixed;
//! - [`project`]: a folder with files, and a command that runs in it with a clean environment;
//! - [`conformance`]: plays the files of the project's `conformance/` folder against the real binary.
//!
//! Beside the library stand both ends of the runner's benchmark: `karat-test-agent`, which answers at once, and
//! `karat-bare-client`, the yardstick that does nothing but send and read.

pub mod clock;
pub mod conformance;
pub mod ids;
pub mod project;
pub mod server;
