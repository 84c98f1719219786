//! Finds the eval functions of arguments: by file, or by name in the project.

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

/// A valid eval function and its file.
pub struct LoadedFunction {
    pub path: PathBuf,
    /// The path for display.
    pub display_path: String,
    pub function: Arc<Function>,
}

/// A file that an argument refers to.
pub struct MatchedFile {
    pub path: PathBuf,
    /// The path for display.
    pub display_path: String,
    /// The file, or the error if it cannot be read.
    pub file: Result<FunctionFile, Error>,
}

impl From<FunctionFile> for MatchedFile {
    fn from(file: FunctionFile) -> Self {
        Self { path: file.path.clone(), display_path: file.display_path.clone(), file: Ok(file) }
    }
}

/// Whether an argument can only be a path, not a name.
pub fn looks_like_path(argument: &str) -> bool {
    let has_extension = Path::new(argument).extension().is_some();
    has_extension || argument.contains(['/', std::path::MAIN_SEPARATOR]) || matches!(argument, "." | "..")
}

/// Returns the arguments that are paths, to find the project.
pub fn path_arguments(arguments: &[String], current_dir: &Path) -> Vec<PathBuf> {
    let is_path = |argument: &&String| looks_like_path(argument) || current_dir.join(argument).exists();
    arguments.iter().filter(is_path).map(PathBuf::from).collect()
}

/// Loads the functions of the arguments, in order, each once; all functions of the project without arguments. The error
/// has the findings of all invalid files.
pub fn load_functions(arguments: &[String], settings: &Settings) -> Result<Vec<LoadedFunction>, Error> {
    let mut functions = Vec::new();
    let mut invalid: Vec<InvalidFile> = Vec::new();
    for matched in find_function_files(arguments, settings)? {
        let file = matched.file?;
        invalid.extend(file.invalid_file());
        let FunctionFile { path, display_path, function, .. } = file;
        functions.extend(function.ok().map(|function| LoadedFunction { path, display_path, function }));
    }
    if !invalid.is_empty() {
        return Err(Error::invalid_files(invalid));
    }
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    for LoadedFunction { display_path, function, .. } in &functions {
        if let Some(other) = names.insert(&function.name, display_path) {
            let message = format!("duplicate function '{}' in {other} and {display_path}", function.name);
            return Err(Error::invalid(message).hint("rename one of them"));
        }
    }
    Ok(functions)
}

/// Finds the files of the arguments, in order, each once; all functions of the project without arguments.
pub fn find_function_files(arguments: &[String], settings: &Settings) -> Result<Vec<MatchedFile>, Error> {
    if arguments.is_empty() {
        return Ok(find_functions(settings)?.files.into_iter().map(MatchedFile::from).collect());
    }
    let mut all: Vec<MatchedFile> = Vec::new();
    for argument in arguments {
        for file in find_argument(argument, settings)? {
            if !all.iter().any(|known| is_same_file(&known.path, &file.path)) {
                all.push(file);
            }
        }
    }
    Ok(all)
}

/// Finds the files of an argument. The name of a function takes precedence over a file or folder of the same name; `./`
/// marks a path.
fn find_argument(argument: &str, settings: &Settings) -> Result<Vec<MatchedFile>, Error> {
    let path = settings.layout.current_dir.join(argument);
    if looks_like_path(argument) {
        return find_at_path(path, settings);
    }
    match find_by_name(argument, settings) {
        Err(_) if path.exists() => find_at_path(path, settings),
        functions => functions.map(|files| files.into_iter().map(MatchedFile::from).collect()),
    }
}

/// Returns the error for a project without functions.
pub fn no_functions(settings: &Settings) -> Error {
    let folder = settings.display_path(&settings.eval_functions.path);
    Error::nothing_selected(format!("no eval functions in {folder}")).hint(Hint::NewEval)
}

/// Returns a file, or the function files of a folder.
fn find_at_path(path: PathBuf, settings: &Settings) -> Result<Vec<MatchedFile>, Error> {
    if !path.is_dir() {
        return Ok(vec![read_file(path, settings)]);
    }
    let display_path = settings.display_path(&path);
    let paths =
        function_paths(&path).map_err(|error| Error::invalid(format!("cannot read {display_path}: {error}")))?;
    if paths.is_empty() {
        return Err(Error::nothing_selected(format!("no Python files in {display_path}"))
            .hint("eval functions are .py files whose names do not start with _ or ."));
    }
    Ok(paths.into_iter().map(|path| read_file(path, settings)).collect())
}

fn read_file(path: PathBuf, settings: &Settings) -> MatchedFile {
    let display_path = settings.display_path(&path);
    let file = check_file(&path, &display_path, settings)
        .and_then(|()| FunctionFile::read(path.clone(), display_path.clone(), &settings.eval_rules));
    MatchedFile { path, display_path, file }
}

/// Fails if a file does not exist or is not a Python file.
fn check_file(path: &Path, display_path: &str, settings: &Settings) -> Result<(), Error> {
    match path.metadata() {
        Ok(_) if path.extension().is_some_and(|extension| extension != "py") => {
            let error = Error::invalid(format!("{display_path} is not a Python file"));
            Err(match display_path.strip_suffix(".cases.jsonl") {
                Some(function) => error.hint(Hint::TestEval { file: format!("{function}.py") }),
                None => error.hint("eval functions are .py files; pass traces with --traces"),
            })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let error = Error::not_found(format!("cannot read {display_path}: {error}"));
            Err(match nearest_file(path, settings) {
                Some(near) => error.hint(format!("did you mean '{near}'?")),
                None => error,
            })
        }
        _ => Ok(()),
    }
}

/// Suggests a function file with a similar name, in the same folder or in the project.
fn nearest_file(path: &Path, settings: &Settings) -> Option<String> {
    let folders = [path.parent()?, &settings.eval_functions.path];
    let files: Vec<PathBuf> = folders.iter().filter_map(|folder| function_paths(folder).ok()).flatten().collect();
    let names: Vec<&str> = files.iter().filter_map(|file| file.file_name()?.to_str()).collect();
    let near = nearest(path.file_name()?.to_str()?, &names)?;
    let file = files.iter().find(|file| file.file_name().is_some_and(|name| name == near))?;
    Some(settings.display_path(file))
}

/// Returns the project's function with this name, with or without `eval_`, or all invalid files that may define it.
fn find_by_name(name: &str, settings: &Settings) -> Result<Vec<FunctionFile>, Error> {
    let function_name = if name.starts_with("eval_") { name.to_owned() } else { format!("eval_{name}") };
    let project = find_functions(settings)?;
    if !project.has(&function_name) {
        let (message, hint) = project.unknown(&function_name);
        return Err(Error::not_found(message).hint(hint));
    }
    let is_valid = project.get(&function_name).is_some();
    let is_match = |file: &FunctionFile| file.defines(&function_name) && file.function.is_ok() == is_valid;
    Ok(project.files.into_iter().filter(is_match).collect())
}

fn is_same_file(first: &Path, second: &Path) -> bool {
    first == second
        || matches!((first.canonicalize(), second.canonicalize()), (Ok(first), Ok(second)) if first == second)
}
