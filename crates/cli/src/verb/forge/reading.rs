//! Traces that cases are drafted from: of files, or of the store.

use std::io::BufRead as _;
use std::path::PathBuf;
use std::sync::Arc;

use karat_core::exit::ExitStatus;
use karat_core::port::{Clock, TraceStore};
use karat_core::stored::TraceFilter;
use karat_forge::{Drafter, TraceDrafter, TraceReader};
use karat_store::Store;
use karat_traces::Kind;

use crate::args::ForgeArgs;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::store::{open_store_to_read, with_store};
use karat_workflows::context::clock::SystemClock;
use karat_workflows::settings::Settings;
use karat_workflows::trace_filter::parse_time;

/// How many things about traces are told one by one.
const MOST_TOLD: usize = 5;

/// How many traces are asked for at once.
const PAGE: u64 = 100;

/// Traces that were read.
pub(super) struct ReadTraces {
    reader: TraceReader,
    /// What traces of the store are called, in the order in which they were read.
    ids: Vec<String>,
}

impl ReadTraces {
    /// Reads files of JSON lines.
    pub(super) fn of_files(tool: &str, paths: &[PathBuf], environment: &Environment) -> Result<Self, Failure> {
        let mut reader = TraceReader::new(tool);
        let (mut number, mut is_empty) = (0, true);
        for path in paths {
            let shown = path.display();
            let fail = |error: std::io::Error| Failure::invalid(format!("cannot read the traces {shown}: {error}"));
            let file: Box<dyn std::io::Read> = if path.as_os_str() == "-" {
                Box::new(std::io::stdin())
            } else {
                Box::new(std::fs::File::open(environment.process.current_dir.join(path)).map_err(fail)?)
            };
            for line in std::io::BufReader::new(file).split(b'\n') {
                let line = line.map_err(fail)?;
                number += 1;
                is_empty &= line.trim_ascii().is_empty();
                reader.line(number, &line);
            }
        }
        if is_empty {
            let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
            return Err(Failure::nothing_selected(format!("there are no traces in {}", names.join(", ")))
                .hint("each line of such a file is a trace"));
        }
        Ok(Self { reader, ids: Vec::new() })
    }

    /// Reads the store. What `karat run` kept there is left out: its messages are those of cases that there are already.
    pub(super) async fn of_store(tool: &str, args: &ForgeArgs, settings: &Settings) -> Result<Self, Failure> {
        const NAME_A_FILE: &str = "name a file: --traces FILE.jsonl";
        let now = SystemClock.now();
        let filter = TraceFilter {
            sources: Kind::ALL.iter().map(|kind| kind.name().to_owned()).collect(),
            since: args.since.as_deref().map(|since| parse_time("--since", since, now)).transpose()?,
            rating: args.rating.map(Into::into),
            ..TraceFilter::default()
        };
        let opening = async {
            open_store_to_read(settings).await.map_err(|failure| {
                if failure.status == ExitStatus::NothingSelected { failure.hint(NAME_A_FILE) } else { failure }
            })
        };
        let pages = with_store(opening, async |store| Self::of_pages(tool, store, &filter).await);
        let read = pages.await?;
        if read.ids.is_empty() {
            let is_narrow = args.since.is_some() || args.rating.is_some();
            let hint = if is_narrow {
                "leave --since and --rating out"
            } else {
                "'karat trace import FILE' puts traces into the store"
            };
            return Err(Failure::nothing_selected("there are no traces to draft from").hint(NAME_A_FILE).hint(hint));
        }
        Ok(read)
    }

    async fn of_pages(tool: &str, store: &Store, filter: &TraceFilter) -> Result<Self, Failure> {
        let (mut reader, mut ids) = (TraceReader::new(tool), Vec::new());
        loop {
            let after = ids.last().cloned();
            let page = store.read_traces(filter, after.as_deref(), PAGE).await?;
            if page.is_empty() {
                return Ok(Self { reader, ids });
            }
            for trace in page {
                ids.push(trace.head.trace_id);
                reader.line(ids.len() as u64, trace.document.as_bytes());
            }
        }
    }

    /// Returns who drafts from them, and says what was not used.
    pub(super) fn into_drafter(self, tool: &str, rest: Arc<dyn Drafter>, printer: &Printer) -> TraceDrafter {
        let (drafter, report) = self.reader.finish(rest);
        for refused in report.refused.iter().take(MOST_TOLD) {
            let id = usize::try_from(refused.number).ok().and_then(|number| self.ids.get(number.checked_sub(1)?));
            let what = match id {
                Some(id) => format!("trace {id}"),
                None => format!("line {} of the traces", refused.number),
            };
            printer.warn(&format!("{what} is passed over: {}", refused.why));
        }
        for left_out in report.left_out.iter().take(MOST_TOLD) {
            printer.note(&format!("trace {} is not used: {}", left_out.id, left_out.why));
        }
        printer.note(&format!(
            "{} of {} traces call {tool}; {} different messages are of use",
            report.calling, report.lines, report.usable
        ));
        drafter
    }
}
