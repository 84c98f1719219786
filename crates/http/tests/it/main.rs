//! Requests to real servers on loopback.

mod fetch;
