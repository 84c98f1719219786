//! Expressions of the parser as expressions of ours.

use std::collections::HashMap;
use std::sync::Arc;

use karat_core::text::shorten;
use oxc_ast::AstKind;
use oxc_ast::ast::{
    Argument, ArrayExpressionElement, ArrowFunctionBody, ArrowFunctionExpression, ChainElement, Class, ClassElement,
    Expression, FormalParameters, Function as FunctionNode, FunctionBody, IdentifierReference, ObjectExpression,
    ObjectPropertyKind, PropertyKey, PropertyKind, Statement, StringLiteral, TemplateLiteral,
};
use oxc_ast::ast::{BinaryOperator, UnaryOperator};
use oxc_semantic::{Semantic, SymbolId};
use oxc_span::{GetSpan as _, Span};

use super::call::BUILDERS;
use super::definition::{FUNCTION_KEYS, SCHEMA_KEYS};
use super::syntax::{BindingId, Call, Expr, ExprKind, Function, Item, Property};
use super::text::Text;

/// Deeper than descriptions and schemas are, and shallow enough for everything that walks over expressions.
const DEEPEST: usize = 1_500;

/// Lowers expressions of one file, and remembers which variables they name.
pub(super) struct Lowering<'a, 's> {
    pub semantic: &'s Semantic<'a>,
    ids: HashMap<SymbolId, BindingId>,
    /// Variables in the order of their ids.
    pub symbols: Vec<SymbolId>,
    depth: usize,
    /// Where tools are built.
    builders: Vec<u32>,
}

impl<'a, 's> Lowering<'a, 's> {
    pub(super) fn new(semantic: &'s Semantic<'a>) -> Self {
        let builders = semantic.nodes().iter().filter_map(|node| match node.kind() {
            AstKind::CallExpression(call) => is_builder(&call.callee).then_some(call.span.start),
            AstKind::NewExpression(new) => is_builder(&new.callee).then_some(new.span.start),
            _ => None,
        });
        Self { semantic, ids: HashMap::new(), symbols: Vec::new(), depth: 0, builders: builders.collect() }
    }

    pub(super) fn binding(&mut self, symbol: SymbolId) -> BindingId {
        *self.ids.entry(symbol).or_insert_with(|| {
            self.symbols.push(symbol);
            BindingId(u32::try_from(self.symbols.len() - 1).unwrap_or(u32::MAX))
        })
    }

    /// Returns the variable that a name means, or none where no scope of the file has it.
    pub(super) fn symbol(&self, name: &IdentifierReference<'a>) -> Option<SymbolId> {
        self.semantic.scoping().get_reference(name.reference_id.get()?).symbol_id()
    }

    pub(super) fn expression(&mut self, expression: &Expression<'a>) -> Expr {
        let offset = expression.span().start;
        if self.depth >= DEEPEST {
            return opaque("it is nested too deeply", false).at(offset);
        }
        self.depth += 1;
        let lowered = self.lower(expression);
        self.depth -= 1;
        lowered
    }

