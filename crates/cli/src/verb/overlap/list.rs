//! `karat overlap list`.

use karat_core::exit::ExitStatus;
use karat_report::counted;
use karat_workflows::overlaps::{OverlapList, list};

use super::{join_names, push_labelled, shorten_name};
use crate::args::{OutputFormat, OverlapListArgs};
use crate::failure::Failure;
use crate::printer::Printer;
use crate::surface::Surface;

pub(super) fn run(args: &OverlapListArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let context = surface.context(&args.source, &[])?;
    let list = list(&context)?;
    let printer = surface.printer;
    match args.format {
        OutputFormat::Json => printer.print_json(&list)?,
        OutputFormat::Human => printer.print(&text(&list, printer))?,
    }
    if list.path.is_none() {
        let path = context.settings.display_path(&context.settings.overlap_map.path);
        printer.note(&format!("{path} does not exist; run 'karat overlap suggest' for suggestions"));
    }
    if list.issues > 0 {
        printer.note(&format!("{} in the map; run 'karat check' for details", counted(list.issues, "finding")));
    }
    Ok(ExitStatus::Success)
}

fn text(list: &OverlapList, printer: &Printer) -> String {
    let mut out = String::new();
    for tool in &list.tools {
        out.push_str(&printer.stdout_palette.bold(shorten_name(&tool.tool, printer)));
        out.push('\n');
        if !tool.overlaps.is_empty() {
            push_labelled("  overlaps  ", &join_names(&tool.overlaps, ", ", printer), printer.columns, &mut out);
        }
        for cluster in &tool.clusters {
            push_labelled("  cluster   ", &join_names(cluster, " + ", printer), printer.columns, &mut out);
        }
        if let Some(reason) = &tool.reason {
            push_labelled("  reason    ", reason, printer.columns, &mut out);
        }
    }
    let counts =
        [counted(list.tools.len(), "tool"), counted(list.overlaps, "overlap"), counted(list.clusters, "cluster")];
    out.push_str(&counts.join(", "));
    out.push('\n');
    out
}
