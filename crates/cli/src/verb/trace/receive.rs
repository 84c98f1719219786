//! `karat trace receive`: receives OpenTelemetry data over HTTP.

mod reporter;

use std::sync::Arc;
use std::time::Duration;

use karat_core::exit::ExitStatus;
use karat_server::{Limits, Shutdown, otlp_router, serve};
use karat_workflows::Error;
use karat_workflows::receive_traces::{Request, receive_traces};

use self::reporter::ReceiveReporter;
use crate::args::TraceReceiveArgs;
use crate::failure::Failure;
use crate::listen::{base_url, is_remote_accessible, listen};
use crate::surface::Surface;

/// How long open requests may take to finish after an interrupt.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) fn run(args: &TraceReceiveArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let context = surface.context(&[])?;
    let printer = surface.printer;
    let (totals, shutdown, reporter) = surface.run_cancellable(async |cancel| {
        // Listen before the address is printed.
        let listener = listen(&args.listen).await?;
        let address = listener.local_addr().map_err(|error| Error::unavailable(format!("cannot listen: {error}")))?;
        let store = context.settings.display_store();
        let mut reporter = ReceiveReporter::new(args.format, base_url(address), store, surface);
        let request = Request { feedback: args.feedback };
        let receiving = receive_traces(request, &context, &mut reporter, cancel, |receiver, stop| {
            if is_remote_accessible(address.ip()) {
                printer.warn("other machines can write to the store without authentication");
            }
            serve(
                listener,
                otlp_router(Arc::new(receiver), Limits::default()),
                stop.cancelled_owned(),
                SHUTDOWN_TIMEOUT,
            )
        });
        let (totals, shutdown) = receiving.await?;
        Ok((totals, shutdown, reporter))
    })?;
    reporter.finish(&totals)?;
    match shutdown {
        Ok(Shutdown::Graceful) => {}
        Ok(Shutdown::TimedOut) => {
            printer.warn("a client was still sending; unacknowledged data may not be stored");
        }
        Err(error) => return Err(Failure::errored(format!("the server failed: {error}"))),
    }
    Ok(ExitStatus::Success)
}
