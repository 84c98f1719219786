//! TypeScript and JavaScript source → [`Module`].

use std::path::Path;

use oxc_allocator::Allocator;
use oxc_ast::ast::{
    Argument, ArrayExpressionElement, ArrowFunctionBody, AssignmentTarget, BinaryOperator, BindingPattern,
    CallExpression, ChainElement, Class as JsClass, ClassElement, Declaration, ExportDefaultDeclarationKind,
    Expression, ForStatementInit, FormalParameters, Function as JsFunction, ImportDeclarationSpecifier,
    ImportOrExportKind, LogicalOperator, ModuleExportName, ObjectPropertyKind, PropertyKey, PropertyKind,
    Statement as JsStatement, TSEnumMemberName, TSType, TSTypeName, TemplateLiteral, UnaryOperator,
    VariableDeclaration,
};
use oxc_parser::{ParseOptions, Parser};
use oxc_span::{GetSpan as _, SourceType, Span};

use super::nesting::{MAX_DEPTH, bracket_depth};
use super::syntax::{
    Call, Class, Definition, Entry, Export, Expr, Function, FunctionId, Import, Imported, Kind, Language, Module,
    Owner, Parameter, ParameterKind, ScopeId, Statement,
};
use super::unreadable::Unreadable;

/// More opening tags of markup than this overflow the parser's stack.
const MAX_TAGS: usize = 20_000;

pub(super) fn parse(path: &Path, shown: &str, text: String) -> Result<Module, Unreadable> {
    if bracket_depth(&text) > MAX_DEPTH {
        return Err(Unreadable::whole("it is nested too deeply"));
    }
    let source_type = SourceType::from_path(path).map_err(|error| Unreadable::whole(error.to_string()))?;
    // Many `.js` files hold markup.
    let has_markup = text.contains("</") || text.contains("/>");
    let source_type = if source_type.is_javascript() { source_type.with_jsx(has_markup) } else { source_type };
    if source_type.is_jsx() && text.matches('<').count() > MAX_TAGS {
        return Err(Unreadable::whole("it holds too much markup"));
    }
    let mut module = Module::new(path.to_owned(), shown.to_owned(), Language::JavaScript, text);
    let text = std::mem::take(&mut module.text);
    let allocator = Allocator::default();
    let options = ParseOptions { allow_return_outside_function: true, ..ParseOptions::default() };
    let parsed = Parser::new(&allocator, &text, source_type).with_options(options).parse();
    let error = parsed.diagnostics.errors().next().map(|error| {
        let offset = error.labels.first().map(oxc_span::LabeledSpan::offset);
        (offset, error.message.trim_end_matches('.').to_owned())
    });
    if error.is_none() && !parsed.panicked {
        let mut lowering = Lowering { module: &mut module, depth: 0 };
        lowering.statements(0, &parsed.program.body);
    }
    drop(parsed);
    module.text = text;
    match error {
        Some((at, message)) => {
            let position = at.and_then(|at| module.place(super::syntax::offset(at as usize)).position);
            Err(Unreadable { position, why: format!("syntax error: {message}") })
        }
        None => Ok(module),
    }
}

struct Lowering<'m> {
    module: &'m mut Module,
    depth: usize,
}

impl<'a> Lowering<'_> {
    fn push(&mut self, scope: ScopeId, statement: Statement) {
        self.module.scopes[scope].statements.push(statement);
    }

