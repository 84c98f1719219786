//! What holds of the store, in both databases.

mod contract;
mod support;
