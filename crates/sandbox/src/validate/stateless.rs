//! Checks whether a function can leave state behind in Python.
//!
//! All traces of a stateless function can be judged in one Python, each in its own namespace. For other functions
//! Python is restored after each trace. A false negative costs time; a false positive would let one trace change the
//! verdict of another. So this is a list of what is known to be harmless, and everything else counts as harmful.
//!
//! The modules `json`, `re` and `typing`, Python's own types and the driver outlive a namespace. They are reached only
//! through names and attributes, so these are checked:
//!
//! - A name is defined by the source, or is one of the built-in functions that only compute. The others could build
//!   attribute names from text, create classes, or show addresses.
//! - A module is only used as the left side of a known attribute: a function that computes, or a constant.
//! - `re` caches patterns by text and flags, and treats `2` and `2.0` as equal; so flags must be constants. A cached
//!   pattern holds the text object of an earlier trace; so `is` may only compare with constants and types.
//! - `format` reads attributes that its text names; so the text must be a literal that names none.
//! - No attribute is set or deleted. No attribute is read that starts with an underscore, or that leads from a
//!   generator or a traceback to a frame and so to other namespaces.
//! - There are no classes: `__eq__`, `__hash__` or `__del__` could run when a cache is queried or when objects are
//!   finalised in a later trace. For the same reason generators have nothing to clean up, and nothing is async.
//! - `typing` caches its types, and treats `1` and `True` as equal, and unions in any order; so it is only used with
//!   plain types, in annotations or in code that runs the same way for each trace.
//! - No object whose text contains its address is converted to text (`addresses.rs`): the address depends on earlier
//!   traces.
//!
//! The remaining functions can only change objects that they created or that belong to the trace.

use std::collections::{BTreeMap, BTreeSet};

use ruff_python_ast::visitor::source_order::{SourceOrderVisitor, walk_expr, walk_stmt};
use ruff_python_ast::{
    Alias, CmpOp, Expr, ExprCall, ExprCompare, ExprContext, Identifier, Keyword, Operator, PatternKeyword, Stmt,
    StmtImport, StmtImportFrom,
};

use super::addresses::shows_no_address;
use super::python_names::{
    CACHING_FUNCTIONS, CONSTANTS, FORMATTING_METHODS, FRAME_PREFIXES, JSON_NAMES, MUTATING_METHODS, OTHER_BUILTINS,
    PURE_BUILTINS, RE_NAMES, TYPING_NAMES,
};

/// Whether no effect of the statements can outlive their namespace.
pub(super) fn is_stateless(body: &[Stmt]) -> bool {
    let mut bindings = Bindings::default();
    bindings.visit_body(body);
    if bindings.are_ambiguous() {
        return false;
    }
    let mut checker = Checker { bindings: &bindings, is_harmless: true, yields: false, cleans_up: false, depth: 0 };
    checker.visit_body(body);
    checker.is_harmless && !(checker.yields && checker.cleans_up) && shows_no_address(body)
}

/// The bindings of the names in a source, in all scopes.
#[derive(Default)]
struct Bindings<'a> {
    /// Names of values.
    names: BTreeSet<&'a str>,
    /// Names of modules.
    modules: BTreeMap<&'a str, &'a str>,
    /// Names of types of `typing`.
    types: BTreeSet<&'a str>,
    /// Whether a name is bound to two modules.
    has_duplicate_module: bool,
}

impl Bindings<'_> {
    /// Whether it is unclear what a name is bound to.
    fn are_ambiguous(&self) -> bool {
        let is_other = |name: &&str| self.names.contains(*name) || self.types.contains(*name);
        self.has_duplicate_module
            || self.modules.keys().any(is_other)
            || self.names.iter().any(|name| OTHER_BUILTINS.contains(name))
    }
}

