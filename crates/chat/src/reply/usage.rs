//! Token counts in the shapes of the protocols.

use karat_core::trace::Usage;
use serde_json::Value;

use crate::lenient::{first, first_count, first_number};

/// Reads the usage of a model call. In Anthropic's API, cache reads and writes are not part of the input count; they are
/// added to it, as in other APIs.
pub(super) fn read(value: Option<&Value>) -> Option<Usage> {
    let map = value?.as_object()?;
    let details = first(
        map,
        &[
            "prompt_tokens_details",
            "input_tokens_details",
            "inputTokenDetails",
            "inputTokensDetails",
            "input_token_details",
        ],
    );
    let cached = details
        .and_then(Value::as_object)
        .and_then(|details| first_count(details, &["cached_tokens", "cache_read", "cacheReadTokens"]))
        .or_else(|| first_count(map, &["cachedInputTokens", "cached_content_token_count", "cachedContentTokenCount"]));
    let read = first_count(map, &["cache_read_input_tokens"]);
    let written = first_count(map, &["cache_creation_input_tokens"]);
    let cache_tokens = read.unwrap_or(0).saturating_add(written.unwrap_or(0));
    let names =
        ["prompt_tokens", "input_tokens", "inputTokens", "promptTokens", "prompt_token_count", "promptTokenCount"];
    let usage = Usage {
        input_tokens: first_count(map, &names).map(|input| input.saturating_add(cache_tokens)),
        output_tokens: first_count(
            map,
            &[
                "completion_tokens",
                "output_tokens",
                "outputTokens",
                "completionTokens",
                "candidates_token_count",
                "candidatesTokenCount",
            ],
        ),
        cached_input_tokens: cached.or(read).filter(|cached| *cached > 0),
        cost_usd: first_number(map, &["cost_usd", "costUsd"]),
    };
    // Some products report zeros if they do not count tokens.
    let is_counted = usage.input_tokens != Some(0) || usage.output_tokens.is_some_and(|count| count > 0);
    (usage != Usage::default() && is_counted).then_some(usage)
}
