//! `karat overlap add` and `remove`.

use std::fmt::Write as _;

use karat_core::exit::ExitStatus;
use karat_core::registry::Registry;
use karat_json::nearest;
use karat_project::replace_file;
use karat_report::printable;
use karat_tools::overlap::{OverlapChange, OverlapEditError, OverlapEditor};

use crate::args::{OverlapAddArgs, OverlapRemoveArgs};
use crate::diagnostic::print_findings;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::project::Project;
use crate::resolve::{edit_lock, resolve_settings};
use karat_json::without_bom;
use karat_project::EditLock;
use karat_workflows::settings::Settings;

/// Two tools are an overlap.
const LEAST_MEMBERS: usize = 3;

/// Which a map's own schema is named by, and no tool can be.
const SCHEMA_KEY: &str = "$schema";

pub(super) fn add(args: &OverlapAddArgs, environment: &Environment, printer: &Printer) -> Result<ExitStatus, Failure> {
    let project = Project::open(&args.source.config_args(), environment, printer)?;
    let tools = named(&args.tool, &args.others, args.cluster)?;
    match &project.registry {
        Some(registry) => check_names(&tools, registry, printer)?,
        None => printer.note("there is no tool registry, so the names were not checked"),
    }
    let mut map = MapFile::open(&project.settings, args.convert, printer)?;
    let mut edit = || {
        if args.cluster {
            map.editor.add_cluster(&tools)?;
        } else {
            args.others.iter().try_for_each(|other| map.editor.add(&args.tool, other))?;
        }
        tools.iter().try_for_each(|tool| match &args.reason {
            Some(reason) => map.editor.add_reason(tool, reason),
            None => Ok(()),
        })
    };
    edit().map_err(|error| refused(&error))?;
    map.finish("already declared", printer)
}

pub(super) fn remove(
    args: &OverlapRemoveArgs,
    environment: &Environment,
    printer: &Printer,
) -> Result<ExitStatus, Failure> {
    let settings = resolve_settings(&args.source.config_args(), &[], environment, printer)?;
    let tools = named(&args.tool, &args.others, args.cluster)?;
    let mut map = MapFile::open(&settings, args.convert, printer)?;
    let edited = if args.cluster {
        map.editor.remove_cluster(&tools)
    } else {
        args.others.iter().try_for_each(|other| map.editor.remove(&args.tool, other))
    };
    edited.map_err(|error| refused(&error))?;
    map.finish("not declared", printer)
}

/// Returns all tools that are named, each once.
fn named(tool: &String, others: &[String], is_cluster: bool) -> Result<Vec<String>, Failure> {
    let mut tools: Vec<String> = Vec::new();
    for name in std::iter::once(tool).chain(others) {
        if name.trim().is_empty() || name == SCHEMA_KEY {
            return Err(Failure::invalid(format!("'{name}' cannot be a tool's name")));
        }
        if tools.contains(name) {
            return Err(Failure::invalid(format!("'{name}' is named twice")));
        }
        tools.push(name.clone());
    }
    if is_cluster && tools.len() < LEAST_MEMBERS {
        return Err(Failure::invalid(format!("a cluster is of at least {LEAST_MEMBERS} tools, found {}", tools.len()))
            .hint("two tools are an overlap: leave --cluster out"));
    }
    Ok(tools)
}

/// Refuses what is no tool; where a part of the registry could not be read, it may be one.
fn check_names(tools: &[String], registry: &Registry, printer: &Printer) -> Result<(), Failure> {
    for tool in tools.iter().filter(|tool| registry.tool(tool).is_none()) {
        let near = nearest(tool, &registry.names()).map(|name| format!("did you mean '{name}'?"));
        if registry.gaps().is_empty() {
            let failure = Failure::invalid(format!("the registry has no tool '{tool}'"));
            return Err(match near {
                Some(near) => failure.hint(near),
                None => failure,
            });
        }
        let near = near.map(|near| format!(" ({near})")).unwrap_or_default();
        printer.warn(&format!("'{tool}' is not known, but not all of the tool registry could be read{near}"));
    }
    Ok(())
}

fn refused(error: &OverlapEditError) -> Failure {
    Failure::errored(error.to_string())
}

/// The map's file while it is edited.
struct MapFile<'s> {
    settings: &'s Settings,
    editor: OverlapEditor,
    is_converted: bool,
    /// Until the file is written.
    _lock: EditLock,
}

impl<'s> MapFile<'s> {
    /// Reads the map, or begins one where there is no file.
    fn open(settings: &'s Settings, convert: bool, printer: &Printer) -> Result<Self, Failure> {
        let lock = edit_lock(settings, printer)?;
        let path = &settings.overlap_map.path;
        let shown = settings.shown(path);
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self { settings, editor: OverlapEditor::empty(), is_converted: false, _lock: lock });
            }
            Err(error) => return Err(Failure::invalid(format!("cannot read the overlap map {shown}: {error}"))),
        };
        let invalid = |error: OverlapEditError| match error {
            OverlapEditError::Invalid(findings) => {
                print_findings(&shown, &String::from_utf8_lossy(without_bom(&bytes)), &findings, printer);
                Failure::reported(ExitStatus::Invalid)
            }
            error => Failure::invalid(format!("{shown}: {error}"))
                .hint("--convert rewrites it in the shape that karat edits, and says what has no place there"),
        };
        match OverlapEditor::open(&bytes) {
            Ok(editor) => Ok(Self { settings, editor, is_converted: false, _lock: lock }),
            Err(OverlapEditError::ListShape) if convert => {
                let (editor, lost) = OverlapEditor::convert(&bytes).map_err(invalid)?;
                for one in lost {
                    printer.warn(&format!("{one} has no place in the other shape, and is dropped"));
                }
                Ok(Self { settings, editor, is_converted: true, _lock: lock })
            }
            Err(error) => Err(invalid(error)),
        }
    }

    /// Writes the file if anything changed, and says what.
    fn finish(self, unchanged: &str, printer: &Printer) -> Result<ExitStatus, Failure> {
        let path = &self.settings.overlap_map.path;
        let shown = self.settings.shown(path);
        let changes = self.editor.changes().to_vec();
        let mut out = String::new();
        if changes.is_empty() && !self.is_converted {
            let _ = writeln!(out, "{}: nothing to change, {unchanged}", printable(&shown));
        } else {
            replace_file(path, &self.editor.into_text())
                .map_err(|error| Failure::errored(format!("cannot write {shown}: {error}")))?;
            let converted = if self.is_converted { ", rewritten in the shape that karat edits" } else { "" };
            let _ = writeln!(out, "{}{converted}", printable(&shown));
        }
        for change in &changes {
            let _ = writeln!(out, "  {}", printable(&told(change)));
        }
        printer.print(&out)?;
        Ok(ExitStatus::Success)
    }
}

fn told(change: &OverlapChange) -> String {
    match change {
        OverlapChange::OverlapAdded { tool, other } => format!("+ {tool} overlaps {other}"),
        OverlapChange::OverlapRemoved { tool, other } => format!("- {tool} overlaps {other}"),
        OverlapChange::ClusterAdded { tool, members } => format!("+ {tool} in the cluster {}", members.join(" + ")),
        OverlapChange::ClusterRemoved { tool, members } => format!("- {tool} in the cluster {}", members.join(" + ")),
        OverlapChange::ReasonSet { tool, reason } => format!("+ reason of {tool}: {reason}"),
        OverlapChange::EntryRemoved { tool } => format!("- the entry of {tool}, in which nothing was left"),
    }
}
