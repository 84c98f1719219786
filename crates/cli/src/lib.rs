//! The command line: arguments → request → workflow → output, one file per verb.
//!
//! A library, so that cargo can compile it in parallel with other crates; the binary only calls it.

mod args;
mod argument_error;
mod ask;
mod environment;
mod failure;
mod hint;
mod interrupt;
mod listen;
mod logging;
mod printer;
mod progress;
mod suggestion;
mod surface;
mod verb;

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{CommandFactory as _, FromArgMatches as _};
use karat_core::exit::ExitStatus;

use crate::args::{Cli, Verb, config_flags};
use crate::argument_error::wrapped_error;
use crate::environment::Environment;
use crate::printer::Printer;
use crate::suggestion::{suggest_flag, suggest_verb};
use crate::surface::Surface;

/// Runs the command line and returns the exit code.
pub fn main() -> ExitCode {
    let environment = Environment::from_process();
    let parsed = Cli::command().try_get_matches();
    let (cli, flags) = match parsed.and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, config_flags(&matches)))) {
        Ok(parsed) => parsed,
        Err(error) => {
            // Includes --help and --version; clap picks the stream.
            let error = suggest_flag(suggest_verb(error, &Cli::command(), &environment.arguments));
            let status = if error.use_stderr() { ExitStatus::Invalid } else { ExitStatus::Success };
            // There is no way to report that stderr is closed.
            let _ = match wrapped_error(&error, &environment) {
                Some(text) => io::stderr().lock().write_all(text.as_bytes()),
                None => error.print(),
            };
            return ExitCode::from(status.code());
        }
    };
    let printer = Arc::new(Printer::new(&cli.global, &environment));
    ask::set_colors(printer.stderr_palette.color);
    let surface = Surface { environment: &environment, printer: &printer, flags };
    let logging = logging::start(cli.global.verbose, environment.log_filter.as_deref(), &printer);
    let result = logging.and_then(|()| match cli.verb {
        Verb::Run(args) => verb::run::run(&args, &surface),
        Verb::Check(args) => verb::check::run(&args, &surface),
        Verb::Coverage(args) => verb::coverage::run(&args, &surface),
        Verb::Diff(args) => verb::diff::run(&args, &surface),
        Verb::Runs(args) => verb::runs::run(args, &surface),
        Verb::Show(args) => verb::show::run(&args, &surface),
        Verb::Tools(args) => verb::tools::run(&args, &surface),
        Verb::Overlap(args) => verb::overlap::run(args, &surface),
        Verb::Regress(args) => verb::regress::run(args, &surface),
        Verb::Eval(args) => verb::eval::run(args, &surface),
        Verb::Feedback(args) => verb::feedback::run(args, &surface),
        Verb::Review(args) => verb::review::run(&args, &surface),
        Verb::Contradictions(args) => verb::contradictions::run(args, &surface),
        Verb::Trace(args) => verb::trace::run(args, &surface),
        Verb::Agent(args) => verb::agent::run(args, &surface),
        Verb::Forge(args) => verb::forge::run(&args, &surface),
        Verb::Init(args) => verb::init::run(&args, &surface),
        Verb::Schema(args) => verb::schema::run(&args, &printer),
        Verb::Completions(args) => verb::completions::run(&args, &printer),
        Verb::Man(args) => verb::man::run(&args, &printer),
    });
    let status = match result {
        Ok(status) => status,
        Err(failure) => {
            printer.failure(&failure);
            failure.status
        }
    };
    // Unfinished tasks may still own child processes.
    karat_process::kill_all();
    ExitCode::from(status.code())
}
