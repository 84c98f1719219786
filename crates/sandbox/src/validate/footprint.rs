//! Tells whether a function can leave anything behind in the Python that it ran in.
//!
//! All traces of such a function can be judged in one Python, each in a namespace of its own. For any other, Python is
//! put back after each trace: a "no" costs time, a wrong "yes" would let one trace change the verdict of another. So
//! this is a list of what is known to be harmless, and everything else is a "no".
//!
//! What outlives a namespace are the modules `json`, `re` and `typing`, Python's own types, and the driver. They are
//! reached by names and attributes only, so these are what is looked at:
//!
//! - A name is the source's own, or one of the built-in functions that only compute. The others would build attribute
//!   names from text, make classes, or show addresses.
//! - A module is only ever the left side of an attribute that is known: a function that computes, or a constant.
//! - `re` keeps patterns by their text and flags, and takes `2` and `2.0` for the same; so flags are constants. A pattern
//!   that was kept has the text object of an earlier trace; so nothing is compared by `is` but constants and types.
//! - `format` would read attributes that a text names; so its text stands in the source, and names none.
//! - No attribute is set or deleted. None is read that begins with an underscore, or that leads from a generator or a
//!   traceback to a frame, and from there to other namespaces.
//! - There are no classes: with `__eq__`, `__hash__` or `__del__`, own code would run when a cache is asked, or when
//!   Python tidies up in a later trace. For the same reason no generator has something to tidy up, and nothing is async.
//! - `typing` keeps what it was asked for, and takes `1` and `True` for the same, and unions in any order; so it is asked
//!   for plain types only, in annotations or by what runs for each trace alike.
//! - Nothing that shows its address becomes a text (`addresses.rs`): where it is depends on the traces before.
//!
//! What is left can change only objects that it made itself, or that came with the trace.

use std::collections::{BTreeMap, BTreeSet};

use ruff_python_ast::visitor::source_order::{SourceOrderVisitor, walk_expr, walk_stmt};
use ruff_python_ast::{
    Alias, CmpOp, Expr, ExprCall, ExprCompare, ExprContext, Identifier, Keyword, Operator, PatternKeyword, Stmt,
    StmtImport, StmtImportFrom,
};

use super::addresses::shows_no_address;
use super::known::{CHANGING, COMPUTING, CONSTANTS, FORMATTING, JSON, KEEPING, LEADING_OUT, OTHERS, RE, TYPING};

/// Tells whether nothing that the statements do can outlive the namespace that they run in.
pub(super) fn leaves_no_trace(body: &[Stmt]) -> bool {
    let mut bindings = Bindings::default();
    bindings.visit_body(body);
    if bindings.are_doubtful() {
        return false;
    }
    let mut footprint = Footprint { bindings: &bindings, is_clean: true, yields: false, tidies_up: false, depth: 0 };
    footprint.visit_body(body);
    footprint.is_clean && !(footprint.yields && footprint.tidies_up) && shows_no_address(body)
}

/// What the names of a source stand for, in any of its scopes.
#[derive(Default)]
struct Bindings<'a> {
    /// Those that the source gives a value.
    names: BTreeSet<&'a str>,
    /// Those that stand for a module.
    modules: BTreeMap<&'a str, &'a str>,
    /// Those that stand for a type of `typing`.
    types: BTreeSet<&'a str>,
    /// A name stands for two modules.
    has_double: bool,
}

impl Bindings<'_> {
    /// Tells whether it cannot be said what a name stands for.
    fn are_doubtful(&self) -> bool {
        let is_other = |name: &&str| self.names.contains(*name) || self.types.contains(*name);
        self.has_double || self.modules.keys().any(is_other) || self.names.iter().any(|name| OTHERS.contains(name))
    }
}

