//! Edits the overlap map.

use karat_cases::registry::Registry;
use karat_json::{InvalidFile, nearest};
use karat_project::{read_file, read_overlap_map, replace_file};
use karat_tools::overlap::{OverlapChange, OverlapEditError, OverlapEditor, OverlapMap};

use crate::context::Context;
use crate::error::Error;
use crate::hint::Hint;

/// Minimum number of tools in a cluster; two tools are an overlap.
const MIN_CLUSTER_SIZE: usize = 3;

/// The key of the schema in a map; not a valid tool name.
const SCHEMA_KEY: &str = "$schema";

pub struct AddRequest {
    pub tool: String,
    /// The tools that overlap it.
    pub others: Vec<String>,
    /// Declare all tools as a cluster, instead of overlaps with the first.
    pub cluster: bool,
    /// Added to existing reasons.
    pub reason: Option<String>,
    /// Convert a map of the other shape.
    pub convert: bool,
}

pub struct RemoveRequest {
    pub tool: String,
    /// The tools that no longer overlap it.
    pub others: Vec<String>,
    /// Remove the cluster of all tools, instead of overlaps with the first.
    pub cluster: bool,
    /// Convert a map of the other shape.
    pub convert: bool,
}

/// The result of an edit. The file is written only if something changed.
#[derive(Debug, PartialEq, Eq)]
pub struct EditReport {
    /// The path of the map, for display.
    pub path: String,
    pub changes: Vec<OverlapChange>,
    /// The map was converted to the editable shape.
    pub converted: bool,
}

/// Declares overlaps or a cluster.
pub async fn add(request: AddRequest, context: &Context<'_>) -> Result<EditReport, Error> {
    let AddRequest { tool, others, cluster, reason, convert } = request;
    let registry = context.list_tools().await?;
    let tools = all_tools(&tool, &others, cluster)?;
    match &registry {
        Some(registry) => check_names(&tools, registry, context)?,
        None => context.notices.note("tool names were not checked: no tool registry is configured"),
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

/// Removes overlaps or a cluster. A tool that is gone from the registry can be removed, a misspelt one is an error.
pub async fn remove(request: &RemoveRequest, context: &Context<'_>) -> Result<EditReport, Error> {
    let RemoveRequest { tool, others, cluster, convert } = request;
    let tools = all_tools(tool, others, *cluster)?;
    let edited = edit(*convert, context, |editor| {
        if *cluster {
            editor.remove_cluster(&tools)
        } else {
            others.iter().try_for_each(|other| editor.remove(tool, other))
        }
    })?;
    if edited.changes.is_empty() {
        let map = read_overlap_map(&context.settings.overlap_map)?;
        let names = map.as_ref().map(OverlapMap::tool_names).unwrap_or_default();
        let undeclared: Vec<String> = tools.into_iter().filter(|tool| !names.contains(tool.as_str())).collect();
        if let (false, Some(registry)) = (undeclared.is_empty(), context.list_tools().await?) {
            check_names(&undeclared, &registry, context)?;
        }
    }
    Ok(edited)
}

/// Returns all tools. Rejects invalid and duplicate names.
fn all_tools(tool: &String, others: &[String], is_cluster: bool) -> Result<Vec<String>, Error> {
    let mut tools: Vec<String> = Vec::new();
    for name in std::iter::once(tool).chain(others) {
        if name.trim().is_empty() || name == SCHEMA_KEY {
            return Err(Error::invalid(format!("invalid tool name '{name}'")));
        }
        if tools.contains(name) {
            return Err(Error::invalid(format!("duplicate tool '{name}'")));
        }
        tools.push(name.clone());
    }
    if is_cluster && tools.len() < MIN_CLUSTER_SIZE {
        let message = format!("a cluster needs at least {MIN_CLUSTER_SIZE} tools, found {}", tools.len());
        return Err(Error::invalid(message).hint("to declare an overlap of two tools, remove --cluster"));
    }
    Ok(tools)
}

/// Rejects unknown tools; only warns if the registry has gaps.
fn check_names(tools: &[String], registry: &Registry, context: &Context<'_>) -> Result<(), Error> {
    for tool in tools.iter().filter(|tool| registry.tool(tool).is_none()) {
        let near = nearest(tool, &registry.names()).map(|name| format!("did you mean '{name}'?"));
        if registry.gaps().is_empty() {
            let error = Error::not_found(format!("unknown tool '{tool}'"));
            return Err(match near {
                Some(near) => error.hint(near),
                None => error.hint(Hint::ListTools),
            });
        }
        let near = near.map(|near| format!(" ({near})")).unwrap_or_default();
        let warning = format!("unknown tool '{tool}', but parts of the tool registry could not be read{near}");
        context.notices.warn(&warning);
    }
    Ok(())
}

/// Edits the map under the project's edit lock.
fn edit(
    convert: bool,
    context: &Context<'_>,
    edit: impl FnOnce(&mut OverlapEditor) -> Result<(), OverlapEditError>,
) -> Result<EditReport, Error> {
    let _lock = context.edit_lock()?;
    let path = &context.settings.overlap_map.path;
    let display_path = context.settings.display_path(path);
    let (mut editor, converted) = open(convert, &display_path, context)?;
    edit(&mut editor).map_err(|error| Error::unavailable(error.to_string()))?;
    let changes = editor.changes().to_vec();
    if converted || !changes.is_empty() {
        replace_file(path, &editor.into_text()).map_err(|error| Error::cannot_write(&display_path, &error))?;
    }
    Ok(EditReport { path: display_path, changes, converted })
}

/// Opens the map; an empty one if the file does not exist. Also returns whether the map was converted.
fn open(convert: bool, display_path: &str, context: &Context<'_>) -> Result<(OverlapEditor, bool), Error> {
    let bytes = match read_file(&context.settings.overlap_map.path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok((OverlapEditor::empty(), false)),
        Err(error) => return Err(Error::invalid(format!("cannot read the overlap map {display_path}: {error}"))),
    };
    let invalid = |error: OverlapEditError| match error {
        OverlapEditError::Invalid(findings) => {
            Error::invalid_files(vec![InvalidFile::new(display_path, &bytes, findings)])
        }
        error => Error::invalid(format!("{display_path}: {error}"))
            .hint("pass --convert to rewrite it in the format that karat edits"),
    };
    match OverlapEditor::open(&bytes) {
        Err(OverlapEditError::ListShape) if convert => {
            let (editor, lost) = OverlapEditor::convert(&bytes).map_err(invalid)?;
            for item in lost {
                context.notices.warn(&format!("dropped {item}: it cannot be converted"));
            }
            Ok((editor, true))
        }
        opened => Ok((opened.map_err(invalid)?, false)),
    }
}
