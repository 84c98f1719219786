//! What an expression is, found out by reading alone.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use karat_core::text::shorten;
use ruff_python_ast::{
    Expr, ExprCall, ExprFString, ExprStringLiteral, FStringPart, InterpolatedStringElement, Keyword, Number, Operator,
    UnaryOp,
};
use ruff_text_size::{Ranged, TextRange};

use super::data::{Data, Datum, Hole, LARGEST, TOO_LARGE};
use super::program::{Spot, spot};
use super::text::{clean_doc, dedent, strip, strip_end, strip_start};
use super::world::{Meaning, Scope, World};

/// How deep expressions are followed, through names as well.
const DEEPEST: usize = 120;

impl World<'_> {
    /// Returns what an expression is when the module has been loaded.
    pub(super) fn evaluate(&self, scope: Scope<'_>, expression: &Expr) -> Datum {
        self.value(scope, expression, 0)
    }

    fn value(&self, scope: Scope<'_>, expression: &Expr, depth: usize) -> Datum {
        let at = spot(scope.module, expression.start());
        if depth > DEEPEST {
            return Datum::unknown(at, "it is nested too deeply");
        }
        let known = |data: Data| Datum::new(at, data);
        match expression {
            Expr::NoneLiteral(_) => known(Data::Null),
            Expr::BooleanLiteral(literal) => known(Data::Bool(literal.value)),
            Expr::NumberLiteral(literal) => number(at, &literal.value, false),
            Expr::StringLiteral(literal) => self.literal(at, literal),
            Expr::FString(text) => self.formatted(scope, at, text, depth),
            Expr::BinOp(operation) if operation.op == Operator::Add => self.sum(scope, at, expression, depth),
            Expr::BinOp(operation) if operation.op == Operator::BitOr => {
                let left = self.value(scope, &operation.left, depth + 1);
                let right = self.value(scope, &operation.right, depth + 1);
                match (left.data, right.data) {
                    (left @ Data::Dict(..), right @ Data::Dict(..)) => {
                        let mut entries = Entries::default();
                        entries.spread(at, left);
                        entries.spread(at, right);
                        known(entries.finish())
                    }
                    _ => Datum::unknown(at, "an operator gives it"),
                }
            }
            Expr::BinOp(operation) if operation.op == Operator::Mod => Datum::unknown(at, "it is filled in with '%'"),
            Expr::UnaryOp(operation) => match (operation.op, &*operation.operand) {
                (UnaryOp::USub, Expr::NumberLiteral(literal)) => number(at, &literal.value, true),
                _ => Datum::unknown(at, "an operator gives it"),
            },
            Expr::List(list) => self.list(scope, at, &list.elts, depth),
            Expr::Tuple(tuple) => self.list(scope, at, &tuple.elts, depth),
            Expr::Dict(dict) => {
                let mut entries = Entries::default();
                for item in &dict.items {
                    let value = self.value(scope, &item.value, depth + 1);
                    match &item.key {
                        None => entries.spread(value.spot, value.data),
                        Some(key) => {
                            let key = self.value(scope, key, depth + 1);
                            match key.data {
                                Data::Text(key) => entries.set(key, value),
                                Data::Unknown(hole) => entries.open(hole),
                                _ => entries.open(Hole { spot: key.spot, why: "a key is no text".to_owned() }),
                            }
                        }
                    }
                }
                known(entries.finish())
            }
            Expr::Name(name) if scope.is_local(name.id.as_str()) => {
                Datum::unknown(at, format!("'{}' belongs to a function", name.id))
            }
            Expr::Name(_) | Expr::Attribute(_) => self.named(scope, at, expression, depth),
            Expr::Call(call) => self.called(scope, at, call, depth),
            Expr::Subscript(_) => {
                let shown = self.shown(scope.module, expression);
                Datum::unknown(at, format!("'{shown}' is known only when it is run"))
            }
            _ => Datum::unknown(at, described(expression)),
        }
    }

    fn literal(&self, at: Spot, literal: &ExprStringLiteral) -> Datum {
        let text = &self.source(at.module).text;
        if literal.value.iter().any(|part| has_surrogate(text, &part.value, part.range())) {
            return Datum::unknown(at, "it has half of a character");
        }
        Datum::new(at, Data::Text(literal.value.to_str().to_owned()))
    }

    fn formatted(&self, scope: Scope<'_>, at: Spot, text: &ExprFString, depth: usize) -> Datum {
        let source = &self.source(at.module).text;
        let mut out = String::new();
        for part in &text.value {
            if out.len() > LARGEST {
                return Datum::unknown(at, TOO_LARGE);
            }
            match part {
                FStringPart::Literal(part) if has_surrogate(source, &part.value, part.range()) => {
                    return Datum::unknown(at, "it has half of a character");
                }
                FStringPart::Literal(part) => out.push_str(&part.value),
                FStringPart::FString(part) => {
                    for element in &part.elements {
                        if out.len() > LARGEST {
                            return Datum::unknown(at, TOO_LARGE);
                        }
                        match element {
                            InterpolatedStringElement::Literal(literal)
                                if has_surrogate(source, &literal.value, literal.range()) =>
                            {
                                return Datum::unknown(at, "it has half of a character");
                            }
                            InterpolatedStringElement::Literal(literal) => out.push_str(&literal.value),
                            InterpolatedStringElement::Interpolation(hole) => {
                                let spot = spot(scope.module, hole.start());
                                let is_plain = hole.debug_text.is_none()
                                    && hole.format_spec.is_none()
                                    && hole.conversion == ruff_python_ast::ConversionFlag::None;
                                let value = self.value(scope, &hole.expression, depth + 1);
                                match value.data {
                                    Data::Unknown(hole) => return Datum::unknown(hole.spot, hole.why),
                                    Data::Text(text) if is_plain => out.push_str(&text),
                                    Data::Number(number) if is_plain && !number.is_f64() => {
                                        out.push_str(&number.to_string());
                                    }
                                    Data::Bool(value) if is_plain => out.push_str(if value { "True" } else { "False" }),
                                    Data::Null if is_plain => out.push_str("None"),
                                    _ => return Datum::unknown(spot, "an f-string formats a value"),
                                }
                            }
                        }
                    }
                }
            }
        }
        Datum::new(at, Data::Text(out))
    }

    /// Adds up a chain of any length without going deeper for each link.
    fn sum(&self, scope: Scope<'_>, at: Spot, expression: &Expr, depth: usize) -> Datum {
        let mut parts = Vec::new();
        let mut rest = expression;
        while let Expr::BinOp(operation) = rest
            && operation.op == Operator::Add
        {
            parts.push(&*operation.right);
            rest = &operation.left;
        }
        parts.push(rest);
        let (mut sum, mut size): (Option<Data>, usize) = (None, 0);
        for part in parts.into_iter().rev() {
            let part = self.value(scope, part, depth + 1);
            sum = Some(match (sum, part.data) {
                (_, Data::Unknown(hole)) => return Datum::unknown(hole.spot, hole.why),
                (None, data) => data,
                (Some(Data::Text(mut left)), Data::Text(right)) if left.len() + right.len() < LARGEST => {
                    left.push_str(&right);
                    Data::Text(left)
                }
                (Some(Data::List(mut left, hole)), Data::List(right, more)) => {
                    size += part.size;
                    if size > LARGEST {
                        return Datum::unknown(at, TOO_LARGE);
                    }
                    left.extend(right);
                    Data::List(left, hole.or(more))
                }
                _ => return Datum::unknown(at, "an operator gives it"),
            });
        }
        Datum::new(at, sum.unwrap_or(Data::Null))
    }

    fn list(&self, scope: Scope<'_>, at: Spot, items: &[Expr], depth: usize) -> Datum {
        let (mut out, mut rest, mut size): (Vec<Datum>, _, usize) = (Vec::new(), None, 0);
        for item in items {
            if size > LARGEST {
                return Datum::unknown(at, TOO_LARGE);
            }
            match item {
                Expr::Starred(starred) => {
                    let inner = self.value(scope, &starred.value, depth + 1);
                    match inner.data {
                        Data::List(items, hole) => {
                            size += inner.size;
                            out.extend(items);
                            rest = rest.or(hole);
                        }
                        Data::Unknown(hole) => rest = rest.or(Some(hole)),
                        _ => rest = rest.or(Some(Hole { spot: inner.spot, why: "it is no list".to_owned() })),
                    }
                }
                item => {
                    let item = self.value(scope, item, depth + 1);
                    size += item.size;
                    out.push(item);
                }
            }
        }
        Datum::new(at, Data::List(out, rest))
    }

    fn named(&self, scope: Scope<'_>, at: Spot, expression: &Expr, depth: usize) -> Datum {
        let shown = || self.shown(scope.module, expression);
        match self.meaning(scope, expression) {
            Meaning::Value { module, name, value } => {
                if let Some(known) = self.known.borrow().get(&(module, name)) {
                    let circle = || Datum::unknown(at, format!("'{name}' is made of itself"));
                    return known.clone().unwrap_or_else(circle);
                }
                self.known.borrow_mut().insert((module, name), None);
                let mut datum = self.value(Scope::of_module(module), value, depth + 1);
                if datum.is_mutable() && self.names(module).is_changed(name) {
                    datum = Datum::unknown(datum.spot, format!("'{name}' is changed after it was made"));
                }
                self.known.borrow_mut().insert((module, name), Some(datum.clone()));
                datum
            }
            Meaning::ClassMember { module, class, member } => self.class_member(at, module, class, &member, depth),
            Meaning::External(dotted) => Datum::unknown(at, format!("'{dotted}' is not part of the project")),
            Meaning::Unclear => Datum::unknown(at, format!("it is not clear what '{}' is", shown())),
            _ => Datum::unknown(at, format!("'{}' is no plain value", shown())),
        }
    }

    /// Returns a constant of a class that has no others above it: a member of an enumeration is not its value.
    fn class_member(
        &self,
        at: Spot,
        module: usize,
        class: &ruff_python_ast::StmtClassDef,
        member: &str,
        depth: usize,
    ) -> Datum {
        let assigned = class.body.iter().filter_map(|statement| match statement {
            ruff_python_ast::Stmt::Assign(assign) => match &assign.targets[..] {
                [Expr::Name(name)] if name.id.as_str() == member => Some(&*assign.value),
                _ => None,
            },
            ruff_python_ast::Stmt::AnnAssign(assign) => match &*assign.target {
                Expr::Name(name) if name.id.as_str() == member => assign.value.as_deref(),
                _ => None,
            },
            _ => None,
        });
        let assigned: Vec<&Expr> = assigned.collect();
        match assigned[..] {
            [value] if class.bases().is_empty() => self.value(Scope::of_module(module), value, depth + 1),
            _ => Datum::unknown(at, format!("it is not clear what '{}.{member}' is", class.name)),
        }
    }

    fn called(&self, scope: Scope<'_>, at: Spot, call: &ExprCall, depth: usize) -> Datum {
        if let Expr::Attribute(method) = &*call.func
            && let Some(datum) = self.method(scope, at, call, &method.value, method.attr.as_str(), depth)
        {
            return datum;
        }
        let only = || match (&call.arguments.args[..], &call.arguments.keywords[..]) {
            ([argument], []) => Some(self.value(scope, argument, depth + 1)),
            _ => None,
        };
        let text_function = |change: fn(&str) -> String| match only() {
            Some(Datum { data: Data::Text(text), .. }) => Datum::new(at, Data::Text(change(&text))),
            Some(Datum { data: Data::Unknown(hole), .. }) => Datum::unknown(hole.spot, hole.why),
            _ => Datum::unknown(at, "a call gives it"),
        };
        match self.meaning(scope, &call.func) {
            Meaning::External(name) if name == "textwrap.dedent" => text_function(dedent),
            Meaning::External(name) if name == "inspect.cleandoc" => text_function(clean_doc),
            Meaning::Builtin(name) if name == "dict" => {
                let mut entries = Entries::default();
                match &call.arguments.args[..] {
                    [] => {}
                    [first] => {
                        let first = self.value(scope, first, depth + 1);
                        entries.spread(first.spot, first.data);
                    }
                    _ => return Datum::unknown(at, "a call gives it"),
                }
                self.keywords(scope, &call.arguments.keywords, &mut entries, depth);
                Datum::new(at, entries.finish())
            }
            Meaning::Builtin(name) if matches!(name.as_str(), "list" | "tuple") => match only() {
                Some(Datum { data: Data::List(items, hole), .. }) => Datum::new(at, Data::List(items, hole)),
                _ => Datum::unknown(at, "a call gives it"),
            },
            _ => Datum::unknown(at, format!("a call of '{}' gives it", self.shown(scope.module, &call.func))),
        }
    }

    /// Returns keyword arguments as a dictionary.
    pub(super) fn keyword_arguments(&self, scope: Scope<'_>, at: Spot, keywords: &[Keyword]) -> Datum {
        let mut entries = Entries::default();
        self.keywords(scope, keywords, &mut entries, 0);
        Datum::new(at, entries.finish())
    }

    fn keywords(&self, scope: Scope<'_>, keywords: &[Keyword], entries: &mut Entries, depth: usize) {
        for keyword in keywords {
            let value = self.value(scope, &keyword.value, depth + 1);
            match &keyword.arg {
                Some(name) => entries.set(name.to_string(), value),
                None => entries.spread(value.spot, value.data),
            }
        }
    }

    /// Returns what a method of a text gives; none for a call that is something else.
    fn method(
        &self,
        scope: Scope<'_>,
        at: Spot,
        call: &ExprCall,
        object: &Expr,
        method: &str,
        depth: usize,
    ) -> Option<Datum> {
        if !matches!(method, "strip" | "lstrip" | "rstrip" | "join" | "format") {
            return None;
        }
        let object = self.value(scope, object, depth + 1);
        let text = match object.data {
            Data::Text(text) => text,
            Data::Unknown(hole) => return Some(Datum::unknown(hole.spot, hole.why)),
            _ => return None,
        };
        let arguments: Vec<Datum> =
            call.arguments.args.iter().map(|argument| self.value(scope, argument, depth + 1)).collect();
        let changed = match (method, &arguments[..]) {
            _ if !call.arguments.keywords.is_empty() => None,
            ("strip", []) => Some(strip(&text).to_owned()),
            ("lstrip", []) => Some(strip_start(&text).to_owned()),
            ("rstrip", []) => Some(strip_end(&text).to_owned()),
            ("join", [Datum { data: Data::List(items, None), .. }]) => {
                let items: Option<Vec<&str>> = items.iter().map(Datum::text).collect();
                let length = |items: &Vec<&str>| items.iter().map(|item| item.len() + text.len()).sum::<usize>();
                items.filter(|items| length(items) <= LARGEST).map(|items| items.join(&text))
            }
            _ => None,
        };
        let why = || format!("a call of '{method}' gives it");
        Some(changed.map_or_else(|| Datum::unknown(at, why()), |text| Datum::new(at, Data::Text(text))))
    }

    /// Returns an expression as it stands in its source, in short.
    pub(super) fn shown(&self, module: usize, expression: &Expr) -> String {
        let text = &self.source(module).text;
        in_short(text, expression)
    }
}

