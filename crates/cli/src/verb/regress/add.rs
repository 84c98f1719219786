//! `karat regress add`.

use karat_core::assertion::can_fail;
use karat_core::case::Tier;
use karat_core::exit::ExitStatus;
use karat_core::lint::{LintContext, Severity, lint};
use karat_core::port::Clock;
use karat_core::registry::{Registry, Tool, same_name};
use karat_core::regression::{NewRegression, RegressionEditor, is_regression, next_id, slug, snapshot_keys};
use karat_json::canonical::canonical_hash;
use karat_json::text::shorten;
use karat_json::{nearest, parse};
use karat_report::printable;
use serde_json::{Map, Value, json};

use super::basis::{Basis, is_made_of};
use super::expect::{expect_of, json_object};
use super::{RegressReport, ReportedCase, file_name, load_valid, named_file, open, write};
use crate::args::RegressAddArgs;
use crate::diagnostic::print_findings;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::project::Project;
use crate::resolve::edit_lock;
use karat_json::without_bom;
use karat_project::EvalPath;
use karat_project::{Loaded, read_bytes};
use karat_project::{archive_path, project_ids, read_archive};
use karat_workflows::context::clock::SystemClock;
use karat_workflows::settings::Settings;

/// How much of an error a description holds.
const LONGEST_DESCRIPTION: usize = 160;

pub(super) fn run(args: &RegressAddArgs, environment: &Environment, printer: &Printer) -> Result<ExitStatus, Failure> {
    for (flag, text) in [("bug-ref", args.bug_ref.as_ref()), ("message", args.message.as_ref())] {
        if text.is_some_and(|text| text.trim().is_empty()) {
            return Err(Failure::invalid(format!("--{flag} is empty")));
        }
    }
    let project = Project::open(&args.config.config_args(), environment, printer)?;
    let settings = &project.settings;
    let basis = basis(args, &project, printer)?;
    let tool = match (&args.tool, &basis) {
        (Some(tool), _) => tool.clone(),
        (None, basis) => basis.as_ref().map(|basis| basis.tool.clone()).unwrap_or_default(),
    };
    let known = known_tool(&tool, project.registry.as_ref(), printer)?;
    let tool = known.map_or(tool, |tool| tool.name.clone());
    let now = SystemClock.now().to_string();
    let _lock = if args.dry_run { None } else { Some(edit_lock(settings, printer)?) };
    let is_of_trace = basis.as_ref().is_some_and(|basis| basis.trace.is_some());
    let all = if args.file.is_none() || is_of_trace { load_valid(&[], settings, printer)? } else { Vec::new() };
    let target = Target::find(&tool, args, &all, settings)?;
    let mut editor = match &target {
        Target::Existing(path) => open(path, printer)?,
        Target::New(path) => RegressionEditor::new(&metadata(&tool, &now), &file_name(&path.path)),
    };
    let path = target.path();
    if let Some(trace) = basis.as_ref().and_then(|basis| basis.trace.as_deref()) {
        let own = editor.file().map_err(|error| Failure::errored(error.to_string()))?;
        let own = Loaded { path: path.clone(), file: own };
        if let Some((path, id)) = made_of(trace, all.iter().chain([&own])) {
            return exists(path, id, trace, args, printer);
        }
    }
    let new = new_case(args, basis, next(&tool, &editor, path, settings, printer)?, now)?;
    let id = new.id.clone();
    let case = new.into_case();
    editor.add(&case).map_err(|error| Failure::errored(format!("cannot edit {}: {error}", path.shown)))?;
    // What the reader refuses is never written.
    let file = editor.file().map_err(|invalid| {
        print_findings(&path.shown, editor.text(), &invalid.findings, printer);
        Failure::invalid("the new case is invalid, so nothing was written")
    })?;
    if !file.cases.iter().any(|case| case.id == id && can_fail(case)) {
        return Err(always_passes());
    }
    let context = LintContext { registry: project.registry.as_ref(), ..LintContext::default() };
    for lint in lint(&file, context).into_iter().filter(|lint| lint.case_id == id) {
        let told = format!("{} ({})", lint.message, lint.rule.name());
        // It could not be mended afterwards.
        if lint.rule.severity() == Severity::Error {
            return Err(Failure::invalid(told).hint("a regression case is never edited, so nothing was written"));
        }
        printer.warn(&told);
    }
    let is_new = matches!(target, Target::New(_));
    let place = if is_new { format!("{}, a new file", path.shown) } else { path.shown.clone() };
    let told = if args.dry_run {
        printer.note(&format!("{id} would be added to {place}"));
        serde_json::to_string_pretty(&case).map_err(|error| Failure::errored(error.to_string()))? + "\n"
    } else {
        write(&path.path, &path.shown, &editor.into_text())?;
        format!("added {} to {}\n", printable(&id), printable(&place))
    };
    let hash = canonical_hash(&case);
    let reported = ReportedCase { id, path: path.shown.clone(), archive: None, hash, case: Some(case) };
    RegressReport { written: !args.dry_run, cases: vec![reported] }.print(args.format, &told, printer)?;
    Ok(ExitStatus::Success)
}

