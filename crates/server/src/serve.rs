//! Serves requests until shutdown.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;
use tokio::sync::Notify;

/// How the server shut down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shutdown {
    /// Every request in progress was answered.
    Graceful,
    /// The grace period ended while requests were in progress.
    TimedOut,
}

/// Serves until `stop` completes, then accepts no new connections and waits up to `grace` for requests in progress.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    stop: impl Future<Output = ()> + Send + 'static,
    grace: Duration,
) -> io::Result<Shutdown> {
    let stopped = Arc::new(Notify::new());
    let signal = {
        let stopped = Arc::clone(&stopped);
        async move {
            stop.await;
            stopped.notify_one();
        }
    };
    let server = axum::serve(listener, router).with_graceful_shutdown(signal);
    let grace_period = async {
        stopped.notified().await;
        tokio::time::sleep(grace).await;
    };
    tokio::select! {
        result = server.into_future() => result.map(|()| Shutdown::Graceful),
        () = grace_period => Ok(Shutdown::TimedOut),
    }
}
