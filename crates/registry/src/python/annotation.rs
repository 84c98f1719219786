//! Type annotations as JSON Schema.

use std::cell::Cell;
use std::mem::ManuallyDrop;

use ruff_python_ast::{Expr, ExprCall, ExprSubscript, Mod, Operator, UnaryOp};
use ruff_python_parser::{Mode, ParseOptions, parse_unchecked};
use ruff_text_size::Ranged;
use serde_json::{Map, Value, json};

use super::data::{Data, Hole};
use super::evaluate::in_short;
use super::framework::Framework;
use super::program::{Spot, is_nested_too_deeply, spot};
use super::world::{Meaning, Scope, World};

/// How deep types are followed.
pub(super) const DEEPEST: usize = 60;

/// How many types are followed for one tool: a few aliases can double a type many times.
const MOST_STEPS: usize = 20_000;

/// More reasons than this tell nobody more.
const MOST_HOLES: usize = 100;

/// Turns annotations into a schema, and takes note of what it cannot tell: such a part allows everything.
pub(super) struct SchemaWriter<'w, 'p> {
    pub(super) world: &'w World<'p>,
    pub(super) framework: Framework,
    /// Models by their name, in the order in which they were met.
    pub(super) definitions: Vec<(String, Spot, Value)>,
    pub(super) holes: Vec<Hole>,
    /// `Annotated[…]` held a default since this was last asked for.
    has_inner_default: bool,
    /// In an annotation that is a text: the text and its place, which is the place of all in it.
    quoted: Option<(Spot, String)>,
    depth: usize,
    /// Names of types that are being followed: a type may be made of itself.
    following: Vec<(usize, &'p str)>,
    /// How many more steps are taken for this tool.
    steps: Cell<usize>,
}

/// What stands beside a type: `Annotated[str, Field(…)]`, or the default `Field(…)`.
#[derive(Default)]
pub(super) struct Beside {
    /// Keywords that describe: description, title, examples.
    notes: Map<String, Value>,
    /// Keywords that limit the value, by the name of `Field`'s argument.
    limits: Vec<(&'static str, Value)>,
    pub(super) default: Option<Value>,
    /// There is a default, known or not.
    pub(super) has_default: bool,
}

impl<'w, 'p> SchemaWriter<'w, 'p> {
    pub(super) fn new(world: &'w World<'p>, framework: Framework) -> Self {
        Self {
            world,
            framework,
            definitions: Vec::new(),
            holes: Vec::new(),
            has_inner_default: false,
            quoted: None,
            depth: 0,
            following: Vec::new(),
            steps: Cell::new(MOST_STEPS),
        }
    }

    /// Takes a step; false when there were too many.
    pub(super) fn step(&self) -> bool {
        let left = self.steps.get();
        self.steps.set(left.saturating_sub(1));
        left > 0
    }

    pub(super) fn hole(&mut self, at: Spot, why: impl Into<String>) {
        self.note(Hole { spot: at, why: why.into() });
    }

    fn note(&mut self, hole: Hole) {
        let spot = self.quoted.as_ref().map_or(hole.spot, |(spot, _)| *spot);
        let hole = Hole { spot, ..hole };
        if self.holes.last() != Some(&hole) && self.holes.len() < MOST_HOLES {
            self.holes.push(hole);
        }
    }

    fn shown(&self, module: usize, expression: &Expr) -> String {
        match &self.quoted {
            Some((_, text)) => in_short(text, expression),
            None => self.world.shown(module, expression),
        }
    }

    fn unknown(&mut self, at: Spot, why: impl Into<String>) -> Value {
        self.hole(at, why);
        json!({})
    }

    /// Returns the schema of a type.
    pub(super) fn of_type(&mut self, scope: Scope<'_>, annotation: &Expr) -> Value {
        let at = spot(scope.module, annotation.start());
        if self.depth > DEEPEST {
            return self.unknown(at, "the type is nested too deeply");
        }
        if !self.step() {
            return self.unknown(at, "the types of the parameters are larger than karat reads");
        }
        self.depth += 1;
        let schema = self.type_at(scope, annotation, at);
        self.depth -= 1;
        schema
    }

    /// Tells whether the last annotation held a default, as in `Annotated[int, Field(default=1)]`.
    pub(super) fn take_inner_default(&mut self) -> bool {
        std::mem::take(&mut self.has_inner_default)
    }

