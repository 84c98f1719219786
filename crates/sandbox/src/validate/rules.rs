//! Checks a source for blocked modules, names and attributes.

use ruff_python_ast::visitor::source_order::{SourceOrderVisitor, walk_body, walk_expr, walk_stmt, walk_type_params};
use ruff_python_ast::{
    Alias, Comprehension, Expr, ExprContext, ExprName, Identifier, Keyword, Parameter, PatternKeyword, Stmt,
    StmtClassDef, StmtFunctionDef,
};
use ruff_text_size::{Ranged, TextRange};

use super::imports::Imports;
use super::own_input::{self, INPUT};
use crate::function::{Finding, Rule};

/// Maximum number of decimal digits that Python parses.
const MAX_INTEGER_DIGITS: usize = 4300;

/// Built-ins that the guest lacks: they run code, read files or wait for input.
pub(super) const BLOCKED: [&str; 7] = ["eval", "exec", "compile", "__import__", "open", "input", "breakpoint"];

/// Special methods that may be called on `super()`.
const SUPER_METHODS: [&str; 27] = [
    "__add__",
    "__bool__",
    "__call__",
    "__contains__",
    "__delitem__",
    "__enter__",
    "__eq__",
    "__exit__",
    "__format__",
    "__ge__",
    "__getitem__",
    "__gt__",
    "__hash__",
    "__init__",
    "__iter__",
    "__le__",
    "__len__",
    "__lt__",
    "__missing__",
    "__ne__",
    "__new__",
    "__next__",
    "__or__",
    "__repr__",
    "__setitem__",
    "__str__",
    "__sub__",
];

/// A scope in which names are bound.
enum Scope<'a> {
    Module,
    /// The special names that its body defines, and `input` if it does.
    Class(Vec<&'a str>),
    Function {
        /// Whether the function binds the name `input`.
        binds_input: bool,
    },
}

pub(super) struct Names<'a, 'i, 'p> {
    scopes: Vec<Scope<'a>>,
    imports: &'i mut Imports<'p>,
    findings: Vec<Finding>,
}

/// Returns every import, name and attribute that is not allowed, and collects the allowed imports.
pub(super) fn check(body: &[Stmt], imports: &mut Imports<'_>) -> Vec<Finding> {
    let mut names = Names { scopes: vec![Scope::Module], imports, findings: Vec::new() };
    names.visit_body(body);
    names.findings
}

/// Whether a name is a double-underscore name.
pub(super) fn is_dunder(name: &str) -> bool {
    name.len() > 4 && name.starts_with("__") && name.ends_with("__") && name.contains(|letter| letter != '_')
}

impl<'a> Names<'a, '_, '_> {
    fn report(&mut self, rule: Rule, range: TextRange, message: String, help: Option<&str>) {
        self.findings.push(Finding { rule, message, help: help.map(str::to_owned), range: range.into() });
    }

    /// Checks the name of an imported module.
    fn check_module(&mut self, module: &Identifier) {
        if let Some(part) = module.split('.').find(|part| is_dunder(part) && *part != "__future__") {
            self.report_dunder(part, "attribute", module.range());
        }
    }

    /// Whether a name is `input`, bound by an enclosing function or class.
    fn is_bound_input(&self, name: &str) -> bool {
        let is_bound = |scope: &Scope<'_>| matches!(scope, Scope::Function { binds_input: true });
        let is_member = matches!(self.scopes.last(), Some(Scope::Class(own)) if own.contains(&INPUT));
        name == INPUT && (is_member || self.scopes.iter().any(is_bound))
    }

    fn check_member(&mut self, alias: &Alias) {
        let name = &alias.name;
        if is_dunder(name) {
            self.report_dunder(name, "attribute", name.range());
        } else if alias.asname.is_none() {
            self.check_binding(name);
        }
    }

    fn report_dunder(&mut self, name: &str, kind: &str, range: TextRange) {
        let help = Some("a class may define its own special methods, and '__name__' may be read");
        self.report(Rule::Dunder, range, format!("the double-underscore {kind} '{name}' is not allowed"), help);
    }

