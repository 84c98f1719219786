//! What the methods of zod's types make of them.

use std::rc::Rc;

use serde_json::Value as Json;

use super::build::{inner, keys, mask, of_shape, plain};
use super::{Kind, NumberChecks, Range, Rest, SAFE, TextChecks, Wrapper, Zod};
use crate::javascript::evaluate::{Evaluator, why_not};
use crate::javascript::schema::whole_json;
use crate::javascript::value::{Located, Place, Unknown, Value};

/// Calls a method of a type.
pub(in crate::javascript) fn method(
    evaluator: &mut Evaluator,
    zod: &Rc<Zod>,
    name: &str,
    arguments: &[Located],
    place: Place,
) -> Located {
    if let Kind::Unknown(_) = zod.kind {
        // Whatever is made of something unknown is as unknown, but may be optional and described.
        return match name {
            "describe" | "meta" | "optional" | "nullable" | "nullish" | "default" => {
                general(evaluator, zod, name, arguments).unwrap_or_else(|| zod.as_ref().clone()).into_value(place)
            }
            _ => Value::Zod(Rc::clone(zod)).at(place),
        };
    }
    let made = match &zod.kind {
        Kind::Text(checks) => text(checks.clone(), name, arguments, place)
            .map(|checks| checks.map_or_else(Zod::unknown, |checks| with_checks(zod, checks, place))),
        Kind::Number(checks) => number(checks.clone(), name, arguments, place)
            .map(|checks| checks.map_or_else(Zod::unknown, |checks| zod.with(Kind::Number(checks)))),
        Kind::Array { element, size } => sized(*size, name, arguments, place).map(|size| {
            let kind = |size| Kind::Array { element: Rc::clone(element), size };
            size.map_or_else(Zod::unknown, |size| zod.with(kind(size)))
        }),
        Kind::Tuple { items, size, .. } if name == "rest" => arguments
            .first()
            .map(|rest| Zod::new(Kind::Tuple { items: items.clone(), rest: Some(inner(rest)), size: *size })),
        Kind::Tuple { items, rest, size } => sized(*size, name, arguments, place).map(|size| {
            let kind = |size| Kind::Tuple { items: items.clone(), rest: rest.clone(), size };
            size.map_or_else(Zod::unknown, |size| zod.with(kind(size)))
        }),
        Kind::Object { shape, rest } => object(zod, shape, rest, name, arguments),
        Kind::Enum(values) => chosen(values, name, arguments),
        _ => None,
    };
    let made = made.or_else(|| general(evaluator, zod, name, arguments)).unwrap_or_else(|| {
        let why = format!("karat does not know the method '{name}' of zod's types");
        Zod::unknown(Unknown { place, why: why.into(), primitive: false })
    });
    made.into_value(place)
}

/// Gives a text other checks; where zod writes patterns of its own beside those of people, they are not known.
fn with_checks(zod: &Zod, checks: TextChecks, place: Place) -> Zod {
    let is_mixed = checks.is_mixed();
    let mut made = zod.with(Kind::Text(checks));
    if is_mixed && made.unknown.is_empty() {
        let why = "it has patterns beside those of zod's formats, which karat does not know";
        made.unknown.push(Unknown { place, why: why.into(), primitive: true });
    }
    made
}

