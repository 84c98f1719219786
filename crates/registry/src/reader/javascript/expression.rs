//! Lowers expressions.

use oxc_ast::ast::{
    Argument, ArrayExpression, ArrayExpressionElement, ArrowFunctionBody, ArrowFunctionExpression, BinaryOperator,
    CallExpression, ChainElement, Expression, LogicalOperator, ObjectExpression, ObjectPropertyKind, PropertyKey,
    PropertyKind, TemplateLiteral, UnaryOperator,
};
use oxc_span::GetSpan as _;

use super::super::nesting::MAX_DEPTH;
use super::super::syntax::{Arithmetic, Call, Entry, Expr, Kind, ScopeId, Statement};
use super::Lowerer;

impl<'a> Lowerer<'_> {
    fn boxed(&mut self, scope: ScopeId, expression: &Expression<'a>) -> Box<Expr> {
        Box::new(self.expression(scope, expression))
    }

    pub(super) fn expression(&mut self, scope: ScopeId, expression: &Expression<'a>) -> Expr {
        let at = expression.span().start;
        if self.depth >= MAX_DEPTH {
            return Expr::new(at, Kind::Other(Vec::new()));
        }
        self.depth += 1;
        let lowered = self.lower(scope, expression);
        self.depth -= 1;
        lowered
    }

    fn lower(&mut self, scope: ScopeId, expression: &Expression<'a>) -> Expr {
        if let Some(inner) = unwrapped(expression) {
            return self.expression(scope, inner);
        }
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
            Expression::ArrayExpression(array) => self.array(scope, array),
            Expression::ObjectExpression(object) => self.object(scope, object),
            Expression::ArrowFunctionExpression(arrow) => self.arrow(scope, arrow),
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
                    BinaryOperator::Subtraction => Kind::Arithmetic(Arithmetic::Subtract, left, right),
                    BinaryOperator::Multiplication => Kind::Arithmetic(Arithmetic::Multiply, left, right),
                    BinaryOperator::Division => Kind::Arithmetic(Arithmetic::Divide, left, right),
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
                Kind::Conditional(self.boxed(scope, &condition.consequent), self.boxed(scope, &condition.alternate))
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

    fn array(&mut self, scope: ScopeId, array: &ArrayExpression<'a>) -> Kind {
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

    fn object(&mut self, scope: ScopeId, object: &ObjectExpression<'a>) -> Kind {
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

    fn arrow(&mut self, scope: ScopeId, arrow: &ArrowFunctionExpression<'a>) -> Kind {
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

    /// Lowers tagged templates to calls, such as `dedent`, and `String.raw` to a template.
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

/// Returns the inner expression of syntax that does not change the value.
fn unwrapped<'e, 'a>(expression: &'e Expression<'a>) -> Option<&'e Expression<'a>> {
    Some(match expression {
        Expression::ParenthesizedExpression(inner) => &inner.expression,
        Expression::TSAsExpression(inner) => &inner.expression,
        Expression::TSSatisfiesExpression(inner) => &inner.expression,
        Expression::TSTypeAssertion(inner) => &inner.expression,
        Expression::TSNonNullExpression(inner) => &inner.expression,
        Expression::TSInstantiationExpression(inner) => &inner.expression,
        Expression::AwaitExpression(inner) => &inner.argument,
        _ => return None,
    })
}

#[expect(clippy::cast_possible_truncation, reason = "the value is an integer within the exact range")]
fn number(value: f64) -> Kind {
    // JSON writes 3, not 3.0.
    let is_whole = value.fract() == 0.0 && value.abs() < 9_007_199_254_740_992.0;
    let number = if is_whole { Some((value as i64).into()) } else { serde_json::Number::from_f64(value) };
    number.map_or(Kind::Other(Vec::new()), Kind::Number)
}