    fn report_blocked(&mut self, name: &str, is_bound: bool, range: TextRange) {
        let help = match name {
            "compile" => Some("to compile a regular expression, write 're.compile'"),
            _ if is_bound => Some("choose another name: this one is blocked even for your own definitions"),
            _ => None,
        };
        self.report(Rule::Name, range, format!("the name '{name}' is blocked"), help);
    }

    /// Checks a name that a statement or parameter binds.
    fn check_binding(&mut self, name: &Identifier) {
        if BLOCKED.contains(&name.as_str()) {
            if !self.is_bound_input(name) {
                self.report_blocked(name, true, name.range());
            }
        } else if is_dunder(name) {
            self.report_dunder(name, "name", name.range());
        }
    }

    fn check_name(&mut self, name: &ExprName) {
        let id = name.id.as_str();
        if BLOCKED.contains(&id) {
            if !self.is_bound_input(id) {
                self.report_blocked(id, name.ctx != ExprContext::Load, name.range());
            }
        } else if is_dunder(id) {
            let is_allowed = match (self.scopes.last(), name.ctx) {
                (Some(Scope::Class(_)), ExprContext::Store) => true,
                (Some(Scope::Class(own)), ExprContext::Load) if own.contains(&id) => true,
                (_, ExprContext::Load) => id == "__name__",
                _ => false,
            };
            if !is_allowed {
                self.report_dunder(id, "name", name.range());
            }
        }
    }

    fn with_scope(&mut self, scope: Scope<'a>, visit: impl FnOnce(&mut Self)) {
        self.scopes.push(scope);
        visit(self);
        self.scopes.pop();
    }

    fn check_function(&mut self, function: &'a StmtFunctionDef) {
        for decorator in &function.decorator_list {
            self.visit_decorator(decorator);
        }
        let is_method = matches!(self.scopes.last(), Some(Scope::Class(_)));
        if !(is_method && is_dunder(&function.name) && !BLOCKED.contains(&function.name.as_str())) {
            self.check_binding(&function.name);
        }
        if let Some(type_params) = &function.type_params {
            walk_type_params(self, type_params);
        }
        self.visit_parameters(&function.parameters);
        if let Some(returns) = &function.returns {
            self.visit_annotation(returns);
        }
        let binds_input = own_input::is_parameter(&function.parameters) || own_input::is_local(&function.body);
        self.with_scope(Scope::Function { binds_input }, |names| walk_body(names, &function.body));
    }

    fn check_class(&mut self, class: &'a StmtClassDef) {
        for decorator in &class.decorator_list {
            self.visit_decorator(decorator);
        }
        self.check_binding(&class.name);
        if let Some(type_params) = &class.type_params {
            walk_type_params(self, type_params);
        }
        if let Some(arguments) = &class.arguments {
            self.visit_arguments(arguments);
        }
        let own = class.body.iter().flat_map(defined_names).filter(|name| is_dunder(name) || *name == INPUT).collect();
        self.with_scope(Scope::Class(own), |names| walk_body(names, &class.body));
    }
}

