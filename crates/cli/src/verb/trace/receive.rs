//! `karat trace receive`: traces into the store while agents run.

mod address;
mod reporter;

use std::sync::Arc;
use std::time::Duration;

use karat_core::exit::ExitStatus;
use karat_server::{Ending, Limits, otlp_router, serve};
use karat_workflows::Error;
use karat_workflows::receive_traces::{Request, receive_traces};

use self::address::{base_url, listen, reaches_others};
use self::reporter::ReceiveReporter;
use crate::args::TraceReceiveArgs;
use crate::failure::Failure;
use crate::surface::Surface;

/// How long those who are still sending have when it is asked to stop.
const GRACE: Duration = Duration::from_secs(10);

pub(super) fn run(args: &TraceReceiveArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let context = surface.store_context(&args.store)?;
    let (environment, printer) = (surface.environment, surface.printer);
    let (totals, ending, reporter) = surface.run_cancellable(async |cancel| {
        // First, so that whoever is given the address finds somebody there.
        let listener = listen(&args.listen).await?;
        let address = listener.local_addr().map_err(|error| Error::unavailable(format!("cannot listen: {error}")))?;
        let store = context.settings.shown_store();
        let mut reporter = ReceiveReporter::new(args.format, base_url(address), store, environment, printer);
        let request = Request { feedback: args.feedback };
        let receiving = receive_traces(request, &context, &mut reporter, cancel, |receiver, stop| {
            if reaches_others(address.ip()) {
                printer.warn("whoever reaches this machine can write to the store: nobody is asked who they are");
            }
            serve(listener, otlp_router(Arc::new(receiver), Limits::default()), stop.cancelled_owned(), GRACE)
        });
        let (totals, ending) = receiving.await?;
        Ok((totals, ending, reporter))
    })?;
    reporter.end(&totals)?;
    match ending {
        Ok(Ending::Answered) => {}
        Ok(Ending::CutOff) => {
            printer.warn("somebody was still sending: what was not acknowledged may not be stored");
        }
        Err(error) => return Err(Failure::errored(format!("cannot listen any more: {error}"))),
    }
    Ok(ExitStatus::Success)
}
