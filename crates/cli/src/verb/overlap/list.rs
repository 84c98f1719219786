//! `karat overlap list`.

use karat_core::exit::ExitStatus;
use karat_report::counted;
use karat_workflows::overlaps::{OverlapList, list};

use super::{clipped, joined, labelled};
use crate::args::{OutputFormat, OverlapListArgs};
use crate::failure::Failure;
use crate::printer::Printer;
use crate::surface::Surface;

pub(super) fn run(args: &OverlapListArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let context = surface.context(&args.source.config_args(), &[])?;
    let list = list(&context)?;
    let printer = surface.printer;
    match args.format {
        OutputFormat::Json => printer.print_json(&list)?,
        OutputFormat::Human => printer.print(&text(&list, printer))?,
    }
    if list.path.is_none() {
        let path = context.settings.shown(&context.settings.overlap_map.path);
        printer.note(&format!("there is no {path}; 'karat overlap suggest' proposes overlaps"));
    }
    match list.issues {
        0 => {}
        1 => printer.note("1 thing is likely wrong in the map; 'karat check' shows it"),
        more => printer.note(&format!("{more} things are likely wrong in the map; 'karat check' shows them")),
    }
    Ok(ExitStatus::Success)
}

fn text(list: &OverlapList, printer: &Printer) -> String {
    let mut out = String::new();
    for tool in &list.tools {
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
    let counts =
        [counted(list.tools.len(), "tool"), counted(list.overlaps, "overlap"), counted(list.clusters, "cluster")];
    out.push_str(&counts.join(", "));
    out.push('\n');
    out
}
