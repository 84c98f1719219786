//! Logging to stderr with `-vv` and `KARAT_LOG`.

use std::io;
use std::sync::Arc;

use tracing::subscriber::NoSubscriber;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::time::uptime;

use crate::failure::Failure;
use crate::printer::Printer;

/// Sets up logging if it is requested.
pub(crate) fn start(verbose: u8, variable: Option<&str>, printer: &Arc<Printer>) -> Result<(), Failure> {
    // Matches every crate whose name starts with karat.
    let flags = match verbose {
        // A single -v shows more of the results.
        0 | 1 => None,
        2 => Some("karat=debug"),
        _ => Some("karat=trace"),
    };
    let directives: Vec<&str> = flags.into_iter().chain(variable).collect();
    if directives.is_empty() {
        // Without any subscriber, `tracing` computes the fields of every span for the crate `log`.
        tracing::subscriber::set_global_default(NoSubscriber::new()).ok();
        return Ok(());
    }
    // The last directive for a target wins, so the variable overrides the flags.
    let filter = EnvFilter::builder().parse(directives.join(",")).map_err(|error| {
        Failure::invalid(format!("KARAT_LOG is not a valid filter: {error}")).hint(
            "pass a level, or a list of targets with levels: KARAT_LOG=info or \
             KARAT_LOG=karat_http=trace,karat_runner=debug",
        )
    })?;
    let writer = LogWriter(Arc::clone(printer));
    // Fails only if logging is already set up.
    tracing_subscriber::fmt().with_env_filter(filter).with_timer(uptime()).with_writer(writer).try_init().ok();
    Ok(())
}

/// Writes log lines through the printer: without secrets, and above a progress bar.
struct LogWriter(Arc<Printer>);

impl<'w> MakeWriter<'w> for LogWriter {
    type Writer = LogLine<'w>;

    fn make_writer(&'w self) -> Self::Writer {
        LogLine(&self.0)
    }
}

/// Writes one line; each call of `write` has a whole line.
struct LogLine<'w>(&'w Printer);

impl io::Write for LogLine<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.log(&String::from_utf8_lossy(line));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
