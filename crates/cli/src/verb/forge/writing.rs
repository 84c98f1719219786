//! What was approved, on disk: the overlap map first, so that eval files name the map as it is then.

use std::io;
use std::path::Path;

use karat_core::case::Tier;
use karat_core::exit::ExitStatus;
use karat_core::port::Clock as _;
use karat_forge::file::{FileError, Heading, forged};
use karat_forge::session::Session;
use karat_project::replace_file;
use karat_tools::overlap::{OverlapChange, OverlapEditError, OverlapEditor, OverlapMap};
use serde_json::Value;

use super::Forge;
use super::material::Material;
use super::report::WrittenFile;
use crate::diagnostic::print_findings;
use crate::failure::Failure;
use crate::resolve::edit_lock;
use karat_json::without_bom;
use karat_workflows::context::clock::SystemClock;

/// What a session wrote.
#[derive(Default)]
pub(super) struct Written {
    pub(super) files: Vec<WrittenFile>,
    pub(super) overlaps: Vec<String>,
}

impl Forge<'_> {
    /// Writes the approved cases of a tier behind those that are there; what is there already is not written again.
    pub(super) fn write(
        &self,
        session: &Session,
        material: &Material,
        tier: Tier,
        written: &mut Written,
    ) -> Result<(), Failure> {
        let cases: Vec<Value> = session.unwritten(tier).into_iter().cloned().collect();
        let _lock = edit_lock(&self.settings, self.printer)?;
        written.overlaps.extend(self.declare_overlaps(session)?);
        if cases.is_empty() {
            return Ok(());
        }
        let path = material.file(tier);
        let shown = self.settings.shown(path);
        let existing =
            read_if_there(path).map_err(|error| Failure::invalid(format!("cannot read {shown}: {error}")))?;
        let heading = Heading {
            tool: &material.brief.tool,
            tier,
            registry_size: material.registry_size,
            overlap_map_version: self.overlap_map_version()?,
            generated_at: SystemClock.now().to_string(),
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let approvals = session.approvals(tier);
        let file = forged(existing.as_deref(), &name, &heading, &cases, &approvals).map_err(|error| {
            if let (FileError::Invalid(invalid), Some(bytes)) = (&error, &existing) {
                let text = String::from_utf8_lossy(without_bom(bytes));
                print_findings(&shown, &text, &invalid.findings, self.printer);
                return Failure::reported(ExitStatus::Invalid);
            }
            Failure::errored(format!("{shown}: {error}"))
        })?;
        if existing.as_deref() != Some(file.text.as_bytes()) {
            replace_file(path, &file.text)
                .map_err(|error| Failure::errored(format!("cannot write {shown}: {error}")))?;
        }
        for (from, to) in &file.renumbered {
            self.printer.note(&format!("{from} was taken in the meantime: the case is {to}"));
        }
        for remark in &file.remarks {
            self.printer.warn(&format!("{shown}: {remark}"));
        }
        let is_new = existing.is_none();
        written.files.push(WrittenFile { path: shown, tier, added: file.added, total: file.total, is_new });
        Ok(())
    }

    /// Puts the neighbours that a person approved into the overlap map; returns those that it did not have.
    fn declare_overlaps(&self, session: &Session) -> Result<Vec<String>, Failure> {
        if session.declared.is_empty() {
            return Ok(Vec::new());
        }
        let path = &self.settings.overlap_map.path;
        let shown = self.settings.shown(path);
        let bytes = read_if_there(path).map_err(|error| Failure::invalid(format!("cannot read {shown}: {error}")))?;
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
        let editor = opened.and_then(edit).map_err(|error| Failure::invalid(format!("{shown}: {error}")))?;
        let added = editor.changes().iter().filter_map(|change| match change {
            OverlapChange::OverlapAdded { tool, other } if *tool == session.tool => Some(other.clone()),
            _ => None,
        });
        let added: Vec<String> = added.collect();
        if !editor.changes().is_empty() {
            replace_file(path, &editor.into_text())
                .map_err(|error| Failure::errored(format!("cannot write {shown}: {error}")))?;
        }
        Ok(added)
    }

    fn overlap_map_version(&self) -> Result<Option<String>, Failure> {
        let path = &self.settings.overlap_map.path;
        let bytes = read_if_there(path)
            .map_err(|error| Failure::invalid(format!("cannot read {}: {error}", self.settings.shown(path))))?;
        Ok(bytes.and_then(|bytes| OverlapMap::read(&bytes).ok()).map(|map| map.version))
    }
}

fn read_if_there(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