/// The methods that every type has.
fn general(evaluator: &mut Evaluator, zod: &Rc<Zod>, name: &str, arguments: &[Located]) -> Option<Zod> {
    let first = arguments.first();
    Some(match name {
        "describe" => {
            let mut made = zod.as_ref().clone();
            match first.and_then(Located::to_text) {
                Some(text) => {
                    made.meta.insert("description".to_owned(), Json::from(text));
                }
                None => made.unknown.push(why_not(first?, "it is no text that karat can read")),
            }
            made
        }
        "meta" => {
            let mut made = zod.as_ref().clone();
            match first.map(|first| &first.value) {
                Some(Value::Object(object)) => {
                    made.unknown.extend(object.open.clone());
                    for (key, value) in object.entries() {
                        if key == "id" {
                            let why = "it has an id, by which zod refers to it";
                            let unknown = Unknown { place: value.place, why: why.into(), primitive: true };
                            made.unknown.push(unknown);
                            continue;
                        }
                        match whole_json(value) {
                            Ok(Some(value)) => {
                                made.meta.insert(key.to_owned(), value);
                            }
                            Ok(None) => {}
                            Err(unknown) => made.unknown.push(unknown),
                        }
                    }
                }
                _ => made.unknown.push(why_not(first?, "it is no object that karat can read")),
            }
            made
        }
        "optional" | "exactOptional" => Zod::wrapped(zod, Wrapper::Optional),
        "nullable" => Zod::wrapped(zod, Wrapper::Nullable),
        "nullish" => Zod::wrapped(&Rc::new(Zod::wrapped(zod, Wrapper::Nullable)), Wrapper::Optional),
        "nonoptional" => Zod::wrapped(zod, Wrapper::NonOptional),
        "readonly" => Zod::wrapped(zod, Wrapper::Readonly),
        "array" => Zod::new(Kind::Array { element: Rc::clone(zod), size: Range::default() }),
        "or" => Zod::new(Kind::Union { options: vec![Rc::clone(zod), inner(first?)], exclusive: false }),
        "and" => Zod::new(Kind::Intersection(Rc::clone(zod), inner(first?))),
        "transform" => Zod::wrapped(zod, Wrapper::Transform),
        "pipe" => Zod::wrapped(zod, Wrapper::Pipe { transforming: inner(first?).transforms }),
        "default" | "prefault" | "catch" => {
            let value = match &first?.value {
                Value::Function(module, function) => {
                    let returned = evaluator.returned(*module, function, first?.place);
                    match returned {
                        Some(returned) => returned,
                        None => first?.clone(),
                    }
                }
                _ => first?.clone(),
            };
            match whole_json(&value) {
                Ok(Some(value)) if name == "catch" => Zod::wrapped(zod, Wrapper::Catch(value)),
                Ok(Some(value)) if name == "prefault" => Zod::wrapped(zod, Wrapper::Prefault(value)),
                Ok(Some(value)) => Zod::wrapped(zod, Wrapper::Default(value)),
                Ok(None) => {
                    let mut made = Zod::wrapped(zod, Wrapper::Optional);
                    made.unknown.push(why_not(&value, "it is no value that JSON can hold"));
                    made
                }
                Err(unknown) => {
                    let mut made = Zod::wrapped(zod, Wrapper::Optional);
                    made.unknown.push(unknown);
                    made
                }
            }
        }
        // They check or change at run time what JSON Schema does not speak of.
        "brand" | "refine" | "superRefine" | "refinement" | "overwrite" | "register" => zod.as_ref().clone(),
        "unwrap" | "removeDefault" | "innerType" | "sourceType" => match &zod.kind {
            Kind::Wrapped { inner, .. } => inner.as_ref().clone(),
            Kind::Array { element, .. } => element.as_ref().clone(),
            _ => return None,
        },
        _ => return None,
    })
}

fn text(
    mut checks: TextChecks,
    name: &str,
    arguments: &[Located],
    place: Place,
) -> Option<Result<TextChecks, Unknown>> {
    let first = arguments.first();
    if let Some(size) = sized(checks.size, name, arguments, place) {
        return Some(size.map(|size| TextChecks { size, ..checks }));
    }
    let mut pattern = |format: &str, pattern: Result<String, Unknown>| {
        Some(pattern.map(|pattern| {
            // zod's own patterns are there once; of those that people write each is another one.
            if !(format.ends_with("case") && checks.patterns.contains(&pattern)) {
                checks.patterns.push(pattern);
            }
            checks.format = Some(format.to_owned());
            checks.clone()
        }))
    };
    let escaped = |wrap: fn(String) -> String| match first.and_then(text_of) {
        Some(text) => Ok(wrap(escape(&text))),
        None => Err(refused(first, "it is no text that karat can read", place)),
    };
    match name {
        "regex" => pattern(
            "regex",
            match &first?.value {
                Value::Regex(source) => Ok(source.to_string()),
                _ => Err(why_not(first?, "it is no pattern that karat can read")),
            },
        ),
        "startsWith" => pattern("starts_with", escaped(|text| format!("^{text}.*"))),
        "endsWith" => pattern("ends_with", escaped(|text| format!(".*{text}$"))),
        "includes" if arguments.len() == 1 => pattern("includes", escaped(|text| text)),
        "lowercase" => pattern("lowercase", Ok("^[^A-Z]*$".to_owned())),
        "uppercase" => pattern("uppercase", Ok("^[^a-z]*$".to_owned())),
        "trim" | "normalize" | "toLowerCase" | "toUpperCase" | "slugify" => Some(Ok(checks)),
        _ => format(checks, name, arguments).map(Ok),
    }
}

