//! The Python eval functions of a project, and those that its cases name.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use karat_core::case::{Case, EvalFile, SuiteFile};
use karat_core::exit::ExitStatus;
use karat_core::port::EvalFunctions;
use karat_json::{Finding, Place, Problem, Subject, nearest};
use karat_sandbox::{Function, Functions, Isolation, MOST_SOURCE, readable, validate};

use crate::diagnostic::print_findings;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::printer::Printer;
use karat_json::without_bom;
use karat_project::{Loaded, parse_suite_file, read_bytes};
use karat_workflows::context::sandbox::open_sandbox;
use karat_workflows::settings::Settings;

/// How many names a hint lists.
const MOST_NAMED: usize = 10;

/// All eval functions of a project.
pub(crate) struct ProjectFunctions {
    /// As a person would name it.
    folder: String,
    has_folder: bool,
    /// By their paths.
    pub(crate) files: Vec<FunctionFile>,
}

/// A file with an eval function, in order or not.
pub(crate) struct FunctionFile {
    pub(crate) path: PathBuf,
    /// As a person would name it.
    pub(crate) shown: String,
    /// What findings are places in.
    pub(crate) text: Arc<str>,
    pub(crate) function: Result<Arc<Function>, Vec<Finding>>,
}

/// Lists the project's eval functions: each `*.py` of their folder holds one. Files whose names begin with `_` or `.`
/// are passed over.
pub(crate) fn find_functions(settings: &Settings) -> Result<ProjectFunctions, Failure> {
    let setting = &settings.eval_functions;
    let folder = settings.shown(&setting.path);
    let fail = |error| Failure::invalid(format!("cannot read the folder of eval functions {folder}: {error}"));
    if !setting.given && !setting.path.exists() {
        return Ok(ProjectFunctions { folder, has_folder: false, files: Vec::new() });
    }
    let paths = function_files_in(&setting.path).map_err(fail)?;
    let mut files = Vec::with_capacity(paths.len());
    for path in paths {
        files.push(FunctionFile::read(&path, settings.shown(&path))?);
    }
    refuse_doubles(&mut files);
    Ok(ProjectFunctions { folder, has_folder: true, files })
}

/// Returns the files of a folder that hold eval functions, by name.
pub(crate) fn function_files_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths: Vec<PathBuf> =
        folder.read_dir()?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    paths.retain(|path| is_function_file(path));
    paths.sort();
    Ok(paths)
}

fn is_function_file(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // Anything else of that name could be a pipe on which to wait for ever.
    path.extension().is_some_and(|extension| extension == "py") && !name.starts_with(['.', '_']) && path.is_file()
}

impl FunctionFile {
    /// Reads and validates one file.
    pub(crate) fn read(path: &Path, shown: String) -> Result<Self, Failure> {
        let mut source = Vec::new();
        // Enough to be found too long.
        let most = MOST_SOURCE as u64 + 8;
        File::open(path)
            .and_then(|file| file.take(most).read_to_end(&mut source))
            .map_err(|error| Failure::invalid(format!("cannot read {shown}: {error}")))?;
        let text: Arc<str> = Arc::from(readable(&source));
        let function = validate(&source).map(Arc::new).map_err(|findings| {
            let finding = |one: karat_sandbox::Finding| Finding {
                place: Place::new(&text, one.range),
                pointer: None,
                case_id: None,
                message: one.message,
                help: one.help,
            };
            findings.into_iter().map(finding).collect()
        });
        Ok(Self { path: path.to_path_buf(), shown, text, function })
    }

    /// Tells whether a function is in this file, as far as that can be said of one that is not in order.
    pub(crate) fn defines(&self, name: &str) -> bool {
        if let Ok(function) = &self.function {
            return function.name == name;
        }
        let stem = self.path.file_stem().unwrap_or_default().to_string_lossy();
        stem == name || name.strip_prefix("eval_") == Some(&stem) || place_of(&self.text, name).is_some()
    }
}

/// Finds a function's name where it is defined.
fn place_of(text: &str, name: &str) -> Option<Place> {
    let start = text.find(&format!("def {name}("))? + "def ".len();
    Some(Place::new(text, start..start + name.len()))
}

/// Two functions of one name are none: nobody could say which is meant.
fn refuse_doubles(files: &mut [FunctionFile]) {
    let names: Vec<Option<String>> =
        files.iter().map(|file| file.function.as_ref().ok().map(|function| function.name.clone())).collect();
    let shown: Vec<String> = files.iter().map(|file| file.shown.clone()).collect();
    for (index, file) in files.iter_mut().enumerate() {
        let Some(name) = &names[index] else { continue };
        let is_twin = |other: &usize| *other != index && names[*other].as_ref() == Some(name);
        let Some(other) = (0..names.len()).find(is_twin) else { continue };
        file.function = Err(vec![Finding {
            place: place_of(&file.text, name).unwrap_or_else(|| Place::new(&file.text, 0..0)),
            pointer: None,
            case_id: None,
            message: format!("'{name}' is defined in {} too", shown[other]),
            help: Some("give one of them another name".to_owned()),
        }]);
    }
}

impl ProjectFunctions {
    /// Returns the function of a name, if there is one and it is in order.
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<Function>> {
        self.files.iter().filter_map(|file| file.function.as_ref().ok()).find(|function| function.name == name)
    }

