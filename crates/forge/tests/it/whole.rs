//! What all labeled cases of a tool together lack.

use karat_core::case::Difficulty;
use karat_core::lint::{Rule, Severity};
use karat_core::registry::Registry;
use karat_forge::{Brief, Combination, Draft, EdgeKind, Origin, Plan, Purpose, Slot, examine_whole};
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

fn lacking(brief: &Brief, drafts: &[Draft]) -> Vec<(Rule, String)> {
    let findings = examine_whole(brief, &Plan::of(brief), drafts);
    assert!(findings.iter().all(|finding| finding.pointer.is_empty()));
    findings.into_iter().map(|finding| (finding.rule, finding.message)).collect()
}

#[test]
fn everything_that_is_missing_is_listed() {
    let edge = draft(9, Purpose::Edge(EdgeKind::OffTopic), &json!({"toolsCalled": []}));
    let messages: Vec<String> = lacking(&brief(), &[edge]).into_iter().map(|(_, message)| message).collect();
    assert_eq!(
        messages,
        [
            "1 golden cases of 5 to 10 that a tool should have",
            "0 straightforward cases of 15 that the formula asks for",
            "0 ambiguous cases of 28 that the formula asks for",
            "1 edge cases of 6 that the formula asks for",
            "no ambiguous case names both 'get_weather' and 'get_forecast', which the overlap map declares",
            "no labeled case has all of the cluster ['find_city', 'get_forecast', 'get_weather'] in one set",
        ]
    );
    let findings = examine_whole(&brief(), &Plan::of(&brief()), &[]);
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error).map(|finding| finding.rule);
    assert_eq!(errors.collect::<Vec<_>>(), [Rule::UntestedOverlap]);
}

#[test]
fn cases_of_the_project_count() {
    let mut brief = brief();
    let sets = json!([["get_weather", "get_forecast", "find_city"], ["get_weather"]]);
    let has = |found: &[(Rule, String)], rule: Rule| found.iter().any(|(other, _)| *other == rule);
    let drafted = lacking(&brief, &[ambiguous(1, &sets)]);
    assert!(!has(&drafted, Rule::UntestedOverlap) && !has(&drafted, Rule::UntestedCluster));
    let mut covering = case("ls-get-weather-090", &json!({"toolsAcceptable": sets}));
    covering.difficulty = Some(Difficulty::Ambiguous);
    brief.labeled = vec![covering];
    let written = lacking(&brief, &[]);
    assert!(!has(&written, Rule::UntestedOverlap) && !has(&written, Rule::UntestedCluster));
}

#[test]
fn a_single_tool_needs_no_companions() {
    let brief =
        Brief { registry: Registry::of([tool("get_weather")]), overlaps: Vec::new(), clusters: Vec::new(), ..brief() };
    let found = lacking(&brief, &[]);
    assert!(found.iter().all(|(_, message)| !message.contains("straightforward")), "{found:?}");
}
