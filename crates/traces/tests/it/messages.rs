//! Logs of the OpenAI and Anthropic APIs.

use karat_core::document::TraceContent;
use karat_traces::{ImportedTrace, TraceFormat};
use rstest::rstest;
use serde_json::{Value, json};

use crate::fixture::{document, lines, read_text, whole};

fn read_one(value: &Value) -> ImportedTrace {
    let mut read = read_text(None, &value.to_string());
    assert_eq!(read.len(), 1, "{read:?}");
    whole(read.remove(0).expect("readable"))
}

fn as_json(document: &TraceContent) -> String {
    serde_json::to_string_pretty(document).expect("JSON")
}

#[test]
fn reads_an_openai_request_with_its_response() {
    let imported = read_one(&json!({
        "timestamp": "2026-01-01T10:00:00Z",
        "conversation_id": "conv-1",
        "user": "ann",
        "request": {"model": "gpt-x", "messages": [
            {"role": "developer", "content": "Be brief"},
            {"role": "user", "content": [{"type": "text", "text": "Rain?"}, {"type": "image_url", "image_url": {"url": "u"}}]}]},
        "response": {"id": "chatcmpl-1", "model": "gpt-x-2", "choices": [{"finish_reason": "tool_calls", "message": {
            "role": "assistant", "content": null, "refusal": null,
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "rain", "arguments": "{\"day\":1}"}}]}}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}}
    }));
    assert_eq!(imported.format, TraceFormat::OpenAi);
    assert!(imported.trace_id.starts_with("chatcmpl-1-"), "{}", imported.trace_id);
    insta::assert_snapshot!(as_json(&document(&imported)).replace(&imported.trace_id, "ID"), @r#"
    {
      "trace_id": "ID",
      "steps": [
        {
          "input": {
            "message": "Rain?",
            "messages": [
              {
                "role": "system",
                "content": "Be brief"
              },
              {
                "role": "user",
                "content": "Rain?",
                "parts": [
                  {
                    "type": "image_url",
                    "image_url": {
                      "url": "u"
                    }
                  }
                ]
              }
            ]
          },
          "output": {
            "response": ""
          },
          "tool_calls": [
            {
              "name": "rain",
              "arguments": {
                "day": 1
              },
              "result": null,
              "error": null,
              "id": "c1"
            }
          ],
          "error": null,
          "model": "gpt-x-2",
          "stop_reason": "tool_calls",
          "usage": {
            "input_tokens": 9,
            "output_tokens": 2,
            "cached_input_tokens": 4,
            "cost_usd": null
          }
        }
      ],
      "session_id": "conv-1",
      "user_id": "ann",
      "started_at": "2026-01-01T10:00:00Z",
      "model": "gpt-x-2",
      "usage": {
        "input_tokens": 9,
        "output_tokens": 2,
        "cached_input_tokens": 4,
        "cost_usd": null
      }
    }
    "#);
}