/// Says why an argument is of no use.
fn refused(argument: Option<&Located>, why: &str, place: Place) -> Unknown {
    match argument {
        Some(argument) => why_not(argument, why),
        None => Unknown { place, why: "it has no argument".into(), primitive: true },
    }
}

/// The formats that zod knows, as it names them itself.
const FORMATS: [(&str, &str); 31] = [
    ("email", "email"),
    ("url", "url"),
    ("httpUrl", "url"),
    ("jwt", "jwt"),
    ("emoji", "emoji"),
    ("guid", "guid"),
    ("uuid", "uuid"),
    ("uuidv4", "uuid"),
    ("uuidv6", "uuid"),
    ("uuidv7", "uuid"),
    ("nanoid", "nanoid"),
    ("cuid", "cuid"),
    ("cuid2", "cuid2"),
    ("ulid", "ulid"),
    ("base64", "base64"),
    ("base64url", "base64url"),
    ("xid", "xid"),
    ("ksuid", "ksuid"),
    ("ipv4", "ipv4"),
    ("ipv6", "ipv6"),
    ("mac", "mac"),
    ("cidrv4", "cidrv4"),
    ("cidrv6", "cidrv6"),
    ("e164", "e164"),
    ("hostname", "hostname"),
    ("hex", "hex"),
    ("datetime", "datetime"),
    ("date", "date"),
    ("time", "time"),
    ("duration", "duration"),
    ("iban", "iban"),
];

/// Gives a text a format; none if zod has no such one.
///
/// The pattern by which zod checks a format is left out: it changes from release to release of zod, and the format says
/// what is meant.
pub(super) fn format(mut checks: TextChecks, name: &str, arguments: &[Located]) -> Option<TextChecks> {
    let (_, format) = FORMATS.iter().find(|(method, _)| *method == name)?;
    checks.format = Some((*format).to_owned());
    checks.formats += 1;
    if format.starts_with("base64") {
        checks.encoding = Some((*format).to_owned());
    }
    if let Some(Value::Object(options)) = arguments.first().map(|first| &first.value) {
        let local = options.get("local").is_some_and(|local| matches!(local.value, Value::Bool(true)));
        let minutes = options
            .get("precision")
            .is_some_and(|precision| matches!(precision.value, Value::Number(number) if number < 0.0));
        checks.lax |= local || minutes;
    }
    Some(checks)
}

/// Escapes a text for a pattern, as zod does it.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if "[]{}()*+?.\\^$|".contains(character) {
            out.push('\\');
        }
        out.push(character);
    }
    out
}

fn number(
    mut checks: NumberChecks,
    name: &str,
    arguments: &[Located],
    place: Place,
) -> Option<Result<NumberChecks, Unknown>> {
    let first = arguments.first();
    let fixed = match name {
        "positive" | "negative" | "nonnegative" | "nonpositive" => Some(0.0),
        _ => None,
    };
    let bound = || match (fixed, first.map(|first| &first.value)) {
        (Some(number), _) => Ok(number),
        (None, Some(Value::Number(number))) if number.is_finite() => Ok(*number),
        (None, _) => Err(refused(first, "it is no number that karat can read", place)),
    };
    let narrowed = match name {
        "min" | "gte" | "nonnegative" => bound().map(|number| checks.inclusive.at_least(number)),
        "max" | "lte" | "nonpositive" => bound().map(|number| checks.inclusive.at_most(number)),
        "gt" | "positive" => bound().map(|number| checks.exclusive.at_least(number)),
        "lt" | "negative" => bound().map(|number| checks.exclusive.at_most(number)),
        "multipleOf" | "step" => bound().and_then(|number| {
            if number == 0.0 {
                return Err(refused(first, "nothing is a multiple of zero", place));
            }
            let number = number.abs();
            if !checks.divisors.contains(&number) {
                checks.divisors.push(number);
            }
            Ok(())
        }),
        "int" | "safe" => {
            checks.is_int = true;
            checks.inclusive.at_least(-SAFE);
            checks.inclusive.at_most(SAFE);
            Ok(())
        }
        "finite" => Ok(()),
        _ => return None,
    };
    Some(narrowed.map(|()| checks))
}

fn sized(mut size: Range, name: &str, arguments: &[Located], place: Place) -> Option<Result<Range, Unknown>> {
    let first = arguments.first();
    let count = || match first.map(|first| &first.value) {
        Some(Value::Number(number)) if number.is_finite() => Ok(*number),
        _ => Err(refused(first, "it is no number that karat can read", place)),
    };
    let done = match name {
        "min" => count().map(|count| size.at_least(count)),
        "max" => count().map(|count| size.at_most(count)),
        "length" => count().map(|count| {
            size.at_least(count);
            size.at_most(count);
        }),
        "nonempty" => {
            size.at_least(1.0);
            Ok(())
        }
        _ => return None,
    };
    Some(done.map(|()| size))
}

