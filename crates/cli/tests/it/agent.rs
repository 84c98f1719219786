//! `karat agent`.

use karat_testkit::project::{Output, TempProject};
use karat_testkit::server::ScriptedServer;
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::project;

/// Checks that every line fits into 80 columns.
#[track_caller]
fn assert_fits(output: &Output) {
    for line in output.both().lines() {
        assert!(line.chars().count() <= 80, "{} columns: {line}", line.chars().count());
    }
}

fn project_at(endpoint: &str) -> TempProject {
    project().file("karat.json", json!({"agentEndpoint": endpoint}))
}

fn try_json(project: &TempProject, arguments: &[&str]) -> Value {
    let output = project.run(["agent", "try", "--format", "json"].iter().chain(arguments).copied());
    serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{}", output.both()))
}

fn shop_reply() -> Value {
    json!({
        "response": "Order 42 has shipped.",
        "toolCalls": [
            {"name": "get_order", "params": {"order_id": "42"}, "success": true, "result": {"status": "shipped"}},
            {"name": "get_weather", "params": {"city": "Oslo"}, "success": false},
        ],
        "usage": {"inputTokens": 12, "outputTokens": 5},
        "model": "scripted-1",
    })
}

#[test]
fn shows_the_request_the_reply_and_what_was_read() {
    let server = ScriptedServer::start(json!({"*": shop_reply()}));
    let output = project_at(&server.endpoint()).run(["agent", "try", "Where is order 42?"]);
    assert_fits(&output);
    assert_eq!(output.code, Some(0), "{}", output.both());
    let request = format!(
        "request       POST {}\n  content-type: application/json\n  {{\n    \"message\": \"Where is order 42?\"\n  }}\n\
         reply         200, application/json, ",
        server.endpoint()
    );
    assert!(output.stdout.starts_with(&request), "{}", output.stdout);
    let read = "\nanswer        Order 42 has shipped.\n\
        tool calls    get_order {\"order_id\":\"42\"} -> {\"status\":\"shipped\"}\n              \
        get_weather {\"city\":\"Oslo\"} -> failed\n\
        usage         12 input tokens, 5 output tokens\n\
        model         scripted-1\n";
    assert!(output.stdout.contains(read), "{}", output.stdout);
    assert!(output.stdout.ends_with("not reported  stop reason\n"), "{}", output.stdout);
}

#[test]
fn masks_secrets_in_requests_and_replies() {
    let reply = json!({"response": "your key is tk-from-environment", "echo": ["Bearer literal-secret-value"]});
    let server = ScriptedServer::start(json!({"*": reply}));
    let project = project()
        .file(
            "karat.json",
            json!({"agentEndpoint": server.endpoint(), "agent": {"headers": {
                "authorization": "Bearer literal-secret-value", "x-team": "${TEAM_VALUE}", "x-trace": "visible",
            }}}),
        )
        .env("TEAM_VALUE", "tk-from-environment");
    for arguments in [vec!["agent", "try", "hi", "-v"], vec!["agent", "try", "hi", "--format", "json"]] {
        let output = project.run(arguments);
        assert_eq!(output.code, Some(0), "{}", output.both());
        for secret in ["literal-secret-value", "tk-from-environment"] {
            assert!(!output.both().contains(secret), "{}", output.both());
        }
        assert!(output.stdout.contains("visible") && output.stdout.contains("***"), "{}", output.stdout);
    }
    assert_eq!(server.requests()[0].headers["authorization"], "Bearer literal-secret-value");
}

#[test]
fn suggests_the_preset_for_a_reply_of_another_format() {
    let reply = json!({"choices": [{"message": {"role": "assistant", "content": "Hi!"}, "finish_reason": "stop"}]});
    let server = ScriptedServer::start(json!({"*": {"json": reply}}));
    let output = project_at(&server.endpoint()).run(["agent", "try", "hello"]);
    assert_eq!(output.code, Some(3));
    assert_fits(&output);
    assert!(output.stdout.contains("the reply has no text at '/response'"), "{}", output.stdout);
    let joined = output.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let hint = format!("has the shape of 'chat': try --agent-endpoint chat:{}", server.endpoint());
    assert!(joined.contains(&hint), "{}", output.stdout);
}

