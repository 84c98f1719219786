//! Checks that every agent must pass.

use std::time::Duration;

use karat_testkit::agent_server::{AgentServer, read_example};
use karat_testkit::project::TempProject;
use serde_json::{Map, Value, json};

use crate::support::{case, only_result, project};

/// What a protocol reports about tool calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallReporting {
    Nothing,
    /// Names and arguments of the calls that were made. A reply without calls does not mean that there were none.
    MadeCalls,
    /// Names and arguments.
    Calls,
    /// Also which calls failed.
    Failures,
}

/// An agent in a project of its own.
pub(super) struct ShopAgent {
    /// The content of `karat.json`.
    pub(super) config: Value,
    /// Files that a function agent needs.
    files: Vec<(String, String)>,
    variables: Vec<(String, String)>,
    reporting: CallReporting,
}

impl ShopAgent {
    /// Uses `karat.json` of an example, with the URL of the running server.
    pub(super) fn example(name: &str, server: &AgentServer, reporting: CallReporting) -> Self {
        Self { config: server.config(name), files: Vec::new(), variables: Vec::new(), reporting }
    }

    /// Uses `karat.json` of an example that has no server.
    pub(super) fn program(name: &str, sources: &[&str], reporting: CallReporting) -> Self {
        let config = serde_json::from_str(&read_example(&format!("{name}/karat.json"))).unwrap();
        let read = |source: &&str| ((*source).to_owned(), read_example(&format!("{name}/{source}")));
        Self { config, files: sources.iter().map(read).collect(), variables: Vec::new(), reporting }
    }

    /// Uses an endpoint such as `chat:http://127.0.0.1:8080`.
    pub(super) fn at(endpoint: &str, reporting: CallReporting) -> Self {
        Self { config: json!({"agentEndpoint": endpoint}), files: Vec::new(), variables: Vec::new(), reporting }
    }

    /// Changes keys of `agent` in the configuration.
    pub(super) fn with_agent(mut self, keys: &Value) -> Self {
        merge(&mut self.config, &json!({"agent": keys}));
        self
    }

    /// Sets an environment variable.
    pub(super) fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Changes the endpoint.
    pub(super) fn with_endpoint(mut self, endpoint: &str) -> Self {
        self.config["agentEndpoint"] = endpoint.into();
        self
    }

    /// Runs cases; returns them as in the result file.
    pub(super) fn run(&self, cases: &Value, flags: &[&str]) -> Vec<Value> {
        let (cases, output) = self.try_run(cases, flags);
        assert!(!cases.is_empty(), "{output}");
        cases
    }

    fn try_run(&self, cases: &Value, flags: &[&str]) -> (Vec<Value>, String) {
        let project = self.project().file("evals/x.golden.json", cases);
        let arguments = ["run", "--no-store", "--output-dir", "results"].iter().chain(flags).copied();
        let output = project.command(arguments).timeout(Duration::from_mins(3)).run();
        assert!(matches!(output.code, Some(0 | 1 | 3)), "{}", output.both());
        let result = only_result(&project, "results");
        (result["cases"].as_array().unwrap().clone(), output.both())
    }

    fn project(&self) -> TempProject {
        let project = project().file("karat.json", &self.config);
        let project = self.variables.iter().fold(project, |project, (name, value)| project.env(name, value));
        self.files.iter().fold(project, |project, (name, text)| project.file(name, text.as_str()))
    }

    /// Sends a message; returns the case of the result.
    pub(super) fn ask(&self, message: &str) -> Value {
        let mut cases = self.run(&json!([case("gs-shop-100", message, json!({"responseNonEmpty": true}))]), &[]);
        cases.remove(0)
    }

    /// Text, calls in order, arguments and failures are right, and wrong expectations fail.
    pub(super) fn answers_shop_cases(&self) {
        let shop: Value = serde_json::from_str(&read_example("shop.json")).unwrap();
        let cases = self.run(&shop, &[]);
        let outcomes: Vec<&Value> = cases.iter().map(|case| &case["outcome"]).collect();
        assert_eq!(outcomes, ["passed"; 4], "{cases:#?}");
        // Some products send a message for each sentence.
        let responses: Vec<String> =
            cases.iter().map(|case| case["details"]["response"].as_str().unwrap().replace('\n', " ")).collect();
        assert_eq!(
            responses,
            [
                "Hello! How can I help?",
                "Order 1042 has shipped.",
                "Order 1043 is cancelled. It is 18 degrees in Paris.",
                "Order 1044 has shipped. The weather in Oslo is not available.",
            ]
        );
        let cancel = json!({"order_id": "1043", "reason": "customer request"});
        let expected = [
            vec![],
            vec![("get_order", json!({"order_id": "1042"}), true)],
            vec![("cancel_order", cancel, true), ("get_weather", json!({"city": "Paris"}), true)],
            vec![("get_order", json!({"order_id": "1044"}), true), ("get_weather", json!({"city": "Oslo"}), false)],
        ];
        for (case, expected) in cases.iter().zip(expected) {
            let expected = if self.reporting == CallReporting::Nothing { Vec::new() } else { expected };
            let expected: Vec<(&str, Value, Value)> = expected
                .into_iter()
                .map(|(name, params, success)| (name, params, self.reported_success(success)))
                .collect();
            assert_eq!(calls(case), expected, "{case:#}");
            let unreported = case["details"].get("callsUnreported").cloned().unwrap_or_default();
            let is_unreported = match self.reporting {
                CallReporting::Nothing => true,
                CallReporting::MadeCalls => expected.is_empty(),
                CallReporting::Calls | CallReporting::Failures => false,
            };
            assert_eq!(unreported == true, is_unreported, "{case:#}");
        }
        self.reports_the_failed_call();
        self.fails_wrong_expectations();
    }