    fn lower(&mut self, expression: &Expression<'a>) -> Expr {
        let span = expression.span();
        let kind = match expression {
            Expression::BooleanLiteral(literal) => ExprKind::Bool(literal.value),
            Expression::NullLiteral(_) => ExprKind::Null,
            Expression::NumericLiteral(literal) => ExprKind::Number(literal.value),
            Expression::BigIntLiteral(_) => ExprKind::BigInt,
            Expression::StringLiteral(literal) => ExprKind::Text(string(literal)),
            Expression::RegExpLiteral(literal) => {
                ExprKind::Regex { source: literal.regex.pattern.text.as_str().to_owned() }
            }
            Expression::TemplateLiteral(template) => self.template(template),
            Expression::TaggedTemplateExpression(tagged) => {
                if self.is_string_raw(&tagged.tag) {
                    self.raw_template(&tagged.quasi)
                } else {
                    let tag = self.written(tagged.tag.span());
                    opaque(&format!("it is made by the tag '{tag}', which karat does not run"), false)
                }
            }
            Expression::Identifier(name) => self.name(name),
            Expression::ArrayExpression(array) => {
                ExprKind::Array(array.elements.iter().map(|element| self.element(element)).collect())
            }
            Expression::ObjectExpression(object) => self.object(object),
            Expression::ArrowFunctionExpression(arrow) => ExprKind::Function(Arc::new(self.arrow(arrow))),
            Expression::FunctionExpression(function) => ExprKind::Function(Arc::new(self.function(function))),
            Expression::ClassExpression(class) => class_kind(class),
            Expression::CallExpression(call) => {
                return self.call(&call.callee, &call.arguments, false, span);
            }
            Expression::NewExpression(new) => return self.call(&new.callee, &new.arguments, true, span),
            Expression::BinaryExpression(binary) if binary.operator == BinaryOperator::Addition => {
                let left = self.expression(&binary.left);
                ExprKind::Add(Box::new(left), Box::new(self.expression(&binary.right)))
            }
            Expression::UnaryExpression(unary) => match unary.operator {
                UnaryOperator::UnaryNegation => ExprKind::Minus(Box::new(self.expression(&unary.argument))),
                UnaryOperator::Void if unary.argument.is_literal() => ExprKind::Undefined,
                _ => opaque("it is computed", true),
            },
            Expression::ChainExpression(chain) => match &chain.expression {
                ChainElement::CallExpression(call) => return self.call(&call.callee, &call.arguments, false, span),
                ChainElement::StaticMemberExpression(member) => {
                    let key = ExprKind::Text(member.property.name.as_str().into()).at(member.property.span.start);
                    self.member(&member.object, key, true)
                }
                ChainElement::ComputedMemberExpression(member) => {
                    let key = self.expression(&member.expression);
                    self.member(&member.object, key, true)
                }
                ChainElement::TSNonNullExpression(inner) => return self.expression(&inner.expression),
                ChainElement::PrivateFieldExpression(_) => opaque("it is a private field", false),
            },
            Expression::StaticMemberExpression(member) => {
                let key = ExprKind::Text(member.property.name.as_str().into()).at(member.property.span.start);
                self.member(&member.object, key, member.optional)
            }
            Expression::ComputedMemberExpression(member) => {
                let key = self.expression(&member.expression);
                self.member(&member.object, key, member.optional)
            }
            Expression::ParenthesizedExpression(inner) => return self.expression(&inner.expression),
            Expression::TSAsExpression(inner) => return self.expression(&inner.expression),
            Expression::TSSatisfiesExpression(inner) => return self.expression(&inner.expression),
            Expression::TSTypeAssertion(inner) => return self.expression(&inner.expression),
            Expression::TSNonNullExpression(inner) => return self.expression(&inner.expression),
            Expression::TSInstantiationExpression(inner) => return self.expression(&inner.expression),
            Expression::ConditionalExpression(_) | Expression::LogicalExpression(_) => {
                opaque("it depends on a condition", false)
            }
            Expression::BinaryExpression(_) | Expression::UpdateExpression(_) | Expression::PrivateInExpression(_) => {
                opaque("it is computed", true)
            }
            Expression::AwaitExpression(_) | Expression::ImportExpression(_) => opaque("it is awaited", false),
            _ => opaque("it is known only at run time", false),
        };
        kind.at(span.start)
    }

    fn name(&mut self, name: &IdentifierReference<'a>) -> ExprKind {
        match (self.symbol(name), name.name.as_str()) {
            (Some(symbol), _) => ExprKind::Name(self.binding(symbol)),
            (None, "undefined") => ExprKind::Undefined,
            (None, "NaN") => ExprKind::Number(f64::NAN),
            (None, "Infinity") => ExprKind::Number(f64::INFINITY),
            (None, name) => ExprKind::Global(name.to_owned()),
        }
    }

    fn member(&mut self, object: &Expression<'a>, key: Expr, optional: bool) -> ExprKind {
        ExprKind::Member { object: Box::new(self.expression(object)), key: Box::new(key), optional }
    }

