//! Template drafts for a shop with six tools: a correct agent passes them, an agent that calls wrong tools fails.

use karat_testkit::project::TempProject;
use serde_json::{Map, Value, json};

use crate::support::project;

/// Name, category, description, trigger phrases.
const SHOP: [(&str, &str, &str, [&str; 4]); 6] = [
    (
        "search_products",
        "read",
        "Searches the catalogue. Use when the user looks for something to buy.",
        ["Do you have red shoes?", "Find me a rain jacket", "Show me your tents", "Which backpacks are in stock?"],
    ),
    (
        "get_order",
        "read",
        "Fetches an order with its items. Use when the user asks what they ordered. For the parcel, use \
         get_shipping_status instead.",
        [
            "What did I order in A100?",
            "Show me order A200",
            "Which items are in order A300?",
            "What is in my order A100?",
        ],
    ),
    (
        "get_shipping_status",
        "read",
        "Fetches where a parcel is. Use when the user asks when an order arrives. For its items, use get_order instead.",
        ["Where is my parcel A100?", "When does order A200 arrive?", "Track A300 please", "Has order A100 left yet?"],
    ),
    (
        "cancel_order",
        "write",
        "Cancels an order that has not shipped yet. Use when the user wants to call an order off. For money back, use \
         refund_order instead.",
        ["Cancel my order A100", "Stop order A200", "I do not want order A300 any more", "Call off A100"],
    ),
    (
        "refund_order",
        "write",
        "Pays an order back. Use when the user wants their money back. To stop an order, use cancel_order instead.",
        ["Refund order A100", "I want my money back for A200", "Pay A300 back please", "Give me a refund for A100"],
    ),
    (
        "list_coupons",
        "read",
        "Lists the coupons that are valid today. Use when the user asks for discounts.",
        ["Any coupons today?", "Is there a discount code?", "How can I save money here?", "Do you have vouchers?"],
    ),
];

fn shop_project() -> TempProject {
    let tools = SHOP.map(|(name, category, description, phrases)| {
        json!({"name": name, "category": category, "description": description, "triggerPhrases": phrases})
    });
    let overlaps = json!({
        "get_order": {"overlaps": ["get_shipping_status"], "reason": "both are asked for by an order's number"},
        "get_shipping_status": {"overlaps": ["get_order"]},
        "cancel_order": {"overlaps": ["refund_order"], "reason": "both undo an order"},
        "refund_order": {"overlaps": ["cancel_order"]},
    });
    project()
        .file("karat.json", json!({"toolRegistryPath": "tools.json"}))
        .file("tools.json", json!({ "tools": tools }))
        .file("evals/overlap-map.json", overlaps)
        .env("GIT_AUTHOR_NAME", "Ada")
}

fn golden(project: &TempProject, tool: &str) -> Vec<Value> {
    let path = format!("evals/{}.golden.json", tool.replace('_', "-"));
    project.read_json(&path)["cases"].as_array().expect("cases").clone()
}

/// Returns a scripted agent that answers the golden cases; `call` chooses the tool to call, if any.
fn agent(cases: &[(&str, Value)], call: impl Fn(&str, &Value) -> Option<String>) -> Value {
    let mut replies = Map::new();
    for (tool, case) in cases {
        let calls = call(tool, case).map(|name| json!({"name": name, "params": {}, "success": true}));
        let calls: Vec<Value> = calls.into_iter().collect();
        let message = case["input"]["message"].as_str().expect("a message");
        replies.insert(message.to_owned(), json!({"response": "Order A100 is shipped.", "toolCalls": calls}));
    }
    json!({ "replies": replies })
}

fn must_ask_first(case: &Value) -> bool {
    case["expect"]["toolsCalled"].is_null()
}

