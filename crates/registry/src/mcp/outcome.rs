//! Converts MCP tool results for the model.

use karat_core::port::ToolOutcome;
use karat_json::text::text_form;
use serde_json::{Value, json};

/// Converts a raw call result. Takes JSON instead of typed content, so that unknown content types are described too.
pub(super) fn outcome(result: &Value) -> ToolOutcome {
    let blocks = result.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let structured = result.get("structuredContent").filter(|structured| !structured.is_null());
    if structured.is_none() && result.get("content").is_none() {
        return failure(match result.get("resultType").and_then(Value::as_str) {
            Some("input_required") => "the tool requires more input, which karat cannot provide".to_owned(),
            _ => format!("the server returned an invalid tool result: {result}"),
        });
    }
    let content = match structured {
        // Text blocks repeat the structured content; other blocks do not.
        Some(structured) => match blocks.iter().filter(|block| !is_text(block)).map(describe).collect::<Vec<_>>() {
            others if others.is_empty() => structured.clone(),
            others => json!({"structuredContent": structured, "content": others}),
        },
        None => Value::String(blocks.iter().map(describe).collect::<Vec<_>>().join("\n")),
    };
    let is_error = result.get("isError").and_then(Value::as_bool).unwrap_or_default();
    let error = is_error.then(|| match text_form(&content).trim() {
        "" => "the tool failed without a message".to_owned(),
        message => message.to_owned(),
    });
    ToolOutcome { result: content, error }
}

/// Returns the outcome of a failed call.
pub(super) fn failure(message: impl Into<String>) -> ToolOutcome {
    let message = message.into();
    ToolOutcome { result: json!({"error": message}), error: Some(message) }
}

fn is_text(block: &Value) -> bool {
    block["type"] == "text" && block["text"].is_string()
}

fn describe(block: &Value) -> String {
    let text = |pointer: &str| block.pointer(pointer).and_then(Value::as_str);
    let kind = text("/mimeType").or(text("/resource/mimeType")).map(|kind| format!(" {kind}")).unwrap_or_default();
    match (block["type"].as_str(), text("/text"), text("/data")) {
        (Some("text"), Some(text), _) => text.to_owned(),
        (Some(name @ ("image" | "audio")), _, Some(data)) => format!("[{name}{kind}, {} bytes]", decoded_length(data)),
        (Some("resource"), ..) => {
            let uri = text("/resource/uri").unwrap_or("without a URI");
            match (text("/resource/text"), text("/resource/blob")) {
                (Some(text), _) => format!("[resource {uri}{kind}]\n{text}"),
                (None, Some(blob)) => format!("[resource {uri}{kind}, {} bytes]", decoded_length(blob)),
                (None, None) => format!("[resource {uri}{kind}]"),
            }
        }
        (Some("resource_link"), ..) => {
            let description = text("/description").map(|text| format!(": {text}")).unwrap_or_default();
            format!(
                "[link to {} {}{kind}{description}]",
                text("/name").unwrap_or("a resource"),
                text("/uri").unwrap_or("")
            )
        }
        _ => format!("[unsupported content: {block}]"),
    }
}

/// Returns the decoded length of base64 text.
fn decoded_length(data: &str) -> usize {
    let digits = data.bytes().filter(|byte| !byte.is_ascii_whitespace() && *byte != b'=').count();
    digits * 3 / 4
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}), json!("a\nb"))]
    #[case(json!({"content": []}), json!(""))]
    #[case(json!({"content": [{"type": "text", "text": "{\"a\":1}"}], "structuredContent": {"a": 1}}), json!({"a": 1}))]
    #[case(json!({"content": [{"type": "text", "text": "x"}], "structuredContent": null}), json!("x"))]
    #[case(json!({"structuredContent": [1, 2]}), json!([1, 2]))]
    #[case(
        json!({"content": [{"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}], "structuredContent": {"a": 1}}),
        json!({"structuredContent": {"a": 1}, "content": ["[image image/png, 5 bytes]"]})
    )]
    #[case(
        json!({"content": [{"type": "text", "text": "see:"}, {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}]}),
        json!("see:\n[image image/png, 5 bytes]")
    )]
    #[case(json!({"content": [{"type": "audio", "data": "", "mimeType": "audio/wav"}]}), json!("[audio audio/wav, 0 bytes]"))]
    #[case(
        json!({"content": [{"type": "resource", "resource": {"uri": "test://1", "mimeType": "text/plain", "text": "hi"}}]}),
        json!("[resource test://1 text/plain]\nhi")
    )]
    #[case(
        json!({"content": [{"type": "resource", "resource": {"uri": "test://2", "blob": "aGk="}}]}),
        json!("[resource test://2, 2 bytes]")
    )]
    #[case(
        json!({"content": [{"type": "resource_link", "uri": "test://3", "name": "three", "description": "the third"}]}),
        json!("[link to three test://3: the third]")
    )]
    #[case(
        json!({"content": [{"type": "video", "data": "x"}]}),
        json!("[unsupported content: {\"type\":\"video\",\"data\":\"x\"}]")
    )]
    #[case(json!({"content": [7]}), json!("[unsupported content: 7]"))]
    fn describes_content(#[case] result: Value, #[case] content: Value) {
        assert_eq!(outcome(&result), ToolOutcome { result: content, error: None });
    }

    #[rstest]
    #[case(json!({"isError": true, "content": [{"type": "text", "text": "no such file"}]}), "no such file")]
    #[case(json!({"isError": true, "content": []}), "the tool failed without a message")]
    #[case(json!({"isError": true, "structuredContent": {"code": 5}}), "{\"code\":5}")]
    #[case(json!({"resultType": "input_required"}), "the tool requires more input, which karat cannot provide")]
    #[case(json!({"x": 1}), "the server returned an invalid tool result: {\"x\":1}")]
    fn failures_have_a_message(#[case] result: Value, #[case] error: &str) {
        assert_eq!(outcome(&result).error.as_deref(), Some(error));
    }
}
