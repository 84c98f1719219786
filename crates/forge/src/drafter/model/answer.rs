//! Parses a model's answer and matches its cases to slots.

use karat_json::text::shorten;
use karat_json::type_name;
use serde_json::Value;

use crate::Slot;
use crate::brief::normalize_answer;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Answer {
    /// The case of each slot, in slot order.
    pub(super) cases: Vec<Option<ReturnedCase>>,
    /// Cases that match no slot.
    pub(super) extra: Vec<Value>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct ReturnedCase {
    pub(super) value: Value,
    /// The id that the model returned, if the case was matched by position.
    pub(super) original_id: Option<String>,
}

impl Answer {
    /// Parses an answer. Returns an error message if it does not match the schema.
    pub(super) fn parse(value: &Value, slots: &[&Slot], schema: &Value) -> Result<Self, String> {
        let mut value = value.clone();
        normalize_answer(&mut value, schema);
        let Value::Object(mut members) = value else {
            return Err(format!("the answer must be an object with 'cases', found {}", type_name(&value)));
        };
        let returned = match members.shift_remove("cases") {
            Some(Value::Array(cases)) => cases,
            Some(other) => return Err(format!("'cases' must be an array, found {}", type_name(&other))),
            None => return Err("the answer must be an object with 'cases', but 'cases' is missing".to_owned()),
        };
        if let Some(key) = members.keys().next() {
            return Err(format!("the answer has an unknown key: '{}'", shorten(key, 80)));
        }
        Ok(Self::match_slots(slots, returned))
    }

    fn match_slots(slots: &[&Slot], returned: Vec<Value>) -> Self {
        let slot_of = |case: &Value| {
            let id = case.get("id")?.as_str()?;
            slots.iter().position(|slot| slot.id == id)
        };
        let by_position = returned.iter().all(|case| slot_of(case).is_none());
        let mut answer = Self { cases: vec![None; slots.len()], extra: Vec::new() };
        for (index, mut value) in returned.into_iter().enumerate() {
            let slot = if by_position { Some(index) } else { slot_of(&value) };
            match slot.and_then(|slot| answer.cases.get_mut(slot)) {
                Some(entry) if entry.is_none() => {
                    let original_id = if by_position { replace_id(&mut value, &slots[index].id) } else { None };
                    *entry = Some(ReturnedCase { value, original_id });
                }
                _ => answer.extra.push(value),
            }
        }
        answer
    }
}

/// Sets the id of a case and returns the previous one.
fn replace_id(case: &mut Value, id: &str) -> Option<String> {
    let case = case.as_object_mut()?;
    let other = case.insert("id".to_owned(), id.into());
    Some(match other {
        None => String::new(),
        Some(Value::String(text)) => text,
        Some(other) => other.to_string(),
    })
}
