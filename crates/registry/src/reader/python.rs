//! Lowers Python sources to a [`Module`].

use std::path::Path;

use ruff_python_ast::{
    Arguments, BoolOp, Decorator, Expr as PyExpr, ExprDict, ExprFString, ExprLambda, FStringPart,
    InterpolatedStringElement, Number, Operator, Parameters, Stmt, StmtAnnAssign, StmtClassDef, StmtFunctionDef,
    StmtImport, StmtImportFrom, UnaryOp,
};
use ruff_python_parser::{Mode, ParseOptions, parse_unchecked};
use ruff_text_size::{Ranged, TextSize};

use super::nesting::{MAX_DEPTH, bracket_depth};
use super::parse_error::ParseError;
use super::syntax::{
    Arithmetic, Call, Class, Definition, Entry, Expr, Function, FunctionId, Import, ImportedItem, Kind, Language,
    Module, Owner, Parameter, ParameterKind, ScopeId, Statement, Text,
};

pub(super) fn parse(path: &Path, display_path: &str, text: &str) -> Result<Module, ParseError> {
    // Normalise line endings, as Python does.
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    if bracket_depth(&text) > MAX_DEPTH {
        return Err(ParseError::new("the code is nested too deeply"));
    }
    let mut module = Module::new(path.to_owned(), display_path.to_owned(), Language::Python, text);
    let parsed = parse_unchecked(&module.text, ParseOptions::from(Mode::Module));
    if let Some(error) = parsed.errors().first() {
        let position = module.location(error.location.start().to_u32()).position;
        return Err(ParseError {
            position,
            message: format!("syntax error: {}", error.error.to_string().trim_end_matches('.')),
        });
    }
    let Some(parsed) = parsed.try_into_module() else { return Err(ParseError::new("the code is not a module")) };
    let mut lowering = Lowerer { module: &mut module, depth: 0 };
    lowering.statements(0, None, parsed.suite());
    // Dropping the tree is recursive and would overflow the stack for a long chain of operators.
    std::mem::forget(parsed);
    Ok(module)
}

struct Lowerer<'m> {
    module: &'m mut Module,
    depth: usize,
}