#[test]
fn reads_an_anthropic_request_with_its_response() {
    let imported = read_one(&json!({
        "request_id": "req-1",
        "system": [{"type": "text", "text": "Be brief"}],
        "messages": [
            {"role": "user", "content": "Rain?"},
            {"role": "assistant", "content": [{"type": "text", "text": "I look."}, {"type": "tool_use", "id": "t1", "name": "rain", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "is_error": true, "content": "no net"}]}],
        "response": {"type": "message", "role": "assistant", "model": "claude-x", "stop_reason": "end_turn",
            "content": [{"type": "thinking", "thinking": "Hm"}, {"type": "text", "text": "I cannot tell."}],
            "usage": {"input_tokens": 5, "output_tokens": 6, "cache_read_input_tokens": 1, "cache_creation_input_tokens": 2}}
    }));
    assert_eq!((imported.format, imported.trace_id.as_str()), (TraceFormat::Anthropic, "req-1"));
    insta::assert_snapshot!(as_json(&document(&imported)), @r#"
    {
      "trace_id": "req-1",
      "steps": [
        {
          "input": {
            "message": "Rain?",
            "messages": [
              {
                "role": "system",
                "content": "Be brief"
              },
              {
                "role": "user",
                "content": "Rain?"
              }
            ]
          },
          "output": {
            "response": "I look."
          },
          "tool_calls": [
            {
              "name": "rain",
              "arguments": {},
              "result": "no net",
              "error": "no net",
              "id": "t1"
            }
          ],
          "error": null
        },
        {
          "input": {
            "message": null,
            "messages": [
              {
                "role": "tool",
                "content": "no net",
                "tool_call_id": "t1",
                "is_error": true
              }
            ]
          },
          "output": {
            "response": "I cannot tell.",
            "reasoning": "Hm"
          },
          "tool_calls": [],
          "error": null,
          "model": "claude-x",
          "stop_reason": "end_turn",
          "usage": {
            "input_tokens": 8,
            "output_tokens": 6,
            "cached_input_tokens": 1,
            "cost_usd": null
          }
        }
      ],
      "model": "claude-x",
      "usage": {
        "input_tokens": 8,
        "output_tokens": 6,
        "cached_input_tokens": 1,
        "cost_usd": null
      }
    }
    "#);
}

#[test]
fn an_error_response_is_the_error_of_the_step() {
    let imported = read_one(&json!({
        "id": "r", "request": {"messages": [{"role": "user", "content": "Hi"}]},
        "response": {"error": {"message": "rate limit", "type": "x"}}
    }));
    let document = document(&imported);
    assert_eq!(document.steps.len(), 1);
    assert_eq!(document.steps[0].error.as_deref(), Some("rate limit"));
    assert_eq!(document.steps[0].input.message.as_deref(), Some("Hi"));
}

#[test]
fn an_entry_without_id_gets_a_content_id() {
    let log = |text: &str| json!({"messages": [{"role": "user", "content": text}], "id": 7});
    let first = read_one(&log("Hi"));
    assert_eq!(first.trace_id, read_one(&log("Hi")).trace_id);
    assert_ne!(first.trace_id, read_one(&log("Ho")).trace_id);
    assert!(first.trace_id.starts_with("openai-"));
    assert_eq!(document(&first).metadata["id"], 7);
}

#[rstest]
#[case("id")]
#[case("custom_id")]
fn entries_with_the_same_id_and_other_content_are_different_traces(#[case] name: &str) {
    let log = |text: &str| json!({name: "request-1", "messages": [{"role": "user", "content": text}]});
    let (first, second) = (read_one(&log("One")), read_one(&log("Two")));
    assert_eq!(first.trace_id, read_one(&log("One")).trace_id);
    assert_ne!(first.trace_id, second.trace_id);
    assert!(first.trace_id.starts_with("request-1-"), "{}", first.trace_id);
}

#[rstest]
#[case(json!({"role": "assistant", "content": null, "refusal": "I cannot."}))]
#[case(json!({"role": "assistant", "content": [{"type": "refusal", "refusal": "I cannot."}]}))]
fn a_refusal_is_an_answer(#[case] answer: Value) {
    let imported = read_one(&json!([{"role": "user", "content": "Do it"}, answer]));
    assert_eq!(document(&imported).steps[0].output.response, "I cannot.");
}

#[test]
fn reads_an_openai_responses_api_call() {
    let call = |id: &str, city: &str| {
        let arguments = json!({"city": city}).to_string();
        json!({"type": "function_call", "id": format!("fc-{id}"), "call_id": id, "name": "rain", "arguments": arguments})
    };
    let imported = read_one(&json!({
        "request_id": "r", "request": {"model": "gpt-x", "instructions": "Be brief", "input": [
            {"role": "user", "content": "Rain?"}, call("c1", "Ulm"), call("c2", "Bonn"),
            {"type": "function_call_output", "call_id": "c1", "output": "yes"},
            {"type": "function_call_output", "call_id": "c2", "output": "no"}]},
        "response": {"object": "response", "model": "gpt-x-1", "usage": {"input_tokens": 3, "output_tokens": 4}, "output": [
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "In Ulm."}]}]}}));
    let document = document(&imported);
    assert_eq!((imported.format, document.steps.len()), (TraceFormat::OpenAi, 2), "{document:#?}");
    let results: Vec<&Value> = document.steps[0].tool_calls.iter().map(|call| &call.result).collect();
    assert_eq!(results, ["yes", "no"]);
    assert_eq!(document.steps[0].input.messages[0].content, "Be brief");
    let last = &document.steps[1].output;
    assert_eq!((last.response.as_str(), last.reasoning.as_deref()), ("In Ulm.", Some("Hm")));
    let single = json!({"request_id": "s", "request": {"input": "Hi"}, "response": {"output": [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]}]}});
    assert_eq!(crate::fixture::document(&read_one(&single)).steps[0].input.message.as_deref(), Some("Hi"));
}

#[test]
fn reads_one_message_per_line() {
    let log = [("user", "Hi"), ("assistant", "Hello"), ("user", "More"), ("assistant", "Done")]
        .map(|(role, text)| json!({"role": role, "content": text}));
    let mut read = read_text(None, &lines(&log));
    assert_eq!(read.len(), 1, "{read:?}");
    let imported = whole(read.remove(0).expect("readable"));
    assert_eq!(document(&imported).steps.len(), 2);
    assert_eq!(imported.trace_id, read_one(&Value::Array(log.to_vec())).trace_id);
}

#[test]
fn user_text_follows_the_tool_result() {
    let imported = read_one(&json!([
        {"role": "user", "content": "Rain?"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "rain", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "no"}, {"type": "text", "text": "And wind?"}]},
        {"role": "assistant", "content": "None."}]));
    let document = document(&imported);
    let texts: Vec<&str> = document.steps[1].input.messages.iter().map(|message| message.content.as_str()).collect();
    assert_eq!(texts, ["no", "And wind?"]);
}

#[test]
fn does_not_parse_json_in_message_texts() {
    let parts = r#"[{"type": "text", "text": "inner"}]"#;
    let example = r#"[{"id": "x", "type": "function", "function": {"name": "delete_all", "arguments": "{}"}}]"#;
    let imported = read_one(&json!([{"role": "user", "content": parts}, {"role": "assistant", "content": example}]));
    let document = document(&imported);
    assert_eq!(document.steps[0].input.message.as_deref(), Some(parts));
    assert_eq!(document.steps[0].output.response, example);
    assert!(document.steps[0].tool_calls.is_empty(), "{:?}", document.steps[0].tool_calls);
}

#[test]
fn reads_a_list_of_messages() {
    let imported = read_one(&json!([
        {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}, {"role": "user", "content": "Bye"}
    ]));
    let document = document(&imported);
    assert_eq!(document.steps.len(), 1);
    assert_eq!(document.metadata["unanswered"][0]["content"], "Bye");
}

#[test]
fn refuses_invalid_entries_with_their_location() {
    let log = [
        json!({"messages": [{"role": "user", "content": "Hi"}]}),
        json!({"messages": [{"role": "user", "content": "Hi"}, 3]}),
        json!({"messages": []}),
    ];
    let text = lines(&log);
    let refused: Vec<String> =
        read_text(None, &text).into_iter().filter_map(|result| result.err().map(|error| error.to_string())).collect();
    assert_eq!(refused, ["line 2: messages[1]: a message must be an object", "line 3: the conversation is empty"]);
}
