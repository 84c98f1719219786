//! Modules of the project that an evaluator imports, as helper modules of the eval function.
//!
//! Of each module, only the statements that the evaluator needs are copied. Helper modules have flat names, so imports
//! are rewritten.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ruff_python_ast::Stmt;
use ruff_python_ast::visitor::source_order::{SourceOrderVisitor, walk_stmt};
use ruff_text_size::Ranged as _;

use super::framework::Framework;
use super::imports::{Imported, ModuleOrigin, needs_model, origin_of, unavailable_reason};
use super::slice::Slice;
use super::source_item::{Edit, ImportKind, SourceItem};
use super::wrapper::{helper_code, stand_in_for};
use crate::modules::is_standard;
use crate::validate::{parse, readable_text};

/// Maximum number of modules that an evaluator may import, directly and indirectly.
const MAX_MODULES: usize = 50;

/// A module of the project.
#[derive(Debug, Clone)]
pub struct ProjectModule {
    pub path: PathBuf,
    pub source: Vec<u8>,
}

/// Finds the module that a file imports. Relative names start with a dot.
pub type FindModule<'p> = &'p (dyn Fn(&Path, &str) -> Option<ProjectModule> + Sync);

/// What is known about the code that is copied.
#[derive(Default)]
pub(super) struct Findings {
    /// Modules that the project must allow.
    pub(super) imports: BTreeSet<String>,
    pub(super) notes: Vec<String>,
    pub(super) obstacles: BTreeSet<String>,
}

impl Findings {
    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

/// What is copied of a module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Wanted {
    members: BTreeSet<String>,
    is_whole: bool,
}

/// The helper module of a project's module.
struct Helper {
    /// The name of the helper module.
    name: String,
    /// The name of the project's module as it was first imported.
    imported_as: String,
    source: Vec<u8>,
    wanted: Wanted,
    /// The code, and for what it was written.
    code: Option<(Wanted, String)>,
}

pub(super) struct Project<'p> {
    find: FindModule<'p>,
    framework: Framework,
    /// The start of the names of helper modules.
    prefix: String,
    helpers: BTreeMap<PathBuf, Helper>,
}

impl<'p> Project<'p> {
    pub(super) fn new(find: FindModule<'p>, framework: Framework, prefix: String) -> Self {
        Self { find, framework, prefix, helpers: BTreeMap::new() }
    }