#[test]
fn shows_the_error_of_a_reply() {
    let error = json!({"error": {"type": "RuntimeError", "message": "the model is not available"}});
    let server = ScriptedServer::start(json!({"ok": {"json": error}, "down": {"json": error, "status": 500}}));
    for message in ["ok", "down"] {
        let output = project_at(&server.endpoint()).run(["agent", "try", message]);
        assert_eq!(output.code, Some(3));
        assert!(output.stdout.contains("the model is not available"), "{}", output.stdout);
        let tried = try_json(&project_at(&server.endpoint()), &[message]);
        let turn = &tried["turns"][0];
        assert!(turn["error"].as_str().unwrap().contains("the model is not available"), "{turn:#}");
        assert_eq!((&tried["answered"], &turn["exchanges"][0]["reply"]["body"]), (&json!(false), &error));
    }
}

#[test]
fn explains_how_to_read_unreported_parts() {
    let server = ScriptedServer::start(json!({
        "none": {"json": {"response": "hi"}},
        "unknown": {"json": {"response": "hi", "calls": [{"name": "get_order"}]}},
    }));
    let mapped = json!({"agentEndpoint": server.endpoint(), "agent": {"response": {"toolCalls": "/calls"}}});
    let project = project().file("karat.json", mapped);
    let notes = |message: &str| try_json(&project, &[message])["turns"][0]["notes"].clone();
    assert!(notes("none")[0].as_str().unwrap().starts_with("the reply does not report tool calls: set 'agent.resp"));
    assert!(notes("unknown")[0].as_str().unwrap().starts_with("the reply does not report which calls failed"));
    let output = project.run(["agent", "try", "none"]);
    assert!(output.stdout.contains("tool calls    not reported"), "{}", output.stdout);
    // With a preset, the note names what adds the calls.
    let message = json!({
        "kind": "message", "messageId": "m", "contextId": "c", "role": "agent", "parts": [{"kind": "text", "text": "hi"}],
    });
    let reply = json!({"jsonrpc": "2.0", "id": "1", "result": message});
    let server = ScriptedServer::start(json!({"*": {"json": reply}}));
    let tried = try_json(&project_at(&format!("a2a:{}", server.base_url())), &["hi"]);
    insta::assert_snapshot!(tried["turns"][0]["notes"][0].as_str().unwrap_or_default(), @"this reply does not report tool calls (A2A has no tool calls, but ADK's bridge adds them); 'agent.telemetry' reads them from its OpenTelemetry spans");
}

#[test]
fn continues_a_conversation() {
    let server = ScriptedServer::start(json!({"*": {"response": "ok"}}));
    let project = project_at(&server.endpoint());
    let tried = try_json(&project, &["Remember 7.", "--turn", "Which number?", "--turn", "Thanks"]);
    let bodies = server.bodies();
    assert_eq!((tried["turns"].as_array().unwrap().len(), bodies.len()), (3, 3));
    assert_eq!(bodies[2]["messages"].as_array().unwrap().len(), 4, "{bodies:?}");
    assert_eq!(tried["conversationId"], bodies[0]["conversationId"]);
    assert_eq!(tried["turns"][1]["message"], "Which number?");
    // One message has no conversation.
    assert!(try_json(&project, &["hi"]).get("conversationId").is_none());
    let output = project.run(["agent", "try", "Remember 7.", "--turn", "Which number?"]);
    assert!(output.stdout.contains("turn 2: Which number?"), "{}", output.stdout);
    assert_fits(&output);
}

#[test]
fn shows_sessions_polls_and_the_id_of_the_agent() {
    let server = ScriptedServer::start(json!({
        "": {"json": {"id": "session-1"}},
        "hi": {"json": {"run": "r1"}},
        "GET /runs/r1": {"json": {"status": "done", "reply": "hello"}},
    }));
    let agent = json!({
        "session": {"request": {"url": "/sessions"}, "id": "/id"},
        "request": {"url": "/sessions/{{conversationId}}/ask"},
        "poll": {"request": {"url": "/runs/{{reply:/run}}"}, "until": {"path": "/status", "equals": "done"}, "intervalMs": 1},
        "response": {"response": "/reply"},
    });
    let project = project().file("karat.json", json!({"agentEndpoint": server.base_url(), "agent": agent}));
    let tried = try_json(&project, &["hi"]);
    let exchanges = tried["turns"][0]["exchanges"].as_array().unwrap();
    let purposes: Vec<&Value> = exchanges.iter().map(|exchange| &exchange["purpose"]).collect();
    assert_eq!(purposes, ["session", "message", "poll"], "{tried:#}");
    assert_eq!(tried["conversationId"], "session-1");
    assert_eq!(tried["turns"][0]["answer"]["response"], "hello");
}

