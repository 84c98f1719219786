//! Finds the eval functions that somebody names: by their files, or by their names in the project.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use karat_core::exit::ExitStatus;
use karat_sandbox::Function;

use crate::diagnostic::print_findings;
use crate::eval_functions::{FunctionFile, find_functions, is_function_file};
use crate::failure::Failure;
use crate::printer::Printer;
use crate::settings::Settings;

/// An eval function that may run, and where it is.
pub(crate) struct LoadedFunction {
    pub(crate) path: PathBuf,
    /// The path as the person would name it.
    pub(crate) shown: String,
    pub(crate) function: Arc<Function>,
}

/// Tells whether an argument means a path and not a function's name.
fn is_path(argument: &str, here: &Path) -> bool {
    let path = Path::new(argument);
    let has_ending = path.extension().is_some_and(|ending| ending == "py");
    has_ending || argument.contains(['/', std::path::MAIN_SEPARATOR]) || here.join(path).exists()
}

/// Returns the paths among arguments, by which a project is found.
pub(crate) fn paths_among(arguments: &[String], here: &Path) -> Vec<PathBuf> {
    arguments.iter().filter(|argument| is_path(argument, here)).map(PathBuf::from).collect()
}

/// Reads all functions that are named, in their order, each once. Where any is invalid, the findings of all are shown.
pub(crate) fn load_functions(
    arguments: &[String],
    settings: &Settings,
    printer: &Printer,
) -> Result<Vec<LoadedFunction>, Failure> {
    let mut files: Vec<FunctionFile> = Vec::new();
    for argument in arguments {
        let found = if is_path(argument, &settings.here) {
            at_path(&settings.here.join(argument), settings)?
        } else {
            by_name(argument, settings)?
        };
        for file in found {
            if !files.iter().any(|known| is_same_file(&known.path, &file.path)) {
                files.push(file);
            }
        }
    }
    accept(files, printer)
}

/// Reads all functions of the project, in the order of their files' names.
pub(crate) fn load_project_functions(settings: &Settings, printer: &Printer) -> Result<Vec<LoadedFunction>, Failure> {
    accept(find_functions(settings)?.files, printer)
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

/// Reads a file, or the functions of a folder by name.
fn at_path(path: &Path, settings: &Settings) -> Result<Vec<FunctionFile>, Failure> {
    if !path.is_dir() {
        return Ok(vec![FunctionFile::read(path, settings.shown(path))?]);
    }
    let fail = |error: io::Error| Failure::invalid(format!("cannot read {}: {error}", settings.shown(path)));
    let mut paths = Vec::new();
    for entry in path.read_dir().map_err(fail)? {
        paths.push(entry.map_err(fail)?.path());
    }
    paths.retain(|path| is_function_file(path));
    paths.sort();
    if paths.is_empty() {
        return Err(Failure::nothing_selected(format!("there are no Python files in {}", settings.shown(path))));
    }
    paths.into_iter().map(|path| FunctionFile::read(&path, settings.shown(&path))).collect()
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
