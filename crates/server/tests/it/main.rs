//! Tests the receiver over real sockets.

mod hostile;
mod load;
mod otlp;
mod shutdown;
mod support;
