//! A weather agent, and drafts that satisfy every rule.

use karat_cases::registry::{Registry, Tool};
use karat_cases::token::TokenSources;
use karat_cases::{Case, Input};
use karat_forge::{Brief, Combination, DraftFinding, Overlap, Purpose, Slot};
use karat_lints::Severity;
use serde_json::{Value, json};

pub(crate) fn tool(name: &str) -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "units": {"enum": ["celsius", "fahrenheit"]},
            "since": {"type": "string", "default": "2020-01-01"},
        },
    });
    Tool { name: name.to_owned(), input_schema: Some(schema).into(), ..Tool::default() }
}

pub(crate) fn brief() -> Brief {
    let names = ["get_weather", "get_forecast", "find_city", "send_mail", "list_alerts"];
    let existing = case("gs-get-weather-001", &json!({"toolsCalled": ["get_weather"]}));
    let message = "Tell me how warm it is in Oslo right now".to_owned();
    let existing = Case { input: Some(Input { message }), ..existing };
    Brief {
        tool: tool("get_weather"),
        registry: Registry::from_tools(names.map(tool)),
        triggers: vec!["what's the weather".to_owned()],
        overlaps: vec![Overlap { tool: "get_forecast".to_owned(), reasons: Vec::new() }],
        clusters: vec![["get_weather", "get_forecast", "find_city"].map(str::to_owned).to_vec()],
        sources: TokenSources {
            seed: Some(json!({"city": "Paris", "station": {"name": "Montsouris"}, "opened": "1952-06-14"})),
            snapshot: None,
        },
        silenced: Vec::new(),
        golden: vec![existing],
        labeled: Vec::new(),
    }
}

pub(crate) fn case(id: &str, expect: &Value) -> Case {
    Case::read_one(&json!({"id": id, "input": {"message": id}, "expect": expect})).expect("a case")
}

pub(crate) fn slot(purpose: Purpose) -> Slot {
    let prefix = purpose.tier().id_prefix().unwrap_or_default();
    Slot { id: format!("{prefix}get-weather-007"), purpose }
}

pub(crate) fn trigger() -> Purpose {
    Purpose::Trigger("what's the weather".to_owned())
}

pub(crate) fn disambiguation() -> Purpose {
    Purpose::disambiguation("get_forecast")
}

pub(crate) fn together(tools: &[&str]) -> Purpose {
    Purpose::together(tools.iter().map(|&name| name.to_owned()).collect())
}

pub(crate) fn choice(combination: Combination, others: &[&str]) -> Purpose {
    Purpose::Choice { combination, others: others.iter().map(|&name| name.to_owned()).collect() }
}

/// Returns a case that satisfies all rules.
pub(crate) fn valid_case(purpose: &Purpose) -> Value {
    let expect = match purpose {
        Purpose::Confirmation => {
            json!({"toolsCalled": [], "responseNonEmpty": true, "responseContainsAny": [["confirm", "sure"]]})
        }
        Purpose::Together { tools, .. } => json!({"toolsCalled": tools, "toolsCalledMatch": "anyOrder"}),
        Purpose::Choice { combination, .. } => json!({"toolsAcceptable": match combination {
            Combination::Or => json!([["get_weather"], ["get_forecast"]]),
            Combination::AndOr => json!([["get_weather"], ["get_weather", "get_forecast", "find_city"]]),
            Combination::Xor => json!([["get_weather", "find_city"], ["get_forecast", "send_mail"]]),
            Combination::VariableDepth => {
                json!([["get_weather", "get_forecast"], ["get_weather", "get_forecast", "find_city"]])
            }
            Combination::Nor => json!([["__none__"]]),
        }}),
        Purpose::Edge(_) => json!({"toolsCalled": [], "responseNotContains": ["system prompt"]}),
        _ => json!({
            "toolsCalled": ["get_weather"],
            "noToolErrors": true,
            "responseNonEmpty": true,
            "responseContains": ["{{seed:city}}", "{{seed:station.name}}"],
            "responseContainsAny": [["temperature", "degrees"]],
            "responseNotContains": ["I don't know", "fetchedAt"],
        }),
    };
    let message = match purpose {
        Purpose::Trigger(phrase) => format!("Hello, {phrase} in Lyon?"),
        _ => "Is there any rain on the way to Lyon?".to_owned(),
    };
    let slot = slot(purpose.clone());
    let mut case = json!({"id": slot.id, "description": "d", "input": {"message": message}, "expect": expect});
    if let Some(difficulty) = purpose.difficulty() {
        case["difficulty"] = json!(difficulty.name());
    }
    case
}

/// Sets members of a case by pointer; `null` removes a member.
pub(crate) fn with(mut case: Value, changes: &Value) -> Value {
    for (pointer, value) in changes.as_object().expect("changes by pointer") {
        let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
        let parent = case.pointer_mut(parent).expect("a parent").as_object_mut().expect("an object");
        if value.is_null() {
            parent.remove(key);
        } else {
            parent.insert(key.to_owned(), value.clone());
        }
    }
    case
}

/// Renders findings as `severity rule pointer`.
pub(crate) fn rendered(findings: &[DraftFinding]) -> Vec<String> {
    let severity = |finding: &DraftFinding| if finding.severity == Severity::Error { "error" } else { "warning" };
    findings
        .iter()
        .map(|finding| format!("{} {} {}", severity(finding), finding.rule.name(), finding.pointer))
        .collect()
}