/// Finds what the case is made of, where it is not made of flags alone.
fn basis(args: &RegressAddArgs, project: &Project, printer: &Printer) -> Result<Option<Basis>, Failure> {
    let settings = &project.settings;
    match (&args.from_run, &args.case, &args.from_trace) {
        (Some(run), Some(id), _) => Basis::of_run(run, id, args.even_if_passed, settings, printer).map(Some),
        (_, _, Some(trace)) => {
            let finding = Basis::of_trace(trace, args.step, args.tool.as_deref(), settings, printer);
            project.runtime.block_on(finding).map(Some)
        }
        _ => Ok(None),
    }
}

/// Finds the case that was made of a trace before.
fn made_of<'l>(trace: &str, all: impl IntoIterator<Item = &'l Loaded>) -> Option<(&'l EvalPath, &'l str)> {
    all.into_iter().find_map(|loaded| {
        let case = loaded.file.cases.iter().find(|case| is_made_of(case, trace))?;
        Some((&loaded.path, case.id.as_str()))
    })
}

/// Says that there is nothing to do.
fn exists(
    path: &EvalPath,
    id: &str,
    trace: &str,
    args: &RegressAddArgs,
    printer: &Printer,
) -> Result<ExitStatus, Failure> {
    let bytes = read_bytes(path)?;
    let tree = parse(&String::from_utf8_lossy(without_bom(&bytes))).unwrap_or_default();
    let cases = tree.get("cases").unwrap_or(&tree).as_array().map(Vec::as_slice).unwrap_or_default();
    let case = cases.iter().find(|case| case.get("id").and_then(Value::as_str) == Some(id));
    let hash = case.map(canonical_hash).unwrap_or_default();
    let told = format!("{} in {} was made of {} before\n", printable(id), printable(&path.shown), printable(trace));
    printer.note("nothing was written: a regression case is never edited; TOOL and --message make another one");
    let reported =
        ReportedCase { id: id.to_owned(), path: path.shown.clone(), archive: None, hash, case: case.cloned() };
    RegressReport { written: false, cases: vec![reported] }.print(args.format, &told, printer)?;
    Ok(ExitStatus::Success)
}

/// Where the case goes.
enum Target {
    Existing(EvalPath),
    New(EvalPath),
}

impl Target {
    fn path(&self) -> &EvalPath {
        match self {
            Target::Existing(path) | Target::New(path) => path,
        }
    }

    /// Finds the tool's regression file, wherever it is, or where a new one belongs.
    fn find(tool: &str, args: &RegressAddArgs, all: &[Loaded], settings: &Settings) -> Result<Self, Failure> {
        if let Some(file) = &args.file {
            let path = named_file(file, settings);
            return Ok(if path.path.exists() { Target::Existing(path) } else { Target::New(path) });
        }
        let of_tool: Vec<EvalPath> = all
            .iter()
            .filter(|loaded| loaded.file.tier == Tier::Regression && same_name(&loaded.file.tool_name, tool))
            .map(|loaded| loaded.path.clone())
            .collect();
        match of_tool.as_slice() {
            [path] => Ok(Target::Existing(path.clone())),
            [] => Self::new_file(tool, settings),
            several => {
                let names: Vec<&str> = several.iter().map(|path| path.shown.as_str()).collect();
                Err(Failure::invalid(format!("'{tool}' has several regression files: {}", names.join(", ")))
                    .hint("name the one that is meant with --file"))
            }
        }
    }

    fn new_file(tool: &str, settings: &Settings) -> Result<Self, Failure> {
        if tool.trim().is_empty() || tool.contains(['/', '\\']) || tool.starts_with('.') {
            return Err(
                Failure::invalid(format!("'{tool}' cannot be a part of a file's name")).hint("name a file with --file")
            );
        }
        let path = settings.layout.root.join("evals").join(format!("{}.regression.json", slug(tool)));
        let shown = path.strip_prefix(&settings.layout.here).unwrap_or(&path).to_path_buf();
        let path = EvalPath { path, ..named_file(&shown, settings) };
        if path.path.exists() {
            return Err(Failure::invalid(format!("{} is there, but is no regression file of '{tool}'", path.shown))
                .hint("'karat check' shows whether it is valid; --file names another"));
        }
        Ok(Target::New(path))
    }
}

