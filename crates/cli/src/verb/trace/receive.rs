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
use tokio::sync::mpsc;

use self::address::{base_url, listen, reaches_others};
use self::sink::{Refusals, StoreSink};
use self::telling::Telling;
use crate::args::TraceReceiveArgs;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::interrupt::Interrupts;
use crate::printer::Printer;
use crate::settings::Settings;
use crate::store::{open_store, with_store};

/// How long those who are still sending have when it is asked to stop.
const GRACE: Duration = Duration::from_secs(10);

/// How much of what happened waits to be told; who stores more waits as well.
const MOST_UNTOLD: usize = 256;

pub(crate) fn run(
    args: &TraceReceiveArgs,
    environment: &Environment,
    printer: &Printer,
) -> Result<ExitStatus, Failure> {
    let settings = Settings::resolve(&args.store.config_args(), &[], environment, printer)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::errored(format!("cannot start: {error}")))?;
    let interrupts = Interrupts::listen(&runtime);
    let status = runtime.block_on(receive(args, &settings, &interrupts, environment, printer));
    // Who is still sending was told nothing, and is not waited for.
    runtime.shutdown_background();
    status
}

async fn receive(
    args: &TraceReceiveArgs,
    settings: &Settings,
    interrupts: &Interrupts,
    environment: &Environment,
    printer: &Printer,
) -> Result<ExitStatus, Failure> {
    // First, so that whoever is given the address finds somebody there.
    let listener = listen(&args.listen).await?;
    let opening = open_store(settings);
    with_store(opening, async |store| take_in(listener, store, args, settings, interrupts, environment, printer).await)
        .await
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
    let stop = interrupts.clone();
    let router = otlp_router(sink, Limits::default());
    let serving = serve(listener, router, async move { stop.asked().await }, GRACE);
    tokio::pin!(serving);
    let mut is_stopping = false;
    let ending = loop {
        tokio::select! {
            ending = &mut serving => break ending,
            Some(event) = events.recv() => telling.tell(event)?,
            () = interrupts.asked(), if !is_stopping => {
                is_stopping = true;
                telling.stopping();
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
