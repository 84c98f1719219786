//! SWE-agent trajectories.

use karat_core::document::TraceContent;
use karat_traces::{ImportedTrace, TraceFormat};
use serde_json::{Value, json};

use crate::fixture::{document, read_text, whole};

fn trace(value: &Value) -> ImportedTrace {
    whole(read_text(None, &value.to_string()).remove(0).expect("readable"))
}

fn commands(document: &TraceContent) -> Vec<(&str, &Value, &Value)> {
    let calls = document.steps.iter().flat_map(|step| &step.tool_calls);
    calls.map(|call| (call.name.as_str(), &call.arguments, &call.result)).collect()
}

#[test]
fn reads_commands() {
    let trajectory = json!({
        "environment": "swe_main",
        "trajectory": [
            {"action": "ls -F\n", "observation": "a.py\n", "response": "I look.\n```\nls -F\n```", "thought": "I look.", "state": "{}"},
            {"action": "submit\n", "observation": "diff", "response": "Done.\n```\nsubmit\n```", "thought": "Done.", "state": "{}"},
        ],
        "history": [
            {"role": "system", "content": "You fix bugs.", "agent": "primary"},
            {"role": "user", "content": "An example", "agent": "primary", "is_demo": true},
            {"role": "user", "content": "Fix the bug.", "agent": "primary"},
            {"role": "assistant", "content": "I look.", "thought": "I look.", "action": "ls -F\n", "agent": "primary"},
            {"role": "user", "content": "a.py", "agent": "primary"},
            {"role": "assistant", "content": "Done.", "thought": "Done.", "action": "submit\n", "agent": "primary"},
        ],
        "info": {"exit_status": "submitted", "submission": "diff", "model_stats": {"instance_cost": 0.5, "tokens_sent": 90, "tokens_received": 8, "api_calls": 2}},
    });
    let imported = trace(&trajectory);
    assert_eq!(imported.format, TraceFormat::SweAgent);
    let document = document(&imported);
    assert_eq!(document.steps[0].input.message.as_deref(), Some("Fix the bug."));
    assert_eq!(document.steps[0].input.messages.len(), 2, "without the demonstration");
    assert_eq!(document.steps[0].output.response, "I look.");
    let expected = [
        ("bash", &json!({"command": "ls -F"}), &json!("a.py\n")),
        ("bash", &json!({"command": "submit"}), &json!("diff")),
    ];
    assert_eq!(commands(&document), expected);
    let usage = document.usage.expect("usage");
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.cost_usd), (Some(90), Some(8), Some(0.5)));
    assert_eq!(document.metadata["exit_status"], "submitted");
}

#[test]
fn reads_function_calls() {
    let call = json!({"id": "call_1", "type": "function", "function": {"name": "str_replace_editor", "arguments": "{\"command\": \"view\", \"path\": \"/a\"}"}});
    let config = json!({"problem_statement": {"id": "django-1"}, "agent": {"model": {"name": "gpt-x"}}});
    let trajectory = json!({
        "trajectory": [{"action": "str_replace_editor view /a", "observation": "text", "response": "", "thought": "",
            "query": [{"role": "user", "content": "Fix."}]}],
        "history": [
            {"role": "user", "content": [{"type": "text", "text": "Fix."}], "agent": "main"},
            {"role": "assistant", "content": "", "action": "str_replace_editor view /a", "tool_calls": [call], "agent": "main"},
            {"role": "tool", "content": [{"type": "text", "text": "text"}], "tool_call_ids": ["call_1"], "agent": "main"},
        ],
        "info": {"swe_agent_version": "1.1.0"},
        "replay_config": config.to_string(),
    });
    let imported = trace(&trajectory);
    assert!(imported.trace_id.starts_with("django-1-"), "{}", imported.trace_id);
    let document = document(&imported);
    let arguments = json!({"command": "view", "path": "/a"});
    assert_eq!(commands(&document), [("str_replace_editor", &arguments, &json!("text"))]);
    assert_eq!((document.name.as_deref(), document.model.as_deref()), (Some("django-1"), Some("gpt-x")));
}
