//! Checks whether a function could convert a memory address to text.
//!
//! The text of functions, methods and iterators contains their address, which depends on earlier traces. So this is a
//! list of what is known to be harmless: a function is called or passed to code that calls it, and an iterator is
//! consumed in place. Any other use counts as harmful.

use std::collections::BTreeSet;

use ruff_python_ast::visitor::source_order::{SourceOrderVisitor, walk_expr, walk_stmt};
use ruff_python_ast::{
    Arguments, CmpOp, Comprehension, Expr, ExprCall, ExprContext, Keyword, PatternKeyword, Stmt, StmtFunctionDef,
};

use super::python_names::{CONSTANTS, PURE_BUILTINS};

/// Built-in functions that return an iterator, with the number of leading arguments that are functions.
const ITERATORS: [(&str, usize); 6] =
    [("enumerate", 0), ("filter", 1), ("iter", 0), ("map", 1), ("reversed", 0), ("zip", 0)];

/// Built-in functions that consume an iterator.
const CONSUMING: [&str; 14] = [
    "all",
    "any",
    "bytearray",
    "bytes",
    "dict",
    "frozenset",
    "list",
    "max",
    "min",
    "next",
    "set",
    "sorted",
    "sum",
    "tuple",
];

/// Methods that consume an iterator.
const CONSUMING_METHODS: [&str; 14] = [
    "difference",
    "difference_update",
    "extend",
    "fromkeys",
    "intersection",
    "intersection_update",
    "isdisjoint",
    "issubset",
    "issuperset",
    "join",
    "symmetric_difference",
    "symmetric_difference_update",
    "union",
    "update",
];

/// Methods that return an iterator.
const ITERATING_METHODS: [&str; 2] = ["finditer", "scanner"];

/// Methods that take a function for the replacement.
const REPLACING_METHODS: [&str; 2] = ["sub", "subn"];

/// Keyword arguments that are functions in every call.
const FUNCTION_ARGUMENTS: [&str; 8] =
    ["default", "key", "object_hook", "object_pairs_hook", "parse_constant", "parse_float", "parse_int", "repl"];

/// Attributes that are not methods.
const DATA: [&str; 29] = [
    "args",
    "colno",
    "denominator",
    "doc",
    "encoding",
    "end",
    "endpos",
    "flags",
    "groupindex",
    "groups",
    "imag",
    "lastgroup",
    "lastindex",
    "lineno",
    "msg",
    "name",
    "numerator",
    "obj",
    "object",
    "pattern",
    "pos",
    "re",
    "real",
    "reason",
    "start",
    "step",
    "stop",
    "string",
    "value",
];

/// Whether no object whose text contains its address can be converted to text.
pub(super) fn shows_no_address(body: &[Stmt]) -> bool {
    let mut definitions = Definitions::default();
    definitions.visit_body(body);
    let mut addresses = Addresses { definitions: &definitions, is_harmless: true };
    addresses.visit_body(body);
    addresses.is_harmless
}

/// Names of functions and modules in any scope.
#[derive(Default)]
struct Definitions<'a> {
    functions: BTreeSet<&'a str>,
    /// Functions that return a generator.
    generators: BTreeSet<&'a str>,
    modules: BTreeSet<&'a str>,
    /// The enclosing functions of the current node.
    enclosing: Vec<&'a str>,
}

impl<'a> SourceOrderVisitor<'a> for Definitions<'a> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::FunctionDef(function) => {
                self.functions.insert(&function.name);
                self.enclosing.push(&function.name);
                walk_stmt(self, stmt);
                self.enclosing.pop();
            }
            Stmt::Import(import) => {
                self.modules
                    .extend(import.names.iter().map(|alias| alias.asname.as_ref().unwrap_or(&alias.name).as_str()));
            }
            Stmt::Assign(assign) => {
                if assign.value.is_lambda_expr() {
                    let names = assign.targets.iter().filter_map(Expr::as_name_expr);
                    self.functions.extend(names.map(|name| name.id.as_str()));
                }
                walk_stmt(self, stmt);
            }
            other => walk_stmt(self, other),
        }
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        if matches!(expr, Expr::Yield(_) | Expr::YieldFrom(_)) {
            self.generators.extend(self.enclosing.last());
        }
        walk_expr(self, expr);
    }
}

struct Addresses<'m, 'a> {
    definitions: &'m Definitions<'a>,
    is_harmless: bool,
}

