//! The eval functions of a project.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use karat_cases::{Case, EvalEntry, EvalFile};
use karat_json::{Finding, InvalidFile, Problem, Subject, nearest};
use karat_sandbox::{
    Function, MAX_SOURCE_BYTES, ModuleOutline, ProjectRules, Rule, display_source, outline, validate_with,
};

use super::cases::located_entries;
use crate::error::Error;
use crate::settings::{EvalRules, Settings};

/// Maximum number of names in a hint.
const MAX_LISTED_NAMES: usize = 10;

/// All eval functions of a project.
pub struct ProjectFunctions {
    /// The folder for display.
    folder: String,
    has_folder: bool,
    /// Sorted by path.
    pub files: Vec<FunctionFile>,
}

/// A file that should define an eval function.
pub struct FunctionFile {
    pub path: PathBuf,
    /// The path for display.
    pub display_path: String,
    /// The source text that findings refer to.
    pub text: Arc<str>,
    pub function: Result<Arc<Function>, Vec<karat_sandbox::Finding>>,
}

/// Finds the project's eval functions, one in each `*.py` of the folder. Skips files whose names start with `_` or `.`.
pub fn find_functions(settings: &Settings) -> Result<ProjectFunctions, Error> {
    let setting = &settings.eval_functions;
    let folder = settings.display_path(&setting.path);
    if !setting.is_explicit && !setting.path.exists() {
        return Ok(ProjectFunctions { folder, has_folder: false, files: Vec::new() });
    }
    let paths = function_paths(&setting.path)
        .map_err(|error| Error::invalid(format!("cannot read the folder of eval functions {folder}: {error}")))?;
    let mut files = Vec::with_capacity(paths.len());
    for path in paths {
        let display_path = settings.display_path(&path);
        files.push(FunctionFile::read(path, display_path, &settings.eval_rules)?);
    }
    remove_helpers(&mut files);
    reject_duplicates(&mut files);
    Ok(ProjectFunctions { folder, has_folder: true, files })
}

/// Returns the function files of a folder, sorted.
pub(super) fn function_paths(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths: Vec<PathBuf> =
        folder.read_dir()?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    paths.retain(|path| is_function_file(path));
    paths.sort();
    Ok(paths)
}

fn is_function_file(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // Reading anything but a regular file, such as a pipe, could block forever.
    path.extension().is_some_and(|extension| extension == "py") && !name.starts_with(['.', '_']) && path.is_file()
}

impl FunctionFile {
    /// Reads and validates one file.
    pub(super) fn read(path: PathBuf, display_path: String, rules: &EvalRules) -> Result<Self, Error> {
        let source =
            read_source(&path).map_err(|error| Error::invalid(format!("cannot read {display_path}: {error}")))?;
        let text = Arc::from(display_source(&source));
        let folder = path.parent().unwrap_or(Path::new(""));
        let helper = |name: &str| {
            let helper = folder.join(format!("{name}.py"));
            if helper.is_file() { read_source(&helper).ok() } else { None }
        };
        let EvalRules { imports, returns, threshold } = rules;
        let rules = ProjectRules { imports, returns: *returns, threshold: *threshold, helper: &helper };
        let function = validate_with(&source, &rules).map(Arc::new);
        Ok(Self { path, display_path, text, function })
    }

    /// Returns the problems of the file, in source order.
    pub fn findings(&self) -> Vec<Finding> {
        let problem =
            |finding: &karat_sandbox::Finding| (finding.range.clone(), finding.message.clone(), finding.help.clone());
        let problems = self.function.as_ref().err().into_iter().flatten();
        Finding::from_ranges(&self.text, problems.map(problem).collect())
    }

    pub(super) fn invalid_file(&self) -> Option<InvalidFile> {
        let file =
            || InvalidFile { name: self.display_path.clone(), text: self.text.to_string(), findings: self.findings() };
        self.function.is_err().then(file)
    }

    /// Whether this file defines the function. For an invalid file this is a guess.
    pub fn defines(&self, name: &str) -> bool {
        if let Ok(function) = &self.function {
            return function.name == name;
        }
        let stem = self.path.file_stem().unwrap_or_default().to_string_lossy();
        stem == name || name.strip_prefix("eval_") == Some(&stem) || self.definition(name).is_some()
    }

    /// Finds the name of a function in its definition.
    fn definition(&self, name: &str) -> Option<std::ops::Range<usize>> {
        let start = self.text.find(&format!("def {name}("))? + "def ".len();
        Some(start..start + name.len())
    }
}

fn read_source(path: &Path) -> io::Result<Vec<u8>> {
    let mut source = Vec::new();
    // Enough to detect that the source is too long, even with a byte order mark.
    let limit = MAX_SOURCE_BYTES as u64 + 8;
    File::open(path)?.take(limit).read_to_end(&mut source)?;
    Ok(source)
}

