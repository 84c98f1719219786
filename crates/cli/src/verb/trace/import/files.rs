//! Traces out of files.

use std::time::Duration;

use karat_traces::Kind;
use tokio::time::Instant;

use super::Import;
use super::reading::{Reading, Said};
use crate::failure::Failure;
use crate::interrupt::Interrupts;
use crate::trace_files::TraceFile;

/// How much is written together: what is lost by a crash is read again, and what waits is held in memory.
const MOST_PIECES: usize = 500;
const MOST_BYTES: usize = 16 << 20;
const LONGEST_WAIT: Duration = Duration::from_secs(1);

impl Import<'_> {
    /// Takes what is read, until its end or until somebody asks to stop; what was taken by then is written.
    pub(super) async fn read_files(
        &mut self,
        files: Vec<TraceFile>,
        kind: Option<Kind>,
        interrupts: &Interrupts,
    ) -> Result<(), Failure> {
        let mut reading = Reading::begin(files, kind);
        let (mut since, mut bytes) = (Instant::now(), 0);
        loop {
            let said = tokio::select! {
                biased;
                () = interrupts.asked() => {
                    self.totals.report_mut().interrupted = true;
                    break;
                }
                said = reading.next() => said,
                () = tokio::time::sleep_until(since + LONGEST_WAIT), if !self.waiting.is_empty() => {
                    self.write(reading.name(), reading.bytes()).await?;
                    bytes = 0;
                    continue;
                }
            };
            match said {
                None => break,
                Some(Said::Began) => self.totals.report_mut().files += 1,
                Some(Said::Nothing) => self.without_traces.push(reading.name().to_owned()),
                Some(Said::Refused(refused)) => self.totals.report_mut().refused.push(refused),
                Some(Said::Piece(piece, size)) => {
                    if self.waiting.is_empty() {
                        since = Instant::now();
                    }
                    self.waiting.push(piece);
                    bytes += size;
                    if self.waiting.len() >= MOST_PIECES || bytes >= MOST_BYTES {
                        self.write(reading.name(), reading.bytes()).await?;
                        bytes = 0;
                    }
                }
            }
        }
        self.write(reading.name(), reading.bytes()).await
    }
}
