//! LangSmith runs.

use karat_traces::{Piece, TraceParts, assemble};
use serde_json::{Value, json};

use crate::fixture::{lines, read_text};

fn lc(class: &str, kwargs: &Value) -> Value {
    json!({"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", class], "kwargs": kwargs})
}

/// The runs of an agent that calls a model, a tool and the model again.
fn runs() -> Vec<Value> {
    let order = |parts: &[(u8, &str)]| {
        let parts: Vec<String> =
            parts.iter().map(|(second, id)| format!("20260101T1000{second:02}000000Z{id}")).collect();
        parts.join(".")
    };
    let call = json!([{"id": "c1", "name": "rain", "args": {"day": 1}, "type": "tool_call"}]);
    let question = lc("HumanMessage", &json!({"content": "Rain?", "type": "human"}));
    let asks = lc("AIMessage", &json!({"content": "", "tool_calls": call, "type": "ai"}));
    let result =
        lc("ToolMessage", &json!({"content": "{\"mm\": 3}", "tool_call_id": "c1", "name": "rain", "type": "tool"}));
    let answer = lc("AIMessage", &json!({"content": "A little.", "type": "ai"}));
    vec![
        json!({"id": "r", "trace_id": "r", "dotted_order": order(&[(0, "r")]), "run_type": "chain", "name": "agent",
               "start_time": "2026-01-01T10:00:00", "end_time": "2026-01-01T10:00:09", "inputs": {"question": "Rain?"},
               "outputs": {"answer": "A little."}, "tags": ["prod"], "session_id": "a project",
               "extra": {"metadata": {"thread_id": "th", "user_id": "ann"}},
               "feedback_stats": {"helpful": {"n": 1, "avg": 1.0, "sources": ["app"], "comments": ["nice"], "values": {}},
                                  "judge": {"n": 1, "avg": 0.0, "sources": ["model"]}, "thumbs": {"n": 1, "avg": 0.0, "sources": []}}}),
        json!({"id": "m2", "trace_id": "r", "parent_run_id": "r", "dotted_order": order(&[(0, "r"), (3, "m2")]),
               "run_type": "llm", "name": "ChatOpenAI", "inputs": {"messages": [[question, asks, result]]},
               "outputs": {"generations": [[{"text": "A little.", "message": answer, "generation_info": {"finish_reason": "stop"}}]]},
               "extra": {"metadata": {"ls_model_name": "gpt-x"}}, "prompt_tokens": 20, "completion_tokens": 3}),
        json!({"id": "t", "trace_id": "r", "parent_run_id": "r", "dotted_order": order(&[(0, "r"), (2, "t")]),
               "run_type": "tool", "name": "rain", "inputs": {"input": "{'day': 1}"},
               "outputs": {"output": {"content": "{\"mm\": 3}", "tool_call_id": "c1", "type": "tool"}}}),
        json!({"id": "m1", "trace_id": "r", "parent_run_id": "r", "dotted_order": order(&[(0, "r"), (1, "m1")]),
               "run_type": "llm", "name": "ChatOpenAI", "inputs": {"messages": [[question]]},
               "outputs": {"generations": [[{"text": "", "message": asks}]]}, "extra": {"metadata": {"ls_model_name": "gpt-x"}}}),
    ]
}

fn merged(text: &str) -> TraceParts {
    let mut parts = read_text(None, text).into_iter().map(|result| match result.expect("readable") {
        Piece::Parts(parts) => *parts,
        Piece::Whole(whole) => panic!("expected spans, found the whole trace {}", whole.trace_id),
    });
    let mut first = parts.next().expect("at least one part");
    parts.for_each(|more| first.merge(more));
    first
}

