//! The environment and the printer of all verbs, and how they run workflows.

use std::path::PathBuf;
use std::sync::Arc;

use karat_workflows::context::clock::{SystemClock, TimeOrderedIds};
use karat_workflows::functions::path_arguments;
use karat_workflows::settings::{Flags, Settings};
use karat_workflows::{CancellationToken, Context, Error};
use tokio::runtime::Runtime;

use crate::ask::is_asking;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::interrupt::{Interrupts, exit_now};
use crate::printer::Printer;

/// Tasks wait for the network most of the time; slow work runs on threads of its own, and printing on the main thread.
/// With more workers, a run took a tenth more CPU time.
const WORKER_THREADS: usize = 1;

pub(crate) struct Surface<'s> {
    pub(crate) environment: &'s Environment,
    pub(crate) printer: &'s Arc<Printer>,
    /// The flags that set configuration keys.
    pub(crate) flags: Flags,
}

impl<'s> Surface<'s> {
    /// Resolves the settings; the project is searched for in the parents of these paths.
    pub(crate) fn context(&self, paths: &[PathBuf]) -> Result<Context<'s>, Failure> {
        let (process, printer) = (&self.environment.process, self.printer);
        let settings = Settings::resolve(&self.flags, paths, process, &printer.redactor, printer.as_ref())?;
        Ok(Context {
            settings,
            process_env: process,
            clock: &SystemClock,
            ids: &TimeOrderedIds,
            notices: printer.as_ref(),
        })
    }

    /// Like [`Self::context`], for eval functions: the project is searched for in the parents of their files.
    pub(crate) fn function_context(&self, functions: &[String]) -> Result<Context<'s>, Failure> {
        self.context(&path_arguments(functions, &self.environment.process.current_dir))
    }

    /// Runs a workflow; an interrupt ends the program.
    pub(crate) fn run<T, E>(&self, work: impl Future<Output = Result<T, E>>) -> Result<T, Failure>
    where
        Failure: From<E>,
    {
        let runtime = runtime()?;
        let interrupts = Interrupts::listen(&runtime);
        let printer = Arc::clone(self.printer);
        runtime.spawn(async move {
            interrupts.wait().await;
            printer.clear_progress_bar();
            exit_now();
        });
        Ok(runtime.block_on(work)?)
    }

    /// Runs a workflow that can be cancelled: the first interrupt cancels the token, the second ends the program.
    pub(crate) fn run_cancellable<T>(
        &self,
        work: impl AsyncFnOnce(CancellationToken) -> Result<T, Error>,
    ) -> Result<T, Failure> {
        self.run_interactive(async |cancel| Ok(work(cancel).await?))
    }

    /// Like [`Self::run_cancellable`], for workflows with prompts. An interrupt during a prompt ends the program;
    /// earlier decisions are saved.
    pub(crate) fn run_interactive<T>(
        &self,
        work: impl AsyncFnOnce(CancellationToken) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let runtime = runtime()?;
        let interrupts = Interrupts::listen(&runtime);
        let cancel = CancellationToken::new();
        let token = cancel.clone();
        let printer = Arc::clone(self.printer);
        runtime.spawn(async move {
            interrupts.wait().await;
            printer.clear_progress_bar();
            if is_asking() {
                exit_now();
            }
            token.cancel();
        });
        let result = runtime.block_on(work(cancel));
        // Abandoned work must not keep the program alive.
        runtime.shutdown_background();
        result
    }
}

fn runtime() -> Result<Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKER_THREADS)
        .enable_all()
        .build()
        .map_err(|error| Failure::errored(format!("cannot start the async runtime: {error}")))
}
