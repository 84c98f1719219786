//! What a file exports, declares, and registers.

use oxc_ast::AstKind;
use oxc_ast::ast::{
    Argument, ArrowFunctionBody, AssignmentTarget, BindingIdentifier, BindingPattern, CallExpression, Declaration,
    ExportDefaultDeclarationKind, Expression, FunctionBody, ImportOrExportKind, ModuleExportName, Program, PropertyKey,
    Statement, StringLiteral, TSEnumDeclaration, TSEnumMemberName, TSModuleReference, TSNamespaceDeclaration,
    TSNamespaceDeclarationBody, VariableDeclarator,
};
use oxc_semantic::{NodeId, Semantic, SymbolId};
use oxc_span::{GetSpan as _, Span};

use super::changes::changes;
use super::lower::{Lowering, class_kind, opaque, string};
use super::syntax::{
    Binding, Declared, EnumMember, Export, Expr, ExprKind, Imported, LooseWrite, Property, Registration, Specifier,
};
use super::writes::loose_writes;

/// Methods that give a server a tool.
pub(super) const REGISTERING: [&str; 4] = ["registerTool", "registerToolTask", "tool", "addTool"];

/// What a program says of itself.
pub(super) struct Parts {
    pub bindings: Vec<Binding>,
    pub exports: Vec<Export>,
    pub commonjs: Option<Expr>,
    pub registrations: Vec<Registration>,
    pub followed: Vec<Specifier>,
    pub listings: Vec<Expr>,
    pub writes: Vec<LooseWrite>,
    pub imports: Vec<Specifier>,
}

pub(super) fn declare<'a>(semantic: &Semantic<'a>, program: &Program<'a>) -> Parts {
    let mut reader = Reader {
        lowering: Lowering::new(semantic),
        exports: Vec::new(),
        whole: None,
        assigned: Vec::new(),
        exports_are_own: true,
        seen: Vec::new(),
        listings: Vec::new(),
    };
    for statement in &program.body {
        reader.statement(statement);
    }
    reader.hidden_assignments();
    let (registrations, followed) = reader.calls(program);
    let listings = std::mem::take(&mut reader.listings);
    let commonjs = reader.commonjs();
    let exports = std::mem::take(&mut reader.exports);
    // Lowering a declaration may name more variables, which then have to be lowered too.
    let mut bindings = Vec::new();
    while let Some(&symbol) = reader.lowering.symbols.get(bindings.len()) {
        let binding = reader.binding(symbol);
        bindings.push(binding);
    }
    let imports = program.body.iter().filter_map(import_of).collect();
    Parts { bindings, exports, commonjs, registrations, followed, listings, writes: loose_writes(semantic), imports }
}

struct Reader<'a, 's> {
    lowering: Lowering<'a, 's>,
    exports: Vec<Export>,
    /// `module.exports = …`
    whole: Option<Expr>,
    /// `exports.name = …`
    assigned: Vec<(String, Expr)>,
    /// `exports` is still what the module exports.
    exports_are_own: bool,
    /// Assignments that were read.
    seen: Vec<u32>,
    listings: Vec<Expr>,
}

