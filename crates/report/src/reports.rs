//! Reports of a run, requested with `--report`.

use std::collections::BTreeMap;

use karat_core::event::Reporter;
use karat_workflows::Error;
use karat_workflows::run_suites::NotStored;

use crate::destination::Destination;
use crate::github::GithubReporter;
use crate::junit::JunitReporter;
use crate::markdown::MarkdownReporter;
use crate::tools::counted;

/// A report of a run.
pub enum Report {
    Junit(Destination),
    Markdown(Destination),
    Github(Destination),
}

impl Report {
    /// Parses the value of `--report`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let (kind, destination) = parse_report(text, &["junit", "markdown", "github"], "junit=report.xml")?;
        Ok(match kind {
            "junit" => Report::Junit(destination),
            "markdown" => Report::Markdown(destination),
            _ => Report::Github(destination),
        })
    }

    fn destination(&self) -> &Destination {
        let (Report::Junit(destination) | Report::Markdown(destination) | Report::Github(destination)) = self;
        destination
    }

    /// Creates the reporter; annotations name paths in this folder of the repository.
    pub fn reporter(self, folder: &str) -> Box<dyn Reporter> {
        match self {
            Self::Junit(destination) => Box::new(JunitReporter::new(destination)),
            Self::Markdown(destination) => Box::new(MarkdownReporter::new(destination)),
            Self::Github(destination) => Box::new(GithubReporter::new(destination).with_folder(folder.to_owned())),
        }
    }

    pub fn is_stdout(&self) -> bool {
        matches!(self.destination(), Destination::Stdout)
    }

    /// Checks that the report can be written, before any case runs.
    pub fn check(&self) -> Result<(), Error> {
        let checked = self.destination().check();
        checked.map_err(|error| Error::invalid(format!("cannot write the report to {}: {error}", self.destination())))
    }
}

/// Parses `KIND=PATH`, the value of `--report`.
pub fn parse_report<'t>(text: &'t str, kinds: &[&str], example: &str) -> Result<(&'t str, Destination), Error> {
    let Some((kind, path)) = text.split_once('=').filter(|(_, path)| !path.is_empty()) else {
        let error = Error::invalid(format!("missing path in --report {text}"));
        return Err(error.hint(format!("for example --report {example}")));
    };
    if !kinds.contains(&kind) {
        let one_of = if kinds.len() > 1 { "one of: " } else { "" };
        let error = Error::invalid(format!("unknown report format '{kind}'"));
        return Err(error.hint(format!("expected {one_of}{}", kinds.join(", "))));
    }
    Ok((kind, Destination::parse(path)))
}

/// Maximum number of traces listed in a warning.
const MAX_LISTED_TRACES: usize = 5;

/// Renders a warning about traces that are not in the store, for each reason.
pub fn not_stored_warnings(not_stored: &[NotStored], ellipsis: &str) -> Vec<String> {
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for trace in not_stored {
        by_reason.entry(&trace.reason).or_default().push(&trace.case_id);
    }
    let warning = |(reason, cases): (&str, Vec<&str>)| {
        let more = if cases.len() > MAX_LISTED_TRACES { format!(", {ellipsis}") } else { String::new() };
        let ids = cases[..cases.len().min(MAX_LISTED_TRACES)].join(", ");
        format!("{} not stored ({ids}{more}): {reason}", counted(cases.len(), "trace"))
    };
    by_reason.into_iter().map(warning).collect()
}