fn object(zod: &Zod, shape: &[(String, Rc<Zod>)], rest: &Rest, name: &str, arguments: &[Located]) -> Option<Zod> {
    let first = arguments.first();
    // What a type is made of stays unknown in what is made of it; its metadata does not go along.
    let remade = |shape: Vec<(String, Rc<Zod>)>, rest: Rest| Zod {
        unknown: zod.unknown.clone(),
        ..Zod::new(Kind::Object { shape, rest })
    };
    let merged = |more: &[(String, Rc<Zod>)]| {
        let mut all = shape.to_vec();
        for (key, field) in more {
            match all.iter_mut().find(|(name, _)| name == key) {
                Some((_, old)) => *old = Rc::clone(field),
                None => all.push((key.clone(), Rc::clone(field))),
            }
        }
        all
    };
    let masked = || match first {
        None => Ok(None),
        Some(first) if matches!(first.value, Value::Undefined) => Ok(None),
        Some(first) => mask(first).map(Some),
    };
    let each = |wrapper: &Wrapper| match masked() {
        Err(unknown) => Zod::unknown(unknown),
        Ok(only) => {
            let field = |(key, field): &(String, Rc<Zod>)| {
                let wraps = only.as_ref().is_none_or(|only| only.contains(key));
                let field = if wraps { Rc::new(Zod::wrapped(field, wrapper.clone())) } else { Rc::clone(field) };
                (key.clone(), field)
            };
            remade(shape.iter().map(field).collect(), rest.clone())
        }
    };
    Some(match name {
        "strict" => remade(shape.to_vec(), Rest::Strict),
        "strip" => remade(shape.to_vec(), Rest::Strip),
        "passthrough" | "loose" => {
            remade(shape.to_vec(), Rest::Any(Rc::new(Zod::new(plain(Json::Object(serde_json::Map::new()))))))
        }
        "catchall" => match inner(first?) {
            never if is_never(&never) => remade(shape.to_vec(), Rest::Strict),
            other => remade(shape.to_vec(), Rest::Any(other)),
        },
        "extend" | "safeExtend" | "augment" => match &first?.value {
            Value::Object(fields) => {
                let Kind::Object { shape: more, .. } = of_shape(fields, Rest::Strip).kind else { return None };
                let mut made = remade(merged(&more), rest.clone());
                made.unknown.extend(fields.open.clone());
                made
            }
            _ => Zod::unknown(why_not(first?, "it is no object that karat can read")),
        },
        "merge" => {
            let other = inner(first?);
            match &other.kind {
                Kind::Object { shape: more, rest } => {
                    let mut made = remade(merged(more), rest.clone());
                    made.unknown.extend(other.unknown.iter().cloned());
                    made
                }
                _ => Zod::unknown(why_not(first?, "it is no object type that karat can read")),
            }
        }
        "pick" | "omit" => match mask(first?) {
            Err(unknown) => Zod::unknown(unknown),
            Ok(only) => {
                let keep = |key: &String| only.contains(key) == (name == "pick");
                remade(shape.iter().filter(|(key, _)| keep(key)).cloned().collect(), rest.clone())
            }
        },
        "partial" | "exactPartial" => each(&Wrapper::Optional),
        "required" => each(&Wrapper::NonOptional),
        "keyof" => keys(zod),
        _ => return None,
    })
}

fn is_never(zod: &Zod) -> bool {
    matches!(&zod.kind, Kind::Plain(map) if map.contains_key("not"))
}

fn chosen(values: &[Json], name: &str, arguments: &[Located]) -> Option<Zod> {
    let keeps = match name {
        "extract" => true,
        "exclude" => false,
        _ => return None,
    };
    Some(match mask(arguments.first()?) {
        Err(unknown) => Zod::unknown(unknown),
        Ok(only) => {
            let is_named = |value: &Json| value.as_str().is_some_and(|value| only.iter().any(|name| name == value));
            Zod::new(Kind::Enum(values.iter().filter(|value| is_named(value) == keeps).cloned().collect()))
        }
    })
}

pub(super) fn text_of(value: &Located) -> Option<String> {
    value.to_text()
}