impl<'a> Reader<'a, '_> {
    fn statement(&mut self, statement: &Statement<'a>) {
        match statement {
            Statement::ExportAllDeclaration(all) if all.export_kind == ImportOrExportKind::Value => {
                let specifier = specifier(&all.source);
                self.exports.push(match &all.exported {
                    Some(name) => Export::From { name: export_name(name), imported: Imported::Namespace, specifier },
                    None => Export::All { specifier },
                });
            }
            Statement::ExportFromDeclaration(from) => {
                for named in &from.specifiers {
                    if from.export_kind == ImportOrExportKind::Type || named.export_kind == ImportOrExportKind::Type {
                        self.exports.push(Export::Type { name: export_name(&named.exported) });
                        continue;
                    }
                    self.exports.push(Export::From {
                        name: export_name(&named.exported),
                        imported: Imported::Name(export_name(&named.local)),
                        specifier: specifier(&from.source),
                    });
                }
            }
            Statement::ExportNamedDeclaration(declaration) => {
                for named in &declaration.specifiers {
                    let is_type = declaration.export_kind == ImportOrExportKind::Type
                        || named.export_kind == ImportOrExportKind::Type;
                    let name = export_name(&named.exported);
                    match &named.local {
                        ModuleExportName::IdentifierReference(local) if !is_type => {
                            let Some(symbol) = self.lowering.symbol(local) else { continue };
                            self.export(name, symbol, local.span);
                        }
                        _ => self.exports.push(Export::Type { name }),
                    }
                }
            }
            Statement::ExportDeclaration(export) => self.declaration(&export.declaration),
            Statement::ExportDefaultDeclaration(export) => {
                let value = match &export.declaration {
                    ExportDefaultDeclarationKind::FunctionDeclaration(function) => {
                        let function = self.lowering.function(function);
                        Some(ExprKind::Function(function.into()).at(export.span.start))
                    }
                    ExportDefaultDeclarationKind::ClassDeclaration(class) => {
                        Some(class_kind(class).at(export.span.start))
                    }
                    other => other.as_expression().map(|expression| self.lowering.expression(expression)),
                };
                self.exports.extend(value.map(|value| Export::Local { name: "default".to_owned(), value }));
            }
            Statement::TSExportAssignment(export) => self.whole = Some(self.lowering.expression(&export.expression)),
            Statement::ExpressionStatement(statement) => self.assignment(&statement.expression),
            _ => {}
        }
    }

    fn export(&mut self, name: String, symbol: SymbolId, span: Span) {
        let value = ExprKind::Name(self.lowering.binding(symbol)).at(span.start);
        self.exports.push(Export::Local { name, value });
    }

    fn declaration(&mut self, declaration: &Declaration<'a>) {
        let mut names: Vec<&BindingIdentifier<'a>> = Vec::new();
        match declaration {
            Declaration::VariableDeclaration(variables) => {
                names.extend(variables.declarations.iter().flat_map(|variable| variable.id.get_binding_identifiers()));
            }
            Declaration::FunctionDeclaration(function) => names.extend(&function.id),
            Declaration::ClassDeclaration(class) => names.extend(&class.id),
            Declaration::TSEnumDeclaration(declaration) => names.push(&declaration.id),
            Declaration::TSNamespaceDeclaration(namespace) if holds_values(namespace) => names.push(&namespace.id),
            other => {
                let name = other.id().map(|name| name.name.as_str().to_owned());
                self.exports.extend(name.map(|name| Export::Type { name }));
            }
        }
        for name in names {
            if let Some(symbol) = name.symbol_id.get() {
                self.export(name.name.as_str().to_owned(), symbol, name.span);
            }
        }
    }

    /// Reads `module.exports = …`, `module.exports.name = …` and `exports.name = …`.
    fn assignment(&mut self, expression: &Expression<'a>) {
        let Expression::AssignmentExpression(assignment) = expression else { return };
        self.seen.push(assignment.span.start);
        let mut right = &assignment.right;
        let mut targets = vec![&assignment.left];
        // `exports = module.exports = …`, in either order.
        while let Expression::AssignmentExpression(inner) = right {
            self.seen.push(inner.span.start);
            targets.push(&inner.left);
            right = &inner.right;
        }
        if targets.iter().any(|target| self.exported(target) == Some(None)) {
            self.whole = Some(self.lowering.expression(right));
            self.assigned.clear();
            self.exports_are_own = targets.iter().any(|target| match target {
                AssignmentTarget::AssignmentTargetIdentifier(name) => name.name.as_str() == "exports",
                _ => false,
            });
            return;
        }
        for target in targets {
            if let Some(Some(name)) = self.exported(target) {
                let value = self.lowering.expression(right);
                self.assigned.push((name, value));
            }
        }
    }

    /// Returns what of the module's exports is assigned to: all of them, or one by its name.
    #[expect(clippy::option_option, reason = "nothing, everything, or a name")]
    fn exported(&self, target: &AssignmentTarget<'a>) -> Option<Option<String>> {
        let AssignmentTarget::StaticMemberExpression(target) = target else { return None };
        let name = target.property.name.as_str();
        if name == "exports" && self.is_global(&target.object, "module") {
            return Some(None);
        }
        let of_module = match &target.object {
            Expression::StaticMemberExpression(inner) => {
                inner.property.name.as_str() == "exports" && self.is_global(&inner.object, "module")
            }
            object => self.exports_are_own && self.is_global(object, "exports"),
        };
        of_module.then(|| Some(name.to_owned()))
    }

    /// Notes assignments to exports that happen only sometimes.
    fn hidden_assignments(&mut self) {
        for node in self.lowering.semantic.nodes().iter() {
            let AstKind::AssignmentExpression(assignment) = node.kind() else { continue };
            if self.seen.contains(&assignment.span.start) {
                continue;
            }
            let Some(exported) = self.exported(&assignment.left) else { continue };
            let unknown = opaque("it is exported only under some condition", false).at(assignment.span.start);
            match exported {
                None => self.whole = Some(unknown),
                Some(name) => self.assigned.push((name, unknown)),
            }
        }
    }

    fn is_global(&self, expression: &Expression<'a>, name: &str) -> bool {
        let Expression::Identifier(identifier) = expression else { return false };
        identifier.name.as_str() == name && self.lowering.symbol(identifier).is_none()
    }

    fn commonjs(&mut self) -> Option<Expr> {
        let whole = self.whole.take();
        if self.assigned.is_empty() {
            return whole;
        }
        let offset = whole.as_ref().map_or(0, |whole| whole.offset);
        let named = std::mem::take(&mut self.assigned)
            .into_iter()
            .map(|(name, value)| Property::Value { key: ExprKind::Text(name.as_str().into()).at(value.offset), value });
        Some(ExprKind::Object(whole.map(Property::Spread).into_iter().chain(named).collect()).at(offset))
    }

    /// Finds the calls that may register tools, and the modules whose functions are called.
    fn calls(&mut self, program: &Program<'a>) -> (Vec<Registration>, Vec<Specifier>) {
        let mut registrations = Vec::new();
        let mut followed: Vec<Specifier> = Vec::new();
        for statement in &program.body {
            if let Statement::ImportDeclaration(import) = statement
                && import.import_kind == ImportOrExportKind::Value
                && import.specifiers.as_ref().is_none_or(|specifiers| {
                    specifiers.is_empty() || specifiers.iter().any(|specifier| specifier.name().starts_with("register"))
                })
            {
                followed.push(specifier(&import.source));
            }
        }
        for node in self.lowering.semantic.nodes().iter() {
            let AstKind::CallExpression(call) = node.kind() else { continue };
            match &call.callee {
                Expression::StaticMemberExpression(member) if REGISTERING.contains(&member.property.name.as_str()) => {
                    let changed = self.changed_later(node.id());
                    let call = self.lowering.call(&call.callee, &call.arguments, false, call.span);
                    registrations.push(Registration { call, changed });
                }
                Expression::StaticMemberExpression(member) if member.property.name == "setRequestHandler" => {
                    self.listing(call);
                }
                Expression::StaticMemberExpression(member) if may_register(call) => {
                    if let Expression::Identifier(name) = &member.object {
                        let symbol = self.lowering.symbol(name);
                        followed.extend(symbol.and_then(|symbol| self.import_source(symbol)));
                    }
                }
                Expression::Identifier(name) if may_register(call) => {
                    let symbol = self.lowering.symbol(name);
                    followed.extend(symbol.and_then(|symbol| self.import_source(symbol)));
                }
                _ => {}
            }
        }
        registrations.sort_by_key(|registration| registration.call.offset);
        followed.sort_by_key(|specifier| specifier.offset);
        followed.dedup();
        (registrations, followed)
    }

    /// Returns where a tool is changed through what its registration returned.
    fn changed_later(&self, call: NodeId) -> Option<u32> {
        let semantic = self.lowering.semantic;
        let AstKind::VariableDeclarator(variable) = semantic.nodes().parent_kind(call) else { return None };
        let symbol = variable.id.get_binding_identifier()?.symbol_id.get()?;
        semantic.scoping().get_resolved_references(symbol).find_map(|reference| {
            let AstKind::StaticMemberExpression(member) = semantic.nodes().parent_kind(reference.node_id()) else {
                return None;
            };
            let changes = ["update", "remove", "disable"].contains(&member.property.name.as_str());
            changes.then_some(member.span.start)
        })
    }

    /// Reads what the handler of `tools/list` answers.
    fn listing(&mut self, call: &CallExpression<'a>) {
        let [request, handler, ..] = call.arguments.as_slice() else { return };
        let lists = match request {
            Argument::Identifier(name) => name.name.as_str() == "ListToolsRequestSchema",
            Argument::StaticMemberExpression(member) => member.property.name.as_str() == "ListToolsRequestSchema",
            Argument::StringLiteral(method) => method.value.as_str() == "tools/list",
            _ => false,
        };
        if !lists {
            return;
        }
        let answer = match handler {
            Argument::ArrowFunctionExpression(arrow) => match &arrow.body {
                ArrowFunctionBody::FunctionBody(body) => only_return(body),
                body => body.as_expression(),
            },
            Argument::FunctionExpression(function) => function.body.as_deref().and_then(only_return),
            _ => None,
        };
        let answer = match answer {
            Some(answer) => self.lowering.expression(answer),
            None => opaque("the tools are listed by a function, which karat does not run", false).at(call.span.start),
        };
        self.listings.push(answer);
    }

    fn import_source(&self, symbol: SymbolId) -> Option<Specifier> {
        let declaration = self.lowering.semantic.scoping().symbol_declaration(symbol);
        match self.lowering.semantic.nodes().parent_kind(declaration) {
            AstKind::ImportDeclaration(import) => Some(specifier(&import.source)),
            _ => None,
        }
    }

    fn binding(&mut self, symbol: SymbolId) -> Binding {
        let scoping = self.lowering.semantic.scoping();
        let name = scoping.symbol_name(symbol).to_owned();
        let declarations: Vec<NodeId> = scoping.symbol_declarations(symbol).collect();
        let mut values = Vec::new();
        for declaration in declarations {
            values.extend(self.declared(symbol, declaration));
        }
        let offset = self.lowering.semantic.scoping().symbol_span(symbol).start;
        let declared = match values.len() {
            0 => Declared::Opaque("is a type", offset),
            1 => values.remove(0),
            _ => Declared::Opaque("is declared more than once", offset),
        };
        let (reassigned, changes) = changes(self.lowering.semantic, symbol);
        let flags = self.lowering.semantic.scoping().symbol_flags(symbol);
        let hoisted =
            (flags.is_function_scoped_declaration() && matches!(declared, Declared::Value(_))).then_some(offset);
        Binding { name, declared, hoisted, reassigned, changes }
    }

    /// Returns what a declaration gives a variable; none for types and for signatures without a body.
    fn declared(&mut self, symbol: SymbolId, declaration: NodeId) -> Option<Declared> {
        let nodes = self.lowering.semantic.nodes();
        let kind = nodes.kind(declaration);
        let offset = kind.span().start;
        Some(match kind {
            AstKind::VariableDeclarator(variable) => {
                let parent = nodes.parent_kind(declaration);
                let around = nodes.parent_kind(nodes.parent_id(declaration));
                if let AstKind::VariableDeclaration(variables) = parent
                    && variables.declare
                {
                    return Some(Declared::Opaque("is declared only", offset));
                }
                let is_var = matches!(parent, AstKind::VariableDeclaration(variables) if variables.kind.is_var());
                match around {
                    AstKind::ForInStatement(_) | AstKind::ForOfStatement(_) | AstKind::ForStatement(_) => {
                        Declared::Opaque("is the variable of a loop", offset)
                    }
                    AstKind::Program(_) | AstKind::FunctionBody(_) | AstKind::ExportDeclaration(_) => {
                        self.variable(symbol, variable)
                    }
                    // A `var` is also seen where its declaration was never reached.
                    _ if is_var => Declared::Opaque("is declared inside of a statement", offset),
                    _ => self.variable(symbol, variable),
                }
            }
            AstKind::Function(function) => {
                function.body.as_ref()?;
                Declared::Value(ExprKind::Function(self.lowering.function(function).into()).at(offset))
            }
            AstKind::Class(class) => Declared::Value(class_kind(class).at(offset)),
            AstKind::TSEnumDeclaration(declaration) => {
                Declared::Enum(self.enum_members(declaration), declaration.span.start)
            }
            AstKind::TSEnumMember(member) => {
                let of = nodes.ancestor_kinds(declaration).find_map(|kind| match kind {
                    AstKind::TSEnumDeclaration(declaration) => declaration.id.symbol_id.get(),
                    _ => None,
                })?;
                let name = match &member.id {
                    TSEnumMemberName::Identifier(name) => name.name.as_str().to_owned(),
                    TSEnumMemberName::String(name) | TSEnumMemberName::ComputedString(name) => {
                        name.value.as_str().to_owned()
                    }
                    TSEnumMemberName::ComputedTemplateString(_) => return None,
                };
                Declared::EnumMember(self.lowering.binding(of), name)
            }
            AstKind::ImportSpecifier(import) => {
                if import.import_kind == ImportOrExportKind::Type {
                    return None;
                }
                self.import(declaration, Imported::Name(export_name(&import.imported)))?
            }
            AstKind::ImportDefaultSpecifier(_) => self.import(declaration, Imported::Name("default".to_owned()))?,
            AstKind::ImportNamespaceSpecifier(_) => self.import(declaration, Imported::Namespace)?,
            AstKind::TSImportEqualsDeclaration(import) => match &import.module_reference {
                TSModuleReference::ExternalModuleReference(module) => Declared::Import {
                    imported: Imported::Name("default".to_owned()),
                    specifier: specifier(&module.expression),
                },
                _ => Declared::Opaque("is an alias of a namespace", offset),
            },
            AstKind::TSTypeAliasDeclaration(_) | AstKind::TSInterfaceDeclaration(_) | AstKind::TSTypeParameter(_) => {
                return None;
            }
            AstKind::TSNamespaceDeclaration(_) | AstKind::TSExternalModuleDeclaration(_) => {
                Declared::Opaque("is a namespace", offset)
            }
            AstKind::CatchParameter(_) => Declared::Opaque("is what was caught", offset),
            _ => Declared::Opaque("is a parameter", offset),
        })
    }

    fn import(&self, declaration: NodeId, imported: Imported) -> Option<Declared> {
        let AstKind::ImportDeclaration(import) = self.lowering.semantic.nodes().parent_kind(declaration) else {
            return None;
        };
        let is_value = import.import_kind == ImportOrExportKind::Value;
        is_value.then(|| Declared::Import { imported, specifier: specifier(&import.source) })
    }

    fn variable(&mut self, symbol: SymbolId, variable: &VariableDeclarator<'a>) -> Declared {
        let offset = variable.span.start;
        let value = match &variable.init {
            Some(value) => self.lowering.expression(value),
            None => ExprKind::Undefined.at(offset),
        };
        match self.inside(&variable.id, symbol, value) {
            Ok(value) => Declared::Value(value),
            Err(_) => Declared::Opaque("is taken apart in a way that karat does not follow", offset),
        }
    }

    /// Finds the part of a value that a pattern gives a variable; the value comes back where the pattern has not got it.
    fn inside(&mut self, pattern: &BindingPattern<'a>, symbol: SymbolId, value: Expr) -> Result<Expr, Expr> {
        match pattern {
            BindingPattern::BindingIdentifier(name) if name.symbol_id.get() == Some(symbol) => Ok(value),
            BindingPattern::ObjectPattern(object) => {
                let holds = |pattern: &BindingPattern<'a>| pattern.get_symbol_ids().contains(&symbol);
                let Some(property) = object.properties.iter().find(|property| holds(&property.value)) else {
                    return Err(value);
                };
                let key = match &property.key {
                    PropertyKey::StaticIdentifier(_) | PropertyKey::StringLiteral(_) => {
                        self.lowering.key(&property.key)
                    }
                    _ => return Err(value),
                };
                let offset = value.offset;
                let member = ExprKind::Member { object: Box::new(value), key: Box::new(key), optional: false };
                self.inside(&property.value, symbol, member.at(offset))
            }
            _ => Err(value),
        }
    }

    fn enum_members(&mut self, declaration: &TSEnumDeclaration<'a>) -> Vec<EnumMember> {
        let member = |member: &oxc_ast::ast::TSEnumMember<'a>| EnumMember {
            name: match &member.id {
                TSEnumMemberName::Identifier(name) => Some(name.name.as_str().into()),
                TSEnumMemberName::String(name) | TSEnumMemberName::ComputedString(name) => Some(string(name)),
                TSEnumMemberName::ComputedTemplateString(_) => None,
            },
            initializer: member.initializer.as_ref().map(|value| self.lowering.expression(value)),
            offset: member.span.start,
        };
        declaration.body.members.iter().map(member).collect()
    }
}