impl<'a> SourceOrderVisitor<'a> for Bindings<'a> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::Import(StmtImport { names, .. }) => {
                for alias in names {
                    let bound = alias.asname.as_ref().unwrap_or(&alias.name);
                    let before = self.modules.insert(bound, &alias.name);
                    self.has_duplicate_module |= before.is_some_and(|module| module != alias.name.as_str());
                }
            }
            Stmt::ImportFrom(StmtImportFrom { names, module, .. }) => {
                for alias in names {
                    let bound = alias.asname.as_ref().unwrap_or(&alias.name).as_str();
                    match module.as_deref() {
                        Some("typing") => self.types.insert(bound),
                        _ => self.names.insert(bound),
                    };
                }
            }
            other => walk_stmt(self, other),
        }
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Name(name) if name.ctx != ExprContext::Load => {
                self.names.insert(&name.id);
            }
            Expr::Attribute(attribute) => self.visit_expr(&attribute.value),
            other => walk_expr(self, other),
        }
    }

    fn visit_keyword(&mut self, keyword: &'a Keyword) {
        self.visit_expr(&keyword.value);
    }

    fn visit_pattern_keyword(&mut self, keyword: &'a PatternKeyword) {
        self.visit_pattern(&keyword.pattern);
    }

    fn visit_identifier(&mut self, identifier: &'a Identifier) {
        self.names.insert(identifier);
    }
}

struct Checker<'b, 'a> {
    bindings: &'b Bindings<'a>,
    is_harmless: bool,
    yields: bool,
    /// Whether code could run when a generator is dropped.
    cleans_up: bool,
    /// Number of enclosing functions: code outside of functions runs the same way for each trace.
    depth: usize,
}

impl<'a> Checker<'_, 'a> {
    fn mark_harmful(&mut self) {
        self.is_harmless = false;
    }

    fn require(&mut self, condition: bool) {
        self.is_harmless &= condition;
    }

    /// Visits a name whose value can be used in any way.
    fn name(&mut self, name: &str) {
        let Bindings { names, modules, types, .. } = self.bindings;
        let is_module = modules.contains_key(name) || types.contains(name);
        let is_own = names.contains(name);
        let is_known = PURE_BUILTINS.contains(&name) || CONSTANTS.contains(&name) || name == "__name__";
        self.require(!is_module && (is_own || is_known));
    }

    fn attribute(&mut self, value: &'a Expr, attr: &str) {
        if let Some(module) = self.module(value) {
            self.require(match module {
                "json" => JSON_NAMES.contains(&attr),
                "re" => RE_NAMES.contains(&attr),
                _ => false,
            });
        } else if attr == "__name__" && is_type_call(value) {
            self.type_call(value);
        } else {
            self.require(is_harmless_attribute(attr));
            self.visit_expr(value);
        }
    }

    fn module(&self, value: &Expr) -> Option<&'a str> {
        let name = value.as_name_expr()?;
        self.bindings.modules.get(name.id.as_str()).copied()
    }

    /// Visits a type expression such as those in annotations.
    fn plain_type(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Name(name) => {
                let Bindings { names, modules, types, .. } = self.bindings;
                let id = name.id.as_str();
                let is_builtin = PURE_BUILTINS.contains(&id) || CONSTANTS.contains(&id) || id == "object";
                let is_type = (types.contains(id) || is_builtin) && !names.contains(id) && !modules.contains_key(id);
                self.require(is_type);
            }
            Expr::Attribute(attribute) => self.require(match self.module(&attribute.value) {
                Some("typing") => TYPING_NAMES.contains(&attribute.attr.as_str()),
                Some("re") => ["Match", "Pattern"].contains(&attribute.attr.as_str()),
                _ => false,
            }),
            Expr::Subscript(subscript) => {
                self.plain_type(&subscript.value);
                self.plain_type(&subscript.slice);
            }
            Expr::Tuple(tuple) => tuple.elts.iter().for_each(|element| self.plain_type(element)),
            Expr::List(list) => list.elts.iter().for_each(|element| self.plain_type(element)),
            Expr::BinOp(union) => {
                self.plain_type(&union.left);
                self.plain_type(&union.right);
            }
            Expr::NoneLiteral(_) | Expr::StringLiteral(_) | Expr::EllipsisLiteral(_) => {}
            _ => self.mark_harmful(),
        }
    }

    /// Whether this is a type of `typing` or a subscript of one.
    fn is_typing(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Name(name) => self.bindings.types.contains(name.id.as_str()),
            Expr::Attribute(attribute) => self.module(&attribute.value) == Some("typing"),
            Expr::Subscript(subscript) => self.is_typing(&subscript.value),
            _ => false,
        }
    }

    fn type_call(&mut self, call: &'a Expr) {
        if let Expr::Call(ExprCall { arguments, .. }) = call {
            self.visit_expr(&arguments.args[0]);
        }
    }

    /// Visits `getattr(x, "name")`, which is harmless if `x.name` is.
    fn attribute_call(&mut self, call: &'a ExprCall) {
        match &*call.arguments.args {
            [value, Expr::StringLiteral(name), rest @ ..] if call.arguments.keywords.is_empty() => {
                self.require(is_harmless_attribute(name.value.to_str()));
                self.visit_expr(value);
                for argument in rest {
                    self.visit_expr(argument);
                }
            }
            _ => self.mark_harmful(),
        }
    }
}

