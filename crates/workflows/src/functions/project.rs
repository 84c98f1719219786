//! The eval functions in the project's folder.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use karat_core::case::{Case, EvalFile};
use karat_json::{Finding, InvalidFile, Problem, Subject, nearest};
use karat_sandbox::{Function, MOST_SOURCE, Rule, readable, validate};

use super::cases::names_of;
use crate::error::Error;
use crate::settings::Settings;

/// How many names a hint lists.
const MAX_NAMED: usize = 10;

/// All eval functions of a project.
pub struct ProjectFunctions {
    /// As the user would type it.
    folder: String,
    has_folder: bool,
    /// Sorted by path.
    pub files: Vec<FunctionFile>,
}

/// A file that should hold an eval function.
pub struct FunctionFile {
    pub path: PathBuf,
    /// The path as the user would type it.
    pub shown: String,
    /// The text that findings are places in.
    pub text: Arc<str>,
    pub function: Result<Arc<Function>, Vec<karat_sandbox::Finding>>,
}

/// Lists the project's eval functions: each `*.py` of their folder holds one. Files whose names begin with `_` or `.`
/// are passed over.
pub fn find_functions(settings: &Settings) -> Result<ProjectFunctions, Error> {
    let setting = &settings.eval_functions;
    let folder = settings.shown(&setting.path);
    if !setting.given && !setting.path.exists() {
        return Ok(ProjectFunctions { folder, has_folder: false, files: Vec::new() });
    }
    let paths = function_paths(&setting.path)
        .map_err(|error| Error::invalid(format!("cannot read the folder of eval functions {folder}: {error}")))?;
    let mut files = Vec::with_capacity(paths.len());
    for path in paths {
        let shown = settings.shown(&path);
        files.push(FunctionFile::read(path, shown)?);
    }
    reject_duplicates(&mut files);
    Ok(ProjectFunctions { folder, has_folder: true, files })
}

/// Returns the files of a folder that hold eval functions, sorted.
pub(super) fn function_paths(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths: Vec<PathBuf> =
        folder.read_dir()?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    paths.retain(|path| is_function_file(path));
    paths.sort();
    Ok(paths)
}

fn is_function_file(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // Reading anything but a file, such as a pipe, could block for ever.
    path.extension().is_some_and(|extension| extension == "py") && !name.starts_with(['.', '_']) && path.is_file()
}

impl FunctionFile {
    /// Reads and validates one file.
    pub(super) fn read(path: PathBuf, shown: String) -> Result<Self, Error> {
        let mut source = Vec::new();
        // Enough to see that it is too long, with a byte order mark.
        let limit = MOST_SOURCE as u64 + 8;
        File::open(&path)
            .and_then(|file| file.take(limit).read_to_end(&mut source))
            .map_err(|error| Error::invalid(format!("cannot read {shown}: {error}")))?;
        let text = Arc::from(readable(&source));
        Ok(Self { path, shown, text, function: validate(&source).map(Arc::new) })
    }

    /// Returns what is wrong with the file, in the order of its text.
    pub fn findings(&self) -> Vec<Finding> {
        let problem = |one: &karat_sandbox::Finding| (one.range.clone(), one.message.clone(), one.help.clone());
        let problems = self.function.as_ref().err().into_iter().flatten();
        Finding::place_all(&self.text, problems.map(problem).collect())
    }

    pub(super) fn invalid_file(&self) -> Option<InvalidFile> {
        let file = || InvalidFile { name: self.shown.clone(), text: self.text.to_string(), findings: self.findings() };
        self.function.is_err().then(file)
    }

    /// Tells whether this file defines the function. Of an invalid file this is a guess by names.
    pub(super) fn defines(&self, name: &str) -> bool {
        if let Ok(function) = &self.function {
            return function.name == name;
        }
        let stem = self.path.file_stem().unwrap_or_default().to_string_lossy();
        stem == name || name.strip_prefix("eval_") == Some(&stem) || self.definition(name).is_some()
    }

    /// Finds a function's name where it is defined.
    fn definition(&self, name: &str) -> Option<std::ops::Range<usize>> {
        let start = self.text.find(&format!("def {name}("))? + "def ".len();
        Some(start..start + name.len())
    }
}

/// Invalidates functions that share a name: nobody could say which one a case means.
fn reject_duplicates(files: &mut [FunctionFile]) {
    let names: Vec<Option<String>> =
        files.iter().map(|file| file.function.as_ref().ok().map(|function| function.name.clone())).collect();
    let shown: Vec<String> = files.iter().map(|file| file.shown.clone()).collect();
    for (index, file) in files.iter_mut().enumerate() {
        let Some(name) = &names[index] else { continue };
        let is_twin = |other: &usize| *other != index && names[*other].as_ref() == Some(name);
        let Some(other) = (0..names.len()).find(is_twin) else { continue };
        file.function = Err(vec![karat_sandbox::Finding {
            rule: Rule::Function,
            message: format!("'{name}' is defined in {} too", shown[other]),
            help: Some("give one of them another name".to_owned()),
            range: file.definition(name).unwrap_or_default(),
        }]);
    }
}

impl ProjectFunctions {
    /// Returns the valid function of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Function>> {
        self.valid().find(|function| function.name == name)
    }

    fn valid(&self) -> impl Iterator<Item = &Arc<Function>> {
        self.files.iter().filter_map(|file| file.function.as_ref().ok())
    }

    /// Returns the invalid files that should hold a function of this name, unless a valid one does.
    pub fn broken<'s>(&'s self, name: &str) -> impl Iterator<Item = &'s FunctionFile> {
        let is_found = self.get(name).is_some();
        self.files.iter().filter(move |file| !is_found && file.function.is_err() && file.defines(name))
    }

    /// Returns a message that there is no function of this name, and a hint at what may have been meant.
    pub(super) fn unknown(&self, name: &str) -> (String, String) {
        let message = format!("there is no eval function '{name}' in {}", self.folder);
        let names: Vec<&str> = self.valid().map(|function| function.name.as_str()).collect();
        let help = match nearest(name, &names) {
            Some(meant) => format!("did you mean '{meant}'?"),
            None if !self.has_folder => "that folder does not exist".to_owned(),
            None if names.is_empty() => "a file NAME.py there holds the function".to_owned(),
            None if names.len() > MAX_NAMED => {
                format!("there are {} and {} more", names[..MAX_NAMED].join(", "), names.len() - MAX_NAMED)
            }
            None => format!("there are: {}", names.join(", ")),
        };
        (message, help)
    }

    /// Returns where the selected cases of a file name functions that do not exist; `prefix` is the pointer to the cases.
    pub fn unknown_in(&self, file: &EvalFile, prefix: &str, is_selected: impl Fn(&Case) -> bool) -> Vec<Problem> {
        let cases = file.cases.iter().enumerate().filter(|(_, case)| is_selected(case));
        let named = cases.flat_map(|(case_index, case)| {
            names_of(case).enumerate().map(move |(index, name)| (case_index, index, case, name))
        });
        let unknown = named.filter(|(.., name)| !self.has(name));
        let problem = |(case_index, index, case, name): (usize, usize, &Case, &str)| {
            let (message, help) = self.unknown(name);
            Problem {
                pointer: format!("{prefix}/{case_index}/expect/evals/{index}"),
                subject: Subject::Value,
                case_id: Some(case.id.clone()),
                message,
                help: Some(help),
            }
        };
        unknown.map(problem).collect()
    }

    /// Tells whether there is a function of this name, valid or not.
    pub(super) fn has(&self, name: &str) -> bool {
        self.get(name).is_some() || self.broken(name).next().is_some()
    }
}