    fn reports_the_failed_call(&self) {
        let oslo: Value = serde_json::from_str(&read_example("oslo.json")).unwrap();
        let case = self.run(&oslo, &[]).remove(0);
        if self.reporting == CallReporting::Failures {
            let error = "noToolErrors: expected every tool call to succeed but 'get_weather' failed";
            assert_eq!(case["outcome"], "failed", "{case:#}");
            assert!(case["error"].as_str().unwrap().starts_with(error), "{case:#}");
        } else {
            assert_eq!(case["outcome"], "passed", "{case:#}");
            let skipped = if self.reporting == CallReporting::Nothing { 2 } else { 1 };
            assert_eq!(case["assertionsSkipped"], skipped, "{case:#}");
        }
    }

    fn fails_wrong_expectations(&self) {
        let wrong = json!({
            "toolsCalled": ["cancel_order"],
            "toolParams": [{"tool": "get_order", "paramName": "order_id", "assertion": "equals", "value": "1043"}],
            "maxToolCalls": 0,
            "responseContains": ["Order 1043"],
        });
        let cases = json!([case("gs-shop-101", "Where is order 1042?", wrong)]);
        let case = self.run(&cases, &["--all-failures"]).remove(0);
        let failed: Vec<&Value> =
            case["failures"].as_array().unwrap().iter().map(|failure| &failure["assertion"]).collect();
        let expected: &[&str] = match self.reporting {
            CallReporting::Nothing => &["responseContains"],
            _ => &["toolsCalled", "toolParams", "responseContains", "maxToolCalls"],
        };
        assert_eq!(failed, expected, "{case:#}");
    }

    fn reported_success(&self, success: bool) -> Value {
        if self.reporting == CallReporting::Failures { success.into() } else { Value::Null }
    }

    /// 50 cases, eight at a time, each in a conversation of its own.
    pub(super) fn isolates_concurrent_cases(&self) {
        let cases: Vec<Value> = (0..50)
            .map(|number| {
                let (message, answer) = match number % 3 {
                    0 => (format!("Slow hello {number}"), format!("Slow hello {number}")),
                    1 => (format!("Remember the number {number}."), format!("I will remember {number}.")),
                    _ => ("Which number?".to_owned(), "I know no number.".to_owned()),
                };
                let expect = json!({"responseMatches": [format!("^{answer}$")]});
                case(&format!("gs-shop-{number:03}"), &message, expect)
            })
            .collect();
        let cases = self.run(&json!(cases), &["--jobs", "8"]);
        let wrong: Vec<&Value> = cases.iter().filter(|case| case["outcome"] != "passed").collect();
        assert!(wrong.is_empty() && cases.len() == 50, "{wrong:#?}");
    }

    /// The case is errored, and the error quotes the product.
    pub(super) fn quotes_the_failure(&self, message: &str) {
        let case = self.ask("Fail now");
        assert_eq!(case["outcome"], "errored", "{case:#}");
        let error = case["error"].as_str().unwrap();
        assert!(error.contains(message), "{error}");
        assert!(!error.contains('\n') && error.len() < 300, "{error}");
    }

    /// The question is shown, and both decisions are answered.
    pub(super) fn asks_for_approval(self, question: &str) {
        let case = self.ask("Delete account 7.");
        assert_eq!((&case["outcome"], &case["details"]["response"]), (&json!("passed"), &json!(question)), "{case:#}");
        assert_eq!(case["details"]["stopReason"], "approval", "{case:#}");
        let reporting = self.reporting;
        let params = json!({"account_id": "7"});
        if reporting != CallReporting::Nothing {
            // Neither failed nor done yet.
            assert_eq!(calls(&case), [("delete_account", params.clone(), Value::Null)], "{case:#}");
        }
        let agent = self.with_agent(&json!({"approvals": "approve"}));
        let case = agent.ask("Delete account 7.");
        assert_eq!(case["details"]["response"], "Account 7 is deleted.", "{case:#}");
        assert_ne!(case["details"]["stopReason"], "approval", "{case:#}");
        if reporting != CallReporting::Nothing {
            assert_eq!(calls(&case), [("delete_account", params, agent.reported_success(true))], "{case:#}");
        }
        let agent = agent.with_agent(&json!({"approvals": "deny"}));
        let case = agent.ask("Delete account 7.");
        assert_eq!(case["details"]["response"], "I did not delete account 7.", "{case:#}");
        assert_ne!(case["details"]["stopReason"], "approval", "{case:#}");
    }
}

/// Returns name, arguments and success of the calls; null if the success is not reported.
pub(super) fn calls(case: &Value) -> Vec<(&str, Value, Value)> {
    let calls = case["details"]["toolCalls"].as_array().unwrap();
    calls.iter().map(|call| (call["name"].as_str().unwrap(), call["params"].clone(), call["success"].clone())).collect()
}

fn merge(target: &mut Value, changes: &Value) {
    let Some(changes) = changes.as_object() else {
        *target = changes.clone();
        return;
    };
    if !target.is_object() {
        *target = Map::new().into();
    }
    for (key, change) in changes {
        merge(&mut target[key], change);
    }
}