    fn type_at(&mut self, scope: Scope<'_>, annotation: &Expr, at: Spot) -> Value {
        match annotation {
            Expr::NoneLiteral(_) => json!({"type": "null"}),
            Expr::StringLiteral(text) => {
                let Some(parsed) = parse_quoted(text.value.to_str()) else {
                    return self.unknown(at, "the annotation is a text that is no type");
                };
                let at = self.quoted.as_ref().map_or(at, |(spot, _)| *spot);
                let outer = self.quoted.replace((at, text.value.to_str().to_owned()));
                let schema = self.of_type(scope, &parsed);
                self.quoted = outer;
                schema
            }
            Expr::BinOp(operation) if operation.op == Operator::BitOr => {
                let mut members = Vec::new();
                let mut rest = annotation;
                while let Expr::BinOp(operation) = rest
                    && operation.op == Operator::BitOr
                {
                    members.push(&*operation.right);
                    rest = &operation.left;
                }
                members.push(rest);
                members.reverse();
                self.union(scope, &members)
            }
            Expr::Subscript(subscript) => {
                let schema = self.generic(scope, at, subscript);
                // A default within another type is not one of the parameter.
                let is_annotated = self.world.last_name(scope, &subscript.value).as_deref() == Some("Annotated");
                self.has_inner_default &= is_annotated;
                schema
            }
            Expr::Name(_) | Expr::Attribute(_) => self.named(scope, at, annotation),
            _ => self.unknown(at, format!("the type '{}' is not known", self.shown(scope.module, annotation))),
        }
    }

    fn named(&mut self, scope: Scope<'_>, at: Spot, annotation: &Expr) -> Value {
        match self.world.meaning(scope, annotation) {
            Meaning::Builtin(name) => match name.as_str() {
                "str" => json!({"type": "string"}),
                "int" => json!({"type": "integer"}),
                "float" => json!({"type": "number"}),
                "bool" => json!({"type": "boolean"}),
                "list" | "tuple" => json!({"type": "array", "items": {}}),
                "set" | "frozenset" => json!({"type": "array", "items": {}, "uniqueItems": true}),
                "dict" => json!({"type": "object", "additionalProperties": true}),
                "object" => json!({}),
                _ => self.unknown(at, format!("the type '{name}' is not known")),
            },
            Meaning::External(dotted) => match bare(&dotted) {
                Some(schema) => schema,
                None => self.unknown(at, format!("the type '{dotted}' is not part of the project")),
            },
            Meaning::Value { module, name, .. } if self.following.contains(&(module, name)) => {
                self.unknown(at, format!("the type '{name}' is made of itself"))
            }
            Meaning::Value { module, name, value } => {
                self.following.push((module, name));
                // A text in it is one of its own module.
                let outer = self.quoted.take();
                let schema = self.of_type(Scope::of_module(module), value);
                self.quoted = outer;
                self.following.pop();
                schema
            }
            Meaning::Class { module, class } => self.of_class(at, module, class),
            _ => {
                let shown = self.shown(scope.module, annotation);
                self.unknown(at, format!("it is not clear what the type '{shown}' is"))
            }
        }
    }