/// Tells whether a namespace has more than types in it.
fn holds_values(namespace: &TSNamespaceDeclaration<'_>) -> bool {
    let TSNamespaceDeclarationBody::TSModuleBlock(block) = &namespace.body else { return !namespace.declare };
    let is_value = |statement: &Statement<'_>| match statement {
        Statement::ExportDeclaration(export) => {
            matches!(export.declaration, Declaration::VariableDeclaration(_) | Declaration::FunctionDeclaration(_))
        }
        _ => false,
    };
    !namespace.declare && block.body.iter().any(is_value)
}

/// Tells whether a function may give a server its tools: it says so, or it gets the server.
///
/// Most functions that a tool calls do its work, and the files they are in are of no interest.
fn may_register(call: &CallExpression<'_>) -> bool {
    let says = |name: &str, words: [&str; 2]| {
        let name = name.to_lowercase();
        words.iter().any(|word| name.contains(word))
    };
    let is_server = |argument: &Argument<'_>| match argument {
        Argument::Identifier(name) => says(name.name.as_str(), ["server", "mcp"]),
        _ => false,
    };
    call.callee_name().is_some_and(|name| says(name, ["register", "tool"])) || call.arguments.iter().any(is_server)
}

/// Returns what a function returns at its end, where nothing before it can return or branch.
fn only_return<'b, 'a>(body: &'b FunctionBody<'a>) -> Option<&'b Expression<'a>> {
    let (last, before) = body.statements.split_last()?;
    let is_plain = |statement: &Statement<'a>| {
        matches!(statement, Statement::VariableDeclaration(_) | Statement::ExpressionStatement(_))
    };
    match last {
        Statement::ReturnStatement(statement) if before.iter().all(is_plain) => statement.argument.as_ref(),
        _ => None,
    }
}

/// Returns where a statement imports or passes on something from.
fn import_of(statement: &Statement<'_>) -> Option<Specifier> {
    match statement {
        Statement::ImportDeclaration(import) => Some(specifier(&import.source)),
        Statement::ExportFromDeclaration(from) => Some(specifier(&from.source)),
        Statement::ExportAllDeclaration(all) => Some(specifier(&all.source)),
        _ => None,
    }
}

fn specifier(source: &StringLiteral<'_>) -> Specifier {
    Specifier { text: source.value.as_str().to_owned(), offset: source.span.start }
}

fn export_name(name: &ModuleExportName<'_>) -> String {
    match name {
        ModuleExportName::IdentifierName(name) => name.name.as_str().to_owned(),
        ModuleExportName::IdentifierReference(name) => name.name.as_str().to_owned(),
        ModuleExportName::StringLiteral(name) => name.value.as_str().to_owned(),
    }
}
