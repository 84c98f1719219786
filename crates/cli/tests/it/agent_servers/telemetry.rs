//! An agent that replies only with text, and reports its calls in OpenTelemetry spans.

use karat_testkit::agent_server::{AgentProduct, AgentServer};
use karat_testkit::tools::free_port;
use rstest::rstest;
use serde_json::{Value, json};

use super::shop::{CallReporting, ShopAgent, calls};
use crate::support::case;

/// Starts the example, and sets the address to which it exports in karat's configuration.
fn start_instrumented_agent() -> (AgentServer, ShopAgent) {
    let otlp = format!("127.0.0.1:{}", free_port());
    let endpoint = format!("http://{otlp}");
    let server = AgentServer::start_with(AgentProduct::OtelAgent, &[("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint)]);
    let agent = ShopAgent::example("otel-agent", &server, CallReporting::Failures);
    (server, agent.with_agent(&json!({"telemetry": {"otlp": otlp}})))
}

#[test]
#[ignore = "needs opentelemetry-sdk"]
fn answers_shop_cases() {
    let (_server, agent) = start_instrumented_agent();
    agent.answers_shop_cases();
    agent.quotes_the_failure("the model is not available");
}

#[test]
#[ignore = "needs opentelemetry-sdk"]
fn isolates_concurrent_cases() {
    let (_server, agent) = start_instrumented_agent();
    agent.isolates_concurrent_cases();
    // The calls are isolated too.
    let cases: Vec<Value> = (0..50)
        .map(|number| {
            let id = json!({"tool": "get_order", "paramName": "order_id", "assertion": "equals", "value": number.to_string()});
            let expect = json!({"toolsCalled": ["get_order"], "toolParams": [id], "maxToolCalls": 1});
            let mode = ["at-once", "late 100", "twice", "children-first"][number % 4];
            case(&format!("gs-shop-{number:03}"), &format!("Where is order {number}? [export: {mode}]"), expect)
        })
        .collect();
    let cases = agent.run(&json!(cases), &["--jobs", "8"]);
    let wrong: Vec<&Value> = cases.iter().filter(|case| case["outcome"] != "passed").collect();
    assert!(wrong.is_empty() && cases.len() == 50, "{wrong:#?}");
}

#[rstest]
#[case::late("late 500")]
#[case::twice("twice")]
#[case::out_of_order("children-first")]
#[ignore = "needs opentelemetry-sdk"]
fn accepts_late_repeated_and_unordered_spans(#[case] mode: &str) {
    let (_server, agent) = start_instrumented_agent();
    let message = format!("Order 1044 and the weather in Oslo? [export: {mode}]");
    let city = |city: &str| json!([{"tool": "get_weather", "paramName": "city", "assertion": "equals", "value": city}]);
    let both = ["get_order", "get_weather"];
    let expectations = [
        json!({"toolsCalled": both, "toolParams": city("Oslo"), "minToolCalls": 2, "maxToolCalls": 2}),
        json!({"toolsCalled": both, "toolParams": city("Paris")}),
        json!({"toolsCalled": ["get_order", "cancel_order"]}),
        json!({"toolsCalled": both, "noToolErrors": true}),
    ];
    let cases: Vec<Value> = (100..)
        .zip(expectations)
        .map(|(number, expect)| case(&format!("gs-shop-{number}"), &message, expect))
        .collect();
    let cases = agent.run(&json!(cases), &[]);
    let outcomes: Vec<&Value> = cases.iter().map(|case| &case["outcome"]).collect();
    assert_eq!(outcomes, ["passed", "failed", "failed", "failed"], "{cases:#?}");
    for case in &cases {
        let expected = [
            ("get_order", json!({"order_id": "1044"}), json!(true)),
            ("get_weather", json!({"city": "Oslo"}), json!(false)),
        ];
        assert_eq!(calls(case), expected, "{case:#}");
    }
    let errors: Vec<&str> = cases[1..].iter().map(|case| case["error"].as_str().unwrap()).collect();
    assert!(errors[0].starts_with("toolParams: ") && errors[0].contains("Oslo"), "{errors:?}");
    assert!(errors[1].starts_with("toolsCalled: ") && errors[1].contains("get_weather"), "{errors:?}");
    assert!(errors[2].starts_with("noToolErrors: ") && errors[2].contains("get_weather"), "{errors:?}");
}

#[test]
#[ignore = "needs opentelemetry-sdk"]
fn a_case_without_spans_is_errored() {
    let (_server, agent) = start_instrumented_agent();
    let agent = agent.with_agent(&json!({"telemetry": {"waitMs": 500}}));
    let none = json!({"toolsCalled": []});
    let cases = agent.run(
        &json!([
            case("gs-shop-100", "Hello [export: never]", none.clone()),
            case("gs-shop-101", "Hello [export: late 3000]", none.clone()),
            case("gs-shop-102", "Hello", none),
        ]),
        &[],
    );
    let outcomes: Vec<&Value> = cases.iter().map(|case| &case["outcome"]).collect();
    assert_eq!(outcomes, ["errored", "errored", "passed"], "{cases:#?}");
    for case in &cases[..2] {
        let error = case["error"].as_str().unwrap();
        assert!(error.contains("span") && error.contains("500 ms"), "{error}");
    }
}
