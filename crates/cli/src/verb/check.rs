//! `karat check`: what is invalid or likely wrong, without asking the agent.

mod archives;
mod eval_files;
mod functions;
mod issue;
mod overlaps;
mod report;
mod rules;
mod source_text;
mod tools;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use karat_core::exit::ExitStatus;
use karat_core::lint::Rule;
use karat_core::registry::Registry;
use karat_core::token::TokenSources;
use karat_tools::contract::Silencer;
use karat_tools::overlap::Uncovered;

pub(crate) use self::report::CheckReport;
pub(crate) use self::rules::RuleList;

use self::eval_files::EvalFiles;
use self::report::Reporter;
use self::source_text::Sources;
use crate::args::CheckArgs;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::interrupt::runtime_that_ends;
use crate::printer::Printer;
use crate::resolve::resolve_settings;
use karat_project::read_json_setting;
use karat_project::read_overlap_map;
use karat_project::{EvalPath, discover};
use karat_workflows::context::models::is_model;
use karat_workflows::context::tools::list_tools;
use karat_workflows::functions::find_functions;
use karat_workflows::settings::ToolExecutor;

pub(crate) fn run(args: &CheckArgs, environment: &Environment, printer: &Printer) -> Result<ExitStatus, Failure> {
    if args.rules {
        return rules::list(args.format, printer);
    }
    let settings = resolve_settings(&args.config, &args.paths, environment, printer)?;
    let found = discover(&args.paths, &settings.layout, &environment.process.current_dir);
    // With paths of their own, a person means eval files.
    let paths = if args.paths.is_empty() { Ok(found) } else { found.map(Ok) }?;
    let runtime = runtime_that_ends()?;
    let registry = runtime.block_on(list_tools(&settings, printer))?;
    let paths = eval_paths(paths.map_err(Failure::from), registry.as_ref(), printer)?;
    let overlaps = read_overlap_map(&settings.overlap_map)?;
    let mut reporter = Reporter::new(args.format, printer);
    let mut silencer = Silencer::new(&settings.silence.silence);
    if let Some(registry) = &registry {
        if karat_workflows::context::tools::is_empty(registry) {
            printer.warn("the tool registry has no tools, so nothing is said about them");
        }
        let mut sources = Sources::new(&settings);
        reporter.tools(registry.tools().len());
        reporter.add(tools::check(registry, overlaps.as_ref(), &mut silencer, &mut sources))?;
    }
    let is_model = settings.agent_endpoints.iter().any(|endpoint| is_model(&endpoint.value, &settings));
    let functions = find_functions(&settings)?;
    let is_whole = is_whole_project(&args.paths, &settings.layout.root, &environment.process.current_dir);
    let tokens =
        TokenSources { seed: read_json_setting(&settings.seed_manifest, "the seed manifest")?, snapshot: None };
    let mut files = EvalFiles {
        tokens: &tokens,
        functions: &functions,
        named: BTreeSet::new(),
        registry: registry.as_ref(),
        overlaps: overlaps.as_ref(),
        // Where tools really run, a model goes on to its final response.
        routing_only: is_model && settings.live.executor != ToolExecutor::Mcp,
        uncovered: overlaps.as_ref().map(Uncovered::of),
        are_all_valid: true,
    };
    for path in &paths {
        let (issues, cases) = files.check(path, &mut silencer)?;
        reporter.file(cases);
        reporter.add(issues)?;
    }
    reporter.add(functions::check(&functions, (!is_whole).then_some(&files.named)))?;
    reporter.add(archives::check(&paths, &args.paths, &settings)?)?;
    if let (Some(map), Some(uncovered)) = (&overlaps, &files.uncovered) {
        let unjudged = if !is_whole {
            Some("only a part of the eval files was checked")
        } else if !files.are_all_valid {
            Some("an eval file is invalid")
        } else {
            None
        };
        let uncovered = unjudged.is_none().then_some(uncovered);
        let checked = overlaps::check(map, registry.as_ref(), uncovered, &mut silencer, &settings)?;
        reporter.add(checked.issues)?;
        let unjudged =
            unjudged.or(checked.is_hidden.then_some("a tool may stand where the registry could not be read"));
        if let Some(why) = unjudged.filter(|_| map.pairs().next().is_some()) {
            reporter.not_judged(Rule::UntestedOverlap.name(), why);
        }
    }
    if let Some(registry) = registry.as_ref().filter(|_| is_whole && files.are_all_valid) {
        reporter.add(tools::unused_silences(&silencer, registry, &settings))?;
    }
    reporter.end(silencer.count(), settings.strict)
}

/// Returns the eval files; none where the project has none yet, but tools to look at.
fn eval_paths(
    found: Result<Vec<EvalPath>, Failure>,
    registry: Option<&Registry>,
    printer: &Printer,
) -> Result<Vec<EvalPath>, Failure> {
    match (found, registry) {
        (Err(failure), Some(_)) => {
            printer.warn(&format!("only the tools are checked: {}", failure.message));
            Ok(Vec::new())
        }
        (found, _) => found,
    }
}

/// Tells whether the paths hold all eval files of the project, so that something can be missing in them.
fn is_whole_project(paths: &[PathBuf], root: &Path, here: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let evals = real(&root.join("evals"));
    paths.is_empty() || paths.iter().any(|path| evals.starts_with(real(&here.join(path))))
}
