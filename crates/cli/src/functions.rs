//! Finds the eval functions that somebody names: by their files, or by their names in the project.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use karat_core::exit::ExitStatus;
use karat_json::nearest;
use karat_sandbox::Function;

use crate::diagnostic::print_findings;
use crate::eval_functions::{FunctionFile, find_functions, function_files_in};
use crate::failure::Failure;
use crate::printer::Printer;
use karat_workflows::settings::Settings;

/// An eval function that may run, and where it is.
pub(crate) struct LoadedFunction {
    pub(crate) path: PathBuf,
    /// The path as the person would name it.
    pub(crate) shown: String,
    pub(crate) function: Arc<Function>,
}

/// Something that an argument means.
pub(crate) enum Meant {
    /// A file, of which it is not known whether it can be read.
    Path(PathBuf),
    /// A file of the project's functions.
    Project(FunctionFile),
}

impl Meant {
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Path(path) => path,
            Self::Project(file) => &file.path,
        }
    }
}

/// Tells whether an argument is written as only a path is.
pub(crate) fn is_written_as_path(argument: &str) -> bool {
    let has_ending = Path::new(argument).extension().is_some();
    has_ending || argument.contains(['/', std::path::MAIN_SEPARATOR]) || matches!(argument, "." | "..")
}

/// Returns the paths among arguments, by which a project is found.
pub(crate) fn paths_among(arguments: &[String], here: &Path) -> Vec<PathBuf> {
    let is_path = |argument: &&String| is_written_as_path(argument) || here.join(argument).exists();
    arguments.iter().filter(is_path).map(PathBuf::from).collect()
}

/// Reads all functions that are named, in their order, each once. Where any is invalid, the findings of all are shown.
pub(crate) fn load_functions(
    arguments: &[String],
    settings: &Settings,
    printer: &Printer,
) -> Result<Vec<LoadedFunction>, Failure> {
    let read = |meant| match meant {
        Meant::Path(path) => {
            let shown = settings.shown(&path);
            refuse_other_file(&path, settings).map_or_else(|| FunctionFile::read(&path, shown), Err)
        }
        Meant::Project(file) => Ok(file),
    };
    let files: Result<_, _> = find_meant(arguments, settings)?.into_iter().map(read).collect();
    accept(files?, printer)
}

/// Finds all that is named, in its order, each file once; without a name, all functions of the project.
pub(crate) fn find_meant(arguments: &[String], settings: &Settings) -> Result<Vec<Meant>, Failure> {
    if arguments.is_empty() {
        return Ok(find_functions(settings)?.files.into_iter().map(Meant::Project).collect());
    }
    let mut all: Vec<Meant> = Vec::new();
    for argument in arguments {
        for meant in find_argument(argument, settings)? {
            if !all.iter().any(|known| is_same_file(known.path(), meant.path())) {
                all.push(meant);
            }
        }
    }
    Ok(all)
}

/// A name of the project ranks above a file or a folder that happens to be called so; `./` says that a path is meant.
fn find_argument(argument: &str, settings: &Settings) -> Result<Vec<Meant>, Failure> {
    let path = settings.layout.here.join(argument);
    if is_written_as_path(argument) {
        return at_path(&path, settings);
    }
    match by_name(argument, settings) {
        Err(_) if path.exists() => at_path(&path, settings),
        found => found.map(|files| files.into_iter().map(Meant::Project).collect()),
    }
}

/// Says that the project has no functions.
pub(crate) fn no_functions(settings: &Settings) -> Failure {
    let folder = settings.shown(&settings.eval_functions.path);
    Failure::nothing_selected(format!("there are no eval functions in {folder}"))
        .hint("'karat eval new NAME' writes a first one")
}

/// Takes the functions out of their files, if all are valid and each has a name of its own.
fn accept(files: Vec<FunctionFile>, printer: &Printer) -> Result<Vec<LoadedFunction>, Failure> {
    let mut functions = Vec::with_capacity(files.len());
    let mut is_valid = true;
    for FunctionFile { path, shown, text, function } in files {
        match function {
            Ok(function) => functions.push(LoadedFunction { path, shown, function }),
            Err(findings) => {
                is_valid = false;
                // Stdout is for what functions say.
                print_findings(&shown, &text, &findings, printer);
            }
        }
    }
    if !is_valid {
        return Err(Failure::reported(ExitStatus::Invalid));
    }
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    for LoadedFunction { shown, function, .. } in &functions {
        if let Some(other) = names.insert(&function.name, shown) {
            let message = format!("there are two functions '{}': in {other} and in {shown}", function.name);
            return Err(Failure::invalid(message).hint("give one of them another name"));
        }
    }
    Ok(functions)
}

/// Returns a file, or those of a folder that hold functions.
fn at_path(path: &Path, settings: &Settings) -> Result<Vec<Meant>, Failure> {
    if !path.is_dir() {
        return Ok(vec![Meant::Path(path.to_path_buf())]);
    }
    let paths = function_files_in(path)
        .map_err(|error| Failure::invalid(format!("cannot read {}: {error}", settings.shown(path))))?;
    if paths.is_empty() {
        let message = format!("there are no Python files in {}", settings.shown(path));
        return Err(Failure::nothing_selected(message)
            .hint("eval functions are files that end in .py and do not begin with _ or ."));
    }
    Ok(paths.into_iter().map(Meant::Path).collect())
}

/// Says of a file that is named why it can hold no function: it is another kind of file, or there is none.
pub(crate) fn refuse_other_file(path: &Path, settings: &Settings) -> Option<Failure> {
    let shown = settings.shown(path);
    match path.metadata() {
        Ok(_) if path.extension().is_some_and(|ending| ending != "py") => {
            let failure = Failure::invalid(format!("{shown} is no Python file"));
            Some(match shown.strip_suffix(".cases.jsonl") {
                Some(function) => failure.hint(format!("karat eval test {function}.py judges these cases")),
                None => failure.hint("eval functions are files that end in .py; traces go behind --traces"),
            })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let failure = Failure::invalid(format!("cannot read {shown}: {error}"));
            Some(match near_file(path, settings) {
                Some(near) => failure.hint(format!("did you mean '{near}'?")),
                None => failure,
            })
        }
        _ => None,
    }
}

/// Returns the function's file that somebody probably meant: beside the one that is not there, or in the project.
fn near_file(path: &Path, settings: &Settings) -> Option<String> {
    let folders = [path.parent()?, &settings.eval_functions.path];
    let files: Vec<PathBuf> = folders.iter().filter_map(|folder| function_files_in(folder).ok()).flatten().collect();
    let names: Vec<&str> = files.iter().filter_map(|file| file.file_name()?.to_str()).collect();
    let near = nearest(path.file_name()?.to_str()?, &names)?;
    let file = files.iter().find(|file| file.file_name().is_some_and(|name| name == near))?;
    Some(settings.shown(file))
}

/// Returns the project's function of a name, with or without its `eval_`; or all files that should hold it and do not.
fn by_name(name: &str, settings: &Settings) -> Result<Vec<FunctionFile>, Failure> {
    let wanted = if name.starts_with("eval_") { name.to_owned() } else { format!("eval_{name}") };
    let project = find_functions(settings)?;
    let is_there = project.get(&wanted).is_some();
    if !is_there && project.broken(&wanted).next().is_none() {
        let (message, hint) = project.unknown(&wanted);
        return Err(Failure::invalid(message).hint(hint));
    }
    let is_meant = |file: &FunctionFile| file.defines(&wanted) && file.function.is_ok() == is_there;
    Ok(project.files.into_iter().filter(is_meant).collect())
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    one == other || matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}