/// Removes helper modules: files without an eval function that another file of the folder imports.
fn remove_helpers(files: &mut Vec<FunctionFile>) {
    if files.iter().all(|file| file.function.is_ok()) {
        return;
    }
    let outlines: Vec<ModuleOutline> =
        files.iter().map(|file| outline(file.text.as_bytes()).unwrap_or_default()).collect();
    let is_helper: Vec<bool> = files
        .iter()
        .zip(&outlines)
        .map(|(file, outline)| {
            let stem = file.path.file_stem().unwrap_or_default().to_string_lossy();
            let is_imported = outlines.iter().any(|other| other.imports.contains(&*stem));
            is_imported && !outline.has_eval_function
        })
        .collect();
    let mut is_helper = is_helper.into_iter();
    files.retain(|_| !is_helper.next().unwrap_or_default());
}

/// Marks functions with the same name as invalid, since a reference to them would be ambiguous.
fn reject_duplicates(files: &mut [FunctionFile]) {
    let names: Vec<Option<String>> =
        files.iter().map(|file| file.function.as_ref().ok().map(|function| function.name.clone())).collect();
    let display_paths: Vec<String> = files.iter().map(|file| file.display_path.clone()).collect();
    for (index, file) in files.iter_mut().enumerate() {
        let Some(name) = &names[index] else { continue };
        let is_duplicate = |other: &usize| *other != index && names[*other].as_ref() == Some(name);
        let Some(other) = (0..names.len()).find(is_duplicate) else { continue };
        file.function = Err(vec![karat_sandbox::Finding {
            rule: Rule::Function,
            message: format!("'{name}' is also defined in {}", display_paths[other]),
            help: Some("rename one of them".to_owned()),
            range: file.definition(name).unwrap_or_default(),
        }]);
    }
}

impl ProjectFunctions {
    /// Returns the valid function with this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Function>> {
        self.valid().find(|function| function.name == name)
    }

    fn valid(&self) -> impl Iterator<Item = &Arc<Function>> {
        self.files.iter().filter_map(|file| file.function.as_ref().ok())
    }

    /// Returns the invalid files that may define a function with this name, unless a valid file does.
    pub fn broken<'s>(&'s self, name: &str) -> impl Iterator<Item = &'s FunctionFile> {
        let is_found = self.get(name).is_some();
        self.files.iter().filter(move |file| !is_found && file.function.is_err() && file.defines(name))
    }

    /// Returns the message and hint for an unknown function.
    pub(super) fn unknown(&self, name: &str) -> (String, String) {
        let message = format!("eval function '{name}' not found in {}", self.folder);
        let names: Vec<&str> = self.valid().map(|function| function.name.as_str()).collect();
        let help = match nearest(name, &names) {
            Some(near) => format!("did you mean '{near}'?"),
            None if !self.has_folder => format!("{} does not exist", self.folder),
            None if names.is_empty() => "define it in a file NAME.py in this folder".to_owned(),
            None if names.len() > MAX_LISTED_NAMES => {
                let (listed, rest) = names.split_at(MAX_LISTED_NAMES);
                format!("known functions: {} and {} more", listed.join(", "), rest.len())
            }
            None => format!("known functions: {}", names.join(", ")),
        };
        (message, help)
    }

    /// Returns the problems of entries in selected cases of a file; `prefix` is the pointer to the cases.
    pub fn unknown_in(&self, file: &EvalFile, prefix: &str, is_selected: impl Fn(&Case) -> bool) -> Vec<Problem> {
        let cases = file.cases.iter().filter(|case| is_selected(case));
        let entries = cases.flat_map(|case| located_entries(case).map(move |(pointer, entry)| (pointer, case, entry)));
        let problem = |(located, case, entry): (String, &Case, &EvalEntry)| {
            let (message, help) = self.problem_of(entry)?;
            Some(Problem {
                pointer: format!("{prefix}/{}{located}", case.location.index),
                subject: Subject::Value,
                case_id: Some(case.id.clone()),
                message,
                help: Some(help),
            })
        };
        entries.filter_map(problem).collect()
    }

    /// Returns the message and hint for an entry whose function is unknown or does not take its parameters.
    pub(super) fn problem_of(&self, entry: &EvalEntry) -> Option<(String, String)> {
        let name = &entry.name;
        if !self.has(name) {
            return Some(self.unknown(name));
        }
        let takes_context = self.get(name).is_none_or(|function| function.takes_context);
        (entry.needs_context() && !takes_context).then(|| {
            let message = format!("'{name}' has no second parameter, so it does not get 'params' and 'reference'");
            (message, format!("write 'def {name}(trace, context):'"))
        })
    }

    /// Whether there is a function with this name, valid or not.
    pub(super) fn has(&self, name: &str) -> bool {
        self.get(name).is_some() || self.broken(name).next().is_some()
    }
}