    fn generic(&mut self, scope: Scope<'_>, at: Spot, subscript: &ExprSubscript) -> Value {
        let name = match self.world.meaning(scope, &subscript.value) {
            Meaning::Builtin(name) => name,
            Meaning::External(dotted) => match dotted.rsplit_once('.') {
                Some(("typing" | "typing_extensions" | "collections.abc" | "t", name)) => name.to_owned(),
                _ => String::new(),
            },
            _ => String::new(),
        };
        let arguments: Vec<&Expr> = match &*subscript.slice {
            Expr::Tuple(tuple) => tuple.elts.iter().collect(),
            one => vec![one],
        };
        match (name.as_str(), &arguments[..]) {
            ("Optional", [inner]) => {
                let inner = self.of_type(scope, inner);
                any_of(vec![inner, json!({"type": "null"})])
            }
            ("Union", members) => self.union(scope, members),
            ("Literal", values) => self.literal(scope, at, values),
            ("Annotated", [inner, rest @ ..]) => {
                let schema = self.of_type(scope, inner);
                let beside = self.beside(scope, rest);
                self.has_inner_default |= beside.has_default;
                self.apply(at, schema, &beside)
            }
            ("set" | "Set" | "frozenset" | "FrozenSet" | "MutableSet" | "AbstractSet", [inner]) => {
                json!({"type": "array", "items": self.of_type(scope, inner), "uniqueItems": true})
            }
            ("list" | "List" | "Sequence" | "Iterable" | "Collection" | "MutableSequence" | "deque", [inner])
            | ("tuple" | "Tuple", [inner, Expr::EllipsisLiteral(_)]) => {
                json!({"type": "array", "items": self.of_type(scope, inner)})
            }
            ("tuple" | "Tuple", members) if !members.iter().any(|member| member.is_starred_expr()) => {
                let items: Vec<Value> = members.iter().map(|member| self.of_type(scope, member)).collect();
                json!({"type": "array", "prefixItems": items, "minItems": members.len(), "maxItems": members.len()})
            }
            ("dict" | "Dict" | "Mapping" | "MutableMapping" | "DefaultDict", [key, value]) => {
                let is_text = matches!(self.world.meaning(scope, key), Meaning::Builtin(name) if name == "str");
                if !is_text {
                    self.hole(at, "what the keys of the dictionary are");
                }
                match self.of_type(scope, value) {
                    Value::Object(schema) if schema.is_empty() => {
                        json!({"type": "object", "additionalProperties": true})
                    }
                    schema => json!({"type": "object", "additionalProperties": schema}),
                }
            }
            ("Required" | "NotRequired" | "ReadOnly" | "Final", [inner]) => self.of_type(scope, inner),
            _ => {
                let shown = self.shown(scope.module, &subscript.value);
                self.unknown(at, format!("the type '{shown}[…]' is not known"))
            }
        }
    }

    fn union(&mut self, scope: Scope<'_>, members: &[&Expr]) -> Value {
        let members: Vec<Value> = members.iter().map(|member| self.of_type(scope, member)).collect();
        self.has_inner_default = false;
        any_of(members)
    }

    fn literal(&mut self, scope: Scope<'_>, at: Spot, values: &[&Expr]) -> Value {
        let mut known = Vec::new();
        for value in values {
            match self.literal_value(scope, value) {
                Some(value) if !known.contains(&value) => known.push(value),
                Some(_) => {}
                None => return self.unknown(at, "a value of 'Literal' is not known"),
            }
        }
        enumeration(known)
    }

    fn literal_value(&mut self, scope: Scope<'_>, value: &Expr) -> Option<Value> {
        if let Some(value) = self.enum_member(scope, value) {
            return Some(value);
        }
        // A name in `Literal` is no constant to Python's type checkers, but to Python it is.
        self.world.evaluate(scope, value).json().ok()
    }

    /// Returns what stands beside a type.
    pub(super) fn beside(&mut self, scope: Scope<'_>, items: &[&Expr]) -> Beside {
        let mut beside = Beside::default();
        for item in items {
            let at = spot(scope.module, item.start());
            match item {
                Expr::Call(call) if self.is_field(scope, call) => self.field(scope, call, &mut beside),
                // FastMCP takes a text only when nothing else stands there.
                Expr::StringLiteral(_) if self.framework == Framework::FastMcp && items.len() > 1 => {}
                Expr::StringLiteral(text) => match self.framework.takes_annotated_text() {
                    Some(true) => {
                        let text = text.value.to_str();
                        beside.notes.entry("description").or_insert_with(|| text.into());
                    }
                    Some(false) => {}
                    None => self.hole(at, "whether a text beside the type describes it depends on the library"),
                },
                _ => {
                    let shown = self.shown(scope.module, item);
                    self.hole(at, format!("what '{shown}' says of the type is not known"));
                }
            }
        }
        beside
    }

    /// Tells whether a call is pydantic's `Field`.
    pub(super) fn is_field(&self, scope: Scope<'_>, call: &ExprCall) -> bool {
        match self.world.meaning(scope, &call.func) {
            Meaning::External(dotted) => matches!(dotted.as_str(), "pydantic.Field" | "pydantic.fields.Field"),
            _ => false,
        }
    }

