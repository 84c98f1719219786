//! Programs that are kept and answer line by line.

use std::path::Path;
use std::time::{Duration, Instant};

use futures::future::join_all;
use karat_agents::CommandAgent;
use karat_core::port::{Agent, AgentError, IgnoreWaits, TrialContext};
use karat_core::trace::Trace;
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{ask, case, config, trial};

/// Answers with its process id and the request; does what some messages ask for.
const PROGRAM: &str = r#"
import json, os, sys, time
for line in sys.stdin:
    request = json.loads(line)
    message = request["message"]
    if message == "die":
        print("last words", file=sys.stderr, flush=True)
        os._exit(3)
    if message == "hang":
        time.sleep(1000)
    if message == "garbage":
        print("not JSON", flush=True)
        continue
    if message == "stale":
        print(json.dumps({"response": "old", "id": request["id"] - 1}), flush=True)
        continue
    if message == "twice":
        print(json.dumps({"response": "first"}), flush=True)
    if message == "large":
        print(json.dumps({"response": "x" * 200000}), flush=True)
        continue
    if message == "shape":
        print(json.dumps({"id": request["id"]}), flush=True)
        continue
    print(f"log of {message}", file=sys.stderr, flush=True)
    print(json.dumps({"response": message, "model": str(os.getpid()), "id": request["id"], "usage": {"inputTokens": 1},
        "toolCalls": [{"name": "seen", "params": request}]}), flush=True)
"#;

fn agent() -> CommandAgent {
    let command = format!("python3 -c '{PROGRAM}'");
    let value = json!({"keepAlive": true, "maxResponseBytes": 100_000});
    CommandAgent::new(&command, Path::new("/"), config(&value), &|_| None).unwrap()
}

async fn process_of(agent: &CommandAgent) -> String {
    ask(agent, "hi").await.unwrap().model.unwrap()
}

#[tokio::test]
async fn one_process_answers_many_cases() {
    let agent = agent();
    let mut processes = Vec::new();
    for number in 0..50 {
        let trace = ask(&agent, &format!("é {number}")).await.unwrap();
        assert_eq!(trace.response, format!("é {number}"));
        assert_eq!(trace.stderr, Some(format!("log of é {number}\n")), "stderr belongs to its case");
        processes.push(trace.model.unwrap());
    }
    processes.dedup();
    assert_eq!(processes.len(), 1);
}

#[tokio::test]
async fn there_are_as_many_processes_as_conversations_at_once() {
    let agent = agent();
    let cases: Vec<_> = (0..4).map(|number| case(&number.to_string())).collect();
    let mut conversations: Vec<_> = cases.iter().map(|case| agent.start(trial(case, 0))).collect();
    let messages: Vec<String> = (0..4).map(|number| format!("message {number}")).collect();
    let sends = conversations.iter_mut().zip(&messages).map(|(conversation, message)| conversation.send(message));
    let traces: Vec<Trace> = join_all(sends).await.into_iter().map(Result::unwrap).collect();
    let responses: Vec<_> = traces.iter().map(|trace| trace.response.clone()).collect();
    assert_eq!(responses, messages);
    let mut processes: Vec<_> = traces.into_iter().filter_map(|trace| trace.model).collect();
    processes.sort();
    processes.dedup();
    assert_eq!(processes.len(), 4);
    drop(conversations);
    for _ in 0..6 {
        assert!(processes.contains(&process_of(&agent).await), "no further process is started");
    }
}

#[rstest]
#[case("die", "the program ended with exit status 3 before it answered; its stderr: last words")]
#[case("garbage", "the program's answer is not valid JSON (expected ident at line 1 column 2): not JSON")]
#[case("large", "the answer is larger than 100000 bytes ('maxResponseBytes')")]
#[case("stale", "the program answered request 1 instead of request 2")]
#[tokio::test]
async fn a_fault_costs_one_case(#[case] message: &str, #[case] expected: &str) {
    let agent = agent();
    let before = process_of(&agent).await;
    assert_eq!(ask(&agent, message).await.expect_err("a fault").message, expected);
    let after = process_of(&agent).await;
    assert_ne!(before, after, "the process is replaced");
    assert_eq!(process_of(&agent).await, after);
}

#[tokio::test]
async fn a_reply_without_text_keeps_the_process() {
    let agent = agent();
    let before = process_of(&agent).await;
    assert_eq!(ask(&agent, "shape").await.expect_err("no text").message, "the reply has no text at '/response'");
    assert_eq!(process_of(&agent).await, before);
}

#[tokio::test]
async fn a_hanging_program_is_killed_with_its_case() {
    let agent = agent();
    let before = process_of(&agent).await;
    let started = Instant::now();
    let hung = tokio::time::timeout(Duration::from_millis(200), ask(&agent, "hang")).await;
    assert!(hung.is_err() && started.elapsed() < Duration::from_secs(5));
    assert_ne!(process_of(&agent).await, before);
    let process = Path::new("/proc").join(&before);
    crate::support::wait_until("the program is killed", || !process.exists()).await;
}

