//! The modules that a source imports: standard library modules and helpers of the project.

use std::collections::{BTreeMap, BTreeSet};

use ruff_python_ast::visitor::source_order::{SourceOrderVisitor, walk_stmt};
use ruff_python_ast::{Alias, Identifier, ModModule, Stmt, StmtImportFrom};
use ruff_text_size::{Ranged as _, TextRange};

use super::project_rules::ProjectRules;
use crate::function::{Finding, Rule};
use crate::modules::{COMMON_MODULES, OPTIONAL_MODULES, entry_of, is_common, is_standard, root};

/// Collects the imports of a function and its helpers.
pub(super) struct Imports<'p> {
    rules: ProjectRules<'p>,
    /// The modules of `evalImports` that are imported.
    pub(super) optional: BTreeSet<String>,
    /// The imported helpers by name.
    pub(super) helpers: BTreeMap<String, Helper>,
    /// Where the function imports the helper that is being checked.
    pub(super) origin: Option<TextRange>,
}

pub(super) struct Helper {
    pub(super) source: Vec<u8>,
    /// Where the function imports the helper, or the helper that leads to it.
    pub(super) imported_at: TextRange,
    pub(super) is_checked: bool,
}

impl<'p> Imports<'p> {
    pub(super) fn new(rules: ProjectRules<'p>) -> Self {
        Self { rules, optional: BTreeSet::new(), helpers: BTreeMap::new(), origin: None }
    }

    /// Records `import module`. Returns a finding if it is not allowed.
    pub(super) fn add(&mut self, module: &Identifier) -> Result<(), Finding> {
        if self.is_allowed(module, module.range()) { Ok(()) } else { Err(self.not_allowed(module, module.range())) }
    }

    /// Records `from module import members`. Returns a finding if it is not allowed.
    pub(super) fn add_from(&mut self, import: &StmtImportFrom) -> Result<(), Finding> {
        let Some(module) = import.module.as_ref().filter(|_| import.level <= 1) else {
            return Err(relative_import(import.range()));
        };
        let is_helper = |imports: &mut Self| imports.add_helper(module, module.range());
        if import.level == 1 {
            return if is_helper(self) { Ok(()) } else { Err(relative_import(import.range())) };
        }
        let member = |alias: &Alias| format!("{module}.{}", alias.name);
        let is_allowed = *module == *"__future__"
            || self.is_allowed(module, module.range())
            || import.names.iter().all(|alias| self.add_optional(&member(alias)));
        if is_allowed { Ok(()) } else { Err(self.not_allowed(module, module.range())) }
    }

    fn is_allowed(&mut self, module: &str, range: TextRange) -> bool {
        is_common(module) || self.add_optional(module) || self.add_helper(module, range)
    }

    fn add_optional(&mut self, module: &str) -> bool {
        let entry = entry_of(module, self.rules.imports.iter().map(String::as_str));
        entry.map(|entry| self.optional.insert(entry.to_owned())).is_some()
    }

    fn add_helper(&mut self, module: &str, range: TextRange) -> bool {
        if self.helpers.contains_key(module) {
            return true;
        }
        if !is_module_name(module) || is_standard(module) {
            return false;
        }
        let Some(source) = (self.rules.helper)(module) else { return false };
        let helper = Helper { source, imported_at: self.origin.unwrap_or(range), is_checked: false };
        self.helpers.insert(module.to_owned(), helper);
        true
    }

    fn not_allowed(&self, module: &str, range: TextRange) -> Finding {
        let optional = entry_of(module, OPTIONAL_MODULES.into_iter())
            .or_else(|| OPTIONAL_MODULES.into_iter().find(|entry| root(entry) == module));
        let help = if let Some(entry) = optional {
            format!("to allow it, add \"{entry}\" to \"evalImports\" in karat.json")
        } else {
            let modules: Vec<&str> =
                COMMON_MODULES.into_iter().chain(self.rules.imports.iter().map(String::as_str)).collect();
            format!("only {} and helper modules can be imported", modules.join(", "))
        };
        let message = format!("import of '{module}' is not allowed");
        Finding { rule: Rule::Import, message, help: Some(help), range: range.into() }
    }
}

fn relative_import(range: TextRange) -> Finding {
    let message = "a relative import is not allowed".to_owned();
    let help = "import a helper module of the same folder with 'from NAME import …'".to_owned();
    Finding { rule: Rule::Import, message, help: Some(help), range: range.into() }
}

/// Whether a name is valid for a helper module, which is a file in the function's folder.
fn is_module_name(name: &str) -> bool {
    name.chars().all(|letter| letter.is_alphanumeric() || letter == '_') && !name.starts_with("__")
}

/// Properties of a source that need no validation.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ModuleOutline {
    /// The names of the modules that it imports.
    pub imports: BTreeSet<String>,
    /// Whether it defines a top-level function whose name starts with `eval_`.
    pub has_eval_function: bool,
}

impl ModuleOutline {
    pub(super) fn of(module: &ModModule) -> Self {
        let is_eval =
            |stmt: &Stmt| stmt.as_function_def_stmt().is_some_and(|function| function.name.starts_with("eval_"));
        let mut outline = Self { has_eval_function: module.body.iter().any(is_eval), ..Self::default() };
        outline.visit_body(&module.body);
        outline
    }
}

impl<'a> SourceOrderVisitor<'a> for ModuleOutline {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::Import(import) => self.imports.extend(import.names.iter().map(|alias| alias.name.to_string())),
            Stmt::ImportFrom(import) => self.imports.extend(import.module.iter().map(ToString::to_string)),
            other => walk_stmt(self, other),
        }
    }
}