    /// Reads the arguments of `Field`.
    pub(super) fn field(&mut self, scope: Scope<'_>, call: &ExprCall, beside: &mut Beside) {
        const LIMITS: [&str; 8] = ["ge", "gt", "le", "lt", "multiple_of", "min_length", "max_length", "pattern"];
        if let Some(first) = call.arguments.args.first() {
            self.default(scope, first, beside);
        }
        for keyword in &call.arguments.keywords {
            let at = spot(scope.module, keyword.start());
            let Some(name) = keyword.arg.as_ref().map(ruff_python_ast::Identifier::as_str) else {
                self.hole(at, "what the arguments of 'Field' are");
                continue;
            };
            let value = || self.world.evaluate(scope, &keyword.value).json().map_err(Clone::clone);
            match name {
                "default" => self.default(scope, &keyword.value, beside),
                "default_factory" => beside.has_default = true,
                "strict" | "repr" | "init" | "frozen" | "exclude" | "kw_only" | "validate_default" => {}
                "description" | "title" | "examples" => match value() {
                    Ok(Value::Null) => {}
                    Ok(value) => {
                        beside.notes.insert(name.to_owned(), value);
                    }
                    Err(hole) => self.note(hole),
                },
                _ => match (LIMITS.iter().find(|limit| **limit == name), value()) {
                    (Some(_), Ok(Value::Null)) => {}
                    (Some(limit), Ok(value)) => beside.limits.push((limit, value)),
                    (Some(_), Err(hole)) => self.note(hole),
                    (None, _) => self.hole(at, format!("what '{name}' of 'Field' does to the schema is not known")),
                },
            }
        }
    }

    /// Reads a default; `...` stands for none.
    pub(super) fn default(&mut self, scope: Scope<'_>, value: &Expr, beside: &mut Beside) {
        if value.is_ellipsis_literal_expr() {
            return;
        }
        beside.has_default = true;
        if let Some(member) = self.enum_member(scope, value) {
            beside.default = Some(member);
            return;
        }
        let value = self.world.evaluate(scope, value);
        match value.json() {
            Ok(value) => beside.default = Some(value),
            Err(hole) => self.note(hole.clone()),
        }
    }

    /// Adds what stands beside a type to its schema.
    pub(super) fn apply(&mut self, at: Spot, schema: Value, beside: &Beside) -> Value {
        let Value::Object(mut schema) = schema else {
            return schema;
        };
        for (limit, value) in &beside.limits {
            // A limit of something optional is one of the type that it may be.
            let target = match schema.get_mut("anyOf").and_then(Value::as_array_mut) {
                Some(members) => match &mut members[..] {
                    [Value::Object(inner), other] if *other == json!({"type": "null"}) => Some(inner),
                    _ => None,
                },
                None => Some(&mut schema),
            };
            let keyword = target.as_ref().and_then(|target| keyword(limit, target.get("type")?.as_str()?));
            match (target, keyword) {
                (Some(target), Some(keyword)) => {
                    target.insert(keyword.to_owned(), value.clone());
                }
                _ => self.hole(at, format!("what '{limit}' limits is not known")),
            }
        }
        for (name, value) in &beside.notes {
            schema.insert(name.clone(), value.clone());
        }
        if let Some(default) = &beside.default {
            schema.insert("default".to_owned(), default.clone());
        }
        Value::Object(schema)
    }

    /// Returns the finished schema of an object with these properties.
    pub(super) fn finish(&mut self, mut schema: Map<String, Value>) -> Value {
        if !self.definitions.is_empty() {
            let definitions = std::mem::take(&mut self.definitions);
            let definitions = definitions.into_iter().map(|(name, _, schema)| (name, schema)).collect();
            schema.insert("$defs".to_owned(), Value::Object(definitions));
        }
        Value::Object(schema)
    }

