//! Finds the names of definitions that are named by an object key: `{ weather: tool({…}) }`.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::discovery::{Origin, may_create_tool};
use super::evaluate::LocatedExpr;
use super::imports::MAX_ANCESTORS;
use super::project::{MAX_FILE_BYTES, MAX_MODULES, ModuleId, Project};
use super::syntax::{Entry, Export, Expr, Kind, Language, ScopeId, Statement};
use crate::files::{files_below, is_script, is_source};

/// Names, each with the module that defines it.
type Names = BTreeMap<String, ModuleId>;

#[derive(Default)]
pub(crate) struct Keys {
    /// Object keys; the first for each definition.
    objects: HashMap<Origin, String>,
    /// Object keys in files that only import the definitions.
    importers: HashMap<Origin, Names>,
    /// Keys in the `tools` of Mastra's agents.
    agents: HashMap<Origin, Names>,
    variables: HashMap<Origin, String>,
}

impl Keys {
    /// Returns the object key of a definition.
    pub(crate) fn key(&self, origin: Origin) -> Option<&String> {
        self.objects.get(&origin).or_else(|| only(self.importers.get(&origin)?))
    }

    pub(crate) fn variable(&self, origin: Origin) -> Option<&String> {
        self.variables.get(&origin)
    }

    /// Returns the name of a definition in Mastra's agents, if they agree.
    pub(crate) fn agent_key(&self, origin: Origin) -> Option<&String> {
        only(self.agents.get(&origin)?)
    }

    /// Returns the names that importers give to a definition.
    pub(crate) fn importer_names(&self, origin: Origin) -> impl Iterator<Item = (&String, &ModuleId)> {
        self.importers.get(&origin).into_iter().flatten()
    }
}

fn only(names: &Names) -> Option<&String> {
    if names.len() == 1 { names.keys().next() } else { None }
}

impl Project {
    /// Collects the object keys and variables of calls.
    pub(crate) fn keys(&self) -> Keys {
        let mut keys = Keys::default();
        for module in 0..self.modules.len() {
            let source = self.module(module);
            if source.language != Language::JavaScript {
                continue;
            }
            for (scope, statements) in source.scopes.iter().map(|scope| &scope.statements).enumerate() {
                for statement in statements {
                    self.reset_statement_steps();
                    for value in statement.expressions() {
                        self.keys_in(module, scope, value, &mut keys);
                    }
                    if let Statement::Assign { name, value: Some(value), .. }
                    | Statement::SetMember { name, value, .. } = statement
                    {
                        self.variable_key(&LocatedExpr::new(module, scope, value), name, &mut keys);
                    }
                }
            }
            for export in &source.exports {
                if let Export::Local { name, value } = export {
                    self.keys_in(module, 0, value, &mut keys);
                    self.variable_key(&LocatedExpr::new(module, 0, value), name, &mut keys);
                }
            }
        }
        keys
    }

    fn variable_key(&self, value: &LocatedExpr<'_>, name: &str, keys: &mut Keys) {
        if let Some(origin) =
            self.call_origin(value).filter(|_| name != "default" && value.module < self.first_importer)
        {
            keys.variables.entry(origin).or_insert_with(|| name.to_owned());
        }
    }

    fn keys_in(&self, module: ModuleId, scope: ScopeId, value: &Expr, keys: &mut Keys) {
        value.walk(&mut |inner| {
            let located = LocatedExpr::new(module, scope, inner);
            let entries = match &inner.kind {
                Kind::Object(entries) => entries,
                Kind::Call(_) => return self.agent_keys(&located, keys),
                _ => return,
            };
            for entry in entries {
                let Entry::Value { key: Expr { kind: Kind::Text(key), .. }, value } = entry else { continue };
                if !matches!(value.kind, Kind::Call(_) | Kind::Name(_) | Kind::Member(..)) {
                    continue;
                }
                let Some(origin) = self.call_origin(&located.with(value)) else { continue };
                if module >= self.first_importer {
                    keys.importers.entry(origin).or_default().insert(key.clone(), module);
                    continue;
                }
                keys.objects.entry(origin).or_insert_with(|| key.clone());
                // The call of a function that creates the tool.
                if matches!(value.kind, Kind::Call(_)) {
                    keys.objects.entry((module, value.at)).or_insert_with(|| key.clone());
                }
            }
        });
    }

    /// Collects the keys in `new Agent({ tools: { weather: weatherTool } })`.
    fn agent_keys(&self, located: &LocatedExpr<'_>, keys: &mut Keys) {
        let Some(call) = located.call().filter(|call| self.is_mastra(&located.with(&call.callee))) else { return };
        let tools = call.arguments.first().and_then(|argument| self.entry(&located.with(argument), "tools"));
        for (key, _, value) in tools.and_then(|tools| self.entries(&tools)).into_iter().flat_map(|tools| tools.list) {
            let Some(origin) = self.call_origin(&value) else { continue };
            let names = keys.agents.entry(origin).or_default();
            // Agents in importing modules are used only if there are no others.
            if located.module < self.first_importer || names.values().all(|module| *module >= self.first_importer) {
                names.insert(key, located.module);
            }
        }
    }

    pub(crate) fn is_mastra(&self, callee: &LocatedExpr<'_>) -> bool {
        self.foreign_name(callee).is_some_and(|name| name.starts_with("@mastra/"))
    }

    pub(crate) fn call_origin(&self, located: &LocatedExpr<'_>) -> Option<Origin> {
        let resolved = self.resolve_expr(located)?;
        let call = resolved.call()?;
        may_create_tool(call.callee.last_name()?).then_some((resolved.module, resolved.expr.at))
    }

    /// Returns other sources of the package that mention the exports of these modules, and so may name them.
    pub(crate) fn find_importers(&self, modules: impl Iterator<Item = ModuleId>) -> Vec<PathBuf> {
        let mut roots: BTreeMap<&Path, Vec<&str>> = BTreeMap::new();
        for module in modules.map(|module| self.module(module)) {
            let mut folders = module.path.ancestors().skip(1).take(MAX_ANCESTORS);
            let Some(root) = folders.find(|folder| folder.join("package.json").is_file()) else { continue };
            roots.entry(root).or_default().extend(module.exports.iter().filter_map(|export| match export {
                Export::Local { name, .. } if name != "default" => Some(name.as_str()),
                _ => None,
            }));
        }
        let read: HashSet<&Path> = self.modules.iter().map(|module| module.path.as_path()).collect();
        let is_small = |file: &Path| std::fs::metadata(file).is_ok_and(|file| file.len() <= MAX_FILE_BYTES);
        let mut importers = Vec::new();
        for (root, names) in roots {
            let mentions = |text: &str| names.iter().any(|name| text.contains(name));
            let files = files_below(root, &is_source).unwrap_or_default().into_iter().take(MAX_MODULES);
            let files = files.filter(|file| is_script(file) && !read.contains(file.as_path()) && is_small(file));
            importers.extend(files.filter(|file| std::fs::read_to_string(file).is_ok_and(|text| mentions(&text))));
        }
        importers
    }
}