    fn statements(&mut self, scope: ScopeId, statements: &[JsStatement<'a>]) {
        if self.depth >= MAX_DEPTH {
            return;
        }
        self.depth += 1;
        for statement in statements {
            self.statement(scope, statement);
        }
        self.depth -= 1;
    }

    fn block(&mut self, scope: ScopeId, statement: &JsStatement<'a>) {
        let inner = self.module.open_scope(scope, Owner::Block);
        self.statements(inner, std::slice::from_ref(statement));
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each kind of syntax")]
    fn statement(&mut self, scope: ScopeId, statement: &JsStatement<'a>) {
        match statement {
            JsStatement::BlockStatement(block) => {
                let inner = self.module.open_scope(scope, Owner::Block);
                self.statements(inner, &block.body);
            }
            JsStatement::ExpressionStatement(statement) => self.run(scope, &statement.expression),
            JsStatement::ReturnStatement(statement) => {
                if let Some(value) = &statement.argument {
                    let value = self.expression(scope, value);
                    self.push(scope, Statement::Return(value));
                }
            }
            JsStatement::IfStatement(statement) => {
                self.run(scope, &statement.test);
                self.block(scope, &statement.consequent);
                if let Some(alternate) = &statement.alternate {
                    self.block(scope, alternate);
                }
            }
            JsStatement::ForStatement(statement) => {
                if let Some(ForStatementInit::VariableDeclaration(variables)) = &statement.init {
                    let inner = self.module.open_scope(scope, Owner::Block);
                    self.loop_variables(inner, variables);
                    self.block(inner, &statement.body);
                } else {
                    self.block(scope, &statement.body);
                }
            }
            JsStatement::ForOfStatement(statement) => {
                self.run(scope, &statement.right);
                let inner = self.module.open_scope(scope, Owner::Block);
                if let oxc_ast::ast::ForStatementLeft::VariableDeclaration(variables) = &statement.left {
                    self.loop_variables(inner, variables);
                }
                self.block(inner, &statement.body);
            }
            JsStatement::ForInStatement(statement) => self.block(scope, &statement.body),
            JsStatement::WhileStatement(statement) => self.block(scope, &statement.body),
            JsStatement::DoWhileStatement(statement) => self.block(scope, &statement.body),
            JsStatement::LabeledStatement(statement) => self.block(scope, &statement.body),
            JsStatement::SwitchStatement(statement) => {
                let inner = self.module.open_scope(scope, Owner::Block);
                for case in &statement.cases {
                    self.statements(inner, &case.consequent);
                }
            }
            JsStatement::TryStatement(statement) => {
                let inner = self.module.open_scope(scope, Owner::Block);
                self.statements(inner, &statement.block.body);
                for block in statement.handler.iter().map(|handler| &handler.body).chain(&statement.finalizer) {
                    let inner = self.module.open_scope(scope, Owner::Block);
                    self.statements(inner, &block.body);
                }
            }
            JsStatement::ImportDeclaration(import) if import.import_kind == ImportOrExportKind::Value => {
                let from = import.source.value.to_string();
                let specifiers = import.specifiers.as_ref().map(|specifiers| specifiers.as_slice()).unwrap_or_default();
                if specifiers.is_empty() {
                    let import = Import { local: None, level: 0, from: from.clone(), what: Imported::Module };
                    self.push(scope, Statement::Import(import));
                }
                for specifier in specifiers {
                    let (local, what) = match specifier {
                        ImportDeclarationSpecifier::ImportSpecifier(named) => {
                            (&named.local, Imported::Name(export_name(&named.imported)))
                        }
                        ImportDeclarationSpecifier::ImportDefaultSpecifier(default) => {
                            (&default.local, Imported::Name("default".to_owned()))
                        }
                        ImportDeclarationSpecifier::ImportNamespaceSpecifier(namespace) => {
                            (&namespace.local, Imported::Module)
                        }
                    };
                    let import = Import { local: Some(local.name.to_string()), level: 0, from: from.clone(), what };
                    self.push(scope, Statement::Import(import));
                }
            }
            JsStatement::ExportAllDeclaration(all) => {
                let specifier = all.source.value.to_string();
                self.module.exports.push(match &all.exported {
                    Some(name) => Export::From { name: export_name(name), imported: Imported::Module, specifier },
                    None => Export::All { specifier },
                });
            }
            JsStatement::ExportFromDeclaration(from) => {
                for named in &from.specifiers {
                    self.module.exports.push(Export::From {
                        name: export_name(&named.exported),
                        imported: Imported::Name(export_name(&named.local)),
                        specifier: from.source.value.to_string(),
                    });
                }
            }
            JsStatement::ExportNamedDeclaration(export) => {
                for named in &export.specifiers {
                    let value = Expr::new(named.span.start, Kind::Name(export_name(&named.local)));
                    let name = export_name(&named.exported);
                    self.module.exports.push(Export::Local { name, value });
                }
            }
            JsStatement::ExportDeclaration(export) => {
                for name in self.declaration(scope, &export.declaration) {
                    let value = Expr::new(export.span.start, Kind::Name(name.clone()));
                    self.module.exports.push(Export::Local { name, value });
                }
            }
            JsStatement::ExportDefaultDeclaration(export) => {
                let at = export.span.start;
                let value = match &export.declaration {
                    ExportDefaultDeclarationKind::FunctionDeclaration(function) => {
                        let id = self.function_node(scope, function, None);
                        self.define_function(scope, function, id);
                        Some(Expr::new(at, Kind::Function(id)))
                    }
                    ExportDefaultDeclarationKind::ClassDeclaration(class) => {
                        let id = self.class(scope, class);
                        self.define_class(scope, class, id);
                        Some(Expr::new(at, Kind::Class(id)))
                    }
                    other => other.as_expression().map(|expression| self.expression(scope, expression)),
                };
                if let Some(value) = value {
                    self.module.exports.push(Export::Local { name: "default".to_owned(), value });
                }
            }
            JsStatement::TSExportAssignment(export) => {
                let value = self.expression(scope, &export.expression);
                self.module.exports.push(Export::Local { name: "default".to_owned(), value });
            }
            other => {
                if let Some(declaration) = other.as_declaration() {
                    self.declaration(scope, declaration);
                }
            }
        }
    }

    /// Lowers a declaration and returns the names that it declares.
    fn declaration(&mut self, scope: ScopeId, declaration: &Declaration<'a>) -> Vec<String> {
        match declaration {
            Declaration::VariableDeclaration(variables) => self.variables(scope, variables),
            Declaration::FunctionDeclaration(function) => {
                let id = self.function_node(scope, function, None);
                self.define_function(scope, function, id);
                function.id.iter().map(|id| id.name.to_string()).collect()
            }
            Declaration::ClassDeclaration(class) => {
                let id = self.class(scope, class);
                self.define_class(scope, class, id);
                class.id.iter().map(|id| id.name.to_string()).collect()
            }
            Declaration::TSEnumDeclaration(declaration) => {
                let mut entries = Vec::new();
                for member in &declaration.body.members {
                    let name = match &member.id {
                        TSEnumMemberName::Identifier(name) => name.name.to_string(),
                        TSEnumMemberName::String(name) | TSEnumMemberName::ComputedString(name) => {
                            name.value.to_string()
                        }
                        TSEnumMemberName::ComputedTemplateString(_) => continue,
                    };
                    let at = member.span.start;
                    let value = match &member.initializer {
                        Some(value) => self.expression(scope, value),
                        None => Expr::new(at, Kind::Other(Vec::new())),
                    };
                    entries.push(Entry::Value { key: Expr::new(at, Kind::Text(name)), value });
                }
                let name = declaration.id.name.to_string();
                let value = Some(Expr::new(declaration.span.start, Kind::Object(entries)));
                self.push(scope, Statement::Assign { name: name.clone(), value, annotation: None });
                vec![name]
            }
            _ => Vec::new(),
        }
    }

    fn define_function(&mut self, scope: ScopeId, function: &JsFunction<'a>, id: FunctionId) {
        if let (Some(name), Some(_)) = (&function.id, &function.body) {
            let name = name.name.to_string();
            self.push(scope, Statement::Define { name, defined: Definition::Function(id) });
        }
    }

    fn define_class(&mut self, scope: ScopeId, class: &JsClass<'a>, id: usize) {
        if let Some(name) = &class.id {
            let name = name.name.to_string();
            self.push(scope, Statement::Define { name, defined: Definition::Class(id) });
        }
    }

    fn variables(&mut self, scope: ScopeId, variables: &VariableDeclaration<'a>) -> Vec<String> {
        let mut names = Vec::new();
        for variable in &variables.declarations {
            let annotation = variable.type_annotation.as_ref().and_then(|one| named_type(&one.type_annotation));
            let value = variable.init.as_ref().map(|value| self.expression(scope, value));
            match &variable.id {
                BindingPattern::BindingIdentifier(name) => {
                    let name = name.name.to_string();
                    names.push(name.clone());
                    self.push(scope, Statement::Assign { name, value, annotation });
                }
                BindingPattern::ObjectPattern(pattern) => {
                    // `const {a} = b` is `const a = b.a`.
                    for property in &pattern.properties {
                        let (Some(key), Some(local)) =
                            (property.key.static_name(), property.value.get_binding_identifier())
                        else {
                            continue;
                        };
                        names.push(local.name.to_string());
                        let value = variable.init.as_ref().map(|value| {
                            let object = Box::new(self.expression(scope, value));
                            Expr::new(object.at, Kind::Member(object, key.to_string()))
                        });
                        let name = local.name.to_string();
                        self.push(scope, Statement::Assign { name, value, annotation: None });
                    }
                    if let Some(value) = value {
                        self.push(scope, Statement::Expression(value));
                    }
                }
                pattern => {
                    for name in pattern.get_binding_identifiers() {
                        self.push(scope, Statement::Rebind { name: name.name.to_string() });
                    }
                    if let Some(value) = value {
                        self.push(scope, Statement::Expression(value));
                    }
                }
            }
        }
        names
    }

    fn loop_variables(&mut self, scope: ScopeId, variables: &VariableDeclaration<'a>) {
        for variable in &variables.declarations {
            for name in variable.id.get_binding_identifiers() {
                self.push(scope, Statement::Rebind { name: name.name.to_string() });
            }
        }
    }

    /// Lowers an expression that stands alone: an assignment changes something.
    fn run(&mut self, scope: ScopeId, expression: &Expression<'a>) {
        if let Expression::AssignmentExpression(assignment) = expression {
            let value = self.expression(scope, &assignment.right);
            match &assignment.left {
                AssignmentTarget::StaticMemberExpression(member) if assignment.operator.is_assign() => {
                    let object = self.expression(scope, &member.object);
                    let name = member.property.name.to_string();
                    self.common_js(&object, &name, &assignment.right, scope);
                    self.push(scope, Statement::SetMember { object, name, value });
                }
                AssignmentTarget::AssignmentTargetIdentifier(name) if assignment.operator.is_assign() => {
                    let name = name.name.to_string();
                    self.push(scope, Statement::Assign { name, value: Some(value), annotation: None });
                }
                AssignmentTarget::AssignmentTargetIdentifier(name) => {
                    self.push(scope, Statement::Rebind { name: name.name.to_string() });
                    self.push(scope, Statement::Expression(value));
                }
                _ => self.push(scope, Statement::Expression(value)),
            }
            return;
        }
        let value = self.expression(scope, expression);
        self.push(scope, Statement::Expression(value));
    }

    /// Reads `module.exports = …`, `module.exports.name = …` and `exports.name = …`.
    fn common_js(&mut self, object: &Expr, name: &str, value: &Expression<'a>, scope: ScopeId) {
        let exported = match (object.dotted().as_deref(), name) {
            (Some("module"), "exports") => "default",
            (Some("module.exports" | "exports"), name) => name,
            _ => return,
        };
        let lowered = self.expression(scope, value);
        if let (Kind::Object(entries), "default") = (&lowered.kind, exported) {
            // `module.exports = {a, b}` exports names too.
            for entry in entries {
                if let Entry::Value { key: Expr { kind: Kind::Text(key), .. }, value } = entry {
                    let value = if let Kind::Name(name) = &value.kind {
                        Expr::new(value.at, Kind::Name(name.clone()))
                    } else {
                        let whole = Expr::new(lowered.at, Kind::Name("module.exports".to_owned()));
                        Expr::new(value.at, Kind::Member(Box::new(whole), key.clone()))
                    };
                    self.module.exports.push(Export::Local { name: key.clone(), value });
                }
            }
        }
        self.module.exports.push(Export::Local { name: exported.to_owned(), value: lowered });
    }

    fn function_node(&mut self, scope: ScopeId, function: &JsFunction<'a>, class: Option<usize>) -> FunctionId {
        let name = function.id.as_ref().map(|name| name.name.to_string()).unwrap_or_default();
        let id = self.function(scope, name, function.span, &function.params, class);
        if let Some(body) = &function.body {
            let inner = self.module.functions[id].scope;
            self.statements(inner, &body.statements);
        }
        id
    }

    fn function(
        &mut self,
        scope: ScopeId,
        name: String,
        span: Span,
        parameters: &FormalParameters<'a>,
        class: Option<usize>,
    ) -> FunctionId {
        let id = self.module.functions.len();
        let body = self.module.open_scope(scope, Owner::Function(id));
        let parameters = self.parameters(body, parameters);
        self.module.functions.push(Function {
            name,
            at: span.start,
            scope: body,
            parameters: Vec::new(),
            docstring: None,
            decorators: Vec::new(),
            class,
        });
        let id = self.module.functions.len() - 1;
        self.module.scopes[body].owner = Owner::Function(id);
        self.module.functions[id].parameters = parameters;
        id
    }

    fn parameters(&mut self, scope: ScopeId, parameters: &FormalParameters<'a>) -> Vec<Parameter> {
        let mut lowered = Vec::new();
        for parameter in &parameters.items {
            let (name, kind) = match &parameter.pattern {
                BindingPattern::BindingIdentifier(name) => (name.name.to_string(), ParameterKind::Plain),
                pattern => {
                    for name in pattern.get_binding_identifiers() {
                        self.push(scope, Statement::Rebind { name: name.name.to_string() });
                    }
                    (String::new(), ParameterKind::Destructured)
                }
            };
            let annotation = parameter.type_annotation.as_ref().and_then(|one| named_type(&one.type_annotation));
            let default = parameter.initializer.as_ref().map(|value| self.expression(scope, value));
            lowered.push(Parameter { name, kind, annotation, default });
        }
        if parameters.rest.is_some() {
            let kind = ParameterKind::Rest;
            lowered.push(Parameter { name: String::new(), kind, annotation: None, default: None });
        }
        lowered
    }

    fn class(&mut self, scope: ScopeId, class: &JsClass<'a>) -> usize {
        let base = class.heritage.as_ref().map(|heritage| self.expression(scope, &heritage.expression));
        let decorators = class.decorators.iter().map(|one| self.expression(scope, &one.expression)).collect();
        let id = self.module.classes.len();
        let body = self.module.open_scope(scope, Owner::Class(id));
        self.module.classes.push(Class {
            name: class.id.as_ref().map(|name| name.name.to_string()).unwrap_or_default(),
            at: class.span.start,
            bases: base.into_iter().collect(),
            decorators,
            scope: body,
            docstring: None,
        });
        for element in &class.body.body {
            match element {
                ClassElement::PropertyDefinition(property) => {
                    let Some(name) = property.key.static_name() else { continue };
                    let annotation = property.type_annotation.as_ref().and_then(|one| named_type(&one.type_annotation));
                    let value = property.value.as_ref().map(|value| self.expression(body, value));
                    self.push(body, Statement::Assign { name: name.to_string(), value, annotation });
                }
                ClassElement::MethodDefinition(method) => {
                    let Some(name) = method.key.static_name() else { continue };
                    let function = self.function_node(body, &method.value, Some(id));
                    let decorators = method.decorators.iter().map(|one| self.expression(body, &one.expression));
                    let decorators: Vec<Expr> = decorators.collect();
                    let lowered = &mut self.module.functions[function];
                    lowered.name = name.to_string();
                    lowered.at = method.span.start;
                    lowered.decorators = decorators;
                    if method.kind.is_get() {
                        // As Python writes it.
                        lowered.decorators.push(Expr::new(method.span.start, Kind::Name("property".to_owned())));
                    }
                    let defined = Definition::Function(function);
                    self.push(body, Statement::Define { name: name.to_string(), defined });
                }
                ClassElement::StaticBlock(block) => self.statements(body, &block.body),
                _ => {}
            }
        }
        id
    }

    fn boxed(&mut self, scope: ScopeId, expression: &Expression<'a>) -> Box<Expr> {
        Box::new(self.expression(scope, expression))
    }

    fn expression(&mut self, scope: ScopeId, expression: &Expression<'a>) -> Expr {
        let at = expression.span().start;
        if self.depth >= MAX_DEPTH {
            return Expr::new(at, Kind::Other(Vec::new()));
        }
        self.depth += 1;
        let lowered = self.lower(scope, expression);
        self.depth -= 1;
        lowered
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each kind of syntax")]
    fn lower(&mut self, scope: ScopeId, expression: &Expression<'a>) -> Expr {
        let span = expression.span();
        let kind = match expression {
            Expression::BooleanLiteral(literal) => Kind::Bool(literal.value),
            Expression::NullLiteral(_) => Kind::Null,
            Expression::NumericLiteral(literal) => number(literal.value),
            Expression::StringLiteral(literal) => Kind::Text(literal.value.to_string()),
            Expression::TemplateLiteral(template) => self.template(scope, template),
            Expression::TaggedTemplateExpression(tagged) => self.tagged(scope, &tagged.tag, &tagged.quasi),
            Expression::Identifier(name) if name.name == "undefined" => Kind::Null,
            Expression::Identifier(name) => Kind::Name(name.name.to_string()),
            Expression::ThisExpression(_) => Kind::Name("this".to_owned()),
            Expression::Super(_) => Kind::Name("super".to_owned()),
            Expression::ArrayExpression(array) => {
                let mut items = Vec::new();
                for element in &array.elements {
                    match element {
                        ArrayExpressionElement::SpreadElement(spread) => {
                            let inner = self.boxed(scope, &spread.argument);
                            items.push(Expr::new(spread.span.start, Kind::Spread(inner)));
                        }
                        other => items.extend(other.as_expression().map(|item| self.expression(scope, item))),
                    }
                }
                Kind::List(items)
            }
            Expression::ObjectExpression(object) => {
                let mut entries = Vec::new();
                for property in &object.properties {
                    match property {
                        ObjectPropertyKind::SpreadProperty(spread) => {
                            entries.push(Entry::Spread(self.expression(scope, &spread.argument)));
                        }
                        ObjectPropertyKind::ObjectProperty(property) => {
                            let value = match property.kind {
                                PropertyKind::Init => self.expression(scope, &property.value),
                                PropertyKind::Get | PropertyKind::Set => {
                                    Expr::new(property.span.start, Kind::Other(Vec::new()))
                                }
                            };
                            let key = self.key(scope, &property.key);
                            entries.push(Entry::Value { key, value });
                        }
                    }
                }
                Kind::Object(entries)
            }
            Expression::ArrowFunctionExpression(arrow) => {
                let id = self.function(scope, String::new(), arrow.span, &arrow.params, None);
                let body = self.module.functions[id].scope;
                match &arrow.body {
                    ArrowFunctionBody::FunctionBody(statements) => self.statements(body, &statements.statements),
                    other => {
                        if let Some(value) = other.as_expression() {
                            let value = self.expression(body, value);
                            self.push(body, Statement::Return(value));
                        }
                    }
                }
                Kind::Function(id)
            }
            Expression::FunctionExpression(function) => Kind::Function(self.function_node(scope, function, None)),
            Expression::ClassExpression(class) => Kind::Class(self.class(scope, class)),
            Expression::CallExpression(call) => return self.call(scope, call),
            Expression::NewExpression(new) => {
                let callee = self.expression(scope, &new.callee);
                let arguments = self.arguments(scope, &new.arguments);
                Kind::Call(Box::new(Call { callee, arguments, named: Vec::new() }))
            }
            Expression::BinaryExpression(binary) => {
                let (left, right) = (self.boxed(scope, &binary.left), self.boxed(scope, &binary.right));
                match binary.operator {
                    BinaryOperator::Addition => Kind::Add(left, right),
                    _ => Kind::Other(vec![*left, *right]),
                }
            }
            Expression::LogicalExpression(logical) => {
                let (left, right) = (self.boxed(scope, &logical.left), self.boxed(scope, &logical.right));
                match logical.operator {
                    LogicalOperator::Or | LogicalOperator::Coalesce => Kind::Or(left, right),
                    LogicalOperator::And => Kind::Other(vec![*left, *right]),
                }
            }
            Expression::ConditionalExpression(condition) => {
                Kind::Either(self.boxed(scope, &condition.consequent), self.boxed(scope, &condition.alternate))
            }
            Expression::UnaryExpression(unary) => match (unary.operator, &unary.argument) {
                (UnaryOperator::UnaryNegation, Expression::NumericLiteral(literal)) => number(-literal.value),
                (_, argument) => Kind::Other(vec![self.expression(scope, argument)]),
            },
            Expression::ChainExpression(chain) => match &chain.expression {
                ChainElement::CallExpression(call) => return self.call(scope, call),
                ChainElement::StaticMemberExpression(member) => {
                    Kind::Member(self.boxed(scope, &member.object), member.property.name.to_string())
                }
                ChainElement::ComputedMemberExpression(member) => {
                    Kind::Index(self.boxed(scope, &member.object), self.boxed(scope, &member.expression))
                }
                ChainElement::TSNonNullExpression(inner) => return self.expression(scope, &inner.expression),
                ChainElement::PrivateFieldExpression(_) => Kind::Other(Vec::new()),
            },
            Expression::StaticMemberExpression(member) => {
                Kind::Member(self.boxed(scope, &member.object), member.property.name.to_string())
            }
            Expression::ComputedMemberExpression(member) => {
                Kind::Index(self.boxed(scope, &member.object), self.boxed(scope, &member.expression))
            }
            Expression::ParenthesizedExpression(inner) => return self.expression(scope, &inner.expression),
            Expression::TSAsExpression(inner) => return self.expression(scope, &inner.expression),
            Expression::TSSatisfiesExpression(inner) => return self.expression(scope, &inner.expression),
            Expression::TSTypeAssertion(inner) => return self.expression(scope, &inner.expression),
            Expression::TSNonNullExpression(inner) => return self.expression(scope, &inner.expression),
            Expression::TSInstantiationExpression(inner) => return self.expression(scope, &inner.expression),
            Expression::AwaitExpression(inner) => return self.expression(scope, &inner.argument),
            Expression::YieldExpression(inner) => {
                Kind::Other(inner.argument.iter().map(|value| self.expression(scope, value)).collect())
            }
            Expression::SequenceExpression(sequence) => {
                Kind::Other(sequence.expressions.iter().map(|value| self.expression(scope, value)).collect())
            }
            Expression::AssignmentExpression(assignment) => {
                self.run(scope, expression);
                return self.expression(scope, &assignment.right);
            }
            _ => Kind::Other(Vec::new()),
        };
        Expr::new(span.start, kind)
    }

    fn call(&mut self, scope: ScopeId, call: &CallExpression<'a>) -> Expr {
        let callee = self.expression(scope, &call.callee);
        let arguments = self.arguments(scope, &call.arguments);
        Expr::new(call.span.start, Kind::Call(Box::new(Call { callee, arguments, named: Vec::new() })))
    }

    fn arguments(&mut self, scope: ScopeId, arguments: &[Argument<'a>]) -> Vec<Expr> {
        let mut lowered = Vec::new();
        for argument in arguments {
            match argument {
                Argument::SpreadElement(spread) => {
                    let inner = self.boxed(scope, &spread.argument);
                    lowered.push(Expr::new(spread.span.start, Kind::Spread(inner)));
                }
                other => lowered.extend(other.as_expression().map(|value| self.expression(scope, value))),
            }
        }
        lowered
    }

    fn key(&mut self, scope: ScopeId, key: &PropertyKey<'a>) -> Expr {
        let at = key.span().start;
        match key {
            PropertyKey::StaticIdentifier(name) => Expr::new(at, Kind::Text(name.name.to_string())),
            other => match other.as_expression() {
                Some(expression) => self.expression(scope, expression),
                None => Expr::new(at, Kind::Other(Vec::new())),
            },
        }
    }

    fn template(&mut self, scope: ScopeId, template: &TemplateLiteral<'a>) -> Kind {
        let mut parts = Vec::new();
        for (number, quasi) in template.quasis.iter().enumerate() {
            let text = quasi.value.cooked.as_ref().map_or_else(String::new, ToString::to_string);
            parts.push(Expr::new(quasi.span.start, Kind::Text(text)));
            if let Some(hole) = template.expressions.get(number) {
                parts.push(self.expression(scope, hole));
            }
        }
        Kind::Template(parts)
    }

    /// Reads tags that only change white space as calls: `dedent` and its relatives.
    fn tagged(&mut self, scope: ScopeId, tag: &Expression<'a>, template: &TemplateLiteral<'a>) -> Kind {
        let callee = self.expression(scope, tag);
        if callee.dotted().as_deref() == Some("String.raw") {
            let raw = |text: &str| text.replace("\r\n", "\n").replace('\r', "\n");
            let mut parts = Vec::new();
            for (number, quasi) in template.quasis.iter().enumerate() {
                parts.push(Expr::new(quasi.span.start, Kind::Text(raw(quasi.value.raw.as_str()))));
                if let Some(hole) = template.expressions.get(number) {
                    parts.push(self.expression(scope, hole));
                }
            }
            return Kind::Template(parts);
        }
        let text = Expr::new(template.span.start, self.template(scope, template));
        Kind::Call(Box::new(Call { callee, arguments: vec![text], named: Vec::new() }))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "it is a whole number within the exact range")]
fn number(value: f64) -> Kind {
    // JSON writes 3, not 3.0.
    let is_whole = value.fract() == 0.0 && value.abs() < 9_007_199_254_740_992.0;
    let number = if is_whole { Some((value as i64).into()) } else { serde_json::Number::from_f64(value) };
    number.map_or(Kind::Other(Vec::new()), Kind::Number)
}

/// Returns the name of a type, or a list of it for an array.
fn named_type(annotation: &TSType<'_>) -> Option<Expr> {
    let at = annotation.span().start;
    let kind = match annotation {
        TSType::TSTypeReference(reference) => {
            let arguments = reference.type_arguments.as_ref().map(|list| list.params.as_slice()).unwrap_or_default();
            let name = match &reference.type_name {
                TSTypeName::IdentifierReference(name) => name.name.to_string(),
                TSTypeName::QualifiedName(name) => name.right.name.to_string(),
                TSTypeName::ThisExpression(_) => return None,
            };
            match (name.as_str(), arguments) {
                ("Array" | "ReadonlyArray", [inner]) => Kind::List(vec![named_type(inner)?]),
                _ => Kind::Name(name),
            }
        }
        TSType::TSArrayType(array) => Kind::List(vec![named_type(&array.element_type)?]),
        _ => return None,
    };
    Some(Expr::new(at, kind))
}

fn export_name(name: &ModuleExportName<'_>) -> String {
    match name {
        ModuleExportName::IdentifierName(name) => name.name.to_string(),
        ModuleExportName::IdentifierReference(name) => name.name.to_string(),
        ModuleExportName::StringLiteral(name) => name.value.to_string(),
    }
}
