//! What a whole set of labeled cases lacks.

use karat_core::case::Difficulty;
use karat_core::registry::Registry;
use karat_forge::rules::{DraftRule, examine_whole};
use karat_forge::{Brief, Combination, Draft, EdgeKind, Origin, Plan, Purpose, Slot, Weight};
use rstest::rstest;
use serde_json::{Value, json};

use crate::drafts::{brief, case, tool};

fn draft(number: usize, purpose: Purpose, expect: &Value) -> Draft {
    let id = format!("ls-get-weather-{number:03}");
    let difficulty = purpose.difficulty().map(Difficulty::name);
    let case = json!({"id": id, "difficulty": difficulty, "input": {"message": id}, "expect": expect});
    Draft { slot: Slot { id, purpose }, case: Some(case), origin: Origin::Template, findings: Vec::new() }
}

fn ambiguous(number: usize, combination: Combination) -> Draft {
    let sets = match combination {
        Combination::Or => json!([["get_weather"], ["get_forecast"]]),
        Combination::AndOr => json!([["get_weather"], ["get_weather", "send_mail"]]),
        Combination::Xor => json!([["get_weather", "send_mail"], ["list_alerts"]]),
        Combination::VariableDepth => json!([["get_weather"], ["get_weather", "list_alerts", "send_mail"]]),
        Combination::Nor => json!([["__none__"]]),
    };
    draft(number, Purpose::Choice { combination, others: Vec::new() }, &json!({"toolsAcceptable": sets}))
}

fn straightforward(number: usize, tools: &[&str]) -> Draft {
    let expect = json!({"toolsCalled": tools, "toolsCalledMatch": "anyOrder"});
    draft(number, Purpose::Together(Vec::new()), &expect)
}

fn edge(number: usize, kind: EdgeKind) -> Draft {
    draft(number, Purpose::Edge(kind), &json!({"toolsCalled": []}))
}

/// Returns drafts that lack nothing but their number.
fn complete() -> Vec<Draft> {
    let mut drafts: Vec<Draft> =
        Combination::ALL.into_iter().enumerate().map(|(at, combination)| ambiguous(at, combination)).collect();
    drafts.extend(EdgeKind::ALL.into_iter().enumerate().map(|(at, kind)| edge(10 + at, kind)));
    drafts.push(straightforward(20, &["get_weather", "find_city"]));
    drafts.push(straightforward(21, &["get_weather", "find_city", "get_forecast"]));
    drafts.push(straightforward(22, &["get_weather", "find_city", "send_mail", "list_alerts"]));
    drafts
}

/// Returns what is lacking, but for the number of cases.
fn lacking(brief: &Brief, drafts: &[Draft]) -> Vec<String> {
    let findings = examine_whole(brief, &Plan::of(brief), drafts);
    findings.into_iter().filter(|finding| finding.rule != DraftRule::FewCases).map(|finding| finding.message).collect()
}

#[test]
fn a_complete_set_lacks_nothing_but_cases() {
    assert_eq!(lacking(&brief(), &complete()), Vec::<String>::new());
    let findings = examine_whole(&brief(), &Plan::of(&brief()), &complete());
    let messages: Vec<&str> = findings.iter().map(|finding| finding.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "there are 3 straightforward cases, but the plan says 15",
            "there are 5 ambiguous cases, but the plan says 28",
            "there are 4 edge cases, but the plan says 6"
        ]
    );
}

#[rstest]
#[case::overlap(
    |drafts: &mut Vec<Draft>| drafts[0] = draft(0, drafts[0].slot.purpose.clone(), &json!({"toolsAcceptable": [["get_weather"], ["find_city"]]})),
    "no ambiguous case names both 'get_weather' and 'get_forecast', which the overlap map declares"
)]
#[case::cluster(
    |drafts: &mut Vec<Draft>| drafts[10] = straightforward(21, &["get_weather", "find_city", "send_mail"]),
    "no labeled case has all of the cluster ['find_city', 'get_forecast', 'get_weather'] in one set"
)]
#[case::two_tools(|drafts: &mut Vec<Draft>| drop(drafts.remove(9)), "no straightforward case takes two tools")]
#[case::many_tools(|drafts: &mut Vec<Draft>| drop(drafts.remove(11)), "no straightforward case takes four tools or more")]
#[case::combination(
    |drafts: &mut Vec<Draft>| drafts[4] = ambiguous(4, Combination::Or),
    "no ambiguous case is of the kind NOR"
)]
#[case::one_for_all(
    |drafts: &mut Vec<Draft>| drafts.extend((30..40).map(|at| ambiguous(at, Combination::Nor))),
    "11 of 15 ambiguous cases are of the kind NOR: spread them"
)]
#[case::edge(
    |drafts: &mut Vec<Draft>| drafts[5] = edge(10, EdgeKind::Contradiction),
    "no edge case tries prompt injection"
)]
fn what_is_lacking_is_told(#[case] change: impl Fn(&mut Vec<Draft>), #[case] expected: &str) {
    let mut drafts = complete();
    change(&mut drafts);
    assert_eq!(lacking(&brief(), &drafts), [expected]);
}

#[test]
fn only_an_overlap_is_an_error() {
    let findings = examine_whole(&brief(), &Plan::of(&brief()), &[]);
    let errors: Vec<DraftRule> =
        findings.iter().filter(|finding| finding.weight == Weight::Error).map(|finding| finding.rule).collect();
    assert_eq!(errors, [DraftRule::OverlapUncovered]);
    assert!(findings.iter().all(|finding| finding.pointer.is_empty()));
}

#[test]
fn what_the_project_has_counts() {
    let mut brief = brief();
    let mut covering =
        case("ls-get-weather-090", &json!({"toolsAcceptable": [["get_weather", "get_forecast", "find_city"]]}));
    covering.difficulty = Some(Difficulty::Ambiguous);
    let mut tried = case("ls-get-weather-091", &json!({"toolsCalled": []}));
    tried.difficulty = Some(Difficulty::Edge);
    brief.labeled = vec![covering, tried];
    let mut drafts = complete();
    drafts.remove(10);
    // What the edge case of the project tries may be what is missing here.
    drafts.remove(5);
    drafts.remove(0);
    assert_eq!(
        lacking(&brief, &drafts),
        ["no straightforward case takes three tools", "no ambiguous case is of the kind OR"]
    );
}

#[test]
fn a_small_registry_is_not_asked_for_more() {
    let brief =
        Brief { registry: Registry::of([tool("get_weather")]), overlaps: Vec::new(), clusters: Vec::new(), ..brief() };
    let either = json!({"toolsAcceptable": [["get_weather"], ["__none__"]]});
    let mut drafts: Vec<Draft> = (0..6).map(|at| ambiguous(at, Combination::Nor)).collect();
    assert_eq!(lacking(&brief, &drafts), ["no ambiguous case is of the kind AND/OR"]);
    drafts.push(draft(7, Purpose::Choice { combination: Combination::AndOr, others: Vec::new() }, &either));
    assert_eq!(lacking(&brief, &drafts), Vec::<String>::new());
}

#[test]
fn what_is_no_case_does_not_count() {
    let mut drafts = complete();
    drafts[4].case = None;
    drafts.push(ambiguous(40, Combination::Or));
    assert_eq!(lacking(&brief(), &drafts), ["no ambiguous case is of the kind NOR"]);
}
