//! `karat trace receive`: traces into the store while agents run.

mod address;
mod sink;
mod telling;

use std::sync::Arc;
use std::time::Duration;

use karat_core::exit::ExitStatus;
use karat_core::stored::ReceiveEvent;
use karat_server::{Ending, Limits, TraceSink, otlp_router, serve};
use karat_store::{Location, Store};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

use self::address::{base_url, listen, reaches_others};
use self::sink::{Refusals, StoreSink};
use self::telling::Telling;
use crate::args::TraceReceiveArgs;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::interrupt::Interrupts;
use crate::printer::Printer;
use crate::resolve::resolve_settings;
use crate::store::{open_store, with_store};
use karat_workflows::settings::Settings;

/// How long those who are still sending have when it is asked to stop.
const GRACE: Duration = Duration::from_secs(10);

/// How much of what happened waits to be told; who stores more waits as well.
const MOST_UNTOLD: usize = 256;

pub(crate) fn run(
    args: &TraceReceiveArgs,
    environment: &Environment,
    printer: &Printer,
) -> Result<ExitStatus, Failure> {
    let settings = resolve_settings(&args.store.config_args(), &[], environment, printer)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::errored(format!("cannot start: {error}")))?;
    let interrupts = Interrupts::listen(&runtime);
    let status = runtime.block_on(async {
        // First, so that whoever is given the address finds somebody there.
        let listener = listen(&args.listen).await?;
        let take_in =
            async |store: &Store| take_in(listener, store, args, &settings, &interrupts, environment, printer).await;
        Box::pin(with_store(interrupts.unless_asked(open_store(&settings)), take_in)).await
    });
    // Who is still sending was told nothing, and is not waited for.
    runtime.shutdown_background();
    status
}

/// Puts what others send into the store, until it is asked to stop.
async fn take_in(
    listener: TcpListener,
    store: &Store,
    args: &TraceReceiveArgs,
    settings: &Settings,
    interrupts: &Interrupts,
    environment: &Environment,
    printer: &Printer,
) -> Result<ExitStatus, Failure> {
    let (told, mut events) = mpsc::channel(MOST_UNTOLD);
    let refusals = Arc::new(Refusals::default());
    let sink: Arc<dyn TraceSink> = Arc::new(StoreSink::new(store.clone(), args.feedback, Arc::clone(&refusals), told));
    let mut telling = Telling::new(args.format, refusals, environment, printer);
    telling.begin(&listening(&listener, settings)?)?;
    if listener.local_addr().is_ok_and(|address| reaches_others(address.ip())) {
        printer.warn("whoever reaches this machine can write to the store: nobody is asked who they are");
    }
    // Dropped once the person was told: with nobody sending, serving ends at once.
    let (stop, stopped) = oneshot::channel::<()>();
    let mut stop = Some(stop);
    let router = otlp_router(sink, Limits::default());
    let until_stopped = async move {
        stopped.await.ok();
    };
    let serving = serve(listener, router, until_stopped, GRACE);
    tokio::pin!(serving);
    let ending = loop {
        tokio::select! {
            ending = &mut serving => break ending,
            Some(event) = events.recv() => telling.tell(event)?,
            () = interrupts.asked(), if stop.is_some() => {
                telling.stopping();
                stop = None;
            }
        }
    };
    while let Ok(event) = events.try_recv() {
        telling.tell(event)?;
    }
    telling.end()?;
    match ending {
        Ok(Ending::Answered) => Ok(ExitStatus::Success),
        Ok(Ending::CutOff) => {
            printer.warn("somebody was still sending: what was not acknowledged may not be stored");
            Ok(ExitStatus::Success)
        }
        Err(error) => Err(Failure::errored(format!("cannot listen any more: {error}"))),
    }
}

fn listening(listener: &TcpListener, settings: &Settings) -> Result<ReceiveEvent, Failure> {
    let address = listener.local_addr().map_err(|error| Failure::errored(format!("cannot listen: {error}")))?;
    let store = match &settings.store {
        Location::File(path) => settings.shown(path),
        location @ Location::Postgres(_) => location.to_string(),
    };
    Ok(ReceiveEvent::Listening { url: base_url(address), store })
}