#[test]
fn a_correct_agent_passes_golden_cases_and_a_wrong_one_fails() {
    let project = shop_project();
    let mut cases: Vec<(&str, Value)> = Vec::new();
    for (tool, ..) in SHOP {
        let output = project.run(["forge", tool, "--approve-all", "--tier", "golden"]);
        assert_eq!(output.code, Some(0), "{}", output.both());
        cases.extend(golden(&project, tool).into_iter().map(|case| (tool, case)));
    }
    assert!(cases.len() >= 6 * 5, "{} cases", cases.len());
    assert!(cases.iter().any(|(_, case)| must_ask_first(case)), "some tools require a question first");
    let run = |agent: Value| {
        project.write("agent.json", agent);
        let output = project.run([
            "run",
            "--tier",
            "golden",
            "--agent-endpoint",
            "scripted:agent.json",
            "--no-store",
            "--format",
            "json",
        ]);
        let report: Value = serde_json::from_str(&output.stdout).expect("valid JSON");
        let suites = report["suites"].as_array().expect("suites").clone();
        let results: Vec<Value> =
            suites.iter().flat_map(|suite| suite["cases"].as_array().expect("cases").clone()).collect();
        let passed = results.iter().filter(|case| case["passed"] == true).count();
        (passed, results.len(), output)
    };
    let correct = agent(&cases, |tool, case| (!must_ask_first(case)).then(|| tool.to_owned()));
    let (passed, all, output) = run(correct);
    assert_eq!((passed, all), (cases.len(), cases.len()), "{}", output.both());
    // Wrong agents call another tool; where they must ask first, they call the tool or another one that changes data.
    let next = |tool: &str| {
        let at = SHOP.iter().position(|(name, ..)| *name == tool).expect("a tool");
        SHOP[(at + 1) % SHOP.len()].0.to_owned()
    };
    let wrong = agent(&cases, |tool, case| Some(if must_ask_first(case) { tool.to_owned() } else { next(tool) }));
    assert_eq!(run(wrong).0, 0);
    let other = |tool: &str| if tool == "cancel_order" { "refund_order" } else { "cancel_order" }.to_owned();
    let unconfirmed = agent(&cases, |tool, case| Some(if must_ask_first(case) { other(tool) } else { next(tool) }));
    assert_eq!(run(unconfirmed).0, 0);
}

/// Values that the seed manifest contains become tokens.
#[test]
fn proof_values_come_from_the_agents_answer() {
    let reply = json!({
        "response": "Order A100 is with PostNord, in the depot Malmö.",
        "toolCalls": [{"name": "get_shipping_status", "params": {}, "success": true,
            "result": {"carrier": "PostNord", "depot": "Malmö", "fetchedAt": "2026-01-02T03:04:05Z"}}],
    });
    let project = shop_project()
        .file("karat.json", json!({"toolRegistryPath": "tools.json", "seedManifestPath": "seed.json"}))
        .file("seed.json", json!({"orders": [{"id": "A100", "carrier": "PostNord"}]}))
        .file("agent.json", json!({"replies": {}, "otherwise": reply}));
    let arguments = [
        "forge",
        "get_shipping_status",
        "--dry-run",
        "--tier",
        "golden",
        "--verify",
        "--format",
        "json",
        "--agent-endpoint",
        "scripted:agent.json",
    ];
    let output = project.run(arguments);
    assert_eq!(output.code, Some(0), "{}", output.both());
    let report: Value = serde_json::from_str(&output.stdout).expect("valid JSON");
    let drafts = report["batches"][0]["drafts"].as_array().expect("drafts");
    for draft in drafts {
        assert_eq!(
            draft["case"]["expect"]["responseContains"],
            json!(["{{seed:orders[0].carrier}}", "Malmö"]),
            "{draft}"
        );
        assert_eq!(draft["findings"], json!([]), "{draft}");
    }
}

/// Returns an agent that answers each message with the result of `get_shipping_status`, in words or as it is.
fn shipping_agent(is_raw: bool) -> Value {
    let result = json!({"carrier": "PostNord", "eta_days": 2, "price": 39.9, "fee": 4.5});
    let response = if is_raw {
        result.to_string()
    } else {
        "It is with Postnord; shipping costs 39.90 EUR, plus 4,50.".to_owned()
    };
    let call = json!({"name": "get_shipping_status", "params": {}, "success": true, "result": result});
    json!({"replies": {}, "otherwise": {"response": response, "toolCalls": [call]}})
}