impl<'a> Checker<'_, 'a> {
    fn call(&mut self, call: &'a ExprCall) {
        match &*call.func {
            Expr::Name(name) if ["getattr", "hasattr"].contains(&name.id.as_str()) => self.attribute_call(call),
            Expr::Attribute(attribute) => {
                let attr = attribute.attr.as_str();
                let caching = CACHING_FUNCTIONS.iter().find(|(name, _)| *name == attr);
                match (self.module(&attribute.value), caching, &*attribute.value) {
                    (Some("re"), Some((_, flags)), _) => self.flags(call, *flags),
                    (None, _, Expr::StringLiteral(text)) if attr == "format" => {
                        self.require(has_plain_fields_only(text.value.to_str()));
                    }
                    _ => self.visit_expr(&call.func),
                }
                self.visit_arguments(&call.arguments);
            }
            _ => {
                self.visit_expr(&call.func);
                self.visit_arguments(&call.arguments);
            }
        }
    }

    /// Requires that the flags of a pattern, at the given argument index, are constants.
    fn flags(&mut self, call: &'a ExprCall, index: usize) {
        let arguments = &call.arguments;
        let are_plain = arguments.args.iter().all(|argument| !argument.is_starred_expr())
            && arguments.keywords.iter().all(|keyword| keyword.arg.is_some());
        let named = arguments.keywords.iter().find(|keyword| keyword.arg.as_deref() == Some("flags"));
        let flags = named.map(|keyword| &keyword.value).or_else(|| arguments.args.get(index));
        let are_constant = flags.is_none_or(|flags| self.is_flag(flags));
        self.require(are_plain && are_constant);
    }

    fn is_flag(&self, flags: &Expr) -> bool {
        match flags {
            Expr::Attribute(attribute) => self.module(&attribute.value) == Some("re"),
            Expr::BinOp(both) => both.op == Operator::BitOr && self.is_flag(&both.left) && self.is_flag(&both.right),
            Expr::NumberLiteral(number) => number.value.is_int(),
            _ => false,
        }
    }

    fn compare(&mut self, compare: &'a ExprCompare) {
        let sides: Vec<&Expr> = std::iter::once(&*compare.left).chain(&*compare.comparators).collect();
        for (op, pair) in compare.ops.iter().zip(sides.windows(2)) {
            let is_constant = |side: &&Expr| {
                is_type_call(side)
                    || matches!(side, Expr::NoneLiteral(_) | Expr::BooleanLiteral(_) | Expr::EllipsisLiteral(_))
            };
            self.require(!matches!(op, CmpOp::Is | CmpOp::IsNot) || pair.iter().any(is_constant));
        }
        for side in sides {
            if is_type_call(side) { self.type_call(side) } else { self.visit_expr(side) }
        }
    }
}

/// Whether the fields of a format string are only numbers and names.
fn has_plain_fields_only(text: &str) -> bool {
    let text = text.replace("{{", "").replace("}}", "");
    text.split('{').skip(1).all(|field| {
        let Some((field, _)) = field.split_once('}') else { return false };
        let name = field.split(['!', ':']).next().unwrap_or_default();
        name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    })
}

