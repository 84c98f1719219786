//! Builds the reply of an entry.

use std::time::Duration;

use serde_json::{Map, Value};

/// Marks the position of the filler in a body.
const FILLER_PLACEHOLDER: &str = "any length";

/// A reply and how it is sent.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    pub(super) delay: Duration,
    pub(super) delivery: Delivery,
}

/// How a reply is sent. All variants but the first misbehave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivery {
    Normal,
    HangUp,
    /// A valid reply of this many bytes, with filler at this offset of the body.
    Huge {
        size: usize,
        at: usize,
    },
    /// Filler without end at this offset of the body.
    Endless {
        at: usize,
    },
    /// One byte of a header per pause, without end.
    SlowHeaders(Duration),
    /// The connection is closed before `content-length` is reached.
    Truncated,
}

impl Reply {
    pub(super) fn json(status: u16, body: &Value) -> Self {
        Self::bytes(status, body.to_string().into_bytes())
    }

    pub(super) fn bytes(status: u16, body: Vec<u8>) -> Self {
        Self { status, headers: Vec::new(), body, delay: Duration::ZERO, delivery: Delivery::Normal }
    }
}

/// Whether an entry specifies the body or a misbehaving reply.
pub(super) fn has_own_body(entry: &Map<String, Value>) -> bool {
    ["raw", "rawBytes", "json", "hangup", "huge", "endless", "slowHeaders"].iter().any(|key| entry.contains_key(*key))
}

/// Builds the reply of an entry. `default_body` creates the body if the entry has none, with the given text if the
/// reply needs filler. Panics if a value has the wrong type.
pub(super) fn read(entry: &Map<String, Value>, default_body: impl FnOnce(Option<&str>) -> Value) -> Reply {
    let status = integer(entry, "status").unwrap_or(200);
    let mut delivery = read_delivery(entry);
    let body = match (&mut delivery, entry.get("raw"), entry.get("rawBytes"), entry.get("json")) {
        (Delivery::Huge { at, .. } | Delivery::Endless { at }, ..) => {
            let body = default_body(Some(FILLER_PLACEHOLDER)).to_string();
            let (start, end) = body.split_once(FILLER_PLACEHOLDER).expect("the default body contains its text");
            *at = start.len();
            format!("{start}{end}").into_bytes()
        }
        (_, Some(raw), ..) => raw.as_str().expect("'raw' must be a string").as_bytes().to_vec(),
        (_, None, Some(bytes), _) => serde_json::from_value(bytes.clone()).expect("'rawBytes' must be a list of bytes"),
        (_, None, None, Some(json)) => json.to_string().into_bytes(),
        (_, None, None, None) => default_body(None).to_string().into_bytes(),
    };
    let headers = entry.get("headers").and_then(Value::as_object).into_iter().flatten();
    Reply {
        status: u16::try_from(status).expect("'status' must be an HTTP status"),
        headers: headers
            .map(|(name, value)| (name.clone(), value.as_str().expect("a header value must be a string").to_owned()))
            .collect(),
        body,
        delay: Duration::from_millis(integer(entry, "delayMs").unwrap_or(0)),
        delivery,
    }
}

fn read_delivery(entry: &Map<String, Value>) -> Delivery {
    let flag = |key| entry.get(key).and_then(Value::as_bool).unwrap_or(false);
    if flag("hangup") {
        Delivery::HangUp
    } else if let Some(size) = integer(entry, "huge") {
        Delivery::Huge { size: usize::try_from(size).expect("'huge' must fit usize"), at: 0 }
    } else if flag("endless") {
        Delivery::Endless { at: 0 }
    } else if let Some(pause) = integer(entry, "slowHeaders") {
        Delivery::SlowHeaders(Duration::from_millis(pause))
    } else if flag("truncated") {
        Delivery::Truncated
    } else {
        Delivery::Normal
    }
}

/// Returns an integer of an entry. Panics if it has another type.
pub(super) fn integer(entry: &Map<String, Value>, key: &str) -> Option<u64> {
    entry.get(key).map(|value| value.as_u64().unwrap_or_else(|| panic!("'{key}' must be an integer, found {value}")))
}
