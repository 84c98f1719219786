//! Lowers variables, functions and classes.

use oxc_ast::ast::{
    BindingPattern, Class as JsClass, ClassElement, Declaration, FormalParameters, Function as JsFunction,
    ObjectPattern, TSEnumMemberName, TSType, TSTypeName, VariableDeclaration,
};
use oxc_span::{GetSpan as _, Span};

use super::super::syntax::{
    Class, Definition, Entry, Expr, Function, FunctionId, Kind, Owner, Parameter, ParameterKind, ScopeId, Statement,
};
use super::Lowerer;

impl<'a> Lowerer<'_> {
    /// Lowers a declaration and returns the names that it declares.
    pub(super) fn declaration(&mut self, scope: ScopeId, declaration: &Declaration<'a>) -> Vec<String> {
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

    pub(super) fn define_function(&mut self, scope: ScopeId, function: &JsFunction<'a>, id: FunctionId) {
        if let (Some(name), Some(_)) = (&function.id, &function.body) {
            let name = name.name.to_string();
            self.push(scope, Statement::Define { name, defined: Definition::Function(id) });
        }
    }

    pub(super) fn define_class(&mut self, scope: ScopeId, class: &JsClass<'a>, id: usize) {
        if let Some(name) = &class.id {
            let name = name.name.to_string();
            self.push(scope, Statement::Define { name, defined: Definition::Class(id) });
        }
    }

    pub(super) fn variables(&mut self, scope: ScopeId, variables: &VariableDeclaration<'a>) -> Vec<String> {
        let mut names = Vec::new();
        for variable in &variables.declarations {
            let annotation =
                variable.type_annotation.as_ref().and_then(|annotation| named_type(&annotation.type_annotation));
            let value = variable.init.as_ref().map(|value| self.expression(scope, value));
            match &variable.id {
                BindingPattern::BindingIdentifier(name) => {
                    let name = name.name.to_string();
                    names.push(name.clone());
                    self.push(scope, Statement::Assign { name, value, annotation });
                }
                BindingPattern::ObjectPattern(pattern) => {
                    if let Some(init) = &variable.init {
                        names.extend(self.destructure(scope, pattern, |lowering| lowering.expression(scope, init)));
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

    /// Lowers `const {a, ...rest} = b` to `const a = b.a` and `rest` as `b` without `a`.
    pub(super) fn destructure(
        &mut self,
        scope: ScopeId,
        pattern: &ObjectPattern<'a>,
        object: impl Fn(&mut Self) -> Expr,
    ) -> Vec<String> {
        let (mut names, mut keys) = (Vec::new(), Vec::new());
        for property in &pattern.properties {
            keys.extend(property.key.static_name().map(|key| key.to_string()));
            let (Some(key), Some(local)) = (property.key.static_name(), property.value.get_binding_identifier()) else {
                continue;
            };
            let object = Box::new(object(self));
            let value = Some(Expr::new(object.at, Kind::Member(object, key.to_string())));
            names.push((local.name.to_string(), value));
        }
        if let Some(rest) = pattern.rest.as_ref().and_then(|rest| rest.argument.get_binding_identifier()) {
            let object = Box::new(object(self));
            names.push((rest.name.to_string(), Some(Expr::new(object.at, Kind::ObjectRest(object, keys)))));
        }
        let mut bound = Vec::new();
        for (name, value) in names {
            bound.push(name.clone());
            self.push(scope, Statement::Assign { name, value, annotation: None });
        }
        bound
    }

    pub(super) fn loop_variables(&mut self, scope: ScopeId, variables: &VariableDeclaration<'a>) {
        for variable in &variables.declarations {
            for name in variable.id.get_binding_identifiers() {
                self.push(scope, Statement::Rebind { name: name.name.to_string() });
            }
        }
    }

    pub(super) fn function_node(
        &mut self,
        scope: ScopeId,
        function: &JsFunction<'a>,
        class: Option<usize>,
    ) -> FunctionId {
        let name = function.id.as_ref().map(|name| name.name.to_string()).unwrap_or_default();
        let id = self.function(scope, name, function.span, &function.params, class);
        if let Some(body) = &function.body {
            let inner = self.module.functions[id].scope;
            self.statements(inner, &body.statements);
        }
        id
    }

    pub(super) fn function(
        &mut self,
        scope: ScopeId,
        name: String,
        span: Span,
        parameters: &FormalParameters<'a>,
        class: Option<usize>,
    ) -> FunctionId {
        let id = self.module.functions.len();
        let body = self.module.open_scope(scope, Owner::Function(id));
        let (at, decorators) = (span.start, Vec::new());
        let function = Function {
            name,
            at,
            scope: body,
            parameters: Vec::new(),
            returns: None,
            docstring: None,
            decorators,
            class,
        };
        self.module.functions.push(function);
        self.module.functions[id].parameters = self.parameters(body, parameters);
        id
    }

    pub(super) fn parameters(&mut self, scope: ScopeId, parameters: &FormalParameters<'a>) -> Vec<Parameter> {
        let mut lowered = Vec::new();
        for (number, parameter) in parameters.items.iter().enumerate() {
            let (name, kind) = match &parameter.pattern {
                BindingPattern::BindingIdentifier(name) => {
                    let at = name.span.start;
                    // `constructor(private name: string)` also sets the field.
                    if parameter.accessibility.is_some() || parameter.readonly {
                        let object = Expr::new(at, Kind::Name("this".to_owned()));
                        let value = Expr::new(at, Kind::Name(name.name.to_string()));
                        self.push(scope, Statement::SetMember { object, name: name.name.to_string(), value });
                    }
                    (name.name.to_string(), ParameterKind::Plain)
                }
                BindingPattern::ObjectPattern(pattern) => {
                    // A synthetic name that no variable can have.
                    let (name, at) = (format!("{{{number}}}"), pattern.span.start);
                    self.destructure(scope, pattern, |_| Expr::new(at, Kind::Name(name.clone())));
                    (name, ParameterKind::Destructured)
                }
                pattern => {
                    for name in pattern.get_binding_identifiers() {
                        self.push(scope, Statement::Rebind { name: name.name.to_string() });
                    }
                    (String::new(), ParameterKind::Destructured)
                }
            };
            let annotation =
                parameter.type_annotation.as_ref().and_then(|annotation| named_type(&annotation.type_annotation));
            let default = parameter.initializer.as_ref().map(|value| self.expression(scope, value));
            lowered.push(Parameter { name, kind, annotation, default });
        }
        if parameters.rest.is_some() {
            let kind = ParameterKind::Rest;
            lowered.push(Parameter { name: String::new(), kind, annotation: None, default: None });
        }
        lowered
    }

    pub(super) fn class(&mut self, scope: ScopeId, class: &JsClass<'a>) -> usize {
        let base = class.heritage.as_ref().map(|heritage| self.expression(scope, &heritage.expression));
        let decorators =
            class.decorators.iter().map(|decorator| self.expression(scope, &decorator.expression)).collect();
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
                    let annotation = property
                        .type_annotation
                        .as_ref()
                        .and_then(|annotation| named_type(&annotation.type_annotation));
                    let value = property.value.as_ref().map(|value| self.expression(body, value));
                    self.push(body, Statement::Assign { name: name.to_string(), value, annotation });
                }
                ClassElement::MethodDefinition(method) => {
                    let Some(name) = method.key.static_name() else { continue };
                    let function = self.function_node(body, &method.value, Some(id));
                    let decorators =
                        method.decorators.iter().map(|decorator| self.expression(body, &decorator.expression));
                    let decorators: Vec<Expr> = decorators.collect();
                    let lowered = &mut self.module.functions[function];
                    lowered.name = name.to_string();
                    lowered.at = method.span.start;
                    lowered.decorators = decorators;
                    if method.kind.is_get() {
                        // Lower a getter like a Python property.
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
