//! Types that zod's functions make: `z.string()`, `z.object({…})`.

use std::rc::Rc;

use serde_json::{Map, Value as Json, json};

use super::method::{format, text_of};
use super::{Kind, NumberChecks, Range, Rest, SAFE, TextChecks, Wrapper, Zod};
use crate::javascript::evaluate::{Evaluator, why_not};
use crate::javascript::schema::whole_json;
use crate::javascript::value::{Located, Object, Place, Unknown, Value};

/// Makes what a function of zod's returns, by its path from the package.
pub(in crate::javascript) fn build(
    evaluator: &mut Evaluator,
    path: &[String],
    arguments: &[Located],
    place: Place,
) -> Located {
    let names: Vec<&str> = path.iter().map(String::as_str).filter(|name| !matches!(*name, "z" | "default")).collect();
    let zod = make(evaluator, &names, arguments, place).unwrap_or_else(|| {
        let why = format!("karat does not know 'z.{}'", names.join("."));
        Zod::unknown(Unknown { place, why: why.into(), primitive: false })
    });
    zod.into_value(place)
}

fn make(evaluator: &mut Evaluator, names: &[&str], arguments: &[Located], place: Place) -> Option<Zod> {
    // A coerced type takes more, but says the same of what goes in.
    let names = names.strip_prefix(&["coerce"]).unwrap_or(names);
    let first = arguments.first();
    let unsaid = |what: &str| {
        let why = format!("{what} has no JSON Schema");
        Some(Zod::unknown(Unknown { place, why: why.into(), primitive: false }))
    };
    let number = |least: f64, most: f64, is_int: bool| {
        let inclusive = Range { least: Some(least), most: Some(most) };
        Some(Zod::new(Kind::Number(NumberChecks { inclusive, is_int, ..NumberChecks::default() })))
    };
    let kind = match *names {
        ["string"] => Kind::Text(TextChecks::default()),
        ["number"] => Kind::Number(NumberChecks::default()),
        ["int"] => return number(-SAFE, SAFE, true),
        ["int32"] => return number(-2_147_483_648.0, 2_147_483_647.0, true),
        ["uint32"] => return number(0.0, 4_294_967_295.0, true),
        ["float32"] => return number(f64::from(f32::MIN), f64::from(f32::MAX), false),
        ["float64"] => return number(f64::MIN, f64::MAX, false),
        ["boolean"] => plain(json!({"type": "boolean"})),
        ["null"] => plain(json!({"type": "null"})),
        ["any" | "unknown"] => plain(json!({})),
        ["never"] => plain(json!({"not": {}})),
        [
            name
            @ ("date" | "bigint" | "symbol" | "undefined" | "void" | "nan" | "map" | "set" | "function" | "custom"),
        ] => {
            return unsaid(&format!("'z.{name}()'"));
        }
        ["instanceof"] => return unsaid("'z.instanceof()'"),
        ["enum" | "nativeEnum"] => match &first?.value {
            Value::Array(array) if array.open.is_none() => return Some(values(&array.items, Kind::Enum)),
            Value::Object(object) if object.open.is_none() => return Some(values(&enum_values(object), Kind::Enum)),
            _ => return Some(unreadable(first?)),
        },
        ["literal"] => match &first?.value {
            Value::Array(array) if array.open.is_none() => return Some(values(&array.items, Kind::Literal)),
            _ => return Some(values(std::slice::from_ref(first?), Kind::Literal)),
        },
        ["array"] => Kind::Array { element: inner(first?), size: Range::default() },
        ["object"] => return Some(object(first, Rest::Strip)),
        ["strictObject"] => return Some(object(first, Rest::Strict)),
        ["looseObject"] => return Some(object(first, Rest::Any(Rc::new(Zod::new(plain(json!({}))))))),
        ["tuple"] => {
            let Value::Array(array) = &first?.value else { return Some(unreadable(first?)) };
            if let Some(unknown) = &array.open {
                return Some(Zod::unknown(unknown.clone()));
            }
            let rest = arguments.get(1).filter(|rest| matches!(rest.value, Value::Zod(_))).map(inner);
            Kind::Tuple { items: array.items.iter().map(inner).collect(), rest, size: Range::default() }
        }
        [name @ ("record" | "partialRecord")] => {
            let partial = name == "partialRecord";
            match arguments {
                [key, value, ..] if matches!(value.value, Value::Zod(_)) => {
                    Kind::Record { key: inner(key), value: inner(value), partial }
                }
                [value, ..] => {
                    let key = Rc::new(Zod::new(Kind::Text(TextChecks::default())));
                    Kind::Record { key, value: inner(value), partial }
                }
                [] => return None,
            }
        }
        ["union"] => return Some(union(first?, false)),
        ["xor"] => return Some(union(first?, true)),
        ["discriminatedUnion"] => return Some(union(arguments.get(1)?, true)),
        ["intersection"] => Kind::Intersection(inner(first?), inner(arguments.get(1)?)),
        ["optional" | "exactOptional"] => return Some(Zod::wrapped(&inner(first?), Wrapper::Optional)),
        ["nullable"] => return Some(Zod::wrapped(&inner(first?), Wrapper::Nullable)),
        ["nullish"] => {
            let nullable = Rc::new(Zod::wrapped(&inner(first?), Wrapper::Nullable));
            return Some(Zod::wrapped(&nullable, Wrapper::Optional));
        }
        ["readonly"] => return Some(Zod::wrapped(&inner(first?), Wrapper::Readonly)),
        ["preprocess"] => return Some(Zod::wrapped(&inner(arguments.get(1)?), Wrapper::Preprocess)),
        ["pipe"] => {
            let transforming = inner(arguments.get(1)?).transforms;
            return Some(Zod::wrapped(&inner(first?), Wrapper::Pipe { transforming }));
        }
        ["keyof"] => return Some(keys(&inner(first?))),
        ["lazy"] => {
            let Value::Function(module, function) = &first?.value else { return Some(unreadable(first?)) };
            let returned = evaluator.returned(*module, function, place)?;
            return Some(Zod::wrapped(&inner(&returned), Wrapper::Lazy));
        }
        [name] | ["iso", name] => Kind::Text(format(TextChecks::default(), name, arguments)?),
        _ => return None,
    };
    Some(Zod::new(kind))
}

