//! What a module exports, `export *` followed.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::evaluate::Evaluator;
use super::modules::Target;
use super::syntax::{Export, Specifier};
use super::value::{Located, ModuleId, Object, Place, Unknown, Value};

/// All names that a module exports, in the order of the sources.
#[derive(Debug, Default)]
pub(super) struct ExportTable {
    pub names: Vec<Exported>,
    by_name: HashMap<String, usize>,
    /// Modules whose exports are passed on and cannot be known.
    pub open: Vec<Unknown>,
}

/// Where an export is written: the `index`-th of a module.
#[derive(Debug)]
pub(super) struct Exported {
    pub name: String,
    module: ModuleId,
    index: usize,
    is_type: bool,
    /// Two modules give the name, so that it stands for nothing.
    pub ambiguous: bool,
}

impl Evaluator {
    /// Returns what a module exports under a name; none if it exports no such thing.
    pub(super) fn export(&mut self, module: ModuleId, name: &str) -> Option<Located> {
        let table = self.table(module);
        if let Some(&at) = table.by_name.get(name) {
            return Some(self.exported(&table.names[at]));
        }
        let file = self.modules.get(module);
        if let Some(whole) = &file.commonjs {
            let whole = self.evaluate(module, whole);
            if name == "default" {
                return Some(whole);
            }
            let key = Value::text(name).at(whole.place);
            let member = self.member(&whole, &key, true, whole.place);
            return Some(member).filter(|member| !matches!(member.value, Value::Undefined));
        }
        table.open.first().cloned().map(Located::from)
    }

    pub(super) fn exported(&mut self, exported: &Exported) -> Located {
        let file = self.modules.get(exported.module);
        let place = Place { module: exported.module, offset: 0 };
        if exported.ambiguous {
            let why = format!("'{}' is exported by two modules", exported.name);
            return Unknown { place, why: why.into(), primitive: true }.into();
        }
        match file.exports.get(exported.index) {
            Some(Export::Local { value, .. }) => self.evaluate(exported.module, value),
            Some(Export::From { imported, specifier, .. }) => self.import(exported.module, imported, specifier),
            Some(Export::Type { name }) => {
                Unknown { place, why: format!("'{name}' is a type").into(), primitive: true }.into()
            }
            Some(Export::All { .. }) | None => Value::Undefined.at(place),
        }
    }

    /// Returns what `require` gives for a module.
    pub(super) fn required(&mut self, module: ModuleId, specifier: &Specifier) -> Located {
        let place = Place { module, offset: specifier.offset };
        match self.modules.follow(module, specifier) {
            Target::Module(target) => {
                let file = self.modules.get(target);
                match &file.commonjs {
                    Some(whole) => self.evaluate(target, whole),
                    None => Value::Namespace(target).at(place),
                }
            }
            Target::Package => Value::Package(specifier.text.as_str().into(), Rc::new([])).at(place),
            Target::Nothing => {
                Unknown { place, why: format!("'{}' cannot be read", specifier.text).into(), primitive: true }.into()
            }
        }
    }

    /// Returns a namespace as an object.
    pub(super) fn namespace_object(&mut self, module: ModuleId) -> Object {
        let table = self.table(module);
        let mut object = Object::default();
        for exported in &table.names {
            let value = self.exported(exported);
            object.set(exported.name.clone(), value);
        }
        object.open = table.open.first().cloned();
        object
    }

    pub(super) fn table(&mut self, module: ModuleId) -> Rc<ExportTable> {
        if let Some(table) = self.tables.get(&module) {
            return Rc::clone(table);
        }
        let mut table = ExportTable::default();
        self.fill(&mut table, module, true, &mut HashSet::new());
        let table = Rc::new(table);
        if !self.comparing {
            self.tables.insert(module, Rc::clone(&table));
        }
        table
    }

    fn fill(&mut self, table: &mut ExportTable, module: ModuleId, is_root: bool, seen: &mut HashSet<ModuleId>) {
        if !seen.insert(module) {
            return;
        }
        let file = self.modules.get(module);
        // What a module names itself goes before what it passes on, wherever it stands.
        let own: HashSet<&str> = file.exports.iter().filter_map(|export| name(export)).collect();
        for (index, export) in file.exports.iter().enumerate() {
            match export {
                Export::All { specifier } => match self.modules.follow(module, specifier) {
                    Target::Module(target) => {
                        let mut passed = ExportTable::default();
                        self.fill(&mut passed, target, false, seen);
                        table.open.append(&mut passed.open);
                        for exported in passed.names {
                            if own.contains(exported.name.as_str()) {
                                continue;
                            }
                            if !self.comparing
                                && let Some(first) = table.conflicting(&exported)
                            {
                                let first = self.origin(first);
                                let second = self.origin(&exported);
                                if first != second {
                                    let (first, second) = (self.modules.place(first), self.modules.place(second));
                                    let why = format!(
                                        "'{}' is exported by {} and by {}, so that it is exported by none",
                                        exported.name, first.source, second.source
                                    );
                                    let place = Place { module, offset: specifier.offset };
                                    table
                                        .conflict(&exported.name, Unknown { place, why: why.into(), primitive: false });
                                }
                                continue;
                            }
                            table.add(exported);
                        }
                    }
                    Target::Package => table.open.push(Unknown {
                        place: Place { module, offset: specifier.offset },
                        why: format!(
                            "everything comes from the package '{}', which karat does not read",
                            specifier.text
                        )
                        .into(),
                        primitive: false,
                    }),
                    Target::Nothing => {}
                },
                Export::Local { name, .. } | Export::From { name, .. } | Export::Type { name } => {
                    if is_root || name != "default" {
                        let is_type = matches!(export, Export::Type { .. });
                        table.add(Exported { name: name.clone(), module, index, is_type, ambiguous: false });
                    }
                }
            }
        }
    }
}

impl Evaluator {
    /// Returns where an exported value comes from, by which two exports are told apart.
    fn origin(&mut self, exported: &Exported) -> Place {
        self.comparing = true;
        let place = self.exported(exported).place;
        self.comparing = false;
        place
    }
}

impl ExportTable {
    /// Returns another value that was passed on under the same name.
    fn conflicting(&self, exported: &Exported) -> Option<&Exported> {
        let first = &self.names[*self.by_name.get(&exported.name)?];
        let is_other = first.module != exported.module || first.index != exported.index;
        (is_other && !first.is_type && !exported.is_type).then_some(first)
    }

    /// Takes a name out that two modules give.
    fn conflict(&mut self, name: &str, unknown: Unknown) {
        if let Some(&at) = self.by_name.get(name) {
            self.names[at].is_type = true;
            self.names[at].ambiguous = true;
        }
        self.open.push(unknown);
    }

    /// Adds a name, of which the first one counts; a type may have the name of a value, which is what is meant then.
    fn add(&mut self, exported: Exported) {
        match self.by_name.entry(exported.name.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(self.names.len());
                self.names.push(exported);
            }
            Entry::Occupied(entry) => {
                let old = &mut self.names[*entry.get()];
                if old.is_type && !exported.is_type {
                    *old = exported;
                }
            }
        }
    }
}

fn name(export: &Export) -> Option<&str> {
    match export {
        Export::Local { name, .. } | Export::From { name, .. } | Export::Type { name } => Some(name),
        Export::All { .. } => None,
    }
}