#[test]
fn shows_streams_and_the_time_of_their_first_text() {
    let stream = "data: {\"delta\": \"Hel\"}\n\ndata: {\"delta\": \"lo\"}\n\ndata: [DONE]\n\n";
    let entry = json!({"raw": stream, "headers": {"content-type": "text/event-stream"}});
    let server = ScriptedServer::start(json!({"*": entry}));
    let agent = json!({"response": {"format": "sse", "response": "$[*].delta", "toolCalls": "$[*].call"}});
    let project = project().file("karat.json", json!({"agentEndpoint": server.endpoint(), "agent": agent}));
    let output = project.run(["agent", "try", "hi"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    for part in ["data: {\"delta\": \"lo\"}", "answer        Hello", "first token after"] {
        assert!(output.stdout.contains(part), "{part}: {}", output.stdout);
    }
}

#[test]
fn cuts_long_replies_unless_asked_for_all() {
    let lines: Vec<Value> = (0..100).map(|number| json!({"line": number, "text": "x".repeat(200)})).collect();
    let server = ScriptedServer::start(json!({"*": {"json": {"response": "ok", "lines": lines}}}));
    let project = project_at(&server.endpoint());
    let short = project.run(["agent", "try", "hi"]);
    assert_fits(&short);
    assert!(short.stdout.contains("more lines (pass -v to show all)"), "{}", short.stdout);
    assert!(short.stdout.lines().count() < 40, "{}", short.stdout);
    let full = project.run(["agent", "try", "hi", "-v"]);
    assert!(full.stdout.contains("\"line\": 99") && full.stdout.contains(&"x".repeat(200)));
}

#[test]
fn shows_the_request_of_an_agent_that_hangs() {
    let server = ScriptedServer::start(json!({"*": {"response": "late", "delayMs": 60_000}}));
    let output = project_at(&server.endpoint()).run(["agent", "try", "hi", "--timeout-ms", "200"]);
    assert_eq!(output.code, Some(3));
    assert!(output.stdout.contains("\"message\": \"hi\""), "{}", output.stdout);
    assert!(output.stdout.contains("no answer within 0.2 s ('timeoutMs')"), "{}", output.stdout);
}

#[cfg(unix)]
#[test]
fn tries_programs_functions_and_scripts() {
    let project = project()
        .file("agent.sh", "cat >&2; echo '{\"response\": \"from a program\"}'")
        .file("agent.py", "def answer(message):\n    return 'from a function'\n\ndef fail(message):\n    raise ValueError('no such order')\n")
        .file("agent.json", json!({"replies": {}, "otherwise": {"response": "from a script"}}));
    for (endpoint, answer, sent) in [
        ("command:sh agent.sh", "from a program", true),
        ("python:agent:answer", "from a function", true),
        ("scripted:agent.json", "from a script", false),
    ] {
        let tried = try_json(&project, &["hi", "--agent-endpoint", endpoint]);
        let turn = &tried["turns"][0];
        assert_eq!(turn["answer"]["response"], answer, "{tried:#}");
        let exchanges = turn["exchanges"].as_array().unwrap();
        assert_eq!(
            exchanges.first().map(|exchange| &exchange["request"]["body"]["message"]),
            sent.then_some(&json!("hi"))
        );
        let output = project.run(["agent", "try", "hi", "--agent-endpoint", endpoint]);
        assert_fits(&output);
    }
    let program = try_json(&project, &["hi", "--agent-endpoint", "command:sh agent.sh"]);
    assert_eq!(program["turns"][0]["exchanges"][0]["reply"]["stderr"], "{\"message\":\"hi\"}");
    let text = try_json(&project, &["hi", "--agent-endpoint", "python:agent:answer"]);
    assert!(
        text["turns"][0]["notes"][0].as_str().unwrap().starts_with("the function returns only a string"),
        "{text:#}"
    );
    let failed = project.run(["agent", "try", "hi", "--agent-endpoint", "python:agent:fail"]);
    assert_eq!(failed.code, Some(3));
    assert!(failed.stdout.contains("ValueError: no such order"), "{}", failed.both());
}

#[test]
fn tries_models() {
    let server = ScriptedServer::start(json!({"hi": {"text": "Hello from a model.", "usage": [3, 4]}}));
    let project = project().env("OPENAI_BASE_URL", server.base_url()).env("OPENAI_API_KEY", "sk-test-1234567890");
    let output = project.run(["agent", "try", "hi", "--agent-endpoint", "openai:gpt-5-mini"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    for part in ["/chat/completions", "authorization: ***", "Hello from a model.", "3 input tokens, 4 output tokens"] {
        assert!(output.stdout.contains(part), "{part}: {}", output.stdout);
    }
    assert!(!output.both().contains("sk-test"), "{}", output.both());
}

#[test]
fn needs_one_agent() {
    let project = project().file("karat.json", json!({"matrix": ["http://127.0.0.1:9/a", "http://127.0.0.1:9/b"]}));
    let output = project.run(["agent", "try", "hi"]);
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("pass --agent-endpoint to choose one"), "{}", output.stderr);
}

#[test]
fn lists_presets() {
    let output = project().run(["agent", "show"]);
    assert_fits(&output);
    insta::assert_snapshot!(output.filtered(), @r#"
    exit: 0
    ----- stdout -----
    kind       product                      text  calls  failures  turns  approvals
    langgraph  LangGraph server             yes   yes    yes       yes    yes
    langserve  LangServe                    yes   some   no        yes    no
    adk        Google ADK (adk api_server)  yes   yes    yes       yes    yes
    mastra     Mastra server                yes   yes    yes       yes    yes
    ai-sdk     Vercel AI SDK (useChat)      yes   yes    yes       yes    yes
    ag-ui      AG-UI                        yes   yes    yes       yes    yes
    a2a        Agent2Agent 0.3              yes   some   some      yes    yes
    a2a-v1     Agent2Agent 1.0              yes   some   some      yes    yes
    dify       Dify app                     yes   some   no        yes    no
    n8n        n8n Chat Trigger             yes   some   no        yes    no
    flowise    Flowise flow                 yes   yes    yes       yes    yes
    rasa       Rasa REST channel            yes   no     no        yes    no
    chat       OpenAI chat completions      yes   some   no        yes    no
    responses  OpenAI Responses             yes   yes    some      yes    yes
    messages   Anthropic Messages           yes   yes    yes       yes    no

    "some" depends on the agent; assertions that cannot be judged are skipped.
    To show a preset as configuration: karat agent show KIND
    ----- stderr -----
    "#);
}

/// A preset that was copied to `karat.json` sends the same request as the preset.
#[test]
fn a_shown_preset_is_the_same_agent() {
    let server = ScriptedServer::start(json!({"*": {"json": {"id": "i", "thread_id": "t"}}}));
    let list: Value = serde_json::from_str(&project().run(["agent", "show", "--format", "json"]).stdout).unwrap();
    let presets = list["presets"].as_array().unwrap();
    assert!(presets.len() >= 15, "{list:#}");
    for preset in presets {
        let kind = preset["kind"].as_str().unwrap();
        let endpoint = format!("{kind}:{}?app=shop&agent=shop", server.base_url());
        let shown = project().run(["agent", "show", &endpoint]);
        assert_eq!(shown.code, Some(0), "{kind}: {}", shown.both());
        let send = |project: TempProject| {
            server.reset(json!({"*": {"json": {"id": "i", "thread_id": "t"}}}));
            let output = project.env("DIFY_API_KEY", "app-key-of-a-test").run(["agent", "try", "hi"]);
            assert_eq!(output.code, Some(3), "{kind}: {}", output.both());
            server.requests().into_iter().map(|request| (request.path, without_ids(request.body))).collect::<Vec<_>>()
        };
        let of_preset = send(project_at(&endpoint));
        assert!(!of_preset.is_empty(), "{kind}");
        assert_eq!(send(project().file("karat.json", shown.stdout.as_str())), of_preset, "{kind}");
    }
}

#[test]
fn merges_configured_keys_into_a_preset() {
    let task = |state: &str| json!({"json": {"result": {"kind": "task", "id": "t1", "status": {"state": state}}}});
    let server = ScriptedServer::start(json!({"*": task("working")}));
    let poll = |poll: Value| {
        let config = json!({"agentEndpoint": format!("a2a:{}", server.base_url()), "agent": {"poll": poll}});
        let tried = try_json(&project().file("karat.json", config), &["hi", "--timeout-ms", "1000"]);
        let exchanges = tried["turns"][0]["exchanges"].as_array().unwrap().clone();
        exchanges.into_iter().map(|exchange| exchange["request"]["body"].clone()).collect::<Vec<_>>()
    };
    let requests = poll(json!({"intervalMs": 50}));
    assert!(requests.len() > 4, "the interval is that of the configuration: {requests:#?}");
    assert_eq!((&requests[1]["method"], &requests[1]["params"]), (&json!("tasks/get"), &json!({"id": "t1"})));
    let requests = poll(json!({"until": {"path": "/result/status/state", "equals": "working"}}));
    assert_eq!(requests.len(), 1, "the condition is that of the configuration: {requests:#?}");
    let config = json!({"agentEndpoint": server.endpoint(), "agent": {"poll": {"intervalMs": 50}}});
    let output = project().file("karat.json", config).run(["agent", "try", "hi"]);
    assert_eq!(output.code, Some(2), "{}", output.both());
    assert!(output.stderr.contains("'agent.poll' needs 'request'"), "{}", output.stderr);
}

/// Replaces UUIDs, which differ between runs.
fn without_ids(body: Value) -> Value {
    match body {
        Value::String(text) if text.len() == 36 && text.matches('-').count() == 4 => "ID".into(),
        Value::Array(items) => items.into_iter().map(without_ids).collect(),
        Value::Object(map) => map.into_iter().map(|(key, value)| (key, without_ids(value))).collect(),
        other => other,
    }
}

#[test]
fn suggests_the_name_of_a_preset() {
    let output = project().run(["agent", "show", "langraph"]);
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("did you mean 'langgraph'?"), "{}", output.stderr);
}

#[rstest]
#[case("", "/info", json!({"langgraph_py_version": "1.2"}), "langgraph:URL")]
#[case("", "/list-apps", json!(["shop", "other"]), "adk:URL?app=shop")]
#[case("", "/api/agents", json!({"shop": {"id": "shop", "instructions": "…"}}), "mastra:URL?agent=shop")]
#[case("/agent/invoke", "/agent/input_schema", json!({"type": "object", "title": "Input"}), "langserve:URL/agent")]
#[case("", "/.well-known/agent-card.json", json!({"protocolVersion": "0.3", "url": "http://other.example/rpc"}), "a2a:URL/rpc")]
#[case("", "/version", json!({"version": "3.6", "minimum_compatible_version": "3.5"}), "rasa:URL")]
#[case("/v1", "/v1/info", json!({"status": 401, "json": {"code": "unauthorized"}}), "dify:URL/v1")]
#[case("/v1", "/v1/models", json!({"data": [{"id": "m", "object": "model"}]}), "chat:URL/v1?model=m")]
#[case("", "/v1/models", json!({"data": [{"id": "agent", "type": "model"}]}), "messages:URL")]
#[case("/v1/responses", "/none", json!({}), "responses:URL/v1/responses")]
fn detects_products_without_side_effects(
    #[case] path: &str,
    #[case] asked: &str,
    #[case] reply: Value,
    #[case] expected: &str,
) {
    let server = ScriptedServer::start(json!({(format!("GET {asked}")): reply}));
    // The headers of the project are those of another agent.
    let project = project().file(
        "karat.json",
        json!({"agentEndpoint": "http://127.0.0.1:9", "agent": {"headers": {"authorization": "Bearer secret"}}}),
    );
    let output = project.run(["agent", "detect", &format!("{}{path}", server.base_url())]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    let endpoint = expected.replace("URL", &server.base_url());
    assert_eq!(output.stdout, format!("\"agentEndpoint\": \"{endpoint}\"\n"), "{}", output.both());
    assert_eq!(server.request_count(), 0, "only GET requests");
    assert!(server.gets().iter().all(|request| !request.headers.contains_key("authorization")));
}

#[test]
fn sends_a_message_only_if_requested() {
    let server = ScriptedServer::start(json!({"*": {"response": "Hi there!"}}));
    let project = project();
    let output = project.run(["agent", "detect", &server.endpoint()]);
    assert_eq!(output.code, Some(3));
    assert!(output.stderr.contains("pass --yes to send it 'Hello'"), "{}", output.stderr);
    assert_eq!(server.request_count(), 0);
    let output = project.run(["agent", "detect", &server.endpoint(), "--yes"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert_eq!(output.stdout, format!("\"agentEndpoint\": \"{}\"\n", server.endpoint()));
    assert_eq!(server.bodies(), [json!({"message": "Hello"})]);
}

#[test]
fn detects_the_shape_of_a_reply() {
    let events = "data: {\"type\":\"start\"}\n\ndata: {\"type\":\"text-start\",\"id\":\"t\"}\n\ndata: {\"type\":\"text-delta\",\"id\":\"t\",\"delta\":\"Hi\"}\n\ndata: {\"type\":\"text-end\",\"id\":\"t\"}\n\ndata: {\"type\":\"finish\"}\n\ndata: [DONE]\n\n";
    let stream = json!({"raw": events, "headers": {"content-type": "text/event-stream"}});
    let server =
        ScriptedServer::start(json!({"*": stream, "Hello": {"json": {"error": "messages is missing"}, "status": 400}}));
    let url = format!("{}/api/chat", server.base_url());
    let output = project().run(["agent", "detect", &url, "--yes", "--format", "json"]);
    let detected: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((&detected["kind"], &detected["agentEndpoint"]), (&json!("ai-sdk"), &json!(format!("ai-sdk:{url}"))));
    assert!(detected["tried"][0]["problem"].as_str().unwrap().contains("messages is missing"), "{detected:#}");
}

#[test]
fn reports_why_an_agent_was_not_recognised() {
    let server = ScriptedServer::start(json!({"*": {"json": {"detail": "question is required"}, "status": 422}}));
    let output = project().run(["agent", "detect", &server.endpoint(), "--yes"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(3), ""));
    for part in ["question is required", "the agent was not recognised", "karat agent try"] {
        assert!(output.stderr.contains(part), "{part}: {}", output.stderr);
    }
    assert_fits(&output);
    // No other kind is tried if nothing listens, or if it needs credentials.
    for (url, error) in [("http://127.0.0.1:9".to_owned(), "cannot reach"), (server.endpoint(), "401")] {
        server.reset(json!({"*": {"json": {"error": "no"}, "status": 401}}));
        let output = project().run(["agent", "detect", &url, "--yes"]);
        assert_eq!(output.code, Some(3));
        assert!(output.stderr.contains(error), "{}", output.stderr);
        assert!(server.request_count() <= 1);
    }
}

#[test]
fn writes_the_endpoint_and_keeps_the_rest() {
    let server = ScriptedServer::start(json!({"GET /info": {"langgraph_py_version": "1.2"}}));
    let endpoint = format!("langgraph:{}", server.base_url());
    let written = |before: &str| {
        let project = project().file("karat.json", before);
        let output = project.run(["agent", "detect", &server.base_url(), "--write"]);
        assert_eq!(output.code, Some(0), "{}", output.both());
        assert!(output.stderr.contains("wrote karat.json"), "{}", output.stderr);
        project.read("karat.json")
    };
    let before = "{\n    \"timeoutMs\":   5000,\n    \"agentEndpoint\": \"http://old\", \"agent\": {}\n}\n";
    assert_eq!(written(before), before.replace("http://old", &endpoint));
    assert_eq!(
        written("{\n  \"timeoutMs\": 5000\n}\n"),
        format!("{{\n  \"agentEndpoint\": \"{endpoint}\",\n  \"timeoutMs\": 5000\n}}\n")
    );
    let empty = project();
    empty.run(["agent", "detect", &server.base_url(), "--write"]);
    assert_eq!(empty.read_json("karat.json"), json!({"agentEndpoint": endpoint}));
    let matrix = project().file("karat.json", json!({"matrix": ["scripted:a.json"]}));
    let output = matrix.run(["agent", "detect", &server.base_url(), "--write"]);
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("has 'matrix'"), "{}", output.stderr);
    let untouched = project_at("http://old");
    untouched.run(["agent", "detect", &server.base_url()]);
    assert_eq!(untouched.read_json("karat.json")["agentEndpoint"], "http://old");
}

#[test]
fn init_proposes_the_preset_of_a_running_agent() {
    let server = ScriptedServer::start(json!({"GET /info": {"langgraph_py_version": "1.2"}}));
    let port = server.base_url().rsplit_once(':').unwrap().1.to_owned();
    let project = project();
    let output = project.run(["init", "--yes", "--ports", &port, "--message", "Hello"]);
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert_eq!(project.read_json("karat.json")["agentEndpoint"], format!("langgraph:http://localhost:{port}"));
}

/// Every configuration that the guide shows is valid.
#[test]
fn documented_configurations_are_valid() {
    let guide = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guides/agents.md")).unwrap();
    let blocks = guide.split("```json\n").skip(1).map(|rest| rest.split("```").next().expect("an end").to_owned());
    let rows = guide.lines().filter(|line| line.starts_with("| ") && line.contains(":http"));
    let presets = rows.map(|row| json!({"agentEndpoint": row.split('`').nth(1).expect("an endpoint")}).to_string());
    let blocks: Vec<String> = blocks.chain(presets).collect();
    assert!(blocks.len() > 15, "{blocks:?}");
    for block in &blocks {
        let config: Value = serde_json::from_str(block).expect(block);
        let endpoint = config["agentEndpoint"].as_str().expect(block);
        let is_preset = endpoint.contains(":http") && !endpoint.starts_with("http");
        if is_preset {
            let shown = project().run(["agent", "show", endpoint]);
            assert_eq!(shown.code, Some(0), "{block}: {}", shown.both());
        }
        // Nothing is selected, but the configuration is read.
        let listed = project().file("karat.json", block.as_str()).file("evals/none.txt", "").run(["run", "--list"]);
        assert_eq!(listed.code, Some(4), "{block}: {}", listed.both());
    }
}

/// Products, and stand-ins for those that are too big to install.
#[cfg(unix)]
mod products {
    use karat_testkit::agent_server::{AgentProduct, AgentServer};

    use super::*;

    #[rstest]
    #[case(AgentProduct::Chat, "", "chat:URL?model=shop")]
    #[case(AgentProduct::Messages, "/v1", "messages:URL/v1?model=shop")]
    #[case(AgentProduct::Responses, "/v1/responses", "responses:URL/v1/responses?model=shop")]
    #[case(AgentProduct::Dify, "/v1", "dify:URL/v1")]
    #[case(AgentProduct::Rasa, "", "rasa:URL")]
    #[case(AgentProduct::N8n, "/webhook/shop/chat", "n8n:URL/webhook/shop/chat")]
    #[case(AgentProduct::Flowise, "/api/v1/prediction/shop", "flowise:URL/api/v1/prediction/shop")]
    fn stand_ins_are_detected_and_tried(#[case] product: AgentProduct, #[case] path: &str, #[case] expected: &str) {
        is_detected_and_tried(product, path, expected);
    }

    #[rstest]
    #[case(AgentProduct::AiSdk, "/api/chat", "ai-sdk:URL/api/chat")]
    #[case(AgentProduct::AgUi, "", "ag-ui:URL")]
    #[case(AgentProduct::Langgraph, "", "langgraph:URL")]
    #[case(AgentProduct::Langserve, "/agent", "langserve:URL/agent")]
    #[case(AgentProduct::Adk, "", "adk:URL?app=shop")]
    #[case(AgentProduct::A2a, "", "a2a:URL")]
    #[case(AgentProduct::Mastra, "", "mastra:URL?agent=shop")]
    #[ignore = "needs langgraph, langserve, google-adk, a2a-sdk and the JavaScript libraries of agents"]
    fn servers_are_detected_and_tried(#[case] product: AgentProduct, #[case] path: &str, #[case] expected: &str) {
        is_detected_and_tried(product, path, expected);
    }

    #[track_caller]
    fn is_detected_and_tried(product: AgentProduct, path: &str, expected: &str) {
        let server = AgentServer::shared(product);
        let project = project().env("DIFY_API_KEY", "app-agent");
        let output = project.run(["agent", "detect", &server.url(path), "--yes"]);
        assert_eq!(output.code, Some(0), "{}", output.both());
        let endpoint = expected.replace("URL", &server.url(""));
        assert_eq!(output.stdout, format!("\"agentEndpoint\": \"{endpoint}\"\n"), "{}", output.both());
        // The graph of the example is not called `agent`.
        let endpoint = if product == AgentProduct::Langgraph { format!("{endpoint}?assistant=shop") } else { endpoint };
        let output = project.run(["agent", "try", "Where is order 42?", "--agent-endpoint", &endpoint]);
        assert_eq!(output.code, Some(0), "{}", output.both());
        assert!(output.stdout.contains("Order 42 has shipped."), "{}", output.stdout);
        assert_fits(&output);
    }
}
