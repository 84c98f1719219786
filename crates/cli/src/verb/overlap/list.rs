//! `karat overlap list`.

use std::collections::{BTreeMap, BTreeSet};

use karat_core::exit::ExitStatus;
use karat_tools::overlap::{OverlapMap, check_overlaps};
use schemars::JsonSchema;
use serde::Serialize;

use super::{clipped, joined, labelled};
use crate::args::{OutputFormat, OverlapListArgs};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::resolve::resolve_settings;
use karat_project::read_overlap_map;

/// What is declared, with both directions of an overlap united.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "karat overlap list")]
pub(crate) struct ListReport {
    /// The map's file, or null where there is none.
    path: Option<String>,
    /// What eval files carry as `overlapMapVersion`.
    version: Option<String>,
    /// How many pairs of tools overlap.
    overlaps: usize,
    /// How many distinct clusters there are.
    clusters: usize,
    tools: Vec<ListedTool>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ListedTool {
    tool: String,
    /// All its neighbours, whichever side declares them.
    overlaps: Vec<String>,
    /// The members of each cluster that holds it.
    clusters: Vec<Vec<String>>,
    reason: Option<String>,
}

pub(super) fn run(args: &OverlapListArgs, environment: &Environment, printer: &Printer) -> Result<ExitStatus, Failure> {
    let settings = resolve_settings(&args.source.config_args(), &[], environment, printer)?;
    let setting = &settings.overlap_map;
    let map = read_overlap_map(setting)?;
    let report = ListReport::of(map.as_ref(), map.is_some().then(|| settings.shown(&setting.path)));
    match args.format {
        OutputFormat::Json => printer.print_json(&report)?,
        OutputFormat::Human => {
            printer.print(&report.text(printer))?;
        }
    }
    let Some(map) = map else {
        printer
            .note(&format!("there is no {}; 'karat overlap suggest' proposes overlaps", settings.shown(&setting.path)));
        return Ok(ExitStatus::Success);
    };
    // Without the registry, which a server may have to be started for.
    match check_overlaps(&map, None).len() {
        0 => {}
        1 => printer.note("1 thing is likely wrong in the map; 'karat check' shows it"),
        more => printer.note(&format!("{more} things are likely wrong in the map; 'karat check' shows them")),
    }
    Ok(ExitStatus::Success)
}

impl ListReport {
    fn of(map: Option<&OverlapMap>, path: Option<String>) -> Self {
        let Some(map) = map else {
            return Self { path, version: None, overlaps: 0, clusters: 0, tools: Vec::new() };
        };
        let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let mut names: BTreeSet<&str> = map.pairs().flat_map(|(left, right)| [left, right]).collect();
        names.extend(map.clusters().flatten().map(String::as_str));
        for entry in &map.entries {
            names.insert(&entry.tool);
            let said = entry.reason.iter().chain(entry.overlaps.iter().filter_map(|other| other.reason.as_ref()));
            for reason in said {
                let reasons = reasons.entry(&entry.tool).or_default();
                if !reasons.contains(&reason.as_str()) {
                    reasons.push(reason);
                }
            }
        }
        let tool = |tool: &str| ListedTool {
            tool: tool.to_owned(),
            overlaps: map.neighbours(tool).map(str::to_owned).collect(),
            clusters: map.clusters_of(tool).map(|members| members.iter().cloned().collect()).collect(),
            reason: reasons.get(tool).map(|reasons| reasons.join("; ")),
        };
        Self {
            path,
            version: Some(map.version.clone()),
            overlaps: map.pairs().count(),
            clusters: map.clusters().count(),
            tools: names.into_iter().map(tool).collect(),
        }
    }

    fn text(&self, printer: &Printer) -> String {
        let mut out = String::new();
        for tool in &self.tools {
            out.push_str(&printer.stdout_palette.bold(clipped(&tool.tool, printer)));
            out.push('\n');
            if !tool.overlaps.is_empty() {
                labelled("  overlaps  ", &joined(&tool.overlaps, ", ", printer), printer.columns, &mut out);
            }
            for cluster in &tool.clusters {
                labelled("  cluster   ", &joined(cluster, " + ", printer), printer.columns, &mut out);
            }
            if let Some(reason) = &tool.reason {
                labelled("  reason    ", reason, printer.columns, &mut out);
            }
        }
        let plural = |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
        let counts =
            [plural(self.tools.len(), "tool"), plural(self.overlaps, "overlap"), plural(self.clusters, "cluster")];
        out.push_str(&counts.join(", "));
        out.push('\n');
        out
    }
}
