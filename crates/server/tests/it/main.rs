//! The receiver over real sockets.

mod hostile;
mod load;
mod otlp;
mod stopping;
mod support;
