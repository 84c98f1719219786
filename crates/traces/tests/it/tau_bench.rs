//! 200 τ-bench trajectories.

use std::collections::BTreeSet;

use karat_core::rating::Rating;
use karat_traces::TraceFormat;
use serde_json::{Value, json};

use crate::fixture::{document, read_text, whole, whole_traces};

#[test]
fn reads_all_trajectories_with_their_rewards() {
    let imported = whole_traces("tau-bench/gpt-4o-airline.json.gz");
    assert_eq!(imported.len(), 200);
    let ids: BTreeSet<&str> = imported.iter().map(|trace| trace.trace_id.as_str()).collect();
    assert_eq!(ids.len(), 200);
    let rated = |rating| imported.iter().filter(|trace| trace.feedback[0].rating == rating).count();
    assert_eq!((rated(Rating::Positive), rated(Rating::Negative), rated(Rating::Neutral)), (84, 116, 0));
    assert!(imported.iter().all(|trace| trace.feedback.len() == 1 && trace.feedback[0].author == "tau-bench"));

    // The expected numbers were counted in the file by another program.
    let documents: Vec<_> = imported.iter().map(document).collect();
    let steps = documents.iter().flat_map(|document| &document.steps);
    let calls: Vec<_> = steps.clone().flat_map(|step| &step.tool_calls).collect();
    assert_eq!((steps.count(), calls.len()), (1290 + 1164, 1164));
    assert!(calls.iter().all(|call| call.arguments.is_object() && !call.result.is_null()));
    assert_eq!(calls.iter().filter(|call| call.error.is_some()).count(), 73);
    assert!(calls.iter().all(|call| call.error.as_ref().is_none_or(|error| error.starts_with("Error: "))));
    assert!(documents.iter().all(|document| document.metadata["expected_actions"].is_array()));
    assert!(imported.iter().all(|trace| !trace.document.contains("reward")), "documents must not contain the reward");
}

#[test]
fn converts_a_trajectory_into_steps() {
    let imported = &whole_traces("tau-bench/gpt-4o-airline.json.gz")[0];
    assert_eq!(imported.format, TraceFormat::TauBench);
    let document = document(imported);
    insta::assert_snapshot!(document.trace_id, @"tau-bench-0-0-66cd96f081de");
    let step = &document.steps[2];
    insta::assert_json_snapshot!(json!({
        "message": step.input.message,
        "response": step.output.response,
        "calls": step.tool_calls.iter().map(|call| json!([call.name, call.arguments, call.id])).collect::<Vec<_>>(),
        "of the result": step.tool_calls.first().map(|call| call.result["name"].clone()),
        "metadata": document.metadata.keys().collect::<Vec<_>>(),
    }), @r#"
    {
      "message": "1. One-way\n2. Economy\n3. It's just me traveling.\n4. I want to use my certificates first, and if there's any balance, I'll use my 7447 card.\n5. No, I do not want travel insurance.",
      "response": "",
      "calls": [
        [
          "get_user_details",
          {
            "user_id": "mia_li_3668"
          },
          "call_oIHazX6yQrB8hUwl4cRilFKj"
        ]
      ],
      "of the result": {
        "first_name": "Mia",
        "last_name": "Li"
      },
      "metadata": [
        "task_id",
        "trial",
        "expected_actions",
        "expected_outputs",
        "instruction",
        "unanswered"
      ]
    }
    "#);
}

#[test]
fn reading_is_deterministic() {
    let first = whole_traces("tau-bench/gpt-4o-airline.json.gz");
    assert_eq!(first, whole_traces("tau-bench/gpt-4o-airline.json.gz"));
}

#[test]
fn another_run_of_the_same_task_is_another_trace() {
    let run =
        |text: &str| json!({"task_id": 3, "trial": 1, "reward": 0.5, "traj": [{"role": "assistant", "content": text}]});
    let read = |value: &Value| whole(read_text(None, &value.to_string()).remove(0).expect("readable"));
    let (first, second) = (read(&run("Hi")), read(&run("Hello")));
    assert!(first.trace_id.starts_with("tau-bench-3-1-") && first.trace_id != second.trace_id);
    assert_eq!(first.feedback[0].rating, Rating::Neutral);
}
