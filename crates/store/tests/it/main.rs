//! Tests of the store with both databases.

mod concurrency;
mod contract;
mod kill;
mod laws;
mod migrations;
mod plain_sql;
mod server;
mod support;