    /// Returns what a negative number or a plain literal is, for a class's own values.
    pub(super) fn plain(&self, scope: Scope<'_>, value: &Expr) -> Option<Value> {
        match value {
            Expr::UnaryOp(operation) if operation.op != UnaryOp::USub => None,
            value => match self.world.evaluate(scope, value) {
                datum if matches!(datum.data, Data::Unknown(_)) => None,
                datum => datum.json().ok(),
            },
        }
    }
}

/// Parses an annotation that is a text; never dropped, since it may be nested deeper than the stack that this takes.
pub(super) fn parse_quoted(text: &str) -> Option<ManuallyDrop<Box<Expr>>> {
    if is_nested_too_deeply(text) {
        return None;
    }
    let parsed = ManuallyDrop::new(parse_unchecked(text, ParseOptions::from(Mode::Expression)));
    if !parsed.has_valid_syntax() {
        return None;
    }
    match ManuallyDrop::into_inner(parsed).into_syntax() {
        Mod::Expression(parsed) => Some(ManuallyDrop::new(parsed.body)),
        Mod::Module(_) => None,
    }
}

/// Returns the schema of a library's type that stands alone.
fn bare(dotted: &str) -> Option<Value> {
    let (module, name) = dotted.rsplit_once('.')?;
    Some(match (module, name) {
        ("typing" | "typing_extensions", "Any") => json!({}),
        ("typing" | "typing_extensions", "Text") => json!({"type": "string"}),
        ("typing" | "typing_extensions", "List" | "Tuple" | "Sequence" | "Iterable")
        | ("collections.abc", "Sequence" | "Iterable") => json!({"type": "array", "items": {}}),
        ("typing" | "typing_extensions", "Dict" | "Mapping") | ("collections.abc", "Mapping") => {
            json!({"type": "object", "additionalProperties": true})
        }
        ("datetime", "datetime") => json!({"type": "string", "format": "date-time"}),
        ("datetime", "date") => json!({"type": "string", "format": "date"}),
        ("datetime", "time") => json!({"type": "string", "format": "time"}),
        ("datetime", "timedelta") => json!({"type": "string", "format": "duration"}),
        ("uuid", "UUID") => json!({"type": "string", "format": "uuid"}),
        ("pathlib", "Path") => json!({"type": "string", "format": "path"}),
        ("pydantic", "EmailStr") => json!({"type": "string", "format": "email"}),
        _ => return None,
    })
}

/// Returns the keyword of JSON Schema for an argument of `Field`.
fn keyword(limit: &str, kind: &str) -> Option<&'static str> {
    Some(match (limit, kind) {
        ("ge", "integer" | "number") => "minimum",
        ("gt", "integer" | "number") => "exclusiveMinimum",
        ("le", "integer" | "number") => "maximum",
        ("lt", "integer" | "number") => "exclusiveMaximum",
        ("multiple_of", "integer" | "number") => "multipleOf",
        ("min_length", "string") => "minLength",
        ("max_length", "string") => "maxLength",
        ("min_length", "array") => "minItems",
        ("max_length", "array") => "maxItems",
        ("min_length", "object") => "minProperties",
        ("max_length", "object") => "maxProperties",
        ("pattern", "string") => "pattern",
        _ => return None,
    })
}

/// Returns one of several schemas; unions in unions are one, and equal members stand once.
fn any_of(members: Vec<Value>) -> Value {
    let mut flat: Vec<Value> = Vec::new();
    for member in members {
        let inner = match member {
            Value::Object(mut object) if object.len() == 1 && object.contains_key("anyOf") => {
                match object.remove("anyOf") {
                    Some(Value::Array(inner)) => inner,
                    _ => Vec::new(),
                }
            }
            other => vec![other],
        };
        for member in inner {
            if !flat.contains(&member) {
                flat.push(member);
            }
        }
    }
    // As pydantic has it, nothing comes last.
    if let Some(at) = flat.iter().position(|member| *member == json!({"type": "null"})) {
        let null = flat.remove(at);
        flat.push(null);
    }
    if flat.len() == 1 { flat.swap_remove(0) } else { json!({"anyOf": flat}) }
}

/// Returns the schema of a few values.
pub(super) fn enumeration(values: Vec<Value>) -> Value {
    let kind = |value: &Value| match value {
        Value::String(_) => Some("string"),
        Value::Bool(_) => Some("boolean"),
        Value::Number(number) if number.is_f64() => Some("number"),
        Value::Number(_) => Some("integer"),
        _ => None,
    };
    let mut schema = Map::new();
    let first = values.first().and_then(kind);
    if let (Some(first), true) = (first, values.iter().all(|value| kind(value) == first)) {
        schema.insert("type".to_owned(), first.into());
    }
    match <[Value; 1]>::try_from(values) {
        Ok([only]) => schema.insert("const".to_owned(), only),
        Err(values) => schema.insert("enum".to_owned(), Value::Array(values)),
    };
    Value::Object(schema)
}