/// Returns the part of a text that an expression is, on one line and cut where it is long.
pub(super) fn in_short(text: &str, expression: &Expr) -> String {
    let part = text.get(expression.start().to_usize()..expression.end().to_usize()).unwrap_or_default();
    shorten(&part.split_whitespace().collect::<Vec<_>>().join(" "), 40).into_owned()
}

fn number(at: Spot, number: &Number, is_negative: bool) -> Datum {
    let number = match number {
        Number::Int(number) => number.as_i64().map(|number| if is_negative { -number } else { number }).map(Into::into),
        Number::Float(number) => serde_json::Number::from_f64(if is_negative { -number } else { *number }),
        Number::Complex { .. } => None,
    };
    match number {
        Some(number) => Datum::new(at, Data::Number(number)),
        None => Datum::unknown(at, "the number is none of JSON's"),
    }
}

/// Tells whether a literal has an escape of a surrogate, which no text outside of Python can have.
fn has_surrogate(source: &str, value: &str, written: TextRange) -> bool {
    if !value.contains('\u{fffd}') {
        return false;
    }
    let written = source.get(written.start().to_usize()..written.end().to_usize()).unwrap_or_default().to_lowercase();
    ["\\ud", "\\u0000d"].iter().any(|escape| written.contains(escape))
}