impl Lowerer<'_> {
    fn push(&mut self, scope: ScopeId, statement: Statement) {
        self.module.scopes[scope].add(statement);
    }

    fn statements(&mut self, scope: ScopeId, class: Option<usize>, statements: &[Stmt]) {
        if self.depth >= MAX_DEPTH {
            return;
        }
        self.depth += 1;
        for statement in statements {
            self.statement(scope, class, statement);
        }
        self.depth -= 1;
    }

    fn statement(&mut self, scope: ScopeId, class: Option<usize>, statement: &Stmt) {
        match statement {
            Stmt::FunctionDef(function) => self.function_definition(scope, class, function),
            Stmt::ClassDef(definition) => self.class_definition(scope, definition),
            Stmt::Return(statement) => {
                if let Some(value) = &statement.value {
                    let value = self.expression(scope, value);
                    self.push(scope, Statement::Return(value));
                }
            }
            Stmt::Assign(assign) => {
                for (index, target) in assign.targets.iter().enumerate() {
                    // `field[key] = value` modifies the field.
                    if let (Some(_), PyExpr::Subscript(entry)) = (class, target) {
                        self.rebind(scope, &entry.value);
                    }
                    let value = self.expression(scope, &assign.value);
                    self.assign(scope, target, value, None, index == 0);
                }
            }
            Stmt::AnnAssign(assign) => self.annotated_assign(scope, assign),
            Stmt::AugAssign(assign) => {
                let value = self.expression(scope, &assign.value);
                self.push(scope, Statement::Expression(value));
                self.rebind(scope, &assign.target);
            }
            Stmt::For(statement) => {
                self.rebind(scope, &statement.target);
                self.expression_statement(scope, &statement.iter);
                self.statements(scope, class, &statement.body);
                self.statements(scope, class, &statement.orelse);
            }
            Stmt::While(statement) => {
                self.statements(scope, class, &statement.body);
                self.statements(scope, class, &statement.orelse);
            }
            Stmt::If(statement) => {
                self.expression_statement(scope, &statement.test);
                self.statements(scope, class, &statement.body);
                for clause in &statement.elif_else_clauses {
                    self.statements(scope, class, &clause.body);
                }
            }
            Stmt::With(statement) => {
                for item in &statement.items {
                    let value = self.expression(scope, &item.context_expr);
                    match &item.optional_vars {
                        Some(target) => self.assign(scope, target, value, None, true),
                        None => self.push(scope, Statement::Expression(value)),
                    }
                }
                self.statements(scope, class, &statement.body);
            }
            Stmt::Match(statement) => {
                for case in &statement.cases {
                    self.statements(scope, class, &case.body);
                }
            }
            Stmt::Try(statement) => {
                self.statements(scope, class, &statement.body);
                for ruff_python_ast::ExceptHandler::ExceptHandler(handler) in &statement.handlers {
                    self.statements(scope, class, &handler.body);
                }
                self.statements(scope, class, &statement.orelse);
                self.statements(scope, class, &statement.finalbody);
            }
            Stmt::Import(import) => self.import(scope, import),
            Stmt::ImportFrom(import) => self.import_from(scope, import),
            Stmt::Expr(statement) => self.expression_statement(scope, &statement.value),
            Stmt::TypeAlias(alias) => {
                if let PyExpr::Name(name) = &*alias.name {
                    let value = Some(self.expression(scope, &alias.value));
                    self.push(scope, Statement::Assign { name: name.id.to_string(), value, annotation: None });
                }
            }
            Stmt::Delete(_)
            | Stmt::Raise(_)
            | Stmt::Assert(_)
            | Stmt::Global(_)
            | Stmt::Nonlocal(_)
            | Stmt::Pass(_)
            | Stmt::Break(_)
            | Stmt::Continue(_)
            | Stmt::IpyEscapeCommand(_) => {}
        }
    }

    fn function_definition(&mut self, scope: ScopeId, class: Option<usize>, function: &StmtFunctionDef) {
        let decorators = self.decorators(scope, &function.decorator_list);
        let name = function.name.to_string();
        let parameters = self.parameters(scope, &function.parameters);
        let id = self.function(scope, class, name.clone(), function.name.start(), parameters, decorators);
        self.module.functions[id].docstring = docstring(&function.body);
        self.module.functions[id].returns = function.returns.as_ref().map(|returns| self.expression(scope, returns));
        let body = self.module.functions[id].scope;
        self.statements(body, None, &function.body);
        self.push(scope, Statement::Define { name, defined: Definition::Function(id) });
    }

    fn class_definition(&mut self, scope: ScopeId, definition: &StmtClassDef) {
        let decorators = self.decorators(scope, &definition.decorator_list);
        let arguments = definition.arguments.as_deref();
        let bases = arguments.map_or_else(Vec::new, |bases| self.expressions(scope, &bases.args));
        let id = self.module.classes.len();
        let body = self.module.open_scope(scope, Owner::Class(id));
        let name = definition.name.to_string();
        self.module.classes.push(Class {
            name: name.clone(),
            at: definition.name.start().to_u32(),
            bases,
            decorators,
            scope: body,
            docstring: docstring(&definition.body),
        });
        self.statements(body, Some(id), &definition.body);
        self.push(scope, Statement::Define { name, defined: Definition::Class(id) });
    }

    fn annotated_assign(&mut self, scope: ScopeId, assign: &StmtAnnAssign) {
        let annotation = self.expression(scope, &assign.annotation);
        match (&*assign.target, &assign.value) {
            (PyExpr::Name(name), value) => {
                let value = value.as_ref().map(|value| self.expression(scope, value));
                let name = name.id.to_string();
                self.push(scope, Statement::Assign { name, value, annotation: Some(annotation) });
            }
            (target, Some(value)) => {
                let value = self.expression(scope, value);
                self.assign(scope, target, value, Some(annotation), true);
            }
            _ => {}
        }
    }

    fn import(&mut self, scope: ScopeId, import: &StmtImport) {
        for alias in &import.names {
            let dotted = alias.name.to_string();
            // Without an alias, only the first part is bound.
            let (local, from) = match &alias.asname {
                Some(name) => (name.to_string(), dotted),
                None => (dotted.split('.').next().unwrap_or_default().to_owned(), dotted),
            };
            let import = Import { local: Some(local), level: 0, from, item: ImportedItem::Module };
            self.push(scope, Statement::Import(import));
        }
    }

    fn import_from(&mut self, scope: ScopeId, import: &StmtImportFrom) {
        let from = import.module.as_ref().map(ToString::to_string).unwrap_or_default();
        for alias in &import.names {
            let name = alias.name.to_string();
            let (local, item) = if name == "*" {
                (None, ImportedItem::All)
            } else {
                let local = alias.asname.as_ref().map_or_else(|| name.clone(), ToString::to_string);
                (Some(local), ImportedItem::Name(name))
            };
            let import = Import { local, level: import.level, from: from.clone(), item };
            self.push(scope, Statement::Import(import));
        }
    }

    fn expression_statement(&mut self, scope: ScopeId, expression: &PyExpr) {
        let value = self.expression(scope, expression);
        self.push(scope, Statement::Expression(value));
    }

    fn assign(&mut self, scope: ScopeId, target: &PyExpr, value: Expr, annotation: Option<Expr>, is_first: bool) {
        match target {
            PyExpr::Name(name) => {
                let name = name.id.to_string();
                self.push(scope, Statement::Assign { name, value: Some(value), annotation });
            }
            PyExpr::Attribute(attribute) => {
                let object = self.expression(scope, &attribute.value);
                self.push(scope, Statement::SetMember { object, name: attribute.attr.to_string(), value });
            }
            other => {
                self.rebind(scope, other);
                if is_first {
                    self.push(scope, Statement::Expression(value));
                }
            }
        }
    }

    /// Marks the values of all names in a target as unknown.
    fn rebind(&mut self, scope: ScopeId, target: &PyExpr) {
        match target {
            PyExpr::Name(name) => self.push(scope, Statement::Rebind { name: name.id.to_string() }),
            PyExpr::Tuple(tuple) => tuple.elts.iter().for_each(|target| self.rebind(scope, target)),
            PyExpr::List(list) => list.elts.iter().for_each(|target| self.rebind(scope, target)),
            PyExpr::Starred(starred) => self.rebind(scope, &starred.value),
            _ => {}
        }
    }

    fn decorators(&mut self, scope: ScopeId, decorators: &[Decorator]) -> Vec<Expr> {
        decorators.iter().map(|decorator| self.expression(scope, &decorator.expression)).collect()
    }

    fn function(
        &mut self,
        scope: ScopeId,
        class: Option<usize>,
        name: String,
        at: TextSize,
        parameters: Vec<Parameter>,
        decorators: Vec<Expr>,
    ) -> FunctionId {
        let id = self.module.functions.len();
        let body = self.module.open_scope(scope, Owner::Function(id));
        let at = at.to_u32();
        let function =
            Function { name, at, scope: body, parameters, returns: None, docstring: None, decorators, class };
        self.module.functions.push(function);
        id
    }

    fn parameters(&mut self, scope: ScopeId, parameters: &Parameters) -> Vec<Parameter> {
        let mut lowered = Vec::new();
        let plain = parameters.posonlyargs.iter().chain(&parameters.args).chain(&parameters.kwonlyargs);
        for parameter in plain {
            let annotation =
                parameter.parameter.annotation.as_ref().map(|annotation| self.expression(scope, annotation));
            let default = parameter.default.as_ref().map(|default| self.expression(scope, default));
            let name = parameter.parameter.name.to_string();
            lowered.push(Parameter { name, kind: ParameterKind::Plain, annotation, default });
        }
        for rest in parameters.vararg.iter().chain(&parameters.kwarg) {
            let (name, kind) = (rest.name.to_string(), ParameterKind::Rest);
            lowered.push(Parameter { name, kind, annotation: None, default: None });
        }
        lowered
    }

    fn expressions(&mut self, scope: ScopeId, expressions: &[PyExpr]) -> Vec<Expr> {
        expressions.iter().map(|expression| self.expression(scope, expression)).collect()
    }

    fn boxed(&mut self, scope: ScopeId, expression: &PyExpr) -> Box<Expr> {
        Box::new(self.expression(scope, expression))
    }

    fn expression(&mut self, scope: ScopeId, expression: &PyExpr) -> Expr {
        let at = expression.start().to_u32();
        if self.depth >= MAX_DEPTH {
            return Expr::new(at, Kind::Other(Vec::new()));
        }
        self.depth += 1;
        let kind = self.kind(scope, expression);
        self.depth -= 1;
        Expr::new(at, kind)
    }

    fn kind(&mut self, scope: ScopeId, expression: &PyExpr) -> Kind {
        match expression {
            PyExpr::NoneLiteral(_) => Kind::Null,
            PyExpr::BooleanLiteral(literal) => Kind::Bool(literal.value),
            PyExpr::NumberLiteral(literal) => number(&literal.value, false),
            PyExpr::UnaryOp(operation) => match (operation.op, &*operation.operand) {
                (UnaryOp::USub, PyExpr::NumberLiteral(literal)) => number(&literal.value, true),
                (_, operand) => Kind::Other(vec![self.expression(scope, operand)]),
            },
            PyExpr::StringLiteral(literal) => Kind::Text(literal.value.to_str().to_owned()),
            PyExpr::FString(text) => self.f_string(scope, text),
            PyExpr::BinOp(operation) => {
                let (left, right) = (self.boxed(scope, &operation.left), self.boxed(scope, &operation.right));
                match operation.op {
                    Operator::Add => Kind::Add(left, right),
                    Operator::Sub => Kind::Arithmetic(Arithmetic::Subtract, left, right),
                    Operator::Mult => Kind::Arithmetic(Arithmetic::Multiply, left, right),
                    Operator::FloorDiv => Kind::Arithmetic(Arithmetic::Divide, left, right),
                    Operator::BitOr => Kind::Or(left, right),
                    _ => Kind::Other(vec![*left, *right]),
                }
            }
            PyExpr::BoolOp(operation) => {
                let mut values = self.expressions(scope, &operation.values).into_iter();
                match (operation.op, values.next()) {
                    (BoolOp::Or, Some(first)) => {
                        values
                            .fold(first, |left, right| Expr::new(left.at, Kind::Or(Box::new(left), Box::new(right))))
                            .kind
                    }
                    (_, first) => Kind::Other(first.into_iter().chain(values).collect()),
                }
            }
            PyExpr::If(condition) => {
                Kind::Conditional(self.boxed(scope, &condition.body), self.boxed(scope, &condition.orelse))
            }
            PyExpr::List(list) => Kind::List(self.expressions(scope, &list.elts)),
            PyExpr::Tuple(tuple) => Kind::List(self.expressions(scope, &tuple.elts)),
            PyExpr::Set(set) => Kind::List(self.expressions(scope, &set.elts)),
            PyExpr::Dict(dict) => self.dictionary(scope, dict),
            PyExpr::Starred(starred) => Kind::Spread(self.boxed(scope, &starred.value)),
            PyExpr::Name(name) => Kind::Name(name.id.to_string()),
            PyExpr::Attribute(attribute) => {
                Kind::Member(self.boxed(scope, &attribute.value), attribute.attr.to_string())
            }
            PyExpr::Subscript(subscript) => {
                Kind::Index(self.boxed(scope, &subscript.value), self.boxed(scope, &subscript.slice))
            }
            PyExpr::Call(call) => {
                let callee = self.expression(scope, &call.func);
                let (arguments, named) = self.arguments(scope, &call.arguments);
                Kind::Call(Box::new(Call { callee, arguments, named }))
            }
            PyExpr::Lambda(lambda) => self.lambda(scope, lambda),
            PyExpr::Await(awaited) => self.expression(scope, &awaited.value).kind,
            PyExpr::Named(named) => {
                let value = self.expression(scope, &named.value);
                self.rebind(scope, &named.target);
                value.kind
            }
            PyExpr::ListComp(comprehension) => Kind::Other(vec![self.expression(scope, &comprehension.elt)]),
            PyExpr::Generator(comprehension) => Kind::Other(vec![self.expression(scope, &comprehension.elt)]),
            PyExpr::Yield(inner) => match &inner.value {
                Some(value) => self.expression(scope, value).kind,
                None => Kind::Other(Vec::new()),
            },
            _ => Kind::Other(Vec::new()),
        }
    }

    fn f_string(&mut self, scope: ScopeId, text: &ExprFString) -> Kind {
        let mut parts = Vec::new();
        for part in &text.value {
            match part {
                FStringPart::Literal(literal) => {
                    parts.push(Expr::new(literal.start().to_u32(), Kind::Text(literal.value.to_string())));
                }
                FStringPart::FString(inner) => {
                    for element in &inner.elements {
                        parts.push(self.interpolated(scope, element));
                    }
                }
            }
        }
        Kind::Template(parts)
    }

    fn dictionary(&mut self, scope: ScopeId, dict: &ExprDict) -> Kind {
        let mut entries = Vec::new();
        for item in &dict.items {
            let value = self.expression(scope, &item.value);
            entries.push(match &item.key {
                Some(key) => Entry::Value { key: self.expression(scope, key), value },
                None => Entry::Spread(value),
            });
        }
        Kind::Object(entries)
    }

    fn lambda(&mut self, scope: ScopeId, lambda: &ExprLambda) -> Kind {
        let parameters = lambda.parameters.as_ref().map(|list| self.parameters(scope, list)).unwrap_or_default();
        let id = self.function(scope, None, String::new(), lambda.start(), parameters, Vec::new());
        let body = self.module.functions[id].scope;
        let value = self.expression(body, &lambda.body);
        self.push(body, Statement::Return(value));
        Kind::Function(id)
    }

    fn interpolated(&mut self, scope: ScopeId, element: &InterpolatedStringElement) -> Expr {
        match element {
            InterpolatedStringElement::Literal(literal) => {
                Expr::new(literal.start().to_u32(), Kind::Text(literal.value.to_string()))
            }
            InterpolatedStringElement::Interpolation(interpolation) => {
                let value = self.expression(scope, &interpolation.expression);
                let is_plain = interpolation.conversion.is_none()
                    && interpolation.format_spec.is_none()
                    && interpolation.debug_text.is_none();
                if is_plain { value } else { Expr::new(value.at, Kind::Other(vec![value])) }
            }
        }
    }

    fn arguments(&mut self, scope: ScopeId, arguments: &Arguments) -> (Vec<Expr>, Vec<(String, Expr)>) {
        let mut positional = self.expressions(scope, &arguments.args);
        let mut named = Vec::new();
        for keyword in &arguments.keywords {
            let value = self.expression(scope, &keyword.value);
            match &keyword.arg {
                Some(name) => named.push((name.to_string(), value)),
                None => positional.push(Expr::new(value.at, Kind::Spread(Box::new(value)))),
            }
        }
        (positional, named)
    }
}

fn number(number: &Number, is_negative: bool) -> Kind {
    let number = match number {
        Number::Int(number) => {
            let small = number.as_i64().map(|number| if is_negative { -number } else { number });
            let sign = if is_negative { "-" } else { "" };
            small.map_or_else(|| format!("{sign}{number}").parse().ok(), |number| Some(number.into()))
        }
        Number::Float(number) => serde_json::Number::from_f64(if is_negative { -number } else { *number }),
        Number::Complex { .. } => None,
    };
    number.map_or(Kind::Other(Vec::new()), Kind::Number)
}

fn docstring(body: &[Stmt]) -> Option<Text> {
    let Some(Stmt::Expr(statement)) = body.first() else { return None };
    let PyExpr::StringLiteral(literal) = &*statement.value else { return None };
    Some(Text { at: literal.start().to_u32(), text: literal.value.to_str().to_owned() })
}