/// Returns the tool of the registry that is meant; what is no tool is refused.
fn known_tool<'r>(name: &str, registry: Option<&'r Registry>, printer: &Printer) -> Result<Option<&'r Tool>, Failure> {
    let Some(registry) = registry else {
        return Ok(None);
    };
    let found = registry.find(name);
    if found.is_some() {
        return Ok(found);
    }
    let near = nearest(name, &registry.names()).map(|name| format!("did you mean '{name}'?"));
    if registry.gaps().is_empty() {
        let failure = Failure::invalid(format!("the registry has no tool '{name}'"));
        return Err(match near {
            Some(near) => failure.hint(near),
            None => failure,
        });
    }
    let near = near.map(|near| format!(" ({near})")).unwrap_or_default();
    printer.warn(&format!("'{name}' is not known, but not all of the tool registry could be read{near}"));
    Ok(None)
}

/// Returns the next id: not one of any eval file's, nor of an archive's, nor one whose hash is left.
fn next(
    tool: &str,
    editor: &RegressionEditor,
    path: &EvalPath,
    settings: &Settings,
    printer: &Printer,
) -> Result<String, Failure> {
    let file = editor.file().map_err(|error| Failure::errored(error.to_string()))?;
    let archive_path = archive_path(&path.path);
    let archive = read_archive(&archive_path, &settings.shown(&archive_path))?;
    let hashes = file.metadata.iter().filter_map(|metadata| metadata.case_hashes.as_ref()).flat_map(|all| all.keys());
    let unsealed = |id: &str| {
        file.metadata
            .as_ref()
            .and_then(|metadata| metadata.case_hashes.as_ref())
            .is_none_or(|all| !all.contains_key(id))
    };
    let open = file.cases.iter().filter(|case| is_regression(&file, case) && unsealed(&case.id)).count();
    if open > 0 {
        let cases = if open == 1 { "1 case has" } else { &format!("{open} cases have") };
        printer.note(&format!("{cases} no hash in {}; 'karat regress seal' adds it", path.shown));
    }
    let archived = archive.cases.iter().map(karat_core::regression::ArchivedCase::id);
    let taken = file.cases.iter().map(|case| case.id.as_str()).chain(archived).chain(hashes.map(String::as_str));
    let elsewhere = project_ids(&settings.layout)?;
    Ok(next_id(tool, taken.chain(elsewhere.iter().map(String::as_str))))
}

/// Returns what a new file says of itself. It says nothing of the tool as it is now: a regression case guards a bug, and
/// is no more out of date when the tool is described in other words.
fn metadata(tool: &str, now: &str) -> Map<String, Value> {
    let members = [
        ("toolName", json!(tool)),
        ("generatedAt", json!(now)),
        ("generatedBy", json!("karat regress")),
        ("tier", json!(Tier::Regression.name())),
        ("caseHashes", json!({})),
    ];
    members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn always_passes() -> Failure {
    Failure::invalid("the case expects nothing that an answer could fail, so it would always pass")
        .hint("say what must be true with --tools-called, --response-contains and the like; see --help")
}

fn new_case(
    args: &RegressAddArgs,
    basis: Option<Basis>,
    id: String,
    created_at: String,
) -> Result<NewRegression, Failure> {
    let (mut expect, mut stubs, mut max_turns, mut message, mut said) = (Map::new(), None, None, None, None);
    let from_run = args.from_run.is_some();
    let bug_ref = Basis::bug_ref(args.bug_ref.as_deref(), basis.as_ref().and_then(|basis| basis.trace.as_deref()));
    if let Some(basis) = basis {
        expect = basis.expect;
        (stubs, max_turns, message, said) = (basis.stubs, basis.max_turns, Some(basis.message), basis.said);
    }
    expect_of(&args.expect, &mut expect)?;
    if expect.is_empty() {
        return Err(always_passes());
    }
    if let [first, ..] = snapshot_keys(&expect).as_slice() {
        let failure = Failure::invalid(format!(
            "'{first}' uses a {{{{snapshot:...}}}} token, whose value changes: a regression case must only hold stable values"
        ));
        let hint = format!("give the value as it was, for example --{} VALUE", kebab_case(first));
        return Err(if from_run { failure.hint(hint) } else { failure });
    }
    if let Some(text) = &args.stubs {
        stubs = Some(Value::Object(json_object("stubs", text)?));
    }
    let said = args.description.clone().or(said).unwrap_or_else(|| bug_ref.clone());
    Ok(NewRegression {
        id,
        description: shorten(&said.split_whitespace().collect::<Vec<_>>().join(" "), LONGEST_DESCRIPTION).into_owned(),
        created_at,
        bug_ref,
        message: args.message.clone().or(message).unwrap_or_default(),
        stubs,
        max_turns,
        expect,
    })
}

/// Returns the flag of a key of 'expect'.
fn kebab_case(key: &str) -> String {
    let mut flag = String::new();
    for letter in key.chars() {
        if letter.is_ascii_uppercase() {
            flag.push('-');
        }
        flag.push(letter.to_ascii_lowercase());
    }
    flag
}