#[tokio::test]
async fn a_second_answer_is_never_taken_for_the_next_case() {
    let agent = agent();
    for _ in 0..20 {
        assert_eq!(ask(&agent, "twice").await.unwrap().response, "first");
        // The second answer is either noticed before the next request, or has another id.
        match ask(&agent, "next").await {
            Ok(trace) => assert_eq!(trace.response, "next"),
            Err(error) => assert!(error.message.contains("instead of request"), "{}", error.message),
        }
    }
}

async fn converse(agent: &CommandAgent, has_turns: bool) -> Result<Vec<Trace>, AgentError> {
    let case = case("one");
    let context =
        TrialContext { run_id: "run", number: 3, case: &case, sample: 0, has_turns, wait_observer: &IgnoreWaits };
    let mut conversation = agent.start(context);
    let mut traces = Vec::new();
    for message in ["one", "two"] {
        traces.push(conversation.send(message).await?);
    }
    Ok(traces)
}

fn seen(trace: &Trace) -> Value {
    let mut request = Value::Object(trace.tool_calls[0].params.clone());
    request.as_object_mut().unwrap().remove("id");
    request
}

#[rstest]
#[case::kept(true)]
#[case::started_for_each_message(false)]
#[tokio::test]
async fn programs_get_the_conversation(#[case] keep_alive: bool) {
    let command = format!("python3 -c '{}'", PROGRAM.replace("request[\"id\"]", "request.get(\"id\")"));
    let agent =
        CommandAgent::new(&command, Path::new("/"), config(&json!({"keepAlive": keep_alive})), &|_| None).unwrap();
    let traces = converse(&agent, true).await.unwrap();
    let id = seen(&traces[0])["conversationId"].clone();
    assert_eq!(id.as_str().map(str::len), Some(36));
    assert_eq!(seen(&traces[0]), json!({"message": "one", "conversationId": id, "turn": 0, "messages": []}));
    let history = json!([{"role": "user", "content": "one"}, {"role": "assistant", "content": "one"}]);
    assert_eq!(seen(&traces[1]), json!({"message": "two", "conversationId": id, "turn": 1, "messages": history}));
    assert_eq!(traces[0].model == traces[1].model, keep_alive, "a conversation stays on its process");
    let alone = converse(&agent, false).await.unwrap();
    assert_eq!(seen(&alone[0]), json!({"message": "one"}));
}

#[rstest]
#[case::kept(true)]
#[case::started_for_each_message(false)]
#[tokio::test]
async fn requests_of_programs_can_be_mapped(#[case] keep_alive: bool) {
    let request = json!({
        "body": {"input": {"text": "{{message}}", "who": "${USER_NAME}"}, "thread": "{{conversationId}}", "log": []},
        "messages": "/log",
    });
    let response = json!({"response": "/input/text", "conversationId": "/session"});
    let value = json!({"keepAlive": keep_alive, "request": request, "response": response});
    let program = r#"
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    print(json.dumps({**request, "session": "s-1", "model": line}), flush=True)
"#;
    let lookup = |name: &str| (name == "USER_NAME").then(|| "Ada".to_owned());
    let command = format!("python3 -c '{program}'");
    let agent = CommandAgent::new(&command, Path::new("/"), config(&value), &lookup).unwrap();
    assert!(agent.secrets().contains(&"Ada".to_owned()));
    let traces = converse(&agent, true).await.unwrap();
    let requests: Vec<Value> = traces
        .iter()
        .map(|trace| {
            let mut request: Value = serde_json::from_str(trace.model.as_deref().unwrap()).unwrap();
            assert_eq!(request.as_object_mut().unwrap().remove("id").is_some(), keep_alive);
            request
        })
        .collect();
    let (one, answer, two) = (
        json!({"role": "user", "content": "one"}),
        json!({"role": "assistant", "content": "one"}),
        json!({"role": "user", "content": "two"}),
    );
    assert_eq!(requests[0], json!({"input": {"text": "one", "who": "Ada"}, "log": [one]}), "no id is known yet");
    assert_eq!(
        requests[1],
        json!({"input": {"text": "two", "who": "Ada"}, "thread": "s-1", "log": [one, answer, two]})
    );
}

#[tokio::test]
async fn a_missing_program_is_an_error() {
    let agent =
        CommandAgent::new("karat-no-such-program", Path::new("/"), config(&json!({"keepAlive": true})), &|_| None)
            .unwrap();
    let error = ask(&agent, "hi").await.expect_err("no program");
    assert!(error.message.starts_with("cannot start karat-no-such-program: No such file"), "{}", error.message);
}
