//! Adds a regression case: from a description, from a failed case of a run, or from a trace.

use std::path::PathBuf;

use karat_cases::registry::{Registry, Tool, same_name};
use karat_cases::regression::{
    ArchivedCase, NewRegression, RegressionEditor, is_regression, next_id, slug, snapshot_keys,
};
use karat_cases::{Case, EvalFile, Tier};
use karat_core::assertion::can_fail;
use karat_json::canonical::canonical_hash;
use karat_json::text::shorten;
use karat_json::{InvalidFile, nearest};
use karat_lints::{LintContext, Severity, lint};
use karat_project::{EvalPath, LoadedSuite, archive_path, read_archive, read_bytes, regression_ids};
use serde_json::{Map, Value, json};

use super::from_run::from_run;
use super::from_trace::from_trace;
use super::template::{Template, bug_ref, refers_to_trace};
use super::{
    RegressReport, ReportedCase, cannot_edit, file_name, load_valid, open_editor, project_file, raw_case, unsealed,
    user_file, write_file,
};
use crate::context::Context;
use crate::error::Error;
use crate::hint::Hint;
use crate::notice::Notices;
use crate::settings::Settings;

/// Maximum length of a description.
const MAX_DESCRIPTION_CHARS: usize = 160;

#[derive(Debug, Default)]
pub struct AddRequest {
    /// The tool under test; default: that of the source.
    pub tool: Option<String>,
    pub source: Option<Source>,
    /// The issue or commit of the fix; default: the trace.
    pub bug_ref: Option<String>,
    /// The message to the agent; default: that of the source.
    pub message: Option<String>,
    /// Description of the bug; default: from the source, or else `bug_ref`.
    pub description: Option<String>,
    pub stubs: Option<Map<String, Value>>,
    /// Keys of `expect`; they replace those of the source.
    pub expect: Map<String, Value>,
    /// The regression file; default: that of the tool, else a new one.
    pub file: Option<PathBuf>,
    /// Write nothing.
    pub dry_run: bool,
}

/// The source of a new case.
#[derive(Debug)]
pub enum Source {
    /// A failed case of a run; `latest` is the newest run.
    Run { run: String, case: String, even_if_passed: bool },
    /// A stored trace, by its id or a prefix, and a step in the turn to use.
    Trace { trace: String, step: Option<usize> },
}

#[derive(Debug)]
pub struct AddOutcome {
    pub outcome: Outcome,
    pub case: ReportedCase,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Added {
        new_file: bool,
    },
    /// With `dry_run`: the case would be added.
    Planned {
        new_file: bool,
    },
    /// There is already a case for the same trace, or for the same case of a run.
    Exists {
        source: String,
    },
}

impl AddOutcome {
    pub fn into_report(self) -> RegressReport {
        RegressReport { written: matches!(self.outcome, Outcome::Added { .. }), cases: vec![self.case] }
    }
}

pub async fn add(request: AddRequest, context: &Context<'_>) -> Result<AddOutcome, Error> {
    let settings = &context.settings;
    let registry = context.list_tools().await?;
    let template = match &request.source {
        Some(Source::Run { run, case, even_if_passed }) => from_run(run, case, *even_if_passed, context)?,
        Some(Source::Trace { trace, step }) => {
            let message = request.message.as_deref();
            from_trace(trace, *step, request.tool.as_deref(), message, context).await?
        }
        None => Template::default(),
    };
    let tool = request.tool.as_ref().unwrap_or(&template.tool).clone();
    let tool = known_tool(&tool, registry.as_ref(), context.notices)?.map_or(tool, |known| known.name.clone());
    let now = context.clock.now().to_string();
    let _lock = if request.dry_run { None } else { Some(context.edit_lock()?) };
    let needs_all = request.file.is_none() || request.source.is_some();
    let all = if needs_all { load_valid(context)? } else { Vec::new() };
    let Target { path, is_new } = Target::find(&tool, &request, &all, settings)?;
    let mut editor = if is_new {
        RegressionEditor::new(&metadata(&tool, &now), &file_name(&path.path))
    } else {
        open_editor(&path)?
    };
    let file = editor.file().map_err(|error| Error::unavailable(error.to_string()))?;
    if let Some(trace_ref) = &template.trace_ref {
        let target = LoadedSuite { path: path.clone(), file: file.clone() };
        if let Some((path, id)) = find_case_of_trace(trace_ref, all.iter().chain([&target])) {
            return existing_case(path, id, trace_ref);
        }
    }
    let id = unused_id(&tool, &file, &path, context)?;
    let case = new_case(&request, template, id.clone(), now)?.into_case();
    if let (Some(Source::Run { case: source, .. }), Ok(new)) = (&request.source, Case::read_one(&case)) {
        let target = LoadedSuite { path: path.clone(), file: file.clone() };
        if let Some((path, id)) = find_equal_case(&new, &tool, all.iter().chain([&target])) {
            return existing_case(path, id, source);
        }
    }
    editor.add(&case).map_err(|error| cannot_edit(&path.display_path, &error))?;
    verify(&editor, &id, &path, registry.as_ref(), context.notices)?;
    if !request.dry_run {
        write_file(&path.path, &path.display_path, &editor.into_text())?;
    }
    let outcome =
        if request.dry_run { Outcome::Planned { new_file: is_new } } else { Outcome::Added { new_file: is_new } };
    let hash = canonical_hash(&case);
    Ok(AddOutcome {
        outcome,
        case: ReportedCase { id, path: path.display_path, archive: None, hash, case: Some(case) },
    })
}

