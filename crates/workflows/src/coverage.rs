//! Measures coverage and confusion of the tools.

use std::path::PathBuf;

use karat_cases::EvalFile;
use karat_cases::registry::Registry;
use karat_project::{discover_or_empty, load_all, lock_path, read_lock, read_overlap_map};
use karat_tools::coverage::{Coverage, Requirement, Suite};
use karat_tools::lock::{LockDiff, ToolsLock};
use karat_tools::overlap::OverlapMap;

pub use crate::confusion::RunChoice;
use crate::confusion::read_confusion;
use crate::context::Context;
use crate::context::tools::is_empty;
use crate::error::Error;
use crate::hint::Hint;

pub struct Request {
    /// Eval files, folders or globs; all eval files of the project if empty.
    pub paths: Vec<PathBuf>,
    pub required: Requirements,
    /// The runs from which confusion is measured.
    pub runs: RunChoice,
    /// Default: the project's lock, if it exists.
    pub lock_file: Option<PathBuf>,
}

/// The requirements on coverage.
pub enum Requirements {
    Nothing,
    Listed(Vec<Requirement>),
    /// Everything that the project declares.
    All,
}

impl Requirements {
    fn is_empty(&self) -> bool {
        matches!(self, Self::Nothing)
    }

    fn list(&self) -> &[Requirement] {
        match self {
            Self::Nothing => &[],
            Self::Listed(listed) => listed,
            Self::All => &Requirement::ALL,
        }
    }
}

/// Measures coverage and checks the requirements.
pub async fn measure(request: Request, context: &Context<'_>) -> Result<Coverage, Error> {
    let Request { paths, required, runs, lock_file } = request;
    let settings = &context.settings;
    let paths = discover_or_empty(&paths, &settings.layout, &settings.layout.current_dir)?;
    let registry = read_registry(&required, context).await?;
    let overlaps = read_map(&required, context)?;
    let (loaded, rubrics) = load_all(paths)?;
    if loaded.is_empty() && rubrics.is_empty() {
        context.notices.warn("no eval files found: nothing is tested");
    }
    let measured = read_confusion(&loaded, runs, context)?;
    let has_results = measured.results > 0 || !measured.left_out.is_empty();
    let scored: Vec<EvalFile> = rubrics.iter().map(|rubric| rubric.file.without_rubrics()).collect();
    let suites = loaded.iter().map(|suite| Suite { path: &suite.path.display_path, file: &suite.file });
    let scored = rubrics.iter().zip(&scored).map(|(rubric, file)| Suite { path: &rubric.path.display_path, file });
    let suites: Vec<Suite<'_>> = suites.chain(scored).collect();
    let diff = lock_diff(lock_file.as_ref(), &registry, context)?;
    let measured = Some(&measured).filter(|_| has_results);
    let mut coverage = Coverage::of(&registry, overlaps.as_ref(), diff.as_ref(), &suites, measured);
    coverage.require(required.list());
    Ok(coverage)
}

async fn read_registry(required: &Requirements, context: &Context<'_>) -> Result<Registry, Error> {
    let registry = context.require_tools().await?;
    if is_empty(&registry) {
        let empty = "the tool registry has no tools";
        if !required.is_empty() {
            return Err(Error::invalid(empty).hint("without tools, all requirements are trivially met"));
        }
        context.notices.warn(empty);
    }
    Ok(registry)
}

fn read_map(required: &Requirements, context: &Context<'_>) -> Result<Option<OverlapMap>, Error> {
    let setting = &context.settings.overlap_map;
    let map = read_overlap_map(setting)?;
    let needs_map = match required {
        Requirements::Listed(listed) => listed.iter().find(|requirement| requirement.concerns_overlap_map()),
        Requirements::Nothing | Requirements::All => None,
    };
    match needs_map {
        Some(requirement) if map.is_none() => {
            let (name, path) = (requirement.name(), context.settings.display_path(&setting.path));
            let message = format!("requirement '{name}' needs an overlap map: {path} does not exist");
            Err(Error::invalid(message).hint(Hint::NameOrCreateOverlapMap))
        }
        _ => Ok(map),
    }
}

/// Returns the changes since the tools were locked; `None` without a lock.
fn lock_diff(
    lock_file: Option<&PathBuf>,
    registry: &Registry,
    context: &Context<'_>,
) -> Result<Option<LockDiff>, Error> {
    let path = lock_path(lock_file, &context.settings.layout);
    let display_path = context.settings.display_path(&path);
    let lock = read_lock(&path, &display_path)?;
    if lock.is_none() && lock_file.is_some() {
        return Err(Error::invalid(format!("{display_path} does not exist")).hint(Hint::WriteToolLock));
    }
    Ok(lock.map(|lock| LockDiff::of(&lock, &ToolsLock::of(registry), registry.gaps().is_empty())))
}