impl<'a> SourceOrderVisitor<'a> for Bindings<'a> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::Import(StmtImport { names, .. }) => {
                for alias in names {
                    let bound = alias.asname.as_ref().unwrap_or(&alias.name);
                    let before = self.modules.insert(bound, &alias.name);
                    self.has_double |= before.is_some_and(|module| module != alias.name.as_str());
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

struct Footprint<'b, 'a> {
    bindings: &'b Bindings<'a>,
    is_clean: bool,
    yields: bool,
    /// Something happens when a generator is thrown away.
    tidies_up: bool,
    /// How many functions are around: outside of all, the same happens for each trace.
    depth: usize,
}

impl<'a> Footprint<'_, 'a> {
    fn dirty(&mut self) {
        self.is_clean = false;
    }

    fn require(&mut self, is_harmless: bool) {
        self.is_clean &= is_harmless;
    }

    /// Looks at a name whose value can go anywhere from here.
    fn name(&mut self, name: &str) {
        let Bindings { names, modules, types, .. } = self.bindings;
        let is_module = modules.contains_key(name) || types.contains(name);
        let is_own = names.contains(name);
        let is_known = COMPUTING.contains(&name) || CONSTANTS.contains(&name) || name == "__name__";
        self.require(!is_module && (is_own || is_known));
    }

    fn attribute(&mut self, value: &'a Expr, attr: &str) {
        if let Some(module) = self.module(value) {
            self.require(match module {
                "json" => JSON.contains(&attr),
                "re" => RE.contains(&attr),
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

    /// Looks at a type as people write them in annotations.
    fn plain_type(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Name(name) => {
                let Bindings { names, modules, types, .. } = self.bindings;
                let id = name.id.as_str();
                let is_builtin = COMPUTING.contains(&id) || CONSTANTS.contains(&id) || id == "object";
                let is_type = (types.contains(id) || is_builtin) && !names.contains(id) && !modules.contains_key(id);
                self.require(is_type);
            }
            Expr::Attribute(attribute) => self.require(match self.module(&attribute.value) {
                Some("typing") => TYPING.contains(&attribute.attr.as_str()),
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
            _ => self.dirty(),
        }
    }

    /// Tells whether this is a type of `typing`, or begins with one.
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

    /// Looks at `getattr(x, "name")`: it is harmless where `x.name` is.
    fn attribute_call(&mut self, call: &'a ExprCall) {
        match &*call.arguments.args {
            [value, Expr::StringLiteral(name), rest @ ..] if call.arguments.keywords.is_empty() => {
                self.require(is_harmless_attribute(name.value.to_str()));
                self.visit_expr(value);
                for argument in rest {
                    self.visit_expr(argument);
                }
            }
            _ => self.dirty(),
        }
    }
}

impl<'a> Footprint<'_, 'a> {
    fn call(&mut self, call: &'a ExprCall) {
        match &*call.func {
            Expr::Name(name) if ["getattr", "hasattr"].contains(&name.id.as_str()) => self.attribute_call(call),
            Expr::Attribute(attribute) => {
                let attr = attribute.attr.as_str();
                let keeping = KEEPING.iter().find(|(name, _)| *name == attr);
                match (self.module(&attribute.value), keeping, &*attribute.value) {
                    (Some("re"), Some((_, flags)), _) => self.flags(call, *flags),
                    (None, _, Expr::StringLiteral(text)) if attr == "format" => {
                        self.require(names_no_attribute(text.value.to_str()));
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

    /// Requires that the flags of a pattern are constants.
    fn flags(&mut self, call: &'a ExprCall, place: usize) {
        let arguments = &call.arguments;
        let are_plain = arguments.args.iter().all(|argument| !argument.is_starred_expr())
            && arguments.keywords.iter().all(|keyword| keyword.arg.is_some());
        let named = arguments.keywords.iter().find(|keyword| keyword.arg.as_deref() == Some("flags"));
        let flags = named.map(|keyword| &keyword.value).or_else(|| arguments.args.get(place));
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

/// Tells whether the fields of a text for `format` are only numbers and names.
fn names_no_attribute(text: &str) -> bool {
    let text = text.replace("{{", "").replace("}}", "");
    text.split('{').skip(1).all(|field| {
        let Some((field, _)) = field.split_once('}') else { return false };
        let name = field.split(['!', ':']).next().unwrap_or_default();
        name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    })
}

fn is_harmless_attribute(name: &str) -> bool {
    !name.starts_with('_')
        && !FORMATTING.contains(&name)
        // Python takes other letters for the same, which text is not looked through for.
        && name.is_ascii()
        && !LEADING_OUT.iter().any(|beginning| name.starts_with(beginning))
        && !CHANGING.contains(&name)
}

/// Tells whether an expression is `type(x)`, which is harmless where its value goes no further: it could be called.
fn is_type_call(expr: &Expr) -> bool {
    let Expr::Call(call) = expr else { return false };
    let is_type = call.func.as_name_expr().is_some_and(|name| name.id == "type");
    is_type
        && call.arguments.keywords.is_empty()
        && matches!(&*call.arguments.args, [argument] if !argument.is_starred_expr())
}

impl<'a> SourceOrderVisitor<'a> for Footprint<'_, 'a> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::ClassDef(_) | Stmt::TypeAlias(_) | Stmt::IpyEscapeCommand(_) => self.dirty(),
            Stmt::Import(StmtImport { names, .. }) => {
                self.require(names.iter().all(|alias| ["json", "re", "typing"].contains(&alias.name.as_str())));
            }
            Stmt::ImportFrom(StmtImportFrom { names, module, level, .. }) => {
                let known: &[&str] = match module.as_deref() {
                    Some("json") => &JSON,
                    Some("re") => &RE,
                    Some("typing") => &TYPING,
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
                self.tidies_up = true;
                walk_stmt(self, stmt);
            }
            Stmt::Try(_) => {
                self.tidies_up = true;
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
            Expr::Await(_) | Expr::TString(_) | Expr::IpyEscapeCommand(_) => self.dirty(),
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
