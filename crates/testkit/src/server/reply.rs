//! What goes over the wire for an entry.

use std::time::Duration;

use serde_json::{Map, Value};

/// Stands in a body for the text of any length.
const FILLING_STAND_IN: &str = "any length";

/// A reply and the manners in which it is given.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    pub(super) delay: Duration,
    pub(super) manners: Manners,
}

/// How a reply is given; all but the first break what HTTP or patience asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manners {
    Proper,
    HangUp,
    /// A valid answer of this many bytes, by a text of any length at this place of the body.
    Huge {
        size: usize,
        at: usize,
    },
    /// The same text without end.
    Endless {
        at: usize,
    },
    /// A byte of a header, then this pause, for ever.
    SlowHeaders(Duration),
    /// The connection closes before the promised length.
    Truncated,
}

impl Reply {
    pub(super) fn json(status: u16, body: &Value) -> Self {
        Self::bytes(status, body.to_string().into_bytes())
    }

    pub(super) fn bytes(status: u16, body: Vec<u8>) -> Self {
        Self { status, headers: Vec::new(), body, delay: Duration::ZERO, manners: Manners::Proper }
    }
}

/// Tells whether an entry says its reply itself: the body's bytes, or that there is no proper one.
pub(super) fn speaks_for_itself(entry: &Map<String, Value>) -> bool {
    ["raw", "rawBytes", "json", "hangup", "huge", "endless", "slowHeaders"].iter().any(|key| entry.contains_key(*key))
}

/// Reads how an entry is answered. `usual` makes the body where the entry does not say it, and of the text that it is
/// given where that text is to be of any length. Panics where a value is of the wrong type.
pub(super) fn read(entry: &Map<String, Value>, usual: impl FnOnce(Option<&str>) -> Value) -> Reply {
    let status = whole(entry, "status").unwrap_or(200);
    let mut manners = read_manners(entry);
    let body = match (&mut manners, entry.get("raw"), entry.get("rawBytes"), entry.get("json")) {
        (Manners::Huge { at, .. } | Manners::Endless { at }, ..) => {
            let body = usual(Some(FILLING_STAND_IN)).to_string();
            let (start, end) = body.split_once(FILLING_STAND_IN).expect("a usual answer holds its text");
            *at = start.len();
            format!("{start}{end}").into_bytes()
        }
        (_, Some(raw), ..) => raw.as_str().expect("'raw' is a text").as_bytes().to_vec(),
        (_, None, Some(bytes), _) => serde_json::from_value(bytes.clone()).expect("'rawBytes' is a list of bytes"),
        (_, None, None, Some(json)) => json.to_string().into_bytes(),
        (_, None, None, None) => usual(None).to_string().into_bytes(),
    };
    let headers = entry.get("headers").and_then(Value::as_object).into_iter().flatten();
    Reply {
        status: u16::try_from(status).expect("'status' is an HTTP status"),
        headers: headers
            .map(|(name, value)| (name.clone(), value.as_str().expect("a header's value is a text").to_owned()))
            .collect(),
        body,
        delay: Duration::from_millis(whole(entry, "delayMs").unwrap_or(0)),
        manners,
    }
}

fn read_manners(entry: &Map<String, Value>) -> Manners {
    let flag = |key| entry.get(key).and_then(Value::as_bool).unwrap_or(false);
    if flag("hangup") {
        Manners::HangUp
    } else if let Some(size) = whole(entry, "huge") {
        Manners::Huge { size: usize::try_from(size).expect("'huge' fits the machine"), at: 0 }
    } else if flag("endless") {
        Manners::Endless { at: 0 }
    } else if let Some(pause) = whole(entry, "slowHeaders") {
        Manners::SlowHeaders(Duration::from_millis(pause))
    } else if flag("truncated") {
        Manners::Truncated
    } else {
        Manners::Proper
    }
}

/// Returns a whole number of an entry. Panics where it is none.
pub(super) fn whole(entry: &Map<String, Value>, key: &str) -> Option<u64> {
    entry.get(key).map(|value| value.as_u64().unwrap_or_else(|| panic!("'{key}' is a whole number, not {value}")))
}
