//! Resolves any text with any seed and snapshot: resolving never panics, text without tokens is unchanged, and
//! unresolved tokens occur in the text.
//!
//! The input is the text, the seed's JSON and the snapshot's JSON, separated by zero bytes.

#![no_main]

use karat_cases::token::{Resolved, TokenSources, contains_snapshot_token, contains_token, is_single_token};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

fuzz_target!(|bytes: &[u8]| {
    let mut parts = bytes.splitn(3, |byte| *byte == 0);
    let Some(Ok(text)) = parts.next().map(str::from_utf8) else { return };
    let mut source = || parts.next().and_then(|json| serde_json::from_slice(json).ok());
    let sources = TokenSources { seed: source(), snapshot: source() };
    check_text(text, &sources);
    check_list(text, &sources);
});

fn check_text(text: &str, sources: &TokenSources) {
    match sources.resolve(text) {
        Resolved::Text(resolved) if !contains_token(text) => assert_eq!(resolved, text),
        Resolved::Text(_) => assert!(sources.seed.is_some() || sources.snapshot.is_some()),
        Resolved::Unresolved(tokens) => {
            assert!(!tokens.is_empty() && contains_token(text));
            for token in tokens {
                assert!(text.contains(&token) && is_single_token(&token), "{token}");
                assert_eq!(contains_snapshot_token(&token), token.starts_with("{{snapshot:"));
            }
        }
    }
    assert!(contains_token(text) || !(contains_snapshot_token(text) || is_single_token(text)));
}

/// A list is resolved element by element; only a text that is a single token may become several values.
fn check_list(text: &str, sources: &TokenSources) {
    let alone = sources.resolve_list(&Value::from(text));
    let among = sources.resolve_list(&json!([text, 5]));
    assert_eq!(among.values, [alone.values.as_slice(), &[json!(5)]].concat());
    assert_eq!(among.unresolved, alone.unresolved);
    match sources.resolve(text) {
        Resolved::Text(resolved) => {
            assert!(is_single_token(text) || alone.values == [Value::from(resolved)]);
            assert!(alone.unresolved.is_empty());
        }
        Resolved::Unresolved(tokens) => {
            assert_eq!(alone.unresolved, tokens);
            assert!(alone.values.is_empty());
        }
    }
}
