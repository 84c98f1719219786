//! Real Jaeger and Tempo exports of an agent that lists Helm releases. See `tests/fixtures/otel/LICENSE`.

use karat_core::document::{Message, TraceContent};
use karat_traces::{TraceParts, assemble, jaeger, otlp};
use serde_json::Value;

fn fixture(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/fixtures/otel/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn single_trace(read: otlp::ParsedSpans) -> TraceParts {
    assert_eq!(read.refused, []);
    assert_eq!(read.traces.len(), 1);
    read.traces.into_iter().next().expect("one trace")
}

fn helm() -> TraceContent {
    assemble(&single_trace(jaeger::read_json(&fixture("helm.json")).expect("valid export"))).document
}

fn tempo() -> TraceContent {
    assemble(&single_trace(otlp::read_json(&fixture("tempo_export_with_batches.json")).expect("valid export"))).document
}

/// Renders a document for comparison with the export.
fn render(document: &TraceContent) -> String {
    let mut lines = Vec::new();
    let one_line = |text: &str| {
        let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if line.chars().count() > 100 {
            format!("{}… ({} bytes)", line.chars().take(100).collect::<String>(), text.len())
        } else {
            line
        }
    };
    let head = TraceContent { steps: Vec::new(), ..document.clone() };
    lines.push(serde_json::to_string_pretty(&head).expect("JSON"));
    for (at, step) in document.steps.iter().enumerate() {
        lines.push(format!("step {at} by {:?} of {:?}, {:?}", step.model, step.agent, step.stop_reason));
        lines.push(format!("  {:?} to {:?}, {:?}", step.started_at, step.ended_at, step.usage));
        for message in &step.input.messages {
            let Message { role, content, name, tool_call_id, .. } = message;
            lines.push(format!("  in  {role} {name:?} {tool_call_id:?}: {}", one_line(content)));
        }
        lines.push(format!("  message: {:?}", step.input.message));
        lines.push(format!("  out {}", one_line(&step.output.response)));
        for call in &step.tool_calls {
            lines.push(format!("  call {} {} {:?} {:?} ms", call.name, call.arguments, call.id, call.duration_ms));
            lines.push(format!("    -> {} {:?}", one_line(&call.result.to_string()), call.error));
        }
        lines.push(format!("  error: {:?}", step.error));
    }
    lines.join("\n")
}

#[test]
fn assembles_a_jaeger_export() {
    insta::assert_snapshot!(render(&helm()), @r#"
    {
      "trace_id": "3e289017fe03ffd7c4145316d2eb3d0d",
      "steps": [],
      "name": "POST /",
      "session_id": "ctx-7ed9780f-3688-4fc0-b10b-2e4df2f83cf0",
      "started_at": "2026-02-16T10:25:34.567093Z",
      "ended_at": "2026-02-16T10:25:38.747585Z",
      "model": "gpt-4.1-mini-2025-04-14",
      "usage": {
        "input_tokens": 3776,
        "output_tokens": 130,
        "cached_input_tokens": 1792,
        "cost_usd": null
      },
      "metadata": {
        "service.name": "helm_agent"
      }
    }
    step 0 by Some("gpt-4.1-mini-2025-04-14") of Some("helm_agent"), Some("tool_calls")
      Some(2026-02-16T10:25:34.594565Z) to Some(2026-02-16T10:25:36.938321Z), Some(StepUsage { input_tokens: Some(1820), output_tokens: Some(13), cached_input_tokens: Some(0), cost_usd: None })
      in  system None None: # Helm AI Agent System Prompt You are an advanced AI agent specialized in Helm package management fo… (6132 bytes)
      in  user None None: list all Helm releases
      message: Some("list all Helm releases")
      out 
      call helm_list_releases {} Some("call_P09kjRKHTTJA02oB9HIe4u5t") Some(57.091) ms
        -> {"content":[{"type":"text","text":"NAME \tNAMESPACE\tREVISION\tUPDATED \tSTATUS \tCHART \tAPP VERSIO… (415 bytes) None
      error: None
    step 1 by Some("gpt-4.1-mini-2025-04-14") of Some("helm_agent"), Some("stop")
      Some(2026-02-16T10:25:36.943421Z) to Some(2026-02-16T10:25:38.74275Z), Some(StepUsage { input_tokens: Some(1956), output_tokens: Some(117), cached_input_tokens: Some(1792), cost_usd: None })
      in  tool None Some("call_P09kjRKHTTJA02oB9HIe4u5t"): NAME NAMESPACE REVISION UPDATED STATUS CHART APP VERSION kagent kagent 2 2026-02-16 11:24:39.9262371… (339 bytes)
      message: None
      out There are two Helm releases installed in the cluster: 1. Release name: kagent - Namespace: kagent - … (396 bytes)
      error: None
    "#);
}

#[test]
fn assembles_a_tempo_export() {
    insta::assert_snapshot!(render(&tempo()), @r#"
    {
      "trace_id": "dd547580319ab0312cee07f1def50dad",
      "steps": [],
      "name": "POST /api/a2a/kagent/helm-agent/",
      "session_id": "ctx-eff35888-55ab-4eb0-b90d-7b21f711f91f",
      "user_id": "admin@kagent.dev",
      "started_at": "2026-04-30T13:17:33.7692178Z",
      "ended_at": "2026-04-30T13:17:38.4305336Z",
      "model": "gpt-4.1-mini-2025-04-14",
      "usage": {
        "input_tokens": 4648,
        "output_tokens": 129,
        "cached_input_tokens": 0,
        "cost_usd": null
      },
      "metadata": {
        "service.name": "kagent-controller",
        "service.version": "0.9.0"
      }
    }
    step 0 by Some("gpt-4.1-mini-2025-04-14") of Some("helm_agent"), Some("tool_calls")
      Some(2026-04-30T13:17:33.8061284Z) to Some(2026-04-30T13:17:35.7097398Z), Some(StepUsage { input_tokens: Some(2256), output_tokens: Some(13), cached_input_tokens: Some(0), cost_usd: None })
      in  system None None: # Helm AI Agent System Prompt You are an advanced AI agent specialized in Helm package management fo… (7707 bytes)
      in  user None None: list all helm releases
      message: Some("list all helm releases\n")
      out 
      call helm_list_releases {} Some("call_w0eKlvnaE7S9GQJeSSs0gn05") Some(75.584) ms
        -> {"content":[{"type":"text","text":"NAME \tNAMESPACE\tREVISION\tUPDATED \tSTATUS \tCHART \tAPP VERSIO… (412 bytes) None
      error: None
    step 1 by Some("gpt-4.1-mini-2025-04-14") of Some("helm_agent"), Some("stop")
      Some(2026-04-30T13:17:35.7151634Z) to Some(2026-04-30T13:17:38.4226084Z), Some(StepUsage { input_tokens: Some(2392), output_tokens: Some(116), cached_input_tokens: Some(0), cost_usd: None })
      in  tool None Some("call_w0eKlvnaE7S9GQJeSSs0gn05"): NAME NAMESPACE REVISION UPDATED STATUS CHART APP VERSION kagent kagent 5 2026-04-30 15:14:13.1417944… (336 bytes)
      message: None
      out There are two Helm releases currently deployed: 1. Release Name: kagent - Namespace: kagent - Revisi… (402 bytes)
      error: None
    "#);
}

/// The authors of the agent provide an eval set: the document must have the same question, call and result, and an
/// answer that starts with theirs.
#[test]
fn the_conversation_matches_the_eval_set_of_its_authors() {
    let expected: Value = serde_json::from_slice(&fixture("eval_set_helm.json")).unwrap();
    let turn = &expected["eval_cases"][0]["conversation"][0];
    let document = helm();

    let question = turn["user_content"]["parts"][0]["text"].as_str().unwrap();
    assert_eq!(document.steps[0].input.message.as_deref(), Some(question));

    let calls: Vec<_> = document.steps.iter().flat_map(|step| &step.tool_calls).collect();
    let uses = turn["intermediate_data"]["tool_uses"].as_array().unwrap();
    assert_eq!(calls.len(), uses.len());
    for (call, expected) in calls.iter().zip(uses) {
        assert_eq!(call.name, expected["name"].as_str().unwrap());
        assert_eq!(call.arguments, expected["args"]);
    }

    // The eval set omits the update times.
    let expected = &turn["intermediate_data"]["tool_responses"][0]["response"];
    assert_eq!(calls[0].result["isError"], expected["isError"]);
    let words = |value: &Value| -> Vec<String> {
        let text = value["content"][0]["text"].as_str().unwrap();
        let is_time =
            |word: &&str| *word == "..." || word.starts_with("2026-") || word.contains(':') || word.starts_with('+');
        text.split_whitespace().filter(|word| !is_time(word)).map(str::to_owned).collect()
    };
    assert_eq!(words(&calls[0].result), words(expected));
    assert_eq!(calls[0].error, None);

    let answer = turn["final_response"]["parts"][0]["text"].as_str().unwrap();
    let last = document.steps.last().unwrap();
    assert!(last.output.response.starts_with(answer), "{}", last.output.response);
}
