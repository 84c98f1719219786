use std::collections::{BTreeMap, BTreeSet};

use karat_core::case::{Case, Difficulty};
use karat_forge::{Brief, Combination, EdgeKind, Plan, Purpose, Slot, golden_slots, labeled_slots};
use proptest::prelude::*;
use rstest::rstest;
use serde_json::json;

use crate::registries::{brief, write_brief};

fn case(id: &str, message: &str, expect: &serde_json::Value) -> Case {
    Case::read_one(&json!({"id": id, "description": "d", "input": {"message": message}, "expect": expect}))
        .expect("a case")
}

fn labeled(id: &str, difficulty: &str, expect: &serde_json::Value) -> Case {
    let case = json!({"id": id, "difficulty": difficulty, "input": {"message": id}, "expect": expect});
    Case::read_one(&case).expect("a case")
}

fn shown(slots: &[Slot]) -> String {
    let line = |slot: &Slot| format!("{} {:?}", slot.id, slot.purpose);
    slots.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn golden_cases_follow_the_trigger_phrases() {
    insta::assert_snapshot!(shown(&golden_slots(&brief(3, 1))), @r#"
    gs-get-weather-001 Trigger("What's the weather in Paris?")
    gs-get-weather-002 Trigger("Is it raining in Tokyo right now?")
    gs-get-weather-003 Trigger("Temperature in Lima please")
    gs-get-weather-004 Rephrasing("What's the weather in Paris?")
    gs-get-weather-005 Rephrasing("Is it raining in Tokyo right now?")
    gs-get-weather-006 NoLeak
    gs-get-weather-007 Disambiguation("get_forecast")
    "#);
}

#[test]
fn a_tool_that_writes_has_to_ask_first() {
    insta::assert_snapshot!(shown(&golden_slots(&write_brief(1))), @r#"
    gs-cancel-order-001 Trigger("Cancel my order 4711")
    gs-cancel-order-002 Trigger("I want to call off my purchase")
    gs-cancel-order-003 Trigger("Stop that shipment")
    gs-cancel-order-004 Rephrasing("Cancel my order 4711")
    gs-cancel-order-005 Rephrasing("I want to call off my purchase")
    gs-cancel-order-006 NoLeak
    gs-cancel-order-007 AsksFirst
    gs-cancel-order-008 AsksFirst
    "#);
}

#[rstest]
#[case::none(0, 0, 1)]
#[case::one(1, 0, 5)]
#[case::three(3, 0, 6)]
#[case::five(5, 3, 10)]
#[case::five_without_neighbours(5, 0, 8)]
#[case::nine(9, 3, 10)]
#[case::twenty(20, 3, 10)]
fn golden_cases_are_five_to_ten(#[case] triggers: usize, #[case] overlaps: usize, #[case] expected: usize) {
    let mut brief = brief(6, overlaps);
    brief.triggers = (0..triggers).map(|place| format!("phrase {place}")).collect();
    let slots = golden_slots(&brief);
    assert_eq!(slots.len(), expected);
    let count = |is: fn(&Purpose) -> bool| slots.iter().filter(|slot| is(&slot.purpose)).count();
    assert!(count(|purpose| matches!(purpose, Purpose::Trigger(_))) >= triggers.min(3));
    assert_eq!(count(|purpose| matches!(purpose, Purpose::NoLeak)), 1);
    assert_eq!(count(|purpose| matches!(purpose, Purpose::Disambiguation(_))) > 0, overlaps > 0);
}

#[test]
fn phrases_that_say_nothing_or_the_same_are_no_cases() {
    let mut brief = brief(1, 0);
    brief.triggers = ["  ", "What now?", "what NOW? "].map(str::to_owned).to_vec();
    let triggers = golden_slots(&brief).into_iter().filter(|slot| matches!(slot.purpose, Purpose::Trigger(_))).count();
    assert_eq!(triggers, 1);
}

#[test]
fn golden_cases_that_are_there_are_not_drafted_again() {
    let mut brief = brief(3, 1);
    let called = || json!({"toolsCalled": ["get_weather"]});
    brief.golden = vec![
        case("gs-get_weather-003", "what's the weather in paris?", &called()),
        case("gs-get-weather-001", "Do I need a coat?", &called()),
        case("gs-get-weather-002", "In words", &json!({"responseNotContains": ["\"tool\":", "fetchedAt"]})),
    ];
    insta::assert_snapshot!(shown(&golden_slots(&brief)), @r#"
    gs-get-weather-004 Trigger("Is it raining in Tokyo right now?")
    gs-get-weather-005 Trigger("Temperature in Lima please")
    gs-get-weather-006 Rephrasing("Is it raining in Tokyo right now?")
    gs-get-weather-007 Disambiguation("get_forecast")
    "#);
    for slot in golden_slots(&brief) {
        let message = match slot.purpose {
            Purpose::Trigger(phrase) => phrase,
            _ => slot.id.clone(),
        };
        brief.golden.push(case(&slot.id, &message, &called()));
    }
    brief.golden.last_mut().expect("a case").description = "not get_forecast".to_owned();
    assert_eq!(golden_slots(&brief), [], "a second time there is nothing to do");
    let more = (10..17).map(|number| case(&format!("gs-get-weather-0{number}"), "m", &called()));
    brief.golden.extend(more);
    assert_eq!(golden_slots(&brief), []);
}

#[test]
fn labeled_cases_of_three_tools() {
    let brief = brief(3, 1);
    let slots = labeled_slots(&brief, &Plan::of(&brief)).concat();
    insta::assert_snapshot!(shown(&slots), @r#"
    ls-get-weather-001 Together(["get_weather", "get_forecast"])
    ls-get-weather-002 Together(["get_weather", "get_climate", "get_forecast"])
    ls-get-weather-003 Together(["get_weather", "get_climate"])
    ls-get-weather-004 Together(["get_weather", "get_forecast", "get_climate"])
    ls-get-weather-005 Together(["get_weather", "get_forecast"])
    ls-get-weather-006 Together(["get_weather", "get_climate", "get_forecast"])
    ls-get-weather-007 Together(["get_weather", "get_climate"])
    ls-get-weather-008 Together(["get_weather", "get_forecast", "get_climate"])
    ls-get-weather-009 Together(["get_weather", "get_forecast"])
    ls-get-weather-010 Together(["get_weather", "get_climate", "get_forecast"])
    ls-get-weather-011 Together(["get_weather", "get_climate"])
    ls-get-weather-012 Together(["get_weather", "get_forecast", "get_climate"])
    ls-get-weather-013 Together(["get_weather", "get_forecast"])
    ls-get-weather-014 Choice { combination: Or, others: ["get_forecast"] }
    ls-get-weather-015 Choice { combination: AndOr, others: ["get_forecast"] }
    ls-get-weather-016 Choice { combination: Xor, others: ["get_forecast", "get_climate"] }
    ls-get-weather-017 Choice { combination: VariableDepth, others: ["get_forecast", "get_climate"] }
    ls-get-weather-018 Choice { combination: Nor, others: [] }
    ls-get-weather-019 Choice { combination: Or, others: ["get_climate"] }
    ls-get-weather-020 Choice { combination: AndOr, others: ["get_climate"] }
    ls-get-weather-021 Choice { combination: Xor, others: ["get_forecast", "get_climate"] }
    ls-get-weather-022 Choice { combination: VariableDepth, others: ["get_forecast", "get_climate"] }
    ls-get-weather-023 Choice { combination: Nor, others: [] }
    ls-get-weather-024 Choice { combination: Or, others: ["get_forecast"] }
    ls-get-weather-025 Choice { combination: AndOr, others: ["get_climate"] }
    ls-get-weather-026 Choice { combination: Xor, others: ["get_forecast", "get_climate"] }
    ls-get-weather-027 Choice { combination: VariableDepth, others: ["get_forecast", "get_climate"] }
    ls-get-weather-028 Choice { combination: Nor, others: [] }
    ls-get-weather-029 Choice { combination: Or, others: ["get_forecast"] }
    ls-get-weather-030 Choice { combination: AndOr, others: ["get_climate"] }
    ls-get-weather-031 Choice { combination: Xor, others: ["get_forecast", "get_climate"] }
    ls-get-weather-032 Choice { combination: VariableDepth, others: ["get_forecast", "get_climate"] }
    ls-get-weather-033 Choice { combination: Nor, others: [] }
    ls-get-weather-034 Choice { combination: Or, others: ["get_forecast"] }
    ls-get-weather-035 Choice { combination: AndOr, others: ["get_climate"] }
    ls-get-weather-036 Choice { combination: Xor, others: ["get_forecast", "get_climate"] }
    ls-get-weather-037 Choice { combination: VariableDepth, others: ["get_forecast", "get_climate"] }
    ls-get-weather-038 Choice { combination: Nor, others: [] }
    ls-get-weather-039 Choice { combination: Or, others: ["get_forecast"] }
    ls-get-weather-040 Choice { combination: AndOr, others: ["get_climate"] }
    ls-get-weather-041 Edge(PromptInjection)
    ls-get-weather-042 Edge(OffTopic)
    ls-get-weather-043 Edge(GeneralKnowledge)
    ls-get-weather-044 Edge(Contradiction)
    ls-get-weather-045 Edge(PromptInjection)
    ls-get-weather-046 Edge(OffTopic)
    "#);
}

#[test]
fn labeled_cases_of_one_tool_have_no_companions() {
    let brief = brief(1, 0);
    let slots = labeled_slots(&brief, &Plan::of(&brief)).concat();
    assert_eq!(slots.len(), 30);
    for slot in slots {
        match slot.purpose {
            Purpose::Choice { combination: Combination::AndOr | Combination::Nor, others } => {
                assert!(others.is_empty());
            }
            Purpose::Edge(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn what_no_case_covers_comes_first() {
    let mut brief = brief(12, 3);
    let covering = json!({"toolsAcceptable": [["get_weather"], ["get_forecast"]]});
    brief.labeled =
        (1..=27).map(|number| labeled(&format!("ls-get-weather-{number:03}"), "ambiguous", &covering)).collect();
    let plan = Plan::of(&brief);
    let batches = labeled_slots(&brief, &plan);
    let ambiguous: Vec<&Slot> =
        batches.iter().flatten().filter(|slot| slot.purpose.difficulty() == Some(Difficulty::Ambiguous)).collect();
    assert_eq!(ambiguous.len(), 32 - 27);
    let named: BTreeSet<&str> = ambiguous.iter().take(3).flat_map(|slot| others(slot)).collect();
    assert!(named.contains("get_climate") && named.contains("get_invoice"), "{named:?}");
    assert!(ambiguous.iter().all(|slot| !matches!(slot.purpose, Purpose::Choice { combination: Combination::Or, .. })));
}

#[test]
fn tools_that_the_registry_lacks_are_not_named() {
    let mut brief = brief(3, 1);
    brief.overlaps[0].tool = "gone".to_owned();
    brief.clusters = vec![vec!["get_weather".to_owned(), "gone".to_owned()]];
    let slots = [golden_slots(&brief), labeled_slots(&brief, &Plan::of(&brief)).concat()].concat();
    assert!(!shown(&slots).contains("gone"));
}

fn others(slot: &Slot) -> Vec<&str> {
    match &slot.purpose {
        Purpose::Together(tools) | Purpose::Choice { others: tools, .. } => tools.iter().map(String::as_str).collect(),
        _ => Vec::new(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn every_plan_is_filled(tools in 1_usize..80, overlaps in 0_usize..12, more in 0_usize..20) {
        let brief = brief(tools, overlaps);
        let mut plan = Plan::of(&brief);
        for tier in &mut plan.tiers {
            // As after runs with failures.
            tier.wanted += if tier.wanted == 0 { 0 } else { more };
        }
        let batches = labeled_slots(&brief, &plan);
        prop_assert_eq!(batches.len(), plan.batches());
        for batch in &batches {
            let difficulties: BTreeSet<_> = batch.iter().map(|slot| slot.purpose.difficulty().map(Difficulty::name)).collect();
            prop_assert!(difficulties.len() == 1 && (1..=5).contains(&batch.len()));
        }
        let slots = batches.concat();
        let ids: Vec<String> = (1..=plan.cases()).map(|number| format!("ls-get-weather-{number:03}")).collect();
        prop_assert_eq!(slots.iter().map(|slot| slot.id.clone()).collect::<Vec<_>>(), ids);
        spread_evenly(&brief, &slots)?;
        covers_everything(&brief, &slots)?;
    }
}

fn spread_evenly(brief: &Brief, slots: &[Slot]) -> Result<(), TestCaseError> {
    let tools = brief.registry.tools().len();
    let (mut sizes, mut combinations, mut kinds) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for slot in slots {
        match &slot.purpose {
            Purpose::Together(together) => {
                prop_assert!(together.contains(&brief.tool.name) && together.len() <= tools && together.len() >= 2);
                prop_assert_eq!(together.iter().collect::<BTreeSet<_>>().len(), together.len());
                *sizes.entry(together.len().min(4)).or_insert(0_usize) += 1;
            }
            Purpose::Choice { combination, others } => {
                prop_assert!(!others.contains(&brief.tool.name));
                prop_assert_eq!(others.is_empty(), *combination == Combination::Nor || tools == 1);
                *combinations.entry(*combination).or_insert(0_usize) += 1;
            }
            Purpose::Edge(kind) => *kinds.entry(*kind).or_insert(0_usize) += 1,
            other => return Err(TestCaseError::fail(format!("{other:?}"))),
        }
    }
    let is_even = |counts: &[usize]| counts.iter().max().unwrap_or(&0) - counts.iter().min().unwrap_or(&0) <= 1;
    prop_assert_eq!(sizes.len(), tools.min(4) - 1);
    prop_assert!(is_even(&sizes.values().copied().collect::<Vec<_>>()), "{:?}", sizes);
    prop_assert_eq!(
        combinations.len(),
        match tools {
            1 => 2,
            2 => 3,
            _ => 5,
        }
    );
    prop_assert!(is_even(&combinations.values().copied().collect::<Vec<_>>()), "{:?}", combinations);
    prop_assert_eq!(kinds.len(), EdgeKind::ALL.len());
    prop_assert!(is_even(&kinds.values().copied().collect::<Vec<_>>()), "{:?}", kinds);
    Ok(())
}

fn covers_everything(brief: &Brief, slots: &[Slot]) -> Result<(), TestCaseError> {
    for overlap in &brief.overlaps {
        let is_named = |slot: &&Slot| {
            slot.purpose.difficulty() == Some(Difficulty::Ambiguous) && others(slot).contains(&overlap.tool.as_str())
        };
        prop_assert!(slots.iter().filter(is_named).count() >= 2, "{}", overlap.tool);
    }
    for cluster in &brief.clusters {
        let holds_all = |slot: &&Slot| {
            let named = others(slot);
            cluster.iter().all(|tool| *tool == brief.tool.name || named.contains(&tool.as_str()))
        };
        let of = |difficulty| {
            slots.iter().filter(move |slot| slot.purpose.difficulty() == Some(difficulty)).any(|slot| holds_all(&slot))
        };
        prop_assert!(of(Difficulty::Straightforward) && of(Difficulty::Ambiguous));
    }
    Ok(())
}