#[test]
fn assembles_runs_into_steps() {
    let lines = lines(&runs());
    let assembled = assemble(&merged(&lines));
    insta::assert_snapshot!(serde_json::to_string_pretty(&assembled.document).expect("JSON"), @r#"
    {
      "trace_id": "r",
      "steps": [
        {
          "input": {
            "message": "Rain?",
            "messages": [
              {
                "role": "user",
                "content": "Rain?"
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
              "result": {
                "mm": 3
              },
              "error": null,
              "id": "c1"
            }
          ],
          "error": null,
          "model": "gpt-x",
          "started_at": "2026-01-01T10:00:01Z"
        },
        {
          "input": {
            "message": null,
            "messages": [
              {
                "role": "tool",
                "content": "{\"mm\": 3}",
                "name": "rain",
                "tool_call_id": "c1"
              }
            ]
          },
          "output": {
            "response": "A little."
          },
          "tool_calls": [],
          "error": null,
          "model": "gpt-x",
          "started_at": "2026-01-01T10:00:03Z",
          "usage": {
            "input_tokens": 20,
            "output_tokens": 3,
            "cached_input_tokens": null,
            "cost_usd": null
          }
        }
      ],
      "name": "agent",
      "session_id": "th",
      "user_id": "ann",
      "started_at": "2026-01-01T10:00:00Z",
      "ended_at": "2026-01-01T10:00:09Z",
      "model": "gpt-x",
      "usage": {
        "input_tokens": 20,
        "output_tokens": 3,
        "cached_input_tokens": null,
        "cost_usd": null
      },
      "tags": [
        "prod"
      ]
    }
    "#);
    let feedback: Vec<_> =
        assembled.feedback.iter().map(|entry| (entry.author.as_str(), entry.rating, entry.note.as_deref())).collect();
    insta::assert_debug_snapshot!(feedback, @r#"
    [
        (
            "langsmith",
            Positive,
            Some(
                "helpful: nice",
            ),
        ),
    ]
    "#);
}

#[test]
fn reads_lines_lists_wrappers_and_trees() {
    let lines = lines(&runs());
    let expected = assemble(&merged(&lines)).document;
    let list = Value::Array(runs()).to_string();
    assert_eq!(assemble(&merged(&list)).document, expected);
    let wrapper = json!({"runs": runs()}).to_string();
    assert_eq!(assemble(&merged(&wrapper)).document, expected);
    let mut tree = runs().remove(0);
    let children = runs().into_iter().skip(1).map(|mut run| {
        let object = run.as_object_mut().expect("an object");
        object.shift_remove("trace_id");
        object.shift_remove("parent_run_id");
        run
    });
    tree["child_runs"] = children.collect();
    assert_eq!(assemble(&merged(&tree.to_string())).document, expected);
}

#[test]
fn reads_errors() {
    let mut runs = runs();
    runs[2]["error"] = json!("ToolError('no net')");
    runs[1]["error"] = json!("RateLimitError()");
    runs[1]["outputs"] = Value::Null;
    let lines = lines(&runs);
    let document = assemble(&merged(&lines)).document;
    assert_eq!(document.steps[0].tool_calls[0].error.as_deref(), Some("ToolError('no net')"));
    assert_eq!(document.steps[1].error.as_deref(), Some("RateLimitError()"));
}

#[test]
fn refuses_runs_without_ids() {
    let text =
        "{\"id\":\"a\",\"run_type\":\"llm\",\"parent_run_id\":\"b\"}\n{\"run_type\":\"llm\",\"trace_id\":\"t\"}\n";
    let refused: Vec<String> =
        read_text(None, text).into_iter().map(|result| result.expect_err("refused").to_string()).collect();
    assert_eq!(
        refused,
        ["line 1, run a: the run has a parent but no 'trace_id'", "line 2, run without an id: the run has no 'id'"]
    );
}

/// The LangSmith wrappers of model clients write both into the output.
#[test]
fn reads_model_and_usage_from_the_output() {
    let run = json!({"id": "r", "run_type": "llm", "name": "ChatOpenAI", "start_time": "2026-01-01T10:00:00",
        "inputs": {"messages": [{"role": "user", "content": "Hi"}], "model": "gpt-w"},
        "outputs": {"choices": [{"message": {"role": "assistant", "content": "Hello"}}], "model": "gpt-w-1",
                    "usage_metadata": {"input_tokens": 7, "output_tokens": 8, "input_token_details": {"cache_read": 2}}}});
    let document = assemble(&merged(&run.to_string())).document;
    assert_eq!(document.model.as_deref(), Some("gpt-w-1"));
    let usage = document.usage.expect("usage");
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.cached_input_tokens), (Some(7), Some(8), Some(2)));
}
