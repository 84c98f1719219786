//! Reads a model's answer: which of its cases is for which slot.

use karat_json::text::shorten;
use karat_json::type_name;
use serde_json::Value;

use crate::Slot;
use crate::brief::tidy;

/// What an answer holds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Answer {
    /// For each slot, in their order.
    pub(super) cases: Vec<Option<AnsweredCase>>,
    /// What nobody asked for.
    pub(super) extra: Vec<Value>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct AnsweredCase {
    pub(super) value: Value,
    /// What the model called it, where only its place says which slot it is for.
    pub(super) other_id: Option<String>,
}

impl Answer {
    /// Reads an answer of this schema, or says why it is none.
    pub(super) fn read(value: &Value, slots: &[&Slot], schema: &Value) -> Result<Self, String> {
        let mut value = value.clone();
        tidy(&mut value, schema);
        let Value::Object(mut members) = value else {
            return Err(format!("the answer must be an object with 'cases', found {}", type_name(&value)));
        };
        let returned = match members.shift_remove("cases") {
            Some(Value::Array(cases)) => cases,
            Some(other) => return Err(format!("'cases' must be an array, found {}", type_name(&other))),
            None => return Err("the answer must be an object with 'cases', which is missing".to_owned()),
        };
        if let Some(key) = members.keys().next() {
            return Err(format!("the answer has an unknown key beside 'cases': '{}'", shorten(key, 80)));
        }
        Ok(Self::match_to(slots, returned))
    }

    fn match_to(slots: &[&Slot], returned: Vec<Value>) -> Self {
        let slot_of = |case: &Value| {
            let id = case.get("id")?.as_str()?;
            slots.iter().position(|slot| slot.id == id)
        };
        let by_place = returned.iter().all(|case| slot_of(case).is_none());
        let mut answer = Self { cases: vec![None; slots.len()], extra: Vec::new() };
        for (index, mut value) in returned.into_iter().enumerate() {
            let slot = if by_place { Some(index) } else { slot_of(&value) };
            match slot.and_then(|slot| answer.cases.get_mut(slot)) {
                Some(place) if place.is_none() => {
                    let other_id = if by_place { rename(&mut value, &slots[index].id) } else { None };
                    *place = Some(AnsweredCase { value, other_id });
                }
                _ => answer.extra.push(value),
            }
        }
        answer
    }
}

/// Gives a case its slot's id, which is no matter of taste, and returns what it was called.
fn rename(case: &mut Value, id: &str) -> Option<String> {
    let case = case.as_object_mut()?;
    let other = case.insert("id".to_owned(), id.into());
    Some(match other {
        None => String::new(),
        Some(Value::String(text)) => text,
        Some(other) => other.to_string(),
    })
}
