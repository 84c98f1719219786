//! Lowers TypeScript and JavaScript sources to a [`Module`].

mod declaration;
mod expression;

use std::path::Path;

use oxc_allocator::Allocator;
use oxc_ast::ast::{
    AssignmentTarget, ExportDefaultDeclarationKind, Expression, ForStatementInit, ImportDeclaration,
    ImportDeclarationSpecifier, ImportOrExportKind, ModuleExportName, Statement as JsStatement,
};
use oxc_parser::{ParseOptions, Parser};
use oxc_span::SourceType;

use super::nesting::{MAX_DEPTH, bracket_depth};
use super::parse_error::ParseError;
use super::syntax::{Entry, Export, Expr, Import, ImportedItem, Kind, Language, Module, Owner, ScopeId, Statement};

/// More opening tags would overflow the parser's stack.
const MAX_TAGS: usize = 20_000;

pub(super) fn parse(path: &Path, display_path: &str, text: String) -> Result<Module, ParseError> {
    if bracket_depth(&text) > MAX_DEPTH {
        return Err(ParseError::new("the code is nested too deeply"));
    }
    let source_type = SourceType::from_path(path).map_err(|error| ParseError::new(error.to_string()))?;
    // Many `.js` files contain JSX.
    let has_markup = text.contains("</") || text.contains("/>");
    let source_type = if source_type.is_javascript() { source_type.with_jsx(has_markup) } else { source_type };
    if source_type.is_jsx() && text.matches('<').count() > MAX_TAGS {
        return Err(ParseError::new("it contains too much markup"));
    }
    let mut module = Module::new(path.to_owned(), display_path.to_owned(), Language::JavaScript, text);
    let text = std::mem::take(&mut module.text);
    let allocator = Allocator::default();
    let options = ParseOptions { allow_return_outside_function: true, ..ParseOptions::default() };
    let parsed = Parser::new(&allocator, &text, source_type).with_options(options).parse();
    let error = parsed.diagnostics.errors().next().map(|error| {
        let offset = error.labels.first().map(oxc_span::LabeledSpan::offset);
        (offset, error.message.trim_end_matches('.').to_owned())
    });
    if error.is_none() && !parsed.panicked {
        let mut lowering = Lowerer { module: &mut module, depth: 0 };
        lowering.statements(0, &parsed.program.body);
    }
    drop(parsed);
    module.text = text;
    match error {
        Some((at, message)) => {
            let position = at.and_then(|at| module.location(super::syntax::offset(at as usize)).position);
            Err(ParseError { position, message: format!("syntax error: {message}") })
        }
        None => Ok(module),
    }
}

struct Lowerer<'m> {
    module: &'m mut Module,
    depth: usize,
}

impl<'a> Lowerer<'_> {
    pub(super) fn push(&mut self, scope: ScopeId, statement: Statement) {
        self.module.scopes[scope].add(statement);
    }

    pub(super) fn statements(&mut self, scope: ScopeId, statements: &[JsStatement<'a>]) {
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
            other => match other.as_declaration() {
                Some(declaration) => {
                    self.declaration(scope, declaration);
                }
                None => self.module_statement(scope, other),
            },
        }
    }

    /// Lowers imports and exports.
    fn module_statement(&mut self, scope: ScopeId, statement: &JsStatement<'a>) {
        match statement {
            JsStatement::ImportDeclaration(import) if import.import_kind == ImportOrExportKind::Value => {
                self.import(scope, import);
            }
            JsStatement::ExportAllDeclaration(all) => {
                let specifier = all.source.value.to_string();
                self.module.exports.push(match &all.exported {
                    Some(name) => Export::From { name: export_name(name), imported: ImportedItem::Module, specifier },
                    None => Export::All { specifier },
                });
            }
            JsStatement::ExportFromDeclaration(from) => {
                for named in &from.specifiers {
                    self.module.exports.push(Export::From {
                        name: export_name(&named.exported),
                        imported: ImportedItem::Name(export_name(&named.local)),
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
            _ => {}
        }
    }

    fn import(&mut self, scope: ScopeId, import: &ImportDeclaration<'a>) {
        let from = import.source.value.to_string();
        let specifiers = import.specifiers.as_ref().map(|specifiers| specifiers.as_slice()).unwrap_or_default();
        if specifiers.is_empty() {
            let import = Import { local: None, level: 0, from: from.clone(), item: ImportedItem::Module };
            self.push(scope, Statement::Import(import));
        }
        for specifier in specifiers {
            let (local, item) = match specifier {
                ImportDeclarationSpecifier::ImportSpecifier(named) => {
                    (&named.local, ImportedItem::Name(export_name(&named.imported)))
                }
                ImportDeclarationSpecifier::ImportDefaultSpecifier(default) => {
                    (&default.local, ImportedItem::Name("default".to_owned()))
                }
                ImportDeclarationSpecifier::ImportNamespaceSpecifier(namespace) => {
                    (&namespace.local, ImportedItem::Module)
                }
            };
            let import = Import { local: Some(local.name.to_string()), level: 0, from: from.clone(), item };
            self.push(scope, Statement::Import(import));
        }
    }

    /// Lowers an expression statement, which may be an assignment.
    pub(super) fn run(&mut self, scope: ScopeId, expression: &Expression<'a>) {
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

    /// Lowers `module.exports = …`, `module.exports.name = …` and `exports.name = …`.
    fn common_js(&mut self, object: &Expr, name: &str, value: &Expression<'a>, scope: ScopeId) {
        let exported = match (object.dotted().as_deref(), name) {
            (Some("module"), "exports") => "default",
            (Some("module.exports" | "exports"), name) => name,
            _ => return,
        };
        let lowered = self.expression(scope, value);
        if let (Kind::Object(entries), "default") = (&lowered.kind, exported) {
            // `module.exports = {a, b}` also exports the names.
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
}

fn export_name(name: &ModuleExportName<'_>) -> String {
    match name {
        ModuleExportName::IdentifierName(name) => name.name.to_string(),
        ModuleExportName::IdentifierReference(name) => name.name.to_string(),
        ModuleExportName::StringLiteral(name) => name.value.to_string(),
    }
}