/// Rejects a case that is invalid, cannot fail or has a lint error, since a regression case cannot be edited later.
fn verify(
    editor: &RegressionEditor,
    id: &str,
    path: &EvalPath,
    registry: Option<&Registry>,
    notices: &dyn Notices,
) -> Result<(), Error> {
    let file = editor.file().map_err(|invalid| {
        let files = vec![InvalidFile::new(&path.display_path, editor.text().as_bytes(), invalid.findings)];
        Error { files, ..Error::invalid("nothing was written: the new case is invalid") }
    })?;
    if !file.cases.iter().any(|case| case.id == id && can_fail(case)) {
        return Err(always_passes_error());
    }
    let context = LintContext { registry, ..LintContext::default() };
    for lint in lint(&file, context).into_iter().filter(|lint| lint.case_id == id) {
        let message = format!("{} ({})", lint.message, lint.rule.name());
        if lint.rule.severity() == Severity::Error {
            return Err(Error::invalid(message).hint("nothing was written: a regression case cannot be edited later"));
        }
        notices.warn(&message);
    }
    Ok(())
}

/// Finds an existing case for a trace.
fn find_case_of_trace<'l>(
    trace_ref: &str,
    all: impl IntoIterator<Item = &'l LoadedSuite>,
) -> Option<(&'l EvalPath, &'l str)> {
    all.into_iter().find_map(|loaded| {
        let case = loaded.file.cases.iter().find(|case| refers_to_trace(case, trace_ref))?;
        Some((&loaded.path, case.id.as_str()))
    })
}

/// Finds a regression case of the tool with the same message, stubs and expectations.
fn find_equal_case<'l>(
    new: &Case,
    tool: &str,
    all: impl IntoIterator<Item = &'l LoadedSuite>,
) -> Option<(&'l EvalPath, &'l str)> {
    let is_equal = |case: &Case| {
        let messages = |case: &Case| (case.input.clone(), case.turns.clone(), case.user.clone());
        (messages(case), &case.stubs, &case.injections, case.max_turns, &case.expect, &case.safety)
            == (messages(new), &new.stubs, &new.injections, new.max_turns, &new.expect, &new.safety)
    };
    all.into_iter().filter(|loaded| same_name(&loaded.file.tool_name, tool)).find_map(|loaded| {
        let case = loaded.file.cases.iter().find(|case| is_regression(&loaded.file, case) && is_equal(case))?;
        Some((&loaded.path, case.id.as_str()))
    })
}

fn existing_case(path: &EvalPath, id: &str, source: &str) -> Result<AddOutcome, Error> {
    let case = raw_case(&read_bytes(path)?, id);
    let hash = case.as_ref().map(canonical_hash).unwrap_or_default();
    let outcome = Outcome::Exists { source: source.to_owned() };
    Ok(AddOutcome {
        outcome,
        case: ReportedCase { id: id.to_owned(), path: path.display_path.clone(), archive: None, hash, case },
    })
}

/// The file to add the case to.
struct Target {
    path: EvalPath,
    is_new: bool,
}

impl Target {
    /// Finds the tool's regression file, or the path of a new one.
    fn find(tool: &str, request: &AddRequest, all: &[LoadedSuite], settings: &Settings) -> Result<Self, Error> {
        if let Some(file) = &request.file {
            let path = user_file(file, settings);
            return Ok(Self { is_new: !path.path.exists(), path });
        }
        let of_tool: Vec<&EvalPath> = all
            .iter()
            .filter(|loaded| loaded.file.tier == Tier::Regression && same_name(&loaded.file.tool_name, tool))
            .map(|loaded| &loaded.path)
            .collect();
        match of_tool.as_slice() {
            [path] => Ok(Self { path: (*path).clone(), is_new: false }),
            [] => Self::new_file(tool, settings),
            several => {
                let names: Vec<&str> = several.iter().map(|path| path.display_path.as_str()).collect();
                Err(Error::invalid(format!("'{tool}' has several regression files: {}", names.join(", ")))
                    .hint("pass --file to choose one"))
            }
        }
    }

    fn new_file(tool: &str, settings: &Settings) -> Result<Self, Error> {
        if tool.trim().is_empty() || tool.contains(['/', '\\']) || tool.starts_with('.') {
            return Err(
                Error::invalid(format!("tool name '{tool}' cannot be used in a file name")).hint("pass --file FILE")
            );
        }
        let path = settings.layout.root.join("evals").join(format!("{}.regression.json", slug(tool)));
        let path = project_file(path, settings);
        if path.path.exists() {
            return Err(Error::invalid(format!(
                "{} exists, but is not a regression file for '{tool}'",
                path.display_path
            ))
            .hint(Hint::CheckOrNameRegressionFile));
        }
        Ok(Self { path, is_new: true })
    }
}

