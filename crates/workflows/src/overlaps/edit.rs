//! Edits of the overlap map.

use karat_core::registry::Registry;
use karat_json::{InvalidFile, nearest};
use karat_project::replace_file;
use karat_tools::overlap::{OverlapChange, OverlapEditError, OverlapEditor};

use crate::context::Context;
use crate::error::Error;

/// Two tools are an overlap.
const MIN_CLUSTER: usize = 3;

/// The key of a map's own schema, which no tool can have as its name.
const SCHEMA_KEY: &str = "$schema";

pub struct AddRequest {
    pub tool: String,
    /// The tools that are easily taken for it.
    pub others: Vec<String>,
    /// Declare all of them as a cluster, instead of overlaps with the first.
    pub cluster: bool,
    /// Joined to the reasons that are given already.
    pub reason: Option<String>,
    /// Rewrite a map of the other shape.
    pub convert: bool,
}

pub struct RemoveRequest {
    pub tool: String,
    /// The tools that it does not overlap any more.
    pub others: Vec<String>,
    /// Remove the cluster of all of them, instead of overlaps with the first.
    pub cluster: bool,
    /// Rewrite a map of the other shape.
    pub convert: bool,
}

/// What an edit did; the file is written only where something changed.
#[derive(Debug, PartialEq, Eq)]
pub struct Edited {
    /// The map's file.
    pub path: String,
    pub changes: Vec<OverlapChange>,
    /// The map was rewritten in the shape that karat edits.
    pub converted: bool,
}

/// Declares that tools are easily taken for each other.
pub async fn add(request: AddRequest, context: &Context<'_>) -> Result<Edited, Error> {
    let AddRequest { tool, others, cluster, reason, convert } = request;
    let registry = context.list_tools().await?;
    let tools = all_tools(&tool, &others, cluster)?;
    match &registry {
        Some(registry) => check_names(&tools, registry, context)?,
        None => context.notices.note("there is no tool registry, so the names were not checked"),
    }
    edit(convert, context, |editor| {
        if cluster {
            editor.add_cluster(&tools)?;
        } else {
            others.iter().try_for_each(|other| editor.add(&tool, other))?;
        }
        match &reason {
            Some(reason) => tools.iter().try_for_each(|tool| editor.add_reason(tool, reason)),
            None => Ok(()),
        }
    })
}

/// Takes a declaration back.
pub fn remove(request: &RemoveRequest, context: &Context<'_>) -> Result<Edited, Error> {
    let RemoveRequest { tool, others, cluster, convert } = request;
    let tools = all_tools(tool, others, *cluster)?;
    edit(*convert, context, |editor| {
        if *cluster {
            editor.remove_cluster(&tools)
        } else {
            others.iter().try_for_each(|other| editor.remove(tool, other))
        }
    })
}

/// Returns all tools that are named, each once.
fn all_tools(tool: &String, others: &[String], is_cluster: bool) -> Result<Vec<String>, Error> {
    let mut tools: Vec<String> = Vec::new();
    for name in std::iter::once(tool).chain(others) {
        if name.trim().is_empty() || name == SCHEMA_KEY {
            return Err(Error::invalid(format!("'{name}' cannot be a tool's name")));
        }
        if tools.contains(name) {
            return Err(Error::invalid(format!("'{name}' is named twice")));
        }
        tools.push(name.clone());
    }
    if is_cluster && tools.len() < MIN_CLUSTER {
        return Err(Error::invalid(format!("a cluster is of at least {MIN_CLUSTER} tools, found {}", tools.len()))
            .hint("two tools are an overlap: leave --cluster out"));
    }
    Ok(tools)
}

/// Fails for an unknown tool; warns where it may be in a part of the registry that could not be read.
fn check_names(tools: &[String], registry: &Registry, context: &Context<'_>) -> Result<(), Error> {
    for tool in tools.iter().filter(|tool| registry.tool(tool).is_none()) {
        let near = nearest(tool, &registry.names()).map(|name| format!("did you mean '{name}'?"));
        if registry.gaps().is_empty() {
            let error = Error::not_found(format!("the registry has no tool '{tool}'"));
            return Err(match near {
                Some(near) => error.hint(near),
                None => error,
            });
        }
        let near = near.map(|near| format!(" ({near})")).unwrap_or_default();
        let warning = format!("'{tool}' is not known, but not all of the tool registry could be read{near}");
        context.notices.warn(&warning);
    }
    Ok(())
}

/// Reads the map, edits it and writes it back, while no other process edits the project.
fn edit(
    convert: bool,
    context: &Context<'_>,
    edit: impl FnOnce(&mut OverlapEditor) -> Result<(), OverlapEditError>,
) -> Result<Edited, Error> {
    let _lock = context.edit_lock()?;
    let path = &context.settings.overlap_map.path;
    let shown = context.settings.shown(path);
    let (mut editor, converted) = open(convert, &shown, context)?;
    edit(&mut editor).map_err(|error| Error::unavailable(error.to_string()))?;
    let changes = editor.changes().to_vec();
    if converted || !changes.is_empty() {
        replace_file(path, &editor.into_text())
            .map_err(|error| Error::unavailable(format!("cannot write {shown}: {error}")))?;
    }
    Ok(Edited { path: shown, changes, converted })
}

/// Opens the map, or an empty one where there is no file; tells whether it was converted.
fn open(convert: bool, shown: &str, context: &Context<'_>) -> Result<(OverlapEditor, bool), Error> {
    let bytes = match std::fs::read(&context.settings.overlap_map.path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok((OverlapEditor::empty(), false)),
        Err(error) => return Err(Error::invalid(format!("cannot read the overlap map {shown}: {error}"))),
    };
    let invalid = |error: OverlapEditError| match error {
        OverlapEditError::Invalid(findings) => Error::invalid_files(vec![InvalidFile::new(shown, &bytes, findings)]),
        error => Error::invalid(format!("{shown}: {error}"))
            .hint("--convert rewrites it in the shape that karat edits, and says what has no place there"),
    };
    match OverlapEditor::open(&bytes) {
        Err(OverlapEditError::ListShape) if convert => {
            let (editor, lost) = OverlapEditor::convert(&bytes).map_err(invalid)?;
            for one in lost {
                context.notices.warn(&format!("{one} has no place in the other shape, and is dropped"));
            }
            Ok((editor, true))
        }
        opened => Ok((opened.map_err(invalid)?, false)),
    }
}