fn described(expression: &Expr) -> &'static str {
    match expression {
        Expr::ListComp(_) | Expr::DictComp(_) | Expr::SetComp(_) | Expr::Generator(_) => "a comprehension gives it",
        Expr::If(_) => "a condition gives it",
        Expr::BytesLiteral(_) => "it is bytes, not text",
        Expr::TString(_) => "it is a template, not text",
        Expr::Lambda(_) => "it is a function",
        _ => "an expression gives it",
    }
}

/// The entries of a dictionary as it is being built.
#[derive(Default)]
struct Entries {
    known: Vec<(String, Datum)>,
    /// Where each key is.
    places: HashMap<String, usize>,
    rest: Option<Hole>,
    /// Roughly how much was set so far.
    size: usize,
}

impl Entries {
    fn set(&mut self, key: String, mut value: Datum) {
        self.size += key.len() + value.size;
        if self.size > LARGEST {
            value = Datum::unknown(value.spot, TOO_LARGE);
        }
        match self.places.entry(key) {
            // As in Python, a key keeps its first place.
            Entry::Occupied(place) => self.known[*place.get()].1 = value,
            Entry::Vacant(place) => {
                self.known.push((place.key().clone(), value));
                place.insert(self.known.len() - 1);
            }
        }
    }

    /// Takes note that any key may be set here, also one that is known so far.
    fn open(&mut self, hole: Hole) {
        for (_, value) in &mut self.known {
            *value = Datum::unknown(hole.spot, hole.why.clone());
        }
        self.rest = self.rest.take().or(Some(hole));
    }

    fn spread(&mut self, at: Spot, data: Data) {
        match data {
            Data::Dict(entries, rest) => {
                if let Some(hole) = rest {
                    self.open(hole);
                }
                for (key, value) in entries {
                    self.set(key, value);
                }
            }
            Data::Unknown(hole) => self.open(hole),
            _ => self.open(Hole { spot: at, why: "it is no dictionary".to_owned() }),
        }
    }

    fn finish(self) -> Data {
        Data::Dict(self.known, self.rest)
    }
}
