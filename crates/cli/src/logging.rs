//! What `-v` and `KARAT_LOG` show: spans and events of all layers, on stderr.

use std::io;
use std::sync::Arc;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::time::uptime;

use crate::failure::Failure;
use crate::printer::Printer;

/// Sets up logging if it is requested. Otherwise there is no subscriber, so logging costs nothing.
pub(crate) fn start(verbose: u8, variable: Option<&str>, printer: &Arc<Printer>) -> Result<(), Failure> {
    // Crates are named after the program, and a target is the beginning of a name.
    let flags = match verbose {
        0 => None,
        1 => Some("karat=debug"),
        _ => Some("karat=trace"),
    };
    let directives: Vec<&str> = flags.into_iter().chain(variable).collect();
    if directives.is_empty() {
        return Ok(());
    }
    // Of two directives for one target the last counts: the variable says it more exactly.
    let filter = EnvFilter::builder().parse(directives.join(",")).map_err(|error| {
        Failure::invalid(format!("KARAT_LOG is not a valid filter: {error}")).hint(
            "it is a list of levels, each for everything or for one target: KARAT_LOG=info or \
             KARAT_LOG=karat_http=trace,karat_runner=debug",
        )
    })?;
    let writer = LogWriter(Arc::clone(printer));
    // An error only says that logging is set up already.
    tracing_subscriber::fmt().with_env_filter(filter).with_timer(uptime()).with_writer(writer).try_init().ok();
    Ok(())
}

/// Writes log lines the way everything else is written to stderr: without secrets, and above a progress bar.
struct LogWriter(Arc<Printer>);

impl<'w> MakeWriter<'w> for LogWriter {
    type Writer = LogLine<'w>;

    fn make_writer(&'w self) -> Self::Writer {
        LogLine(&self.0)
    }
}

/// Takes one line, which comes as a whole.
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