    pub(super) fn call(
        &mut self,
        callee: &Expression<'a>,
        arguments: &[Argument<'a>],
        is_new: bool,
        span: Span,
    ) -> Expr {
        let written = self.written(callee.span());
        let callee = self.expression(callee);
        let arguments = arguments.iter().map(|argument| self.argument(argument)).collect();
        ExprKind::Call(Box::new(Call { callee, arguments, is_new, written })).at(span.start)
    }

    fn argument(&mut self, argument: &Argument<'a>) -> Item {
        match argument {
            Argument::SpreadElement(spread) => Item::Spread(self.expression(&spread.argument)),
            other => match other.as_expression() {
                Some(expression) => Item::Value(self.expression(expression)),
                None => Item::Hole,
            },
        }
    }

    fn element(&mut self, element: &ArrayExpressionElement<'a>) -> Item {
        match element {
            ArrayExpressionElement::SpreadElement(spread) => Item::Spread(self.expression(&spread.argument)),
            other => match other.as_expression() {
                Some(expression) => Item::Value(self.expression(expression)),
                None => Item::Hole,
            },
        }
    }

    fn object(&mut self, object: &ObjectExpression<'a>) -> ExprKind {
        let mut properties = Vec::with_capacity(object.properties.len());
        for property in &object.properties {
            let property = match property {
                ObjectPropertyKind::SpreadProperty(spread) => {
                    properties.push(Property::Spread(self.expression(&spread.argument)));
                    continue;
                }
                ObjectPropertyKind::ObjectProperty(property) => property,
            };
            let plain = !property.computed && !property.shorthand && !property.method;
            if plain && property.key.is_specific_static_name("__proto__") {
                if !property.value.is_null() {
                    let offset = property.value.span().start;
                    properties.push(Property::Spread(opaque("it sets a prototype", false).at(offset)));
                }
                continue;
            }
            let value = match property.kind {
                PropertyKind::Init => self.expression(&property.value),
                PropertyKind::Get => opaque("it is a getter, which karat does not run", false).at(property.span.start),
                PropertyKind::Set => opaque("it has a setter, which karat does not run", false).at(property.span.start),
            };
            properties.push(Property::Value { key: self.key(&property.key), value });
        }
        ExprKind::Object(properties)
    }

    pub(super) fn key(&mut self, key: &PropertyKey<'a>) -> Expr {
        let offset = key.span().start;
        match key {
            PropertyKey::StaticIdentifier(name) => ExprKind::Text(name.name.as_str().into()).at(offset),
            other => match other.as_expression() {
                Some(expression) => self.expression(expression),
                None => opaque("it is a private name", true).at(offset),
            },
        }
    }

    fn template(&mut self, template: &TemplateLiteral<'a>) -> ExprKind {
        let texts = template.quasis.iter().map(|quasi| {
            // Without a tag every piece has a cooked text, or the syntax is wrong.
            let cooked = quasi.value.cooked.as_ref().map_or("", |cooked| cooked.as_str());
            if quasi.lone_surrogates { Text::from_lossy(cooked) } else { cooked.into() }
        });
        let texts = texts.collect();
        ExprKind::Template { texts, holes: template.expressions.iter().map(|hole| self.expression(hole)).collect() }
    }

    fn raw_template(&mut self, template: &TemplateLiteral<'a>) -> ExprKind {
        // Line ends are the same everywhere, also in the raw text.
        let raw = |text: &str| Text::from(text.replace("\r\n", "\n").replace('\r', "\n").as_str());
        let texts = template.quasis.iter().map(|quasi| raw(quasi.value.raw.as_str())).collect();
        ExprKind::Template { texts, holes: template.expressions.iter().map(|hole| self.expression(hole)).collect() }
    }

    fn is_string_raw(&self, tag: &Expression<'a>) -> bool {
        let Expression::StaticMemberExpression(member) = tag else { return false };
        let Expression::Identifier(name) = &member.object else { return false };
        name.name.as_str() == "String" && member.property.name.as_str() == "raw" && self.symbol(name).is_none()
    }

    pub(super) fn function(&mut self, function: &FunctionNode<'a>) -> Function {
        let body = function.body.as_deref();
        let returned = body.and_then(returned).filter(|_| !function.r#async && !function.generator);
        let span = function.span;
        self.returning(&function.params, returned, span)
    }

    fn arrow(&mut self, arrow: &ArrowFunctionExpression<'a>) -> Function {
        let returned = match &arrow.body {
            ArrowFunctionBody::FunctionBody(body) => returned(body),
            body => body.as_expression(),
        };
        self.returning(&arrow.params, returned.filter(|_| !arrow.r#async), arrow.span)
    }

    fn returning(
        &mut self,
        parameters: &FormalParameters<'a>,
        returned: Option<&Expression<'a>>,
        span: Span,
    ) -> Function {
        let builds = self.builders.iter().any(|&offset| span.start <= offset && offset < span.end);
        let makes_tool = builds || returned.is_some_and(is_definition);
        let Some(returned) = returned else { return Function { is_identity: false, returns: None, makes_tool } };
        let only = match parameters.items.as_slice() {
            [only] if parameters.rest.is_none() && only.initializer.is_none() => {
                only.pattern.get_binding_identifier().and_then(|name| name.symbol_id.get())
            }
            _ => None,
        };
        let names = match returned.get_inner_expression() {
            Expression::Identifier(name) => self.symbol(name),
            _ => None,
        };
        let has_none = parameters.items.is_empty() && parameters.rest.is_none();
        let returns = has_none.then(|| self.expression(returned));
        Function { is_identity: only.is_some() && only == names, returns, makes_tool }
    }

    /// Returns a piece of the source for a message.
    pub(super) fn written(&self, span: Span) -> String {
        let source = span.source_text(self.semantic.source_text());
        // Long chains of calls are told by their ends.
        let line = source.chars().take(200).collect::<String>();
        let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
        shorten(&line, 40).into_owned()
    }
}

/// Tells whether something is called that makes a tool, and not a server that gets one.
fn is_builder(callee: &Expression<'_>) -> bool {
    match callee {
        Expression::Identifier(name) => BUILDERS.contains(&name.name.as_str()),
        Expression::StaticMemberExpression(member) => {
            let name = member.property.name.as_str();
            BUILDERS.contains(&name) && name != "tool"
        }
        _ => false,
    }
}

/// Tells whether an expression is written like a tool's definition.
fn is_definition(expression: &Expression<'_>) -> bool {
    let Expression::ObjectExpression(object) = expression.get_inner_expression() else { return false };
    let has = |keys: &[&str]| {
        object.properties.iter().any(|property| match property {
            ObjectPropertyKind::ObjectProperty(property) => {
                property.key.static_name().is_some_and(|name| keys.contains(&name.as_ref()))
            }
            ObjectPropertyKind::SpreadProperty(_) => false,
        })
    };
    has(&["name", "description"]) && has(&FUNCTION_KEYS) && has(&SCHEMA_KEYS) || has(&["name"]) && has(&["description"])
}

/// Returns what a class is: one of tools has to be run before it says what they are.
pub(super) fn class_kind(class: &Class<'_>) -> ExprKind {
    let has = |wanted: &str| {
        class.body.body.iter().any(|element| match element {
            ClassElement::PropertyDefinition(property) => property.key.is_specific_static_name(wanted),
            ClassElement::MethodDefinition(method) => {
                method.kind.is_get() && method.key.is_specific_static_name(wanted)
            }
            _ => false,
        })
    };
    let extends_tool = class.heritage.as_ref().is_some_and(|heritage| match &heritage.expression {
        Expression::Identifier(name) => name.name.as_str().ends_with("Tool"),
        Expression::StaticMemberExpression(member) => member.property.name.as_str().ends_with("Tool"),
        _ => false,
    });
    if extends_tool || has("name") && has("description") {
        return opaque("it is a class of tools, which karat does not run", false);
    }
    ExprKind::Class
}

/// Returns what a function returns that does nothing else.
fn returned<'b, 'a>(body: &'b FunctionBody<'a>) -> Option<&'b Expression<'a>> {
    match body.statements.as_slice() {
        [Statement::ReturnStatement(statement)] => statement.argument.as_ref(),
        _ => None,
    }
}

pub(super) fn string(literal: &StringLiteral<'_>) -> Text {
    let value = literal.value.as_str();
    if literal.lone_surrogates { Text::from_lossy(value) } else { value.into() }
}

pub(super) fn opaque(why: &str, primitive: bool) -> ExprKind {
    ExprKind::Opaque { why: why.to_owned(), primitive }
}

impl ExprKind {
    pub(super) fn at(self, offset: u32) -> Expr {
        Expr { kind: self, offset }
    }
}
