//! Evaluates strings, lists and objects statically: literals, concatenation, simple templates and spreads.

use serde_json::{Map, Value};

use super::discovery::Origin;
use super::evaluate::{LocatedExpr, MAX_STEPS, ResolvedValue, UnknownReason};
use super::project::Project;
use super::syntax::{Arithmetic, Call, Entry, Expr, Kind, Language};
use super::text::{clean_doc, dedent};

const MAX_TEXT_BYTES: usize = 1 << 20;

impl Project {
    /// Returns the items of a list, including spreads, or `None` if it is not a list or a spread is unknown.
    pub(crate) fn items<'p>(&'p self, located: &LocatedExpr<'p>) -> Option<Vec<LocatedExpr<'p>>> {
        let mut items = Vec::new();
        self.add_items(located, &mut items).then_some(items)
    }

    /// Returns the known items of a list.
    pub(crate) fn known_items<'p>(&'p self, located: &LocatedExpr<'p>) -> Vec<LocatedExpr<'p>> {
        let mut items = Vec::new();
        self.add_items(located, &mut items);
        items
    }

    /// Adds the items of a list. Returns whether all items are known.
    fn add_items<'p>(&'p self, located: &LocatedExpr<'p>, items: &mut Vec<LocatedExpr<'p>>) -> bool {
        let Some(resolved) = self.resolve_expr(located) else { return false };
        match &resolved.expr.kind {
            Kind::List(written) => written.iter().fold(true, |is_whole, item| {
                if let Kind::Spread(inner) = &item.kind {
                    return self.add_items(&resolved.with(inner), items) && is_whole;
                }
                items.push(resolved.with(item));
                is_whole
            }),
            Kind::Add(left, right) => {
                let is_whole = self.add_items(&resolved.with(left), items);
                self.add_items(&resolved.with(right), items) && is_whole
            }
            Kind::Call(call) => match (call.callee.last_name(), call.arguments.as_slice()) {
                (Some("list" | "tuple" | "set" | "frozenset" | "sorted"), [only]) => {
                    self.add_items(&resolved.with(only), items)
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// Returns the entries of an object in source order.
    pub(crate) fn entries<'p>(&'p self, located: &LocatedExpr<'p>) -> Option<Entries<'p>> {
        let resolved = self.resolve_expr(located)?;
        let mut entries = Entries { origin: Some((resolved.module, resolved.expr.at)), ..Entries::default() };
        match &resolved.expr.kind {
            Kind::Object(written) => {
                for entry in written {
                    match entry {
                        Entry::Value { key, value } => match self.text(&resolved.with(key)) {
                            Ok(name) => entries.set(name, key.at, resolved.with(value)),
                            Err(_) => entries.is_open = true,
                        },
                        Entry::Spread(inner) => self.spread(&resolved.with(inner), &mut entries),
                    }
                }
            }
            // `{**a, **b}` as `a | b`, `dict(a=1)`, `Object.assign({}, a, b)`.
            Kind::Or(left, right) => {
                self.spread(&resolved.with(left), &mut entries);
                self.spread(&resolved.with(right), &mut entries);
            }
            Kind::ObjectRest(inner, names) => {
                self.spread(&resolved.with(inner), &mut entries);
                entries.list.retain(|(name, ..)| !names.contains(name));
            }
            Kind::Call(call) => match call.callee.dotted().as_deref() {
                Some("dict") => {
                    call.arguments.iter().for_each(|argument| self.spread(&resolved.with(argument), &mut entries));
                    for (name, value) in &call.named {
                        entries.set(name.clone(), value.at, resolved.with(value));
                    }
                }
                Some("Object.assign") => {
                    call.arguments.iter().for_each(|argument| self.spread(&resolved.with(argument), &mut entries));
                }
                _ => return None,
            },
            _ => return None,
        }
        Some(entries)
    }

    fn spread<'p>(&'p self, located: &LocatedExpr<'p>, entries: &mut Entries<'p>) {
        let inner = match &located.expr.kind {
            Kind::Spread(inner) => located.with(inner),
            _ => located.clone(),
        };
        match self.entries(&inner) {
            Some(inner) => {
                entries.is_open |= inner.is_open;
                entries.bases.extend(inner.origin.into_iter().chain(inner.bases));
                for (name, at, value) in inner.list {
                    entries.set(name, at, value);
                }
            }
            None => entries.is_open = true,
        }
    }

    /// Returns one entry of an object.
    pub(crate) fn entry<'p>(&'p self, located: &LocatedExpr<'p>, name: &str) -> Option<LocatedExpr<'p>> {
        self.entries(located)?.get(name).cloned()
    }

    /// Returns a string, or the reason why it is unknown.
    pub(crate) fn text<'p>(&'p self, located: &LocatedExpr<'p>) -> Result<String, UnknownReason> {
        let text = self.evaluate_text(located, 0)?;
        if text.len() > MAX_TEXT_BYTES {
            return Err(self.unknown_reason(located, "it is too long"));
        }
        Ok(text)
    }

    fn evaluate_text<'p>(&'p self, located: &LocatedExpr<'p>, steps: usize) -> Result<String, UnknownReason> {
        if steps > MAX_STEPS || !self.take_step() {
            return Err(self.unknown_reason(located, "it has too many parts"));
        }
        if let Some(text) = self.name_or_docstring(located) {
            return Ok(text);
        }
        let resolved = match self.resolve(located) {
            ResolvedValue::Expr(resolved) => resolved,
            ResolvedValue::Unknown(reason) => return Err(reason),
            ResolvedValue::Foreign(name) => {
                return Err(self.unknown_reason(located, format!("'{name}' is known only at run time")));
            }
            ResolvedValue::Function(..) | ResolvedValue::Class(..) | ResolvedValue::Module(_) => {
                return Err(self.unknown_reason(located, "it is not a string"));
            }
        };
        match &resolved.expr.kind {
            Kind::Text(text) => Ok(text.clone()),
            Kind::Number(number) if steps > 0 => Ok(number.to_string()),
            Kind::Template(parts) => self.concatenate(&resolved, parts.iter(), steps),
            Kind::Add(..) | Kind::Arithmetic(..) if self.evaluate_integer(&resolved, steps).is_some() => {
                Ok(self.evaluate_integer(&resolved, steps).unwrap_or_default().to_string())
            }
            Kind::Add(..) => {
                // Addition is left-associative: flatten the chain.
                let mut parts = Vec::new();
                let mut rest = resolved.expr;
                while let Kind::Add(left, right) = &rest.kind {
                    parts.push(&**right);
                    rest = left;
                }
                parts.push(rest);
                self.concatenate(&resolved, parts.into_iter().rev(), steps)
            }
            Kind::Conditional(left, right) => {
                let (left, right) = (
                    self.evaluate_text(&resolved.with(left), steps + 1)?,
                    self.evaluate_text(&resolved.with(right), steps + 1)?,
                );
                if left == right { Ok(left) } else { Err(self.unknown_reason(&resolved, "it depends on a condition")) }
            }
            Kind::Call(call) => self.evaluate_text_call(&resolved, call, steps),
            Kind::Or(..) => Err(self.unknown_reason(&resolved, "it depends on a condition")),
            _ => Err(self.unknown_reason(&resolved, "it is computed at run time")),
        }
    }

    /// Evaluates integer arithmetic.
    fn evaluate_integer(&self, located: &LocatedExpr<'_>, steps: usize) -> Option<i64> {
        if steps > MAX_STEPS || !self.take_step() {
            return None;
        }
        let resolved = self.resolve_expr(located)?;
        let number = |part: &Expr| self.evaluate_integer(&resolved.with(part), steps + 1);
        match &resolved.expr.kind {
            Kind::Number(number) => number.as_i64(),
            Kind::Add(left, right) => number(left)?.checked_add(number(right)?),
            Kind::Arithmetic(Arithmetic::Subtract, left, right) => number(left)?.checked_sub(number(right)?),
            Kind::Arithmetic(Arithmetic::Multiply, left, right) => number(left)?.checked_mul(number(right)?),
            Kind::Arithmetic(Arithmetic::Divide, left, right) => {
                let (left, right) = (number(left)?, number(right)?);
                (right != 0 && left % right == 0).then(|| left / right)
            }
            _ => None,
        }
    }

    /// Returns the name or the docstring of a class or function: `cls.__name__`, `search.__doc__`.
    fn name_or_docstring(&self, located: &LocatedExpr<'_>) -> Option<String> {
        let Kind::Member(object, member) = &located.expr.kind else { return None };
        let is_name = member == "__name__";
        if !is_name && member != "__doc__" {
            return None;
        }
        let (name, docstring) = match self.resolve(&located.with(object)) {
            ResolvedValue::Class(module, id) => {
                let class = &self.module(module).classes[id];
                (&class.name, &class.docstring)
            }
            ResolvedValue::Function(module, id) => {
                let function = &self.module(module).functions[id];
                (&function.name, &function.docstring)
            }
            _ => return None,
        };
        if is_name { Some(name.clone()) } else { docstring.as_ref().map(|doc| clean_doc(&doc.text)) }
    }

    fn concatenate<'p>(
        &'p self,
        located: &LocatedExpr<'p>,
        parts: impl Iterator<Item = &'p Expr>,
        steps: usize,
    ) -> Result<String, UnknownReason> {
        let mut text = String::new();
        for part in parts {
            text += &self.evaluate_text(&located.with(part), steps + 1)?;
            if text.len() > MAX_TEXT_BYTES {
                return Err(self.unknown_reason(located, "it is too long"));
            }
        }
        Ok(text)
    }

    /// Evaluates calls that change whitespace or case, or join strings.
    fn evaluate_text_call<'p>(
        &'p self,
        located: &LocatedExpr<'p>,
        call: &'p Call,
        steps: usize,
    ) -> Result<String, UnknownReason> {
        let unknown = || {
            let name = call.callee.dotted().unwrap_or_else(|| "a function".to_owned());
            self.unknown_reason(located, format!("'{name}(…)' is called at run time"))
        };
        let first = || call.arguments.first().map(|argument| located.with(argument)).ok_or_else(unknown);
        if let Kind::Member(object, method) = &call.callee.kind {
            let object = located.with(object);
            let is_plain = call.arguments.is_empty() && call.named.is_empty();
            return match method.as_str() {
                "strip" | "trim" if is_plain => Ok(self.evaluate_text(&object, steps + 1)?.trim().to_owned()),
                "lstrip" | "trimStart" if is_plain => {
                    Ok(self.evaluate_text(&object, steps + 1)?.trim_start().to_owned())
                }
                "rstrip" | "trimEnd" if is_plain => Ok(self.evaluate_text(&object, steps + 1)?.trim_end().to_owned()),
                "lower" | "toLowerCase" if is_plain => Ok(self.evaluate_text(&object, steps + 1)?.to_lowercase()),
                "upper" | "toUpperCase" if is_plain => Ok(self.evaluate_text(&object, steps + 1)?.to_uppercase()),
                "toString" if is_plain => self.evaluate_text(&object, steps + 1),
                "dedent" | "cleandoc" => self.normalise_whitespace(method, &first()?, steps),
                "join" => {
                    // `", ".join(list)` in Python, `list.join(", ")` in JavaScript.
                    let is_python = self.module(located.module).language == Language::Python;
                    let separator = if is_python { Some(object.clone()) } else { first().ok() };
                    let items = if is_python { first()? } else { object };
                    let separator =
                        separator.map_or(Ok(",".to_owned()), |separator| self.evaluate_text(&separator, steps + 1))?;
                    let items = self.items(&items).ok_or_else(unknown)?;
                    let mut text = String::new();
                    for (number, item) in items.iter().enumerate() {
                        if number > 0 {
                            text += &separator;
                        }
                        text += &self.evaluate_text(item, steps + 1)?;
                        if text.len() > MAX_TEXT_BYTES {
                            return Err(self.unknown_reason(located, "it is too long"));
                        }
                    }
                    Ok(text)
                }
                "concat" if self.module(located.module).language == Language::JavaScript => {
                    let mut text = self.evaluate_text(&object, steps + 1)?;
                    for argument in &call.arguments {
                        text += &self.evaluate_text(&located.with(argument), steps + 1)?;
                    }
                    Ok(text)
                }
                _ => Err(unknown()),
            };
        }
        match call.callee.last_name() {
            Some(name @ ("dedent" | "cleandoc" | "outdent" | "stripIndent" | "oneLine")) => {
                self.normalise_whitespace(name, &first()?, steps)
            }
            Some("str" | "String") => self.evaluate_text(&first()?, steps + 1),
            _ => Err(unknown()),
        }
    }

    fn normalise_whitespace<'p>(
        &'p self,
        name: &str,
        text: &LocatedExpr<'p>,
        steps: usize,
    ) -> Result<String, UnknownReason> {
        let text = self.evaluate_text(text, steps + 1)?;
        Ok(match name {
            "dedent" => dedent(&text),
            "oneLine" => text.split_whitespace().collect::<Vec<_>>().join(" "),
            _ => clean_doc(&text),
        })
    }

    pub(crate) fn boolean<'p>(&'p self, located: &LocatedExpr<'p>) -> Option<bool> {
        match &self.resolve_expr(located)?.expr.kind {
            Kind::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns a value as JSON, or `None` if a part of it is unknown.
    pub(crate) fn json<'p>(&'p self, located: &LocatedExpr<'p>) -> Option<Value> {
        self.json_at(located, 0)
    }

    fn json_at<'p>(&'p self, located: &LocatedExpr<'p>, steps: usize) -> Option<Value> {
        if steps > MAX_STEPS || !self.take_step() {
            return None;
        }
        let resolved = self.resolve_expr(located)?;
        match &resolved.expr.kind {
            Kind::Null => Some(Value::Null),
            Kind::Bool(value) => Some(Value::Bool(*value)),
            Kind::Number(number) => Some(Value::Number(number.clone())),
            Kind::List(_) => {
                let items = self.items(&resolved)?;
                items.iter().map(|item| self.json_at(item, steps + 1)).collect::<Option<Vec<_>>>().map(Value::Array)
            }
            Kind::Object(_) | Kind::Or(..) => {
                let entries = self.entries(&resolved)?;
                if entries.is_open {
                    return None;
                }
                let mut members = Map::new();
                for (name, _, value) in &entries.list {
                    members.insert(name.clone(), self.json_at(value, steps + 1)?);
                }
                Some(Value::Object(members))
            }
            _ => self.text(&resolved).ok().map(Value::String),
        }
    }
}

/// Entries of an object.
#[derive(Default, Clone)]
pub(crate) struct Entries<'p> {
    /// Names with their offsets, and values.
    pub(crate) list: Vec<(String, u32, LocatedExpr<'p>)>,
    /// Whether there may be entries with unknown names.
    pub(crate) is_open: bool,
    /// The location of the object.
    origin: Option<Origin>,
    /// The locations of the objects that it spreads: `{ ...base, name: "x" }`.
    pub(crate) bases: Vec<Origin>,
}

impl<'p> Entries<'p> {
    pub(crate) fn get(&self, name: &str) -> Option<&LocatedExpr<'p>> {
        self.list.iter().find(|(known, ..)| known == name).map(|(.., value)| value)
    }

    /// Returns the first entry that exists.
    pub(crate) fn any(&self, names: &[&str]) -> Option<&LocatedExpr<'p>> {
        names.iter().find_map(|name| self.get(name))
    }

    fn set(&mut self, name: String, at: u32, value: LocatedExpr<'p>) {
        match self.list.iter_mut().find(|(known, ..)| *known == name) {
            Some(known) => *known = (name, at, value),
            None => self.list.push((name, at, value)),
        }
    }
}