/// Returns the tool with this name. Rejects an unknown tool, unless the registry has gaps.
fn known_tool<'r>(
    name: &str,
    registry: Option<&'r Registry>,
    notices: &dyn Notices,
) -> Result<Option<&'r Tool>, Error> {
    let Some(registry) = registry else {
        return Ok(None);
    };
    let tool = registry.find(name);
    if tool.is_some() {
        return Ok(tool);
    }
    let near = nearest(name, &registry.names()).map(|name| format!("did you mean '{name}'?"));
    if registry.gaps().is_empty() {
        let error = Error::not_found(format!("unknown tool '{name}'"));
        return Err(match near {
            Some(near) => error.hint(near),
            None => error.hint(Hint::ListTools),
        });
    }
    let near = near.map(|near| format!(" ({near})")).unwrap_or_default();
    notices.warn(&format!("unknown tool '{name}', but parts of the tool registry could not be read{near}"));
    Ok(None)
}

/// Returns the next id that is not used in an eval file, an archive or the case hashes.
fn unused_id(tool: &str, file: &EvalFile, path: &EvalPath, context: &Context<'_>) -> Result<String, Error> {
    let settings = &context.settings;
    let archive_path = archive_path(&path.path);
    let archive = read_archive(&archive_path, &settings.display_path(&archive_path))?;
    let open = unsealed(file).count();
    if open > 0 {
        let cases = if open == 1 { "1 case has" } else { &format!("{open} cases have") };
        context
            .notices
            .note(&format!("{cases} no hash in {}; run 'karat regress seal' to add hashes", path.display_path));
    }
    let hashes = file.metadata.iter().filter_map(|metadata| metadata.case_hashes.as_ref()).flat_map(|all| all.keys());
    let archived = archive.cases.iter().map(ArchivedCase::id);
    let used_ids = file.cases.iter().map(|case| case.id.as_str()).chain(archived).chain(hashes.map(String::as_str));
    let other_ids = regression_ids(&settings.layout)?;
    Ok(next_id(tool, used_ids.chain(other_ids.iter().map(String::as_str))))
}

/// Returns the metadata of a new file, without the tool's version: a regression case is not stale when the tool's
/// description changes.
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

fn always_passes_error() -> Error {
    Error::invalid("the case would always pass: it has no assertion that can fail")
        .hint("add assertions, for example --tools-called or --response-contains; see --help")
}

fn new_case(request: &AddRequest, template: Template, id: String, created_at: String) -> Result<NewRegression, Error> {
    let expect = merge_expectations(template.expect, &request.expect);
    let turns = template.turns.iter().flat_map(|turns| turns.as_array().into_iter().flatten());
    let turn_expectations: Vec<&Map<String, Value>> =
        turns.filter_map(|turn| turn.get("expect").and_then(Value::as_object)).collect();
    if expect.is_empty() && turn_expectations.is_empty() {
        return Err(always_passes_error());
    }
    if (template.turns.is_some() || template.user.is_some()) && request.message.is_some() {
        return Err(Error::invalid("the case is a conversation, so --message cannot replace its messages"));
    }
    if let Some(first) = turn_expectations.into_iter().chain([&expect]).flat_map(snapshot_keys).next() {
        let error = Error::invalid(format!(
            "'{first}' uses a {{{{snapshot:...}}}} token: a regression case must have only stable values"
        ));
        let is_from_run = matches!(request.source, Some(Source::Run { .. }));
        return Err(if is_from_run { error.hint(Hint::ReplaceExpectation { key: first.to_owned() }) } else { error });
    }
    let bug_ref = bug_ref(request.bug_ref.as_deref(), template.trace_ref.as_deref());
    let description = request.description.clone().or(template.description).unwrap_or_else(|| bug_ref.clone());
    let description = description.split_whitespace().collect::<Vec<_>>().join(" ");
    Ok(NewRegression {
        id,
        description: shorten(&description, MAX_DESCRIPTION_CHARS).into_owned(),
        created_at,
        bug_ref,
        message: request.message.clone().unwrap_or(template.message),
        turns: template.turns,
        on_turn_failure: template.on_turn_failure,
        user: template.user,
        stubs: request.stubs.clone().map(Value::Object).or(template.stubs),
        injections: template.injections,
        max_turns: template.max_turns,
        expect,
        safety: template.safety,
    })
}

/// Replaces keys of `expect` with the requested ones.
fn merge_expectations(mut expect: Map<String, Value>, requested: &Map<String, Value>) -> Map<String, Value> {
    // A case has one kind of routing assertion, so a requested one replaces any kind.
    if requested.contains_key("toolsCalled") || requested.contains_key("toolsAcceptable") {
        for key in ["toolsCalled", "toolsCalledMatch", "toolsAcceptable"] {
            expect.shift_remove(key);
        }
    }
    expect.extend(requested.clone());
    expect
}
