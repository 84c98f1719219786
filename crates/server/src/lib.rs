//! Takes what others send over HTTP.