fn is_harmless_attribute(name: &str) -> bool {
    !name.starts_with('_')
        && !FORMATTING_METHODS.contains(&name)
        // Python normalises other letters to ASCII.
        && name.is_ascii()
        && !FRAME_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        && !MUTATING_METHODS.contains(&name)
}

/// Whether an expression is `type(x)`, which is harmless if its value is not passed on: it could be called.
fn is_type_call(expr: &Expr) -> bool {
    let Expr::Call(call) = expr else { return false };
    let is_type = call.func.as_name_expr().is_some_and(|name| name.id == "type");
    is_type
        && call.arguments.keywords.is_empty()
        && matches!(&*call.arguments.args, [argument] if !argument.is_starred_expr())
}

impl<'a> SourceOrderVisitor<'a> for Checker<'_, 'a> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::ClassDef(_) | Stmt::TypeAlias(_) | Stmt::IpyEscapeCommand(_) => self.mark_harmful(),
            Stmt::Import(StmtImport { names, .. }) => {
                self.require(names.iter().all(|alias| ["json", "re", "typing"].contains(&alias.name.as_str())));
            }
            Stmt::ImportFrom(StmtImportFrom { names, module, level, .. }) => {
                let known: &[&str] = match module.as_deref() {
                    Some("json") => &JSON_NAMES,
                    Some("re") => &RE_NAMES,
                    Some("typing") => &TYPING_NAMES,
                    _ => &[],
                };
                self.require(*level == 0 && names.iter().all(|Alias { name, .. }| known.contains(&name.as_str())));
            }
            Stmt::FunctionDef(function) => {
                self.require(!function.is_async && function.type_params.is_none());
                self.depth += 1;
                walk_stmt(self, stmt);
                self.depth -= 1;
            }
            Stmt::For(loops) => {
                self.require(!loops.is_async);
                walk_stmt(self, stmt);
            }
            Stmt::With(with) => {
                self.require(!with.is_async);
                self.cleans_up = true;
                walk_stmt(self, stmt);
            }
            Stmt::Try(_) => {
                self.cleans_up = true;
                walk_stmt(self, stmt);
            }
            other => walk_stmt(self, other),
        }
    }

    fn visit_annotation(&mut self, annotation: &'a Expr) {
        let is_own = |name: &ruff_python_ast::ExprName| self.bindings.names.contains(name.id.as_str());
        if !annotation.as_name_expr().is_some_and(is_own) {
            self.plain_type(annotation);
        }
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Name(name) if name.ctx == ExprContext::Load => self.name(&name.id),
            Expr::Attribute(attribute) => {
                self.require(attribute.ctx == ExprContext::Load);
                self.attribute(&attribute.value, &attribute.attr);
            }
            Expr::Subscript(subscript) if self.is_typing(&subscript.value) => {
                self.require(subscript.ctx == ExprContext::Load && self.depth == 0);
                self.plain_type(expr);
            }
            Expr::Lambda(_) => {
                self.depth += 1;
                walk_expr(self, expr);
                self.depth -= 1;
            }
            Expr::Compare(compare) => self.compare(compare),
            Expr::Call(call) => self.call(call),
            Expr::Yield(_) | Expr::YieldFrom(_) => {
                self.yields = true;
                walk_expr(self, expr);
            }
            Expr::Await(_) | Expr::TString(_) | Expr::IpyEscapeCommand(_) => self.mark_harmful(),
            other => walk_expr(self, other),
        }
    }

    fn visit_comprehension(&mut self, comprehension: &'a ruff_python_ast::Comprehension) {
        self.require(!comprehension.is_async);
        ruff_python_ast::visitor::source_order::walk_comprehension(self, comprehension);
    }

    fn visit_pattern_keyword(&mut self, keyword: &'a PatternKeyword) {
        self.require(is_harmless_attribute(&keyword.attr));
        self.visit_pattern(&keyword.pattern);
    }
}
