//! Eval functions that arguments name: by their files, or by their names in the project.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use karat_json::{InvalidFile, nearest};
use karat_sandbox::Function;

use super::project::{FunctionFile, find_functions, function_paths};
use crate::error::Error;
use crate::hint::Hint;
use crate::settings::Settings;

/// A valid eval function, and where it is.
pub struct LoadedFunction {
    pub path: PathBuf,
    /// The path as the user would type it.
    pub shown: String,
    pub function: Arc<Function>,
}

/// A file that an argument names.
pub struct FoundFile {
    pub path: PathBuf,
    /// The path as the user would type it.
    pub shown: String,
    /// The file, or why it cannot be read.
    pub file: Result<FunctionFile, Error>,
}

impl From<FunctionFile> for FoundFile {
    fn from(file: FunctionFile) -> Self {
        Self { path: file.path.clone(), shown: file.shown.clone(), file: Ok(file) }
    }
}

/// Tells whether an argument is written as only a path is.
pub fn is_written_as_path(argument: &str) -> bool {
    let has_ending = Path::new(argument).extension().is_some();
    has_ending || argument.contains(['/', std::path::MAIN_SEPARATOR]) || matches!(argument, "." | "..")
}

/// Returns the paths among arguments, by which a project is found.
pub fn paths_among(arguments: &[String], here: &Path) -> Vec<PathBuf> {
    let is_path = |argument: &&String| is_written_as_path(argument) || here.join(argument).exists();
    arguments.iter().filter(is_path).map(PathBuf::from).collect()
}

/// Reads all functions that are named, in order, each once; without a name, all of the project. Where any is invalid, the
/// error has the findings of all.
pub fn load_functions(arguments: &[String], settings: &Settings) -> Result<Vec<LoadedFunction>, Error> {
    let mut functions = Vec::new();
    let mut invalid: Vec<InvalidFile> = Vec::new();
    for found in find_function_files(arguments, settings)? {
        let file = found.file?;
        invalid.extend(file.invalid_file());
        let FunctionFile { path, shown, function, .. } = file;
        functions.extend(function.ok().map(|function| LoadedFunction { path, shown, function }));
    }
    if !invalid.is_empty() {
        return Err(Error::invalid_files(invalid));
    }
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    for LoadedFunction { shown, function, .. } in &functions {
        if let Some(other) = names.insert(&function.name, shown) {
            let message = format!("there are two functions '{}': in {other} and in {shown}", function.name);
            return Err(Error::invalid(message).hint("give one of them another name"));
        }
    }
    Ok(functions)
}

/// Finds the files that are named, in order, each once; without a name, all functions of the project.
pub fn find_function_files(arguments: &[String], settings: &Settings) -> Result<Vec<FoundFile>, Error> {
    if arguments.is_empty() {
        return Ok(find_functions(settings)?.files.into_iter().map(FoundFile::from).collect());
    }
    let mut all: Vec<FoundFile> = Vec::new();
    for argument in arguments {
        for found in find_argument(argument, settings)? {
            if !all.iter().any(|known| is_same_file(&known.path, &found.path)) {
                all.push(found);
            }
        }
    }
    Ok(all)
}

/// A name of the project ranks above a file or a folder that happens to be called so; `./` says that a path is meant.
fn find_argument(argument: &str, settings: &Settings) -> Result<Vec<FoundFile>, Error> {
    let path = settings.layout.here.join(argument);
    if is_written_as_path(argument) {
        return at_path(path, settings);
    }
    match by_name(argument, settings) {
        Err(_) if path.exists() => at_path(path, settings),
        found => found.map(|files| files.into_iter().map(FoundFile::from).collect()),
    }
}

/// The error of a project without functions.
pub fn no_functions(settings: &Settings) -> Error {
    let folder = settings.shown(&settings.eval_functions.path);
    Error::nothing_selected(format!("there are no eval functions in {folder}")).hint(Hint::NewEval)
}

/// Returns a file, or those of a folder that hold functions.
fn at_path(path: PathBuf, settings: &Settings) -> Result<Vec<FoundFile>, Error> {
    if !path.is_dir() {
        return Ok(vec![read_named(path, settings)]);
    }
    let shown = settings.shown(&path);
    let paths = function_paths(&path).map_err(|error| Error::invalid(format!("cannot read {shown}: {error}")))?;
    if paths.is_empty() {
        return Err(Error::nothing_selected(format!("there are no Python files in {shown}"))
            .hint("eval functions are files that end in .py and do not begin with _ or ."));
    }
    Ok(paths.into_iter().map(|path| read_named(path, settings)).collect())
}

fn read_named(path: PathBuf, settings: &Settings) -> FoundFile {
    let shown = settings.shown(&path);
    let file = check_kind(&path, &shown, settings).and_then(|()| FunctionFile::read(path.clone(), shown.clone()));
    FoundFile { path, shown, file }
}

/// Fails for a file that cannot hold a function: it is of another kind, or does not exist.
fn check_kind(path: &Path, shown: &str, settings: &Settings) -> Result<(), Error> {
    match path.metadata() {
        Ok(_) if path.extension().is_some_and(|ending| ending != "py") => {
            let error = Error::invalid(format!("{shown} is not a Python file"));
            Err(match shown.strip_suffix(".cases.jsonl") {
                Some(function) => error.hint(Hint::TestEval { file: format!("{function}.py") }),
                None => error.hint("eval functions are files that end in .py; traces go behind --traces"),
            })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let error = Error::not_found(format!("cannot read {shown}: {error}"));
            Err(match near_file(path, settings) {
                Some(near) => error.hint(format!("did you mean '{near}'?")),
                None => error,
            })
        }
        _ => Ok(()),
    }
}

/// Returns the function's file that was probably meant: beside the missing one, or in the project.
fn near_file(path: &Path, settings: &Settings) -> Option<String> {
    let folders = [path.parent()?, &settings.eval_functions.path];
    let files: Vec<PathBuf> = folders.iter().filter_map(|folder| function_paths(folder).ok()).flatten().collect();
    let names: Vec<&str> = files.iter().filter_map(|file| file.file_name()?.to_str()).collect();
    let near = nearest(path.file_name()?.to_str()?, &names)?;
    let file = files.iter().find(|file| file.file_name().is_some_and(|name| name == near))?;
    Some(settings.shown(file))
}

/// Returns the project's function of a name, with or without its `eval_`; else all invalid files that should hold it.
fn by_name(name: &str, settings: &Settings) -> Result<Vec<FunctionFile>, Error> {
    let wanted = if name.starts_with("eval_") { name.to_owned() } else { format!("eval_{name}") };
    let project = find_functions(settings)?;
    if !project.has(&wanted) {
        let (message, hint) = project.unknown(&wanted);
        return Err(Error::not_found(message).hint(hint));
    }
    let is_valid = project.get(&wanted).is_some();
    let is_meant = |file: &FunctionFile| file.defines(&wanted) && file.function.is_ok() == is_valid;
    Ok(project.files.into_iter().filter(is_meant).collect())
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    one == other || matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}
