//! Tool calls as text.

use std::borrow::Cow;
use std::fmt::Write as _;

use karat_core::trace::ToolCall;
use karat_json::text::{shorten, text_form};

/// Maximum length of the result of a failed call, unless calls are shown in full, in characters.
const MAX_REASON: usize = 120;

/// Returns the placeholder for an empty list of calls.
pub(crate) fn no_calls_text(is_unreported: bool) -> &'static str {
    if is_unreported { "not reported" } else { "none" }
}

/// Returns a call as `name {arguments}`, with its error; in full with its result.
pub(crate) fn call_text(call: &ToolCall, is_full: bool) -> String {
    let arguments = match &call.raw_params {
        Some(raw) => raw.clone(),
        None => serde_json::to_string(&call.params).unwrap_or_default(),
    };
    let mut text = format!("{} {arguments}", call.name);
    if let Some(error) = &call.error {
        let _ = write!(text, " -> error: {error}");
    } else if call.success == Some(false) {
        text.push_str(" -> failed");
        if let Some(result) = call.result.as_ref().map(text_form) {
            let reason = if is_full { result } else { Cow::Owned(shorten(&result, MAX_REASON).into_owned()) };
            let _ = write!(text, ": {reason}");
        }
    } else if let Some(result) = call.result.as_ref().filter(|_| is_full) {
        let _ = write!(text, " -> {result}");
    }
    text
}
