//! The HTTP client shared by all of karat: connections, retries, body limits and throttling.
//!
//! Independent of karat: callers interpret responses. The only crate that depends on reqwest and rustls; it re-exports
//! the reqwest types that callers need.

mod body;
mod client;
mod fetch;
mod retry;
mod send;
mod throttle;

pub use body::{BodyError, read_body, read_chunks};
pub use client::{ClientError, ClientOptions, client, error_chain, has_credentials, header_map, parse_url, redact_url};
pub use fetch::{FetchError, fetch, post};
pub use reqwest::cookie::{CookieStore, Jar};
pub use reqwest::{Client, Error, Method, RequestBuilder, Response, StatusCode, Url, header};
pub use retry::{GiveUp, Retry, RetryClass, RetryPolicy};
pub use send::send;
pub use throttle::{Call, Permit, Throttle};
