//! Receives the spans of agents while a run executes.

use std::sync::Arc;
use std::time::Duration;

use karat_core::port::Telemetry;
use karat_server::{Limits, otlp_router, serve};
use karat_workflows::telemetry::SpanCollector;
use karat_workflows::{CancellationToken, Context, Error};

use crate::listen::{base_url, is_remote_accessible, listen};
use crate::printer::Printer;

/// How long open requests may take to finish after the run.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// A running receiver; it stops when this is dropped.
pub(crate) struct TelemetryReceiver {
    pub(crate) telemetry: Arc<dyn Telemetry>,
    stop: CancellationToken,
}

impl Drop for TelemetryReceiver {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Starts the receiver if the configuration asks for it. A replayed run calls no agent, so it needs none.
pub(crate) async fn start(context: &Context<'_>, printer: &Printer) -> Result<Option<TelemetryReceiver>, Error> {
    let settings = &context.settings;
    let Some(config) = settings.agent.config.telemetry.as_ref().filter(|_| !settings.recording.is_offline()) else {
        return Ok(None);
    };
    let listener = listen(&config.otlp).await?;
    let address = listener.local_addr().map_err(|error| Error::unavailable(format!("cannot listen: {error}")))?;
    if is_remote_accessible(address.ip()) {
        printer.warn("other machines can send spans to this run without authentication");
    }
    let endpoint = base_url(address);
    printer.note(&format!("receiving spans of the agent at {endpoint}"));
    let collector = Arc::new(SpanCollector::new(endpoint, Duration::from_millis(config.wait_ms)));
    let stop = CancellationToken::new();
    let router = otlp_router(Arc::<SpanCollector>::clone(&collector), Limits::default());
    tokio::spawn(serve(listener, router, stop.clone().cancelled_owned(), SHUTDOWN_TIMEOUT));
    Ok(Some(TelemetryReceiver { telemetry: collector, stop }))
}
