//! Tests agents against real servers on loopback, programs and scripts, both well-behaved and faulty.

#![expect(clippy::unwrap_used, reason = "test helpers may panic")]

#[cfg(unix)]
mod agent_servers;
#[cfg(target_os = "linux")]
mod command;
mod connections;
mod conversations;
mod determinants;
mod errors;
#[cfg(target_os = "linux")]
mod functions;
mod http_config;
mod invalid_settings;
#[cfg(target_os = "linux")]
mod keep_alive;
mod product_server;
mod recording;
mod replies;
mod requests;
mod scripted;
mod streams;
mod structured;
mod support;
