//! Adopts evaluators of other frameworks: writes an eval function around their unchanged code.
//!
//! The code of the evaluator and what it refers to is copied statement by statement, also from other modules of the
//! project. Classes of the framework are replaced by stand-ins, and an eval function calls the evaluator with what it
//! asks for.

mod error;
mod framework;
mod imports;
mod project;
mod reads;
mod scopes;
mod select;
mod slice;
mod source_item;
mod wrapper;

use std::collections::BTreeMap;
use std::path::Path;

use karat_json::text::snake_case;
use ruff_python_ast::{ModModule, Stmt};

pub use self::error::AdoptError;
pub use self::framework::Framework;
pub use self::imports::unavailable_reason;
pub use self::project::{FindModule, ProjectModule};
use self::project::{Findings, Project};
use self::reads::Reads;
use self::select::{Selected, select};
use self::slice::Slice;
pub use self::wrapper::helper_name;
use crate::validate::{on_parser_thread, parse, readable_text};

/// What to adopt.
#[derive(Clone, Copy)]
pub struct AdoptRequest<'r> {
    pub source: &'r [u8],
    /// The file of the source.
    pub path: &'r Path,
    /// The function or class; may be left out if the file has only one evaluator.
    pub function: Option<&'r str>,
    /// The name of the eval function, with its prefix; default: that of the evaluator.
    pub name: Option<&'r str>,
    pub find_module: FindModule<'r>,
}

/// An evaluator of another framework as an eval function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdoptedFunction {
    pub framework: Framework,
    /// The name of the function or class in its file.
    pub source_name: String,
    /// The name of the eval function.
    pub name: String,
    pub code: String,
    /// The code of helper modules by name: the project's modules that the evaluator imports, and the evaluator itself
    /// if it cannot be in the same file, since its name has the prefix `eval_`.
    pub helpers: BTreeMap<String, String>,
    /// Modules that the project must allow in `evalImports`.
    pub imports: Vec<String>,
    /// Parameters without which the evaluator cannot be constructed.
    pub required_params: Vec<String>,
    /// What is different from the framework.
    pub notes: Vec<String>,
    /// Reasons why the code cannot run in the sandbox.
    pub obstacles: Vec<String>,
}

/// Adopts the function or class with the given name, or the only one that is recognised.
pub fn adopt(request: &AdoptRequest<'_>) -> Result<AdoptedFunction, AdoptError> {
    let text = readable_text(request.source).map_err(|finding| AdoptError::Invalid(finding.message))?;
    let adopted = on_parser_thread(|| {
        let parsed = parse(text).filter(|parsed| parsed.errors().is_empty());
        let parsed = parsed.ok_or_else(|| AdoptError::Invalid("the file is not valid Python".to_owned()))?;
        adopt_from(parsed.syntax(), text, request)
    });
    adopted.unwrap_or_else(|| Err(AdoptError::Invalid("the file cannot be parsed".to_owned())))
}

fn adopt_from(module: &ModModule, text: &str, request: &AdoptRequest<'_>) -> Result<AdoptedFunction, AdoptError> {
    let selected = select(module, request.function)?;
    let evaluator = &selected.evaluator;
    let framework = evaluator.framework;
    let name = request.name.map_or_else(|| eval_name(evaluator.name(), request.path), str::to_owned);
    let slice = Slice::of(&statements(module, &selected), [evaluator.name()]);

    let mut findings = Findings { notes: evaluator.notes(), ..Findings::default() };
    findings.obstacles.extend(evaluator.obstacles());
    findings.obstacles.extend(selected.closure());
    findings.notes.extend(Reads::of(&slice.statements).notes(framework));
    let mut project = Project::new(request.find_module, framework, format!("{}_", helper_name(&name)));
    let items = project.items(&slice, request.path, &mut findings);
    let mut helpers = project.helpers(&mut findings);

    let is_split = slice.binds.iter().any(|bound| bound.starts_with("eval_"));
    let generator = wrapper::CodeGenerator { evaluator, name: &name, items: &items, text, is_split };
    let code = match generator.generate() {
        Ok(wrapper::GeneratedCode { main, helper }) => {
            helpers.extend(helper.map(|code| (helper_name(&name), code)));
            main
        }
        Err(missing) => {
            findings.obstacles.extend(missing);
            String::new()
        }
    };
    Ok(AdoptedFunction {
        framework,
        source_name: evaluator.name().to_owned(),
        name,
        code,
        helpers,
        imports: findings.imports.into_iter().collect(),
        required_params: evaluator.constructor().required.into_iter().map(str::to_owned).collect(),
        notes: findings.notes,
        obstacles: findings.obstacles.into_iter().collect(),
    })
}

/// Returns the statements that an evaluator can refer to, and itself.
fn statements<'a>(module: &'a ModModule, selected: &Selected<'a>) -> Vec<&'a Stmt> {
    let mut statements: Vec<&Stmt> = module.body.iter().collect();
    if !selected.outer.is_empty() {
        statements.extend(selected.outer_imports());
        statements.push(selected.stmt);
    }
    statements
}

/// Returns the name of the eval function for an evaluator.
fn eval_name(name: &str, path: &Path) -> String {
    if ["get_assert", "grade"].contains(&name)
        && let Some(stem) = path.file_stem()
    {
        // They have the same name in every file.
        return format!("eval_{}", snake_case(&stem.to_string_lossy()).trim_matches('_'));
    }
    let snake = snake_case(name);
    let base = ["evaluate_", "eval_"].into_iter().find_map(|prefix| snake.strip_prefix(prefix)).unwrap_or(&snake);
    let base =
        ["_evaluator", "_scorer", "_metric"].into_iter().find_map(|suffix| base.strip_suffix(suffix)).unwrap_or(base);
    format!("eval_{}", base.trim_matches('_'))
}