    /// Returns the files that should hold a function of this name, and do not.
    pub(crate) fn broken<'s>(&'s self, name: &str) -> impl Iterator<Item = &'s FunctionFile> {
        let is_there = self.get(name).is_some();
        self.files.iter().filter(move |file| !is_there && file.function.is_err() && file.defines(name))
    }

    /// Says that there is no function of this name, and what may have been meant.
    pub(crate) fn unknown(&self, name: &str) -> (String, String) {
        let message = format!("there is no eval function '{name}' in {}", self.folder);
        let names: Vec<&str> =
            self.files.iter().filter_map(|file| file.function.as_ref().ok()).map(|one| one.name.as_str()).collect();
        let help = match nearest(name, &names) {
            Some(meant) => format!("did you mean '{meant}'?"),
            None if !self.has_folder => "that folder does not exist".to_owned(),
            None if names.is_empty() => "a file NAME.py there holds the function".to_owned(),
            None if names.len() > MOST_NAMED => {
                format!("there are {} and {} more", names[..MOST_NAMED].join(", "), names.len() - MOST_NAMED)
            }
            None => format!("there are: {}", names.join(", ")),
        };
        (message, help)
    }

    /// Returns which functions cases name that do not exist, with their places; `prefix` is the pointer to the cases.
    pub(crate) fn unknown_in(&self, file: &EvalFile, prefix: &str, is_meant: impl Fn(&Case) -> bool) -> Vec<Problem> {
        let cases = file.cases.iter().enumerate().filter(|(_, case)| is_meant(case));
        let named = cases.flat_map(|(case_index, case)| {
            names_of(case).enumerate().map(move |(index, name)| (case_index, index, case, name))
        });
        let unknown = named.filter(|(.., name)| self.get(name).is_none() && self.broken(name).next().is_none());
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
}

/// Returns the eval functions that a case names.
pub(crate) fn names_of(case: &Case) -> impl Iterator<Item = &str> {
    case.expect.evals.iter().flatten().map(String::as_str)
}

/// Returns the pointer to the cases of an eval file's text.
pub(crate) fn pointer_to_cases(text: &str) -> &'static str {
    if text.trim_start().starts_with('[') { "" } else { "/cases" }
}

/// Makes the eval functions that the cases name ready to run; the sandbox is opened only where one does.
pub(crate) fn start_functions(
    loaded: &[Loaded],
    settings: &Settings,
    environment: &Environment,
    printer: &Printer,
) -> Result<Option<Arc<dyn EvalFunctions>>, Failure> {
    let functions = named_functions(loaded, settings, printer)?;
    if functions.is_empty() {
        return Ok(None);
    }
    let sandbox = open_sandbox(environment.process.guest.as_deref())?;
    // No more than cases that can be judged at once.
    let jobs = std::thread::available_parallelism().map_or(1, NonZero::get).min(settings.concurrency);
    // The configuration was read, so that these are not too large.
    let limits = settings.eval_limits.limits().unwrap_or_default();
    let started = Functions::new(&sandbox, functions, limits, Isolation::default(), jobs);
    let started = started.map_err(|error| Failure::errored(error.to_string()))?;
    Ok(Some(Arc::new(started)))
}

/// Returns the eval functions that the cases name. Where one is missing or invalid, its place is shown and nothing is
/// to run.
fn named_functions(loaded: &[Loaded], settings: &Settings, printer: &Printer) -> Result<Vec<Arc<Function>>, Failure> {
    let names: BTreeSet<&str> = loaded.iter().flat_map(|one| one.file.cases.iter().flat_map(names_of)).collect();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let functions = find_functions(settings)?;
    let found: Vec<Arc<Function>> = names.iter().filter_map(|name| functions.get(name)).cloned().collect();
    if found.len() == names.len() {
        return Ok(found);
    }
    for one in loaded {
        show_unknown(one, &functions, printer)?;
    }
    let broken: BTreeSet<&Path> =
        names.iter().flat_map(|name| functions.broken(name)).map(|file| file.path.as_path()).collect();
    for file in functions.files.iter().filter(|file| broken.contains(file.path.as_path())) {
        if let Err(findings) = &file.function {
            print_findings(&file.shown, &file.text, findings, printer);
        }
    }
    Err(Failure::reported(ExitStatus::Invalid))
}

/// Shows where the selected cases of a file name functions that do not exist.
fn show_unknown(loaded: &Loaded, functions: &ProjectFunctions, printer: &Printer) -> Result<(), Failure> {
    let is_known = |name: &str| functions.get(name).is_some() || functions.broken(name).next().is_some();
    if loaded.file.cases.iter().flat_map(names_of).all(is_known) {
        return Ok(());
    }
    // A selection has lost the cases' numbers in their file.
    let selected: BTreeSet<&str> = loaded.file.cases.iter().map(|case| case.id.as_str()).collect();
    let bytes = read_bytes(&loaded.path)?;
    let text = String::from_utf8_lossy(without_bom(&bytes));
    let Ok(SuiteFile::Eval(whole)) = parse_suite_file(&loaded.path, &bytes) else {
        return Err(Failure::invalid(format!("{} has changed while it was read", loaded.path.shown)));
    };
    let problems = functions.unknown_in(&whole, pointer_to_cases(&text), |case| selected.contains(case.id.as_str()));
    print_findings(&loaded.path.shown, &text, &Finding::locate_all(&text, problems), printer);
    Ok(())
}