pub(super) fn plain(json: Json) -> Kind {
    match json {
        Json::Object(map) => Kind::Plain(map),
        _ => Kind::Plain(Map::new()),
    }
}

/// Returns the type that an argument is; unknown if it is none that karat can read.
pub(super) fn inner(argument: &Located) -> Rc<Zod> {
    match &argument.value {
        Value::Zod(zod) => Rc::clone(zod),
        _ => Rc::new(unreadable(argument)),
    }
}

fn unreadable(argument: &Located) -> Zod {
    Zod::unknown(why_not(argument, "it is no type that karat can read"))
}

fn object(shape: Option<&Located>, rest: Rest) -> Zod {
    match shape.map(|shape| (&shape.value, shape)) {
        None | Some((Value::Undefined, _)) => Zod::new(Kind::Object { shape: Vec::new(), rest }),
        Some((Value::Object(object), _)) => of_shape(object, rest),
        Some((_, other)) => unreadable(other),
    }
}

/// Makes an object type of fields.
pub(in crate::javascript) fn of_shape(fields: &Object, rest: Rest) -> Zod {
    let shape = fields.entries().into_iter().map(|(key, field)| (key.to_owned(), inner(field))).collect();
    let mut zod = Zod::new(Kind::Object { shape, rest });
    zod.unknown.extend(fields.open.clone());
    zod
}

fn union(options: &Located, exclusive: bool) -> Zod {
    match &options.value {
        Value::Array(array) if array.open.is_none() => {
            Zod::new(Kind::Union { options: array.items.iter().map(inner).collect(), exclusive })
        }
        Value::Array(array) => array.open.clone().map_or_else(|| unreadable(options), Zod::unknown),
        _ => unreadable(options),
    }
}

/// Makes an enum of an object's keys.
pub(super) fn keys(zod: &Zod) -> Zod {
    match &zod.kind {
        Kind::Object { shape, .. } if zod.unknown.is_empty() => {
            Zod::new(Kind::Enum(shape.iter().map(|(key, _)| Json::from(key.as_str())).collect()))
        }
        Kind::Unknown(unknown) => Zod::unknown(unknown.clone()),
        _ => zod.unknown.first().cloned().map_or_else(|| Zod::new(plain(json!({}))), Zod::unknown),
    }
}

/// Makes a type of values that are written out.
fn values(items: &[Located], kind: fn(Vec<Json>) -> Kind) -> Zod {
    let mut values = Vec::with_capacity(items.len());
    for item in items {
        match &item.value {
            Value::Text(_) | Value::Number(_) | Value::Bool(_) | Value::Null => match whole_json(item) {
                Ok(Some(value)) => values.push(value),
                Ok(None) => {}
                Err(unknown) => return Zod::unknown(unknown),
            },
            _ => return Zod::unknown(why_not(item, "it has no JSON Schema")),
        }
    }
    Zod::new(kind(values))
}

/// Returns the values of an enum's object, without the way back from numbers to names.
fn enum_values(object: &Object) -> Vec<Located> {
    let entries = object.entries();
    let numbers: Vec<String> = entries
        .iter()
        .filter(|(_, value)| matches!(value.value, Value::Number(_)))
        .filter_map(|(_, value)| Some(value.value.to_js_text()?.to_string()))
        .collect();
    let is_way_back = |key: &str| numbers.iter().any(|number| number == key);
    entries.into_iter().filter(|(key, _)| !is_way_back(key)).map(|(_, value)| value.clone()).collect()
}

/// Returns the keys of a mask like `{city: true}`.
pub(super) fn mask(argument: &Located) -> Result<Vec<String>, Unknown> {
    match &argument.value {
        Value::Object(object) if object.open.is_none() => {
            let is_on = |value: &Located| matches!(value.value, Value::Bool(true));
            Ok(object.entries().into_iter().filter(|(_, on)| is_on(on)).map(|(key, _)| key.to_owned()).collect())
        }
        Value::Array(array) if array.open.is_none() => Ok(array.items.iter().filter_map(text_of).collect()),
        _ => Err(why_not(argument, "it is no list of keys that karat can read")),
    }
}
