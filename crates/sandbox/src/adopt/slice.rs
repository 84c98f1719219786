//! The statements of a module that a definition needs.

use std::collections::BTreeSet;

use ruff_python_ast::{Expr, Stmt};

use super::scopes::Names;

/// The statements, in the order of the module.
pub(super) struct Slice<'a> {
    pub(super) statements: Vec<&'a Stmt>,
    /// The names that they refer to when they run.
    pub(super) names: BTreeSet<&'a str>,
    /// The names that they bind.
    pub(super) binds: BTreeSet<&'a str>,
}

impl<'a> Slice<'a> {
    /// Returns the statements that bind names or what they refer to, and the imports that their annotations name.
    pub(super) fn of(statements: &[&'a Stmt], wanted: impl IntoIterator<Item = &'a str>) -> Self {
        let entries: Vec<Entry<'a>> =
            statements.iter().filter(|stmt| !is_main_block(stmt)).map(|stmt| Entry::of(stmt)).collect();
        let imported: BTreeSet<&str> = entries.iter().flat_map(|entry| entry.names.imports.iter().copied()).collect();
        let mut names: BTreeSet<&'a str> = wanted.into_iter().collect();
        let mut is_kept = vec![false; entries.len()];
        loop {
            let next = entries.iter().zip(&is_kept).position(|(entry, is_kept)| {
                let changes = entry.changes.filter(|name| !imported.contains(name));
                let binds = entry.names.binds.iter().copied().chain(changes);
                !is_kept && (binds.into_iter().any(|bound| names.contains(bound)) || entry.is_future)
            });
            let Some(index) = next else { break };
            is_kept[index] = true;
            names.extend(&entries[index].names.uses);
        }
        let kept = entries.iter().zip(&is_kept).filter(|(_, is_kept)| **is_kept).map(|(entry, _)| entry);
        let annotations: BTreeSet<&str> = kept.flat_map(|entry| entry.names.annotations.iter().copied()).collect();
        for (entry, is_kept) in entries.iter().zip(&mut is_kept) {
            let is_import = matches!(entry.stmt, Stmt::Import(_) | Stmt::ImportFrom(_));
            *is_kept |= is_import && entry.names.binds.iter().any(|bound| annotations.contains(bound));
        }
        let kept: Vec<&Entry<'a>> =
            entries.iter().zip(&is_kept).filter(|(_, is_kept)| **is_kept).map(|(entry, _)| entry).collect();
        let binds = kept.iter().flat_map(|entry| entry.names.binds.iter().copied()).collect();
        Self { statements: kept.iter().map(|entry| entry.stmt).collect(), names, binds }
    }

    /// Returns all statements of a module.
    pub(super) fn whole(statements: &[&'a Stmt]) -> Self {
        let names: Vec<Names<'a>> = statements.iter().map(|stmt| Names::of_statement(stmt)).collect();
        Self::of(statements, names.iter().flat_map(|names| names.binds.iter().copied()))
    }
}

struct Entry<'a> {
    stmt: &'a Stmt,
    names: Names<'a>,
    /// The name whose value it changes.
    changes: Option<&'a str>,
    is_future: bool,
}

impl<'a> Entry<'a> {
    fn of(stmt: &'a Stmt) -> Self {
        let is_future = stmt.as_import_from_stmt().is_some_and(|import| import.module.as_deref() == Some("__future__"));
        Self { stmt, names: Names::of_statement(stmt), changes: changed_name(stmt), is_future }
    }
}

/// Returns the name whose value a method call or an assignment to an item changes.
fn changed_name(stmt: &Stmt) -> Option<&str> {
    let value = match stmt {
        Stmt::Expr(statement) => &statement.value.as_call_expr()?.func.as_attribute_expr()?.value,
        Stmt::Assign(assign) => &assign.targets.iter().find_map(Expr::as_subscript_expr)?.value,
        _ => return None,
    };
    value.as_name_expr().map(|name| name.id.as_str())
}

/// Whether a statement is the block that only runs for a script: `if __name__ == "__main__"`.
fn is_main_block(stmt: &Stmt) -> bool {
    let Some(Expr::Compare(compare)) = stmt.as_if_stmt().map(|block| &*block.test) else { return false };
    let sides = [&*compare.left].into_iter().chain(&compare.comparators);
    let is_name = |side: &&Expr| side.as_name_expr().is_some_and(|name| name.id == "__name__");
    let is_main = |side: &&Expr| side.as_string_literal_expr().is_some_and(|text| text.value.to_str() == "__main__");
    sides.clone().any(|side| is_name(&side)) && sides.clone().any(|side| is_main(&side))
}
