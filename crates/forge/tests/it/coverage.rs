//! Missing cases of a tool.

use karat_cases::registry::Registry;
use karat_cases::{Difficulty, Tier};
use karat_forge::{Brief, Combination, Draft, EdgeKind, Origin, Plan, Purpose, Slot, check_coverage};
use karat_lints::{Rule, Severity};
use serde_json::{Value, json};

use crate::drafts::{brief, case, tool};

fn draft(number: usize, purpose: Purpose, expect: &Value) -> Draft {
    let id = format!("ls-get-weather-{number:03}");
    let difficulty = purpose.difficulty().map(Difficulty::name);
    let case = json!({"id": id, "difficulty": difficulty, "input": {"message": id}, "expect": expect});
    Draft { slot: Slot { id, purpose }, case: Some(case), origin: Origin::Template, findings: Vec::new() }
}

fn ambiguous(number: usize, sets: &Value) -> Draft {
    let purpose = Purpose::Choice { combination: Combination::Or, others: Vec::new() };
    draft(number, purpose, &json!({"toolsAcceptable": sets}))
}

fn missing(brief: &Brief, drafts: &[Draft]) -> Vec<(Rule, String)> {
    let findings = check_coverage(brief, &Plan::new(brief), drafts, &[Tier::Golden, Tier::Labeled]);
    assert!(findings.iter().all(|finding| finding.pointer.is_empty()));
    findings.into_iter().map(|finding| (finding.rule, finding.message)).collect()
}

#[test]
fn lists_all_missing_cases() {
    let edge = draft(9, Purpose::Edge(EdgeKind::OffTopic), &json!({"toolsCalled": []}));
    let messages: Vec<String> = missing(&brief(), &[edge]).into_iter().map(|(_, message)| message).collect();
    assert_eq!(
        messages,
        [
            "expected 5 to 10 golden cases, found 1",
            "expected 15 straightforward cases, found 0",
            "expected 28 ambiguous cases, found 0",
            "expected 6 edge cases, found 1",
            "no ambiguous case covers the declared overlap of 'get_weather' and 'get_forecast'",
            "no labeled case has the whole cluster ['find_city', 'get_forecast', 'get_weather'] in one set",
        ]
    );
    let findings = check_coverage(&brief(), &Plan::new(&brief()), &[], &[Tier::Golden, Tier::Labeled]);
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error).map(|finding| finding.rule);
    assert_eq!(errors.collect::<Vec<_>>(), [Rule::UntestedOverlap]);
}

#[test]
fn only_the_drafted_tiers_are_checked() {
    let brief = brief();
    let messages = |tiers: &[Tier]| -> Vec<String> {
        let findings = check_coverage(&brief, &Plan::new(&brief), &[], tiers);
        findings.into_iter().map(|finding| finding.message).collect()
    };
    assert_eq!(messages(&[Tier::Golden]), ["expected 5 to 10 golden cases, found 1"]);
    let labeled = messages(&[Tier::Labeled]);
    assert!(labeled.len() == 5 && !labeled.iter().any(|message| message.contains("golden")), "{labeled:?}");
}

#[test]
fn existing_cases_count() {
    let mut brief = brief();
    let sets = json!([["get_weather", "get_forecast", "find_city"], ["get_weather"]]);
    let has = |findings: &[(Rule, String)], rule: Rule| findings.iter().any(|(other, _)| *other == rule);
    let drafted = missing(&brief, &[ambiguous(1, &sets)]);
    assert!(!has(&drafted, Rule::UntestedOverlap) && !has(&drafted, Rule::UntestedCluster));
    let mut covering = case("ls-get-weather-090", &json!({"toolsAcceptable": sets}));
    covering.difficulty = Some(Difficulty::Ambiguous);
    brief.labeled = vec![covering];
    let written = missing(&brief, &[]);
    assert!(!has(&written, Rule::UntestedOverlap) && !has(&written, Rule::UntestedCluster));
}

#[test]
fn a_single_tool_needs_no_straightforward_cases() {
    let brief = Brief {
        registry: Registry::from_tools([tool("get_weather")]),
        overlaps: Vec::new(),
        clusters: Vec::new(),
        ..brief()
    };
    let messages = missing(&brief, &[]);
    assert!(messages.iter().all(|(_, message)| !message.contains("straightforward")), "{messages:?}");
}
