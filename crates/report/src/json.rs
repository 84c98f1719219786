//! JSON output of a run: one document at the end, or one line per event.

use std::io::{self, Write};
use std::sync::Arc;

use karat_core::event::{ReportError, Reporter};
use karat_core::event::{RunEvent, RunTotals};
use karat_core::result::SuiteResult;
use karat_core::rubric::RubricSuite;
use serde::Serialize;

use crate::json_escapes::escape_json;
use crate::matrix::Matrix;
use crate::record::RunRecord;

/// Writes one JSON document at the end of the run.
pub struct JsonReporter {
    out: Box<dyn Write + Send>,
    suites: Vec<Arc<SuiteResult>>,
    rubrics: Vec<Arc<RubricSuite>>,
    run: RunRecord,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RunDocument<'d> {
    run_id: &'d str,
    totals: &'d RunTotals,
    suites: &'d [Arc<SuiteResult>],
    rubrics: &'d [Arc<RubricSuite>],
    /// Present if the run has several agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    matrix: Option<Matrix>,
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
                let (suites, rubrics) = (&self.suites, &self.rubrics);
                let document = RunDocument { run_id, totals, suites, rubrics, matrix: Matrix::new(&self.run) };
                write_line(&mut self.out, &document, true)?;
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
