//! Writes approved cases. Updates the overlap map first, so that eval files record its new version.

use std::io;
use std::path::Path;

use karat_cases::Tier;
use karat_forge::file::{FileError, FileHeader, merge_cases};
use karat_forge::session::Session;
use karat_json::InvalidFile;
use karat_project::{read_file, replace_file};
use karat_tools::overlap::{OverlapChange, OverlapEditError, OverlapEditor, OverlapMap};
use serde_json::Value;

use super::inputs::ForgeInputs;
use super::report::WrittenFile;
use crate::context::Context;
use crate::error::Error;

/// The files and overlaps that a session wrote.
#[derive(Default)]
pub(super) struct WriteOutcome {
    pub(super) files: Vec<WrittenFile>,
    pub(super) overlaps: Vec<String>,
}

impl WriteOutcome {
    /// Adds the approved cases of a tier to the tool's file. Skips existing cases.
    pub(super) fn write(
        &mut self,
        session: &Session,
        inputs: &ForgeInputs,
        tier: Tier,
        context: &Context<'_>,
    ) -> Result<(), Error> {
        let cases: Vec<Value> = session.unwritten(tier).into_iter().cloned().collect();
        let _lock = context.edit_lock()?;
        self.overlaps.extend(declare_overlaps(session, context)?);
        if cases.is_empty() {
            return Ok(());
        }
        let path = inputs.file(tier);
        let display_path = context.settings.display_path(path);
        let existing = read_existing(path, &display_path)?;
        let header = FileHeader {
            tool: &inputs.brief.tool,
            tier,
            registry_size: inputs.registry_size,
            overlap_map_version: overlap_map_version(context)?,
            generated_at: context.clock.now().to_string(),
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let file = merge_cases(existing.as_deref(), &name, &header, &cases, &session.approvals(tier)).map_err(
            |error| match (error, &existing) {
                (FileError::Invalid(invalid), Some(bytes)) => {
                    Error::invalid_files(vec![InvalidFile::new(&display_path, bytes, invalid.findings)])
                }
                (error, _) => Error::unavailable(format!("{display_path}: {error}")),
            },
        )?;
        if existing.as_deref() != Some(file.text.as_bytes()) {
            replace(path, &display_path, &file.text)?;
        }
        for (from, to) in &file.renumbered {
            context.notices.note(&format!("the id {from} is already in use: the case is now {to}"));
        }
        for remark in &file.remarks {
            context.notices.warn(&format!("{display_path}: {remark}"));
        }
        let is_new = existing.is_none();
        self.files.push(WrittenFile { path: display_path, tier, added: file.added, total: file.total, is_new });
        Ok(())
    }
}

/// Adds the declared overlaps to the overlap map. Returns the new ones.
fn declare_overlaps(session: &Session, context: &Context<'_>) -> Result<Vec<String>, Error> {
    if session.declared.is_empty() {
        return Ok(Vec::new());
    }
    let path = &context.settings.overlap_map.path;
    let display_path = context.settings.display_path(path);
    let bytes = read_existing(path, &display_path)?;
    let opened = bytes.as_deref().map_or_else(|| Ok(OverlapEditor::empty()), OverlapEditor::open);
    let edit = |mut editor: OverlapEditor| -> Result<OverlapEditor, OverlapEditError> {
        for declared in &session.declared {
            editor.add(&session.tool, &declared.tool)?;
            if let Some(reason) = &declared.reason {
                editor.add_reason(&session.tool, reason)?;
            }
        }
        Ok(editor)
    };
    let editor = opened.and_then(edit).map_err(|error| Error::invalid(format!("{display_path}: {error}")))?;
    let added = editor.changes().iter().filter_map(|change| match change {
        OverlapChange::OverlapAdded { tool, other } if *tool == session.tool => Some(other.clone()),
        _ => None,
    });
    let added: Vec<String> = added.collect();
    if !editor.changes().is_empty() {
        replace(path, &display_path, &editor.into_text())?;
    }
    Ok(added)
}

fn overlap_map_version(context: &Context<'_>) -> Result<Option<String>, Error> {
    let path = &context.settings.overlap_map.path;
    let bytes = read_existing(path, &context.settings.display_path(path))?;
    Ok(bytes.and_then(|bytes| OverlapMap::read(&bytes).ok()).map(|map| map.version))
}

fn read_existing(path: &Path, display_path: &str) -> Result<Option<Vec<u8>>, Error> {
    match read_file(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::invalid(format!("cannot read {display_path}: {error}"))),
    }
}

fn replace(path: &Path, display_path: &str, text: &str) -> Result<(), Error> {
    replace_file(path, text).map_err(|error| Error::cannot_write(display_path, &error))
}
