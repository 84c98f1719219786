//! Adopts evaluators of other frameworks: writes an eval function around their unchanged code.
//!
//! The statements of the evaluator and of everything it refers to are copied unchanged. Stand-ins replace the classes
//! of the framework, and an eval function calls the evaluator with the arguments that it declares.

mod framework;
mod imports;
mod slice;
mod wrapper;

use karat_json::text::snake_case;
use ruff_python_ast::{ModModule, Stmt};

use self::framework::Evaluator;
pub use self::framework::Framework;
pub use self::imports::unavailable_reason;
use self::imports::{Imported, ModuleOrigin, origin_of};
use self::slice::Slice;
pub use self::wrapper::helper_name;
use crate::modules::root;
use crate::validate::{on_parser_thread, parse, readable_text};

/// An evaluator of another framework as an eval function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdoptedFunction {
    pub framework: Framework,
    /// The name of the function or class in its file.
    pub source_name: String,
    /// The name of the eval function.
    pub name: String,
    pub code: String,
    /// The code of a helper module, if the evaluator cannot be in the same file: its name has the prefix `eval_`.
    pub helper: Option<String>,
    /// Modules that the project must allow in `evalImports`.
    pub imports: Vec<String>,
    /// Modules of the file's folder that must be copied to the folder of eval functions.
    pub helpers: Vec<String>,
    /// Differences from the framework.
    pub notes: Vec<String>,
    /// Reasons why the code cannot run in the sandbox.
    pub obstacles: Vec<String>,
}

/// The reason why no evaluator can be adopted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AdoptError {
    #[error("{0}")]
    Invalid(String),
    #[error("no function '{0}' at the top level")]
    Unknown(String),
    #[error("no evaluator of a known framework")]
    NoneFound { functions: Vec<String> },
    #[error("several evaluators: {}", .0.join(", "))]
    Several(Vec<String>),
}

/// Adopts the function or class with the given name, or the only one that is recognised. `has_module` returns
/// whether a module is a file in the evaluator's folder.
pub fn adopt(
    source: &[u8],
    name: Option<&str>,
    has_module: &(dyn Fn(&str) -> bool + Sync),
) -> Result<AdoptedFunction, AdoptError> {
    let text = readable_text(source).map_err(|finding| AdoptError::Invalid(finding.message))?;
    let adopted = on_parser_thread(|| {
        let parsed = parse(text).filter(|parsed| parsed.errors().is_empty());
        let parsed = parsed.ok_or_else(|| AdoptError::Invalid("the file is not valid Python".to_owned()))?;
        adopt_from(parsed.syntax(), text, name, has_module)
    });
    adopted.unwrap_or_else(|| Err(AdoptError::Invalid("the file cannot be parsed".to_owned())))
}

fn adopt_from(
    module: &ModModule,
    text: &str,
    name: Option<&str>,
    has_module: &dyn Fn(&str) -> bool,
) -> Result<AdoptedFunction, AdoptError> {
    let evaluator = select(module, name)?;
    let slice = Slice::of(module, evaluator.name());
    let framework = evaluator.framework;
    let mut adopted = AdoptedFunction {
        framework,
        source_name: evaluator.name().to_owned(),
        name: eval_name(evaluator.name()),
        code: String::new(),
        helper: None,
        imports: Vec::new(),
        helpers: Vec::new(),
        notes: evaluator.notes(),
        obstacles: evaluator.obstacles(),
    };
    let mut items = Vec::new();
    for &stmt in &slice.statements {
        let Some(imported) = Imported::of(stmt, &slice.names) else {
            items.push(wrapper::SourceItem::Statement(stmt));
            continue;
        };
        for import in imported {
            let origin = origin_of(&import.module, framework, has_module);
            match origin {
                ModuleOrigin::Common | ModuleOrigin::StandIn => {}
                ModuleOrigin::Optional(entry) => adopted.imports.push(entry.to_owned()),
                ModuleOrigin::Helper => adopted.helpers.push(root(import.module.trim_start_matches('.')).to_owned()),
                ModuleOrigin::Unavailable(ref reason) => adopted.obstacles.push(reason.clone()),
            }
            items.push(wrapper::SourceItem::Import { import, is_stand_in: matches!(origin, ModuleOrigin::StandIn) });
        }
    }
    let generator = wrapper::CodeGenerator {
        evaluator: &evaluator,
        name: &adopted.name,
        items: &items,
        text,
        is_split: slice.has_eval_name,
    };
    match generator.generate() {
        Ok(wrapper::GeneratedCode { main, helper, notes }) => {
            (adopted.code, adopted.helper) = (main, helper);
            adopted.notes.extend(notes);
        }
        Err(missing) => adopted.obstacles.extend(missing),
    }
    for list in [&mut adopted.imports, &mut adopted.helpers, &mut adopted.obstacles] {
        list.sort();
        list.dedup();
    }
    Ok(adopted)
}

/// Selects the evaluator with a name, or the only one.
fn select<'a>(module: &'a ModModule, name: Option<&str>) -> Result<Evaluator<'a>, AdoptError> {
    let imports = framework::imported_frameworks(&module.body);
    if let Some(name) = name {
        let is_named = |stmt: &&Stmt| definition_name(stmt) == Some(name);
        let stmt = module.body.iter().find(is_named).ok_or_else(|| AdoptError::Unknown(name.to_owned()))?;
        return Evaluator::recognise(stmt, &imports, true)
            .ok_or_else(|| AdoptError::NoneFound { functions: vec![name.to_owned()] });
    }
    let mut evaluators: Vec<Evaluator<'a>> =
        module.body.iter().filter_map(|stmt| Evaluator::recognise(stmt, &imports, false)).collect();
    match evaluators.len() {
        0 => {
            let functions = module.body.iter().filter_map(definition_name).map(str::to_owned).collect();
            Err(AdoptError::NoneFound { functions })
        }
        1 => Ok(evaluators.remove(0)),
        _ => Err(AdoptError::Several(evaluators.iter().map(|evaluator| evaluator.name().to_owned()).collect())),
    }
}

fn definition_name(stmt: &Stmt) -> Option<&str> {
    match stmt {
        Stmt::FunctionDef(function) => Some(function.name.as_str()),
        Stmt::ClassDef(class) => Some(class.name.as_str()),
        _ => None,
    }
}

/// Returns the name of the eval function for an evaluator.
fn eval_name(name: &str) -> String {
    let snake = snake_case(name);
    let base = ["evaluate_", "eval_"].into_iter().find_map(|prefix| snake.strip_prefix(prefix)).unwrap_or(&snake);
    let base =
        ["_evaluator", "_scorer", "_metric"].into_iter().find_map(|suffix| base.strip_suffix(suffix)).unwrap_or(base);
    format!("eval_{}", base.trim_matches('_'))
}
