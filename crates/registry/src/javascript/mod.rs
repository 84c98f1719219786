//! Tools in TypeScript and JavaScript sources, which are parsed and never run.
//!
//! A file is parsed by oxc and kept as a [`syntax::Module`]: what it exports and the expressions that matter for it.
//! [`evaluate`] finds what those are worth as far as that is certain, across files; [`zod`] does the same for types.
//! [`collect`] knows what of it is a tool. What does not show without running the source is unknown, with its place.

mod call;
mod changes;
mod collect;
mod declare;
mod definition;
mod evaluate;
mod exports;
mod gathered;
mod lines;
mod lower;
mod modules;
mod nesting;
mod parse;
mod positional;
mod resolve;
mod schema;
mod size;
mod syntax;
mod text;
mod value;
mod writes;
mod zod;

use std::path::{Path, PathBuf};

use karat_core::registry::Registry;

use self::collect::Collector;
use self::evaluate::Evaluator;
use self::modules::{Modules, read_source};
use self::parse::Failure;
use self::syntax::Module;
use crate::json::RegistryError;
use crate::source::shown;

/// The stack of a thread that parses and evaluates: enough for the deepest source that is read at all.
const STACK: usize = 512 * 1024 * 1024;

/// Tells whether a file holds source that can be read here, by its name.
pub(crate) fn is_source(path: &Path) -> bool {
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    extension.is_some_and(|extension| resolve::EXTENSIONS.contains(&extension.as_str()))
}

/// Tells whether a file in a folder of tools is one: `*.tool.ts` and the like.
pub(crate) fn is_tool_file(path: &Path) -> bool {
    let stem = path.file_stem().map(Path::new);
    is_source(path) && stem.and_then(Path::extension).is_some_and(|inner| inner.eq_ignore_ascii_case("tool"))
}

/// Reads the tools that files export or register, in their order, as one registry; places are named relative to
/// `base`.
pub(crate) fn read_files(paths: &[PathBuf], base: &Path) -> Result<Registry, RegistryError> {
    on_large_stack(|| {
        let mut modules = Modules::new(base);
        // A barrel passes on what other files export: those are parsed together, on all cores.
        let mut wave = paths.to_vec();
        while !wave.is_empty() {
            let asked = modules.len();
            for (path, module) in wave.iter().zip(parse_all(&wave, base)) {
                modules.add(path, module);
            }
            wave = modules.passed_on(asked);
        }
        let mut collector = Collector::new(Evaluator::new(modules));
        for path in paths {
            collector.file(path);
        }
        collector.finish()
    })
}

/// Parses files on all cores.
fn parse_all(paths: &[PathBuf], base: &Path) -> Vec<Result<Module, Failure>> {
    let parse = |path: &PathBuf| read_source(path, &shown(path, base));
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let share = paths.len().div_ceil(cores).max(32);
    if paths.len() <= share {
        return paths.iter().map(parse).collect();
    }
    std::thread::scope(|scope| {
        let start = |share: &'_ [PathBuf]| {
            let share = share.to_vec();
            let work = move || share.iter().map(|path| read_source(path, &shown(path, base))).collect::<Vec<_>>();
            std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work)
        };
        let started: Vec<_> = paths.chunks(share).map(|share| (share, start(share))).collect();
        let done = started.into_iter().flat_map(|(share, thread)| {
            // Where there is no thread to be had, or it broke, this one does the work.
            let parsed = thread.ok().and_then(|thread| thread.join().ok());
            parsed.unwrap_or_else(|| share.iter().map(parse).collect())
        });
        done.collect()
    })
}

/// Does something on a thread of its own, whose stack is large.
fn on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, RegistryError> {
    std::thread::scope(|scope| {
        let started = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
        let thread = started.map_err(|error| RegistryError::File(format!("no thread can be started: {error}")))?;
        thread.join().map_err(|_| RegistryError::File("the reader of JavaScript broke; please report this".to_owned()))
    })
}
