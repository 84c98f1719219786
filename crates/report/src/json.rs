//! JSON output of a run: one document at the end, or one line per event.

use std::io::{self, Write};
use std::sync::Arc;

use karat_core::event::RunEvent;
use karat_core::event::{ReportError, Reporter};
use karat_core::result::SuiteResult;
use karat_core::rubric::RubricSuite;
use karat_core::run_report::RunReport;
use serde::Serialize;

use crate::json_escapes::escape_json;
use crate::matrix::matrix_of;
use crate::record::RunRecord;

/// Writes one JSON document at the end of the run.
pub struct JsonReporter {
    out: Box<dyn Write + Send>,
    suites: Vec<Arc<SuiteResult>>,
    rubrics: Vec<Arc<RubricSuite>>,
    run: RunRecord,
}

impl JsonReporter {
    pub fn new(out: Box<dyn Write + Send>) -> Self {
        Self { out, suites: Vec::new(), rubrics: Vec::new(), run: RunRecord::default() }
    }
}

impl Reporter for JsonReporter {
    fn on_event(&mut self, event: &RunEvent) -> Result<(), ReportError> {
        self.run.observe(event);
        match event {
            RunEvent::SuiteFinished { result, .. } => self.suites.push(Arc::clone(result)),
            RunEvent::RubricFinished { suite } => self.rubrics.push(Arc::clone(suite)),
            RunEvent::RunFinished { run_id, totals } => {
                let report = RunReport {
                    run_id: run_id.clone(),
                    totals: totals.clone(),
                    suites: std::mem::take(&mut self.suites),
                    rubrics: std::mem::take(&mut self.rubrics),
                    matrix: matrix_of(&self.run),
                };
                write_line(&mut self.out, &report, true)?;
            }
            RunEvent::RunStarted { .. } | RunEvent::CaseFinished { .. } => {}
        }
        Ok(())
    }
}

/// Writes each event as one line.
pub struct JsonLinesReporter {
    out: Box<dyn Write + Send>,
}

impl JsonLinesReporter {
    pub fn new(out: Box<dyn Write + Send>) -> Self {
        Self { out }
    }
}

impl Reporter for JsonLinesReporter {
    fn on_event(&mut self, event: &RunEvent) -> Result<(), ReportError> {
        write_line(&mut self.out, event, false)
    }
}

fn write_line(out: &mut dyn Write, value: &impl Serialize, pretty: bool) -> Result<(), ReportError> {
    let text = if pretty { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) };
    text.map_err(io::Error::from)
        .and_then(|text| out.write_all(escape_json(&text).as_bytes()))
        .and_then(|()| out.write_all(b"\n"))
        .and_then(|()| out.flush())
        .map_err(|source| ReportError { target: "the JSON output".to_owned(), source })
}
