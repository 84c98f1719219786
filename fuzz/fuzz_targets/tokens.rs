//! Any text with any seed and snapshot: resolving never panics, a text without tokens stays as it is, and what is left
//! unresolved stands in the text.
//!
//! The input is the text, the seed's JSON and the snapshot's JSON, with a zero byte between them.

#![no_main]

use karat_core::token::{Resolved, TokenSources, holds_snapshot_token, holds_token, is_single};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

fuzz_target!(|bytes: &[u8]| {
    let mut parts = bytes.splitn(3, |byte| *byte == 0);
    let Some(Ok(text)) = parts.next().map(str::from_utf8) else { return };
    let mut source = || parts.next().and_then(|json| serde_json::from_slice(json).ok());
    let sources = TokenSources { seed: source(), snapshot: source() };
    resolves(text, &sources);
    resolves_as_list(text, &sources);
});

fn resolves(text: &str, sources: &TokenSources) {
    match sources.resolve(text) {
        Resolved::Text(resolved) if !holds_token(text) => assert_eq!(resolved, text),
        Resolved::Text(_) => assert!(sources.seed.is_some() || sources.snapshot.is_some()),
        Resolved::Unresolved(tokens) => {
            assert!(!tokens.is_empty() && holds_token(text));
            for token in tokens {
                assert!(text.contains(&token) && is_single(&token), "{token}");
                assert_eq!(holds_snapshot_token(&token), token.starts_with("{{snapshot:"));
            }
        }
    }
    assert!(holds_token(text) || !(holds_snapshot_token(text) || is_single(text)));
}

/// A list resolves element by element, and only a token that stands alone may become several texts.
fn resolves_as_list(text: &str, sources: &TokenSources) {
    let alone = sources.resolve_list(&Value::from(text));
    let among = sources.resolve_list(&json!([text, 5]));
    assert_eq!(among.texts, [alone.texts.as_slice(), &["5".to_owned()]].concat());
    assert_eq!(among.unresolved, alone.unresolved);
    match sources.resolve(text) {
        Resolved::Text(resolved) => {
            assert!(is_single(text) || alone.texts == [resolved]);
            assert!(alone.unresolved.is_empty());
        }
        Resolved::Unresolved(tokens) => {
            assert_eq!(alone.unresolved, tokens);
            assert!(alone.texts.is_empty());
        }
    }
}
