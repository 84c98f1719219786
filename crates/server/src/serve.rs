//! Serves until it is asked to stop.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;
use tokio::sync::Notify;

/// How serving ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Every request that had begun was answered.
    Answered,
    /// Somebody was still sending when the time was up, and got no answer.
    CutOff,
}

/// Serves until `stop` is done, takes nothing new from then on, and gives what is under way this long to end.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    stop: impl Future<Output = ()> + Send + 'static,
    grace: Duration,
) -> io::Result<Ending> {
    let stopping = Arc::new(Notify::new());
    let signal = {
        let stopping = Arc::clone(&stopping);
        async move {
            stop.await;
            stopping.notify_one();
        }
    };
    let served = axum::serve(listener, router).with_graceful_shutdown(signal);
    let time_is_up = async {
        stopping.notified().await;
        tokio::time::sleep(grace).await;
    };
    tokio::select! {
        done = served.into_future() => done.map(|()| Ending::Answered),
        () = time_is_up => Ok(Ending::CutOff),
    }
}
