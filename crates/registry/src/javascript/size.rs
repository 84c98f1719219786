//! How much a value is when it is written out.
//!
//! Values share their parts, so that a few lines can stand for more JSON than fits into memory.

use super::value::{Located, Value};
use super::zod::{Kind, Rest, Zod};

/// Far more than a schema that a model could read.
const LARGEST: usize = 200_000;

/// Tells whether a value is too large to be written out.
pub(super) fn is_too_large(located: &Located) -> bool {
    let mut left = LARGEST;
    !value_fits(located, &mut left)
}

fn spend(left: &mut usize) -> bool {
    *left = left.saturating_sub(1);
    *left > 0
}

fn value_fits(located: &Located, left: &mut usize) -> bool {
    spend(left)
        && match &located.value {
            Value::Array(array) => array.items.iter().all(|item| value_fits(item, left)),
            Value::Object(object) => object.values().all(|value| value_fits(value, left)),
            Value::Zod(zod) => zod_fits(zod, left),
            _ => true,
        }
}

fn zod_fits(zod: &Zod, left: &mut usize) -> bool {
    spend(left)
        && match &zod.kind {
            Kind::Array { element: inner, .. } | Kind::Wrapped { inner, .. } => zod_fits(inner, left),
            Kind::Object { shape, rest } => {
                let rest_fits = match rest {
                    Rest::Any(rest) => zod_fits(rest, left),
                    Rest::Strip | Rest::Strict => true,
                };
                rest_fits && shape.iter().all(|(_, field)| zod_fits(field, left))
            }
            Kind::Tuple { items, rest, .. } => items.iter().chain(rest).all(|item| zod_fits(item, left)),
            Kind::Record { key: left_type, value: right_type, .. } | Kind::Intersection(left_type, right_type) => {
                zod_fits(left_type, left) && zod_fits(right_type, left)
            }
            Kind::Union { options, .. } => options.iter().all(|option| zod_fits(option, left)),
            Kind::Text(_) | Kind::Number(_) | Kind::Plain(_) | Kind::Enum(_) | Kind::Literal(_) | Kind::Unknown(_) => {
                true
            }
        }
}