    /// Returns the items of a slice of a file, with its imports resolved.
    pub(super) fn items<'a>(&mut self, slice: &Slice<'a>, path: &Path, findings: &mut Findings) -> Vec<SourceItem<'a>> {
        let annotations: BTreeSet<&str> = slice.binds.difference(&slice.names).copied().collect();
        let is_used = |name: &str| slice.names.contains(name) || annotations.contains(name);
        let mut items = Vec::new();
        for &stmt in &slice.statements {
            let Some(imported) = Imported::of(stmt, &is_used) else {
                let nested = NestedImports::of(stmt).into_iter();
                let edits = nested.filter_map(|import| self.edit(import, path, findings)).collect();
                items.push(SourceItem::Statement(stmt, edits));
                continue;
            };
            for import in &imported {
                let is_annotation = !slice.names.contains(import.bound()) && import.module != "__future__";
                if is_annotation && !self.is_available(import) {
                    continue;
                }
                let (kind, statement) = self.resolve(import, path, findings);
                items.push(SourceItem::Import(kind, statement));
            }
        }
        items
    }

    /// Returns what replaces an import inside of a statement, if anything does.
    fn edit(&mut self, stmt: &Stmt, path: &Path, findings: &mut Findings) -> Option<Edit> {
        let names = Imported::of(stmt, &|_| true)?;
        let resolved: Vec<(ImportKind, String)> = names.iter().map(|name| self.resolve(name, path, findings)).collect();
        if names.iter().zip(&resolved).all(|(name, (_, statement))| name.statement() == *statement) {
            return None;
        }
        let is_stand_in = resolved.iter().any(|(kind, _)| *kind == ImportKind::StandIn);
        let mut statements: Vec<String> = resolved.into_iter().map(|(_, statement)| statement).collect();
        statements.retain(|statement| !statement.is_empty());
        let text = if statements.is_empty() { "pass".to_owned() } else { statements.join("; ") };
        Some(Edit { range: stmt.range(), text, is_stand_in })
    }

    /// Whether a name exists in the sandbox without modules of the project.
    fn is_available(&self, import: &Imported<'_>) -> bool {
        match origin_of(&import.module, self.framework) {
            ModuleOrigin::Common | ModuleOrigin::Optional(_) => true,
            ModuleOrigin::StandIn => stand_in_for(self.framework, import).is_some(),
            ModuleOrigin::Other => false,
        }
    }

    /// Returns the statement that replaces an import.
    fn resolve(&mut self, import: &Imported<'_>, path: &Path, findings: &mut Findings) -> (ImportKind, String) {
        match origin_of(&import.module, self.framework) {
            ModuleOrigin::Common if import.module == "__future__" => (ImportKind::Future, import.statement()),
            ModuleOrigin::Common => (ImportKind::Module, import.statement()),
            ModuleOrigin::Optional(entry) => {
                findings.imports.insert(entry.to_owned());
                (ImportKind::Module, import.statement())
            }
            ModuleOrigin::StandIn => (ImportKind::StandIn, self.stand_in(import, findings)),
            ModuleOrigin::Other => {
                let statement = self.import_helper(import, path).unwrap_or_else(|obstacle| {
                    findings.obstacles.insert(obstacle);
                    import.statement()
                });
                (ImportKind::Module, statement)
            }
        }
    }

    fn stand_in(&self, import: &Imported<'_>, findings: &mut Findings) -> String {
        if let Some(statement) = stand_in_for(self.framework, import) {
            return statement;
        }
        let (member, module) = (import.member.unwrap_or_default(), &import.module);
        if needs_model(module, member) {
            findings.obstacles.insert(format!("it uses '{member}' of {module}, which needs a model"));
        } else {
            findings.note(format!("'{member}' of {module} has no stand-in: code that calls it fails"));
        }
        format!("{} = _Package()", import.bound())
    }

    /// Returns the import of a helper module in place of a module of the project, or why there is none.
    fn import_helper(&mut self, import: &Imported<'_>, path: &Path) -> Result<String, String> {
        let module = import.module.as_str();
        let find = |name: &str| if is_standard(name) { None } else { (self.find)(path, name) };
        let alias = import.alias.map(|alias| format!(" as {alias}")).unwrap_or_default();
        let not_found = || match module.strip_prefix('.') {
            Some(_) => format!("it imports '{module}', which is not a file of the project"),
            None => unavailable_reason(module),
        };
        let Some(member) = import.member else {
            let found = find(module).ok_or_else(not_found)?;
            if module.contains('.') && import.alias.is_none() {
                return Err(format!("it imports '{module}' without a name: write 'from … import …'"));
            }
            let name = self.add(found, module, None)?;
            return Ok(format!("import {name} as {}", import.bound()));
        };
        let submodule = if module.ends_with('.') { format!("{module}{member}") } else { format!("{module}.{member}") };
        if let Some(found) = find(&submodule) {
            let name = self.add(found, &submodule, None)?;
            return Ok(format!("import {name} as {}", import.bound()));
        }
        let found = find(module).ok_or_else(not_found)?;
        let name = self.add(found, module, Some(member).filter(|member| *member != "*"))?;
        Ok(format!("from {name} import {member}{alias}"))
    }

    /// Adds a member of a module, or all of it. Returns the name of the helper module.
    fn add(&mut self, found: ProjectModule, imported_as: &str, member: Option<&str>) -> Result<String, String> {
        let is_full = self.helpers.len() >= MAX_MODULES && !self.helpers.contains_key(&found.path);
        if is_full {
            return Err(format!("it imports more than {MAX_MODULES} modules of the project"));
        }
        let base = format!("{}{}", self.prefix, imported_as.trim_matches('.').replace('.', "_"));
        let is_taken = |name: &str| self.helpers.values().any(|helper| helper.name == name);
        let numbered = (2..).map(|number| format!("{base}_{number}"));
        let name = std::iter::once(base.clone()).chain(numbered).find(|name| !is_taken(name)).unwrap_or_default();
        let helper = self.helpers.entry(found.path).or_insert_with(|| Helper {
            name,
            imported_as: imported_as.to_owned(),
            source: found.source,
            wanted: Wanted::default(),
            code: None,
        });
        match member {
            Some(member) => drop(helper.wanted.members.insert(member.to_owned())),
            None => helper.wanted.is_whole = true,
        }
        Ok(helper.name.clone())
    }

    /// Returns the code of the helper modules by name, with the modules that they import.
    pub(super) fn helpers(mut self, findings: &mut Findings) -> BTreeMap<String, String> {
        loop {
            let is_outdated = |helper: &Helper| helper.code.as_ref().is_none_or(|(wanted, _)| *wanted != helper.wanted);
            let next = self.helpers.iter().find(|(_, helper)| is_outdated(helper));
            let Some((path, helper)) = next.map(|(path, helper)| (path.clone(), helper)) else { break };
            let (wanted, source) = (helper.wanted.clone(), helper.source.clone());
            let imported_as = helper.imported_as.clone();
            let mut own = Findings::default();
            let code = self.helper_code(&source, &wanted, &path, &mut own).unwrap_or_else(|obstacle| {
                own.obstacles.insert(obstacle);
                String::new()
            });
            let through = |text: &String| match text.strip_prefix("it ") {
                Some(rest) => format!("it imports '{imported_as}', which {rest}"),
                None => format!("{imported_as}: {text}"),
            };
            findings.obstacles.extend(own.obstacles.iter().map(through));
            own.notes.into_iter().for_each(|note| findings.note(note));
            findings.imports.extend(own.imports);
            if let Some(helper) = self.helpers.get_mut(&path) {
                helper.code = Some((wanted, code));
            }
        }
        let code = |helper: Helper| (helper.name, helper.code.map(|(_, code)| code).unwrap_or_default());
        self.helpers.into_values().map(code).collect()
    }

    fn helper_code(
        &mut self,
        source: &[u8],
        wanted: &Wanted,
        path: &Path,
        findings: &mut Findings,
    ) -> Result<String, String> {
        let text = readable_text(source).map_err(|finding| format!("it is invalid: {}", finding.message))?;
        let parsed = parse(text).filter(|parsed| parsed.errors().is_empty());
        let parsed = parsed.ok_or_else(|| "it is not valid Python".to_owned())?;
        let statements: Vec<&Stmt> = parsed.syntax().body.iter().collect();
        let slice = if wanted.is_whole {
            Slice::whole(&statements)
        } else {
            Slice::of(&statements, wanted.members.iter().map(String::as_str))
        };
        let missing = wanted.members.iter().find(|member| !slice.binds.contains(member.as_str()));
        if let Some(member) = missing {
            return Err(format!("it has no '{member}' at the top level"));
        }
        let items = self.items(&slice, path, findings);
        Ok(helper_code(self.framework, &items, text))
    }
}

/// The import statements inside of a statement.
#[derive(Default)]
struct NestedImports<'a>(Vec<&'a Stmt>);

impl<'a> NestedImports<'a> {
    fn of(stmt: &'a Stmt) -> Vec<&'a Stmt> {
        let mut imports = Self::default();
        imports.visit_stmt(stmt);
        imports.0
    }
}

impl<'a> SourceOrderVisitor<'a> for NestedImports<'a> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::Import(_) | Stmt::ImportFrom(_) => self.0.push(stmt),
            other => walk_stmt(self, other),
        }
    }
}