impl<'a> Addresses<'_, 'a> {
    fn mark_harmful(&mut self) {
        self.is_harmless = false;
    }

    /// Visits an expression that is called or passed to code that calls it.
    fn visit_called(&mut self, function: &'a Expr) {
        match function {
            Expr::Name(_) => {}
            Expr::Attribute(attribute) => self.visit_expr(&attribute.value),
            Expr::Lambda(lambda) => {
                if let Some(parameters) = &lambda.parameters {
                    self.visit_parameters(parameters);
                }
                self.visit_expr(&lambda.body);
            }
            other => self.visit_expr(other),
        }
    }

    /// Visits an expression that is consumed in place.
    fn visit_consumed(&mut self, iterable: &'a Expr) {
        match iterable {
            Expr::Generator(generator) => {
                self.visit_expr(&generator.elt);
                generator.generators.iter().for_each(|part| self.visit_comprehension(part));
            }
            Expr::Call(call) => self.call(call, true),
            other => self.visit_expr(other),
        }
    }

    fn call(&mut self, call: &'a ExprCall, is_consumed: bool) {
        self.visit_called(&call.func);
        let name = call.func.as_name_expr().map(|name| name.id.as_str());
        let method = call.func.as_attribute_expr().map(|attribute| attribute.attr.as_str());
        let iterator = ITERATORS.iter().find(|(iterator, _)| name == Some(iterator));
        let is_generator = name.is_some_and(|name| self.definitions.generators.contains(name));
        let is_iterating = method.is_some_and(|method| ITERATING_METHODS.contains(&method));
        if (iterator.is_some() || is_generator || is_iterating) && !is_consumed {
            self.mark_harmful();
        }
        let is_own = name.is_some_and(|name| self.definitions.functions.contains(name));
        let consumes = !is_own
            && (iterator.is_some()
                || name.is_some_and(|name| CONSUMING.contains(&name))
                || method.is_some_and(|method| CONSUMING_METHODS.contains(&method)));
        let replaces = method.is_some_and(|method| REPLACING_METHODS.contains(&method));
        let functions = iterator.map_or(0, |(_, functions)| *functions);
        self.arguments(&call.arguments, functions, consumes, replaces, is_own);
    }

    fn arguments(&mut self, arguments: &'a Arguments, functions: usize, consumes: bool, replaces: bool, is_own: bool) {
        for (index, argument) in arguments.args.iter().enumerate() {
            if (index < functions || replaces)
                && (argument.is_name_expr() || argument.is_lambda_expr() || is_method(argument))
            {
                self.visit_called(argument);
            } else if let Expr::Starred(starred) = argument {
                self.visit_consumed(&starred.value);
            } else if consumes {
                self.visit_consumed(argument);
            } else {
                self.visit_expr(argument);
            }
        }
        for Keyword { arg, value, .. } in &arguments.keywords {
            let is_function = arg.as_ref().is_some_and(|name| FUNCTION_ARGUMENTS.contains(&name.as_str()));
            if is_function && !is_own { self.visit_called(value) } else { self.visit_expr(value) }
        }
    }

    fn attribute(&mut self, value: &'a Expr, attr: &str) {
        let base = value.as_name_expr().map(|name| name.id.as_str());
        let is_module = base.is_some_and(|name| self.definitions.modules.contains(name));
        let is_type = base.is_some_and(|name| PURE_BUILTINS.contains(&name) || CONSTANTS.contains(&name));
        if !is_module && !is_type && !DATA.contains(&attr) && attr != "__name__" {
            self.mark_harmful();
        }
        self.visit_expr(value);
    }
}

/// Whether an expression is a method that is passed as a value, such as `str.lower`.
fn is_method(expr: &Expr) -> bool {
    expr.as_attribute_expr().is_some_and(|attribute| attribute.value.is_name_expr())
}

impl<'a> SourceOrderVisitor<'a> for Addresses<'_, 'a> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::FunctionDef(StmtFunctionDef { decorator_list, parameters, body, .. }) => {
                if !decorator_list.is_empty() {
                    self.mark_harmful();
                }
                self.visit_parameters(parameters);
                self.visit_body(body);
            }
            Stmt::Assign(assign) => {
                for target in &assign.targets {
                    self.visit_expr(target);
                }
                let are_names = assign.targets.iter().all(Expr::is_name_expr);
                let are_unpacked = assign.targets.iter().all(|target| target.is_tuple_expr() || target.is_list_expr());
                match &*assign.value {
                    Expr::Lambda(_) if are_names => self.visit_called(&assign.value),
                    value if are_unpacked => self.visit_consumed(value),
                    value => self.visit_expr(value),
                }
            }
            Stmt::For(loops) => {
                self.visit_expr(&loops.target);
                self.visit_consumed(&loops.iter);
                self.visit_body(&loops.body);
                self.visit_body(&loops.orelse);
            }
            other => walk_stmt(self, other),
        }
    }

    fn visit_annotation(&mut self, _annotation: &'a Expr) {}

    fn visit_pattern_keyword(&mut self, keyword: &'a PatternKeyword) {
        self.is_harmless &= DATA.contains(&keyword.attr.as_str());
        self.visit_pattern(&keyword.pattern);
    }

    fn visit_comprehension(&mut self, comprehension: &'a Comprehension) {
        self.visit_expr(&comprehension.target);
        self.visit_consumed(&comprehension.iter);
        comprehension.ifs.iter().for_each(|condition| self.visit_expr(condition));
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Name(name) if name.ctx == ExprContext::Load => {
                if self.definitions.functions.contains(name.id.as_str()) {
                    self.mark_harmful();
                }
            }
            Expr::Lambda(_) | Expr::Generator(_) => self.mark_harmful(),
            Expr::Attribute(attribute) => self.attribute(&attribute.value, &attribute.attr),
            Expr::Call(call) => {
                if call.func.as_name_expr().is_some_and(|name| name.id == "getattr") {
                    let named = call.arguments.args.get(1).and_then(Expr::as_string_literal_expr);
                    self.is_harmless &= named.is_some_and(|name| DATA.contains(&name.value.to_str()));
                }
                self.call(call, false);
            }
            Expr::Compare(compare) => {
                self.visit_expr(&compare.left);
                for (op, side) in compare.ops.iter().zip(&*compare.comparators) {
                    if matches!(op, CmpOp::In | CmpOp::NotIn) {
                        self.visit_consumed(side);
                    } else {
                        self.visit_expr(side);
                    }
                }
            }
            Expr::Starred(starred) => self.visit_consumed(&starred.value),
            Expr::YieldFrom(from) => self.visit_consumed(&from.value),
            other => walk_expr(self, other),
        }
    }
}