/// Returns the names that a statement in a class body defines.
fn defined_names(stmt: &Stmt) -> Vec<&str> {
    match stmt {
        Stmt::FunctionDef(function) => vec![function.name.as_str()],
        Stmt::Assign(assign) => {
            assign.targets.iter().filter_map(Expr::as_name_expr).map(|name| name.id.as_str()).collect()
        }
        Stmt::AnnAssign(assign) => assign.target.as_name_expr().map(|name| name.id.as_str()).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// Returns the generators of a comprehension.
fn generators(expr: &Expr) -> Option<&[Comprehension]> {
    match expr {
        Expr::ListComp(comprehension) => Some(&comprehension.generators),
        Expr::SetComp(comprehension) => Some(&comprehension.generators),
        Expr::DictComp(comprehension) => Some(&comprehension.generators),
        Expr::Generator(comprehension) => Some(&comprehension.generators),
        _ => None,
    }
}

/// Whether an expression is `super()`.
fn is_super(expr: &Expr) -> bool {
    let Expr::Call(call) = expr else { return false };
    call.arguments.is_empty() && call.func.as_name_expr().is_some_and(|name| name.id == "super")
}

impl<'a> SourceOrderVisitor<'a> for Names<'a, '_, '_> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::Import(import) => {
                for alias in &import.names {
                    match self.imports.add(&alias.name) {
                        Ok(()) => self.check_module(&alias.name),
                        Err(finding) => self.findings.push(finding),
                    }
                    if let Some(asname) = &alias.asname {
                        self.check_binding(asname);
                    }
                }
            }
            Stmt::ImportFrom(import) => {
                let before = self.findings.len();
                match self.imports.add_from(import) {
                    Ok(()) => import.module.iter().for_each(|module| self.check_module(module)),
                    Err(finding) => self.findings.push(finding),
                }
                for alias in &import.names {
                    if self.findings.len() == before {
                        self.check_member(alias);
                    }
                    if let Some(asname) = &alias.asname {
                        self.check_binding(asname);
                    }
                }
            }
            Stmt::FunctionDef(function) => self.check_function(function),
            Stmt::ClassDef(class) => self.check_class(class),
            other => walk_stmt(self, other),
        }
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Name(name) => self.check_name(name),
            Expr::Attribute(attribute) => {
                self.visit_expr(&attribute.value);
                let attr = attribute.attr.as_str();
                let is_read = attr == "__name__" && attribute.ctx == ExprContext::Load;
                let is_inherited = SUPER_METHODS.contains(&attr) && is_super(&attribute.value);
                if is_dunder(attr) && !is_read && !is_inherited {
                    self.report_dunder(attr, "attribute", attribute.attr.range());
                }
            }
            Expr::NumberLiteral(number) => {
                let digits = number.value.as_int().map(ToString::to_string).unwrap_or_default();
                if digits.len() > MAX_INTEGER_DIGITS && digits.bytes().all(|digit| digit.is_ascii_digit()) {
                    let message = format!("a number may have at most {MAX_INTEGER_DIGITS} digits");
                    self.findings.push(Finding {
                        rule: Rule::Syntax,
                        message,
                        help: None,
                        range: number.range().into(),
                    });
                }
            }
            Expr::Lambda(lambda) => {
                if let Some(parameters) = &lambda.parameters {
                    self.visit_parameters(parameters);
                }
                let binds_input = lambda.parameters.as_deref().is_some_and(own_input::is_parameter);
                self.with_scope(Scope::Function { binds_input }, |names| names.visit_expr(&lambda.body));
            }
            other => match generators(other) {
                Some(generators) if own_input::is_target(generators) => {
                    self.with_scope(Scope::Function { binds_input: true }, |names| walk_expr(names, other));
                }
                _ => walk_expr(self, other),
            },
        }
    }

    fn visit_parameter(&mut self, parameter: &'a Parameter) {
        // A parameter named `input` does not refer to the built-in function.
        if parameter.name != *INPUT {
            self.check_binding(&parameter.name);
        }
        if let Some(annotation) = &parameter.annotation {
            self.visit_annotation(annotation);
        }
    }

    fn visit_keyword(&mut self, keyword: &'a Keyword) {
        if let Some(name) = keyword.arg.as_ref().filter(|name| **name != *INPUT) {
            self.check_binding(name);
        }
        self.visit_expr(&keyword.value);
    }

    fn visit_pattern_keyword(&mut self, keyword: &'a PatternKeyword) {
        // The pattern reads the attribute.
        if is_dunder(&keyword.attr) && keyword.attr != *"__name__" {
            self.report_dunder(&keyword.attr, "attribute", keyword.attr.range());
        }
        self.visit_pattern(&keyword.pattern);
    }

    fn visit_identifier(&mut self, identifier: &'a Identifier) {
        self.check_binding(identifier);
    }
}
