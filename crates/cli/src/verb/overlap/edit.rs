//! `karat overlap add` and `karat overlap remove`.

use std::fmt::Write as _;

use karat_core::exit::ExitStatus;
use karat_report::printable;
use karat_tools::overlap::{OverlapChange, shell_quote};
use karat_workflows::overlaps::{self, AddRequest, Edited, RemoveRequest};

use crate::args::{OverlapAddArgs, OverlapRemoveArgs};
use crate::failure::Failure;
use crate::surface::Surface;

pub(super) fn add(args: OverlapAddArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let context = surface.context(&args.source, &[])?;
    let OverlapAddArgs { tool, others, cluster, reason, convert, .. } = args;
    let request = AddRequest { tool, others, cluster, reason, convert };
    let edited = surface.run(overlaps::add(request, &context))?;
    surface.printer.print(&text(&edited, "already declared"))?;
    let added = edited.changes.iter().find_map(|change| match change {
        OverlapChange::OverlapAdded { tool, .. } => Some(tool),
        _ => None,
    });
    if let Some(tool) = added {
        surface.printer.note(&format!(
            "'karat check' now requires an ambiguous case that names both tools in 'toolsAcceptable' \
             (untested-overlap); to draft it: karat forge {} --tier labeled",
            shell_quote(tool)
        ));
    }
    Ok(ExitStatus::Success)
}

pub(super) fn remove(args: OverlapRemoveArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let context = surface.context(&args.source, &[])?;
    let OverlapRemoveArgs { tool, others, cluster, convert, .. } = args;
    let request = RemoveRequest { tool, others, cluster, convert };
    let edited = surface.run(overlaps::remove(&request, &context))?;
    surface.printer.print(&text(&edited, "not declared"))?;
    Ok(ExitStatus::Success)
}

fn text(edited: &Edited, unchanged: &str) -> String {
    let path = printable(&edited.path);
    let mut out = match (edited.converted, edited.changes.is_empty()) {
        (true, _) => format!("{path}, converted to the format that karat edits\n"),
        (false, true) => format!("{path} is unchanged: {unchanged}\n"),
        (false, false) => format!("{path}\n"),
    };
    for change in &edited.changes {
        let _ = writeln!(out, "  {}", printable(&change_text(change)));
    }
    out
}

fn change_text(change: &OverlapChange) -> String {
    match change {
        OverlapChange::OverlapAdded { tool, other } => format!("+ {tool} overlaps {other}"),
        OverlapChange::OverlapRemoved { tool, other } => format!("- {tool} overlaps {other}"),
        OverlapChange::ClusterAdded { tool, members } => format!("+ {tool} in the cluster {}", members.join(" + ")),
        OverlapChange::ClusterRemoved { tool, members } => format!("- {tool} in the cluster {}", members.join(" + ")),
        OverlapChange::ReasonSet { tool, reason } => format!("+ reason of {tool}: {reason}"),
        OverlapChange::EntryRemoved { tool } => format!("- empty entry of {tool}"),
    }
}