/// The README's example of a regression: the agent returns the tool's result as it is.
#[test]
fn a_raw_answer_fails_the_leak_case() {
    for verify in [&[][..], &["--verify"]] {
        let project = shop_project().file("agent.json", shipping_agent(false));
        let arguments = ["forge", "get_shipping_status", "--tier", "golden", "--approve-all"];
        let agent = ["--agent-endpoint", "scripted:agent.json"];
        let forged = project.run(arguments.into_iter().chain(verify.iter().copied()).chain(agent));
        assert_eq!(forged.code, Some(0), "{}", forged.both());
        let run = || project.run(["run", "--no-store"].into_iter().chain(agent));
        let correct = run();
        assert_eq!(correct.code, Some(0), "{}", correct.both());
        project.write("agent.json", shipping_agent(true));
        let raw = run();
        assert_eq!(raw.code, Some(1), "{}", raw.both());
        assert!(raw.stdout.contains("no JSON leak: get_shipping_status"), "{}", raw.both());
        let cases = golden(&project, "get_shipping_status");
        let leak = cases
            .iter()
            .find(|case| case["description"].as_str().unwrap().starts_with("no JSON leak"))
            .expect("a case");
        let forbidden = leak["expect"]["responseNotContains"].to_string();
        assert_eq!(forbidden.contains("eta_days"), !verify.is_empty(), "{forbidden}");
        assert_eq!(forbidden.contains(r#"\"carrier\":"#), !verify.is_empty(), "{forbidden}");
        // Without values of an answer, the approved cases prove little, which is not hidden.
        let checked = project.run(["check"]);
        assert_eq!(checked.stdout.contains("few-proof-values"), verify.is_empty(), "{}", checked.both());
    }
}

#[test]
fn takes_values_as_the_answer_writes_them() {
    let project = shop_project().file("agent.json", shipping_agent(false));
    let arguments = ["forge", "get_shipping_status", "--tier", "golden", "--approve-all", "--verify"];
    let output = project.run(arguments.into_iter().chain(["--agent-endpoint", "scripted:agent.json"]));
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert!(!output.stderr.contains("too few values"), "{}", output.stderr);
    for case in golden(&project, "get_shipping_status") {
        assert_eq!(case["expect"]["responseContains"], json!(["Postnord", "39.90"]), "{case}");
    }
}

/// Without a person, a draft that the agent does not pass is not written.
#[test]
fn approve_all_with_verify_leaves_out_what_does_not_pass() {
    let project = shop_project().file("agent.json", shipping_agent(true));
    let arguments = ["forge", "get_shipping_status", "--tier", "golden", "--approve-all", "--verify"];
    let run = |agent: &str| project.run(arguments.into_iter().chain(["--restart", "--agent-endpoint", agent]));
    let unreachable = run("http://127.0.0.1:9/chat");
    assert_eq!(unreachable.code, Some(3), "{}", unreachable.both());
    assert!(unreachable.stdout.contains("no verdict: "), "{}", unreachable.both());
    let raw = run("scripted:agent.json");
    assert_eq!(raw.code, Some(1), "{}", raw.both());
    assert!(raw.stdout.contains("the agent fails: responseNotContains"), "{}", raw.both());
    assert!(!golden(&project, "get_shipping_status").is_empty(), "the others are written");
}

#[test]
fn notes_that_calls_without_results_have_no_values() {
    let call = json!({"name": "get_shipping_status", "params": {}, "success": true});
    let reply = json!({"response": "It is in the depot Malmö.", "toolCalls": [call]});
    let project = shop_project().file("agent.json", json!({"replies": {}, "otherwise": reply}));
    let arguments = ["forge", "get_shipping_status", "--dry-run", "--tier", "golden", "--verify"];
    let output = project.run(arguments.into_iter().chain(["--agent-endpoint", "scripted:agent.json"]));
    assert_eq!(output.code, Some(0), "{}", output.both());
    let message = "the agent reports its calls without results, so --verify finds no values for 'responseContains'";
    assert_eq!(output.unwrapped_stderr().matches(message).count(), 1, "{}", output.stderr);
}

#[test]
fn a_program_can_be_the_model() {
    let script = "#!/bin/sh\nexec python3 -c '\nimport json, sys\nask = json.load(sys.stdin)\n\
        asked = json.loads(ask[\"user\"])[\"asked\"]\ncases = [{\"id\": one[\"id\"], \"input\": {\"message\": \"Question %d for %s, of the kind %d\" % (n, one[\"id\"], n)}, \
        \"expect\": {\"toolsCalled\": [\"list_coupons\"], \"responseContains\": [\"SUMMER\", \"ten percent\"]}} for n, one in enumerate(asked)]\n\
        print(json.dumps({\"cases\": cases}))\n'\n";
    let project = shop_project().file("model.sh", script);
    let path = project.path().join("model.sh");
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let arguments = ["forge", "list_coupons", "--approve-all", "--tier", "golden", "--model", "command:./model.sh"];
    let output = project.run(arguments);
    assert_eq!(output.code, Some(0), "{}", output.both());
    let metadata = &project.read_json("evals/list-coupons.golden.json")["metadata"];
    assert_eq!(metadata["approvals"][0]["model"], "command:./model.sh");
    let broken = project.run(["forge", "get_order", "--approve-all", "--tier", "golden", "--model", "command:false"]);
    assert_eq!(broken.code, Some(3), "{}", broken.both());
    assert!(broken.stderr.contains("the program ended with exit status 1"), "{}", broken.stderr);
    let missing = project.run(["forge", "get_order", "--dry-run", "--model", "command:./nothing.sh"]);
    assert_eq!(missing.code, Some(2), "{}", missing.both());
}

#[test]
fn a_description_without_a_trigger_needs_confirmation() {
    let tool = json!({"name": "cancel_order", "description": "Cancels an order that has not shipped yet.",
        "triggerPhrases": ["Cancel A100", "Stop order A200", "Call off A300"]});
    let project = shop_project().file("tools.json", json!([tool])).file("evals/overlap-map.json", json!({}));
    let plan = project.run(["forge", "cancel_order", "--plan"]);
    assert_eq!(plan.code, Some(0), "{}", plan.both());
    let stderr = plan.unwrapped_stderr();
    let corrected = "suggested description: Cancels an order that has not shipped yet. Use when the user asks \
                     \"Cancel A100\" or similar.";
    assert!(stderr.contains("(description-trigger)") && stderr.contains(corrected), "{stderr}");
    let refused = project.run(["forge", "cancel_order", "--approve-all"]);
    assert_eq!(refused.code, Some(2), "{}", refused.both());
    assert!(refused.stderr.contains("--yes"), "{}", refused.stderr);
    assert_eq!(project.run(["forge", "cancel_order", "--approve-all", "--yes"]).code, Some(0));
}

#[test]
fn rejects_duplicate_and_vague_descriptions() {
    let tool = |name: &str, description: &str| json!({"name": name, "description": description});
    let same = "Lists the holdings of a portfolio. Use when the user asks about their shares.";
    let project = shop_project().file("evals/overlap-map.json", json!({})).file(
        "tools.json",
        json!([tool("a", same), tool("b", same), tool("c", "Lists the holdings of a fund. Use when needed.")]),
    );
    let sentence = "The tool description is too vague for reliable eval generation. Fix the description first.";
    for (name, finding) in [("a", "description-duplicate"), ("b", "description-duplicate"), ("c", "'when needed'")] {
        let output = project.run(["forge", name, "--plan"]);
        assert_eq!(output.code, Some(2), "{}", output.both());
        let stderr = output.unwrapped_stderr();
        assert!(
            stderr.contains(sentence) && stderr.contains(finding) && stderr.contains("suggested description:"),
            "{stderr}"
        );
    }
}
