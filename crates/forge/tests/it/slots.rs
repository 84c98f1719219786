use std::collections::{BTreeMap, BTreeSet};

use karat_cases::registry::Tool;
use karat_cases::{Case, Difficulty};
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

fn rendered(slots: &[Slot]) -> String {
    let line = |slot: &Slot| format!("{} {:?}", slot.id, slot.purpose);
    slots.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn golden_cases_follow_the_trigger_phrases() {
    insta::assert_snapshot!(rendered(&golden_slots(&brief(3, 1))), @r#"
    gs-get-weather-001 Trigger("What's the weather in Paris?")
    gs-get-weather-002 Trigger("Is it raining in Tokyo right now?")
    gs-get-weather-003 Trigger("Temperature in Lima please")
    gs-get-weather-004 Rephrasing("What's the weather in Paris?")
    gs-get-weather-005 Rephrasing("Is it raining in Tokyo right now?")
    gs-get-weather-006 NoLeak
    gs-get-weather-007 Disambiguation { other: "get_forecast", reasons: [], phrase: None }
    "#);
}

#[test]
fn a_tool_that_writes_has_to_ask_first() {
    insta::assert_snapshot!(rendered(&golden_slots(&write_brief(1))), @r#"
    gs-cancel-order-001 Trigger("Cancel my order 4711")
    gs-cancel-order-002 Trigger("I want to call off my purchase")
    gs-cancel-order-003 Trigger("Stop that shipment")
    gs-cancel-order-004 Rephrasing("Cancel my order 4711")
    gs-cancel-order-005 Rephrasing("I want to call off my purchase")
    gs-cancel-order-006 NoLeak
    gs-cancel-order-007 Confirmation
    gs-cancel-order-008 Confirmation
    "#);
}

#[rstest]
#[case::none(0, 0, 1)]
#[case::one(1, 0, 5)]
#[case::three(3, 0, 6)]
#[case::five(5, 3, 8)]
#[case::five_without_neighbours(5, 0, 8)]
#[case::nine(9, 3, 9)]
#[case::twenty(20, 3, 9)]
fn golden_cases_are_five_to_ten(#[case] triggers: usize, #[case] overlaps: usize, #[case] expected: usize) {
    let mut brief = brief(6, overlaps);
    brief.triggers = (0..triggers).map(|number| format!("phrase {number}")).collect();
    let slots = golden_slots(&brief);
    assert_eq!(slots.len(), expected);
    let count = |is: fn(&Purpose) -> bool| slots.iter().filter(|slot| is(&slot.purpose)).count();
    assert!(count(|purpose| matches!(purpose, Purpose::Trigger(_))) >= triggers.min(3));
    assert_eq!(count(|purpose| matches!(purpose, Purpose::NoLeak)), 1);
    assert_eq!(count(|purpose| matches!(purpose, Purpose::Disambiguation { .. })) > 0, overlaps > 0);
}

#[test]
fn ignores_blank_and_duplicate_phrases() {
    let mut brief = brief(1, 0);
    brief.triggers = ["  ", "What now?", "what NOW? "].map(str::to_owned).to_vec();
    let triggers = golden_slots(&brief).into_iter().filter(|slot| matches!(slot.purpose, Purpose::Trigger(_))).count();
    assert_eq!(triggers, 1);
}

#[test]
fn existing_golden_cases_are_not_drafted_again() {
    let mut brief = brief(3, 1);
    let called = || json!({"toolsCalled": ["get_weather"]});
    brief.golden = vec![
        case("gs-get_weather-003", "what's the weather in paris?", &called()),
        case("gs-get-weather-001", "Do I need a coat?", &called()),
        case("gs-get-weather-002", "In words", &json!({"responseNotContains": ["\"tool\":", "fetchedAt"]})),
    ];
    insta::assert_snapshot!(rendered(&golden_slots(&brief)), @r#"
    gs-get-weather-004 Trigger("Is it raining in Tokyo right now?")
    gs-get-weather-005 Trigger("Temperature in Lima please")
    gs-get-weather-006 Rephrasing("Is it raining in Tokyo right now?")
    gs-get-weather-007 Disambiguation { other: "get_forecast", reasons: [], phrase: None }
    "#);
    for slot in golden_slots(&brief) {
        let message = match slot.purpose {
            Purpose::Trigger(phrase) => phrase,
            _ => slot.id.clone(),
        };
        brief.golden.push(case(&slot.id, &message, &called()));
    }
    brief.golden.last_mut().expect("a case").description = "not get_forecast".to_owned();
    assert_eq!(golden_slots(&brief), [], "nothing is missing the second time");
    let more = (10..17).map(|number| case(&format!("gs-get-weather-0{number}"), "m", &called()));
    brief.golden.extend(more);
    assert_eq!(golden_slots(&brief), []);
}

#[test]
fn labeled_cases_of_three_tools() {
    let brief = brief(3, 1);
    let slots = labeled_slots(&brief, &Plan::new(&brief));
    insta::assert_snapshot!(rendered(&slots));
}

#[test]
fn labeled_cases_of_a_single_tool_name_no_others() {
    let brief = brief(1, 0);
    let slots = labeled_slots(&brief, &Plan::new(&brief));
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
fn uncovered_overlaps_come_first() {
    let mut brief = brief(12, 3);
    let covering = json!({"toolsAcceptable": [["get_weather"], ["get_forecast"]]});
    brief.labeled =
        (1..=27).map(|number| labeled(&format!("ls-get-weather-{number:03}"), "ambiguous", &covering)).collect();
    let plan = Plan::new(&brief);
    let slots = labeled_slots(&brief, &plan);
    let ambiguous: Vec<&Slot> =
        slots.iter().filter(|slot| slot.purpose.difficulty() == Some(Difficulty::Ambiguous)).collect();
    assert_eq!(ambiguous.len(), 32 - 27);
    let named: BTreeSet<&str> = ambiguous.iter().take(3).flat_map(|slot| others(slot)).collect();
    assert!(named.contains("get_climate") && named.contains("get_invoice"), "{named:?}");
    assert!(ambiguous.iter().all(|slot| !matches!(slot.purpose, Purpose::Choice { combination: Combination::Or, .. })));
}

#[test]
fn ambiguous_cases_name_overlapping_but_never_unrelated_tools() {
    let brief = brief(30, 2);
    let mut brief = Brief { clusters: Vec::new(), ..brief };
    let slots = labeled_slots(&brief, &Plan::new(&brief));
    let choices: Vec<Vec<&str>> =
        slots.iter().filter(|slot| slot.purpose.difficulty() == Some(Difficulty::Ambiguous)).map(others).collect();
    assert_eq!(choices.len(), 29);
    let declared = ["get_forecast", "get_climate"];
    let with_others: Vec<&Vec<&str>> = choices.iter().filter(|named| !named.is_empty()).collect();
    assert!(with_others.iter().all(|named| named.iter().any(|name| declared.contains(name))), "{choices:?}");
    brief.overlaps.clear();
    let unrelated = labeled_slots(&brief, &Plan::new(&brief));
    let named: BTreeSet<&str> = unrelated.iter().flat_map(others).filter(|name| *name != brief.tool.name).collect();
    assert!(named.is_empty(), "no declared overlaps and no similar tools: {named:?}");
    assert!(unrelated.iter().all(|slot| !matches!(slot.purpose, Purpose::Together { count: 4.., .. })));
}

#[test]
fn declared_neighbours_come_before_similar_tools() {
    let mut brief = Brief { clusters: Vec::new(), ..brief(30, 2) };
    for name in ["get_weather_history", "get_weather_alerts", "get_weather_maps"] {
        let similar = Tool { name: name.to_owned(), ..brief.tool.clone() };
        brief.registry.add(similar).expect("another name");
    }
    let slots = labeled_slots(&brief, &Plan::new(&brief));
    let choices: Vec<Vec<&str>> =
        slots.iter().filter(|slot| slot.purpose.difficulty() == Some(Difficulty::Ambiguous)).map(others).collect();
    let is_declared = |named: &Vec<&str>| matches!(named.first(), Some(&"get_forecast" | &"get_climate"));
    // Two cases for each declared overlap.
    assert!(choices.iter().take(4).all(is_declared), "{choices:?}");
    assert!(choices.iter().all(|named| named.is_empty() || is_declared(named)), "{choices:?}");
    assert!(choices.iter().flatten().any(|name| *name == "get_weather_maps"), "{choices:?}");
}

#[test]
fn tools_missing_from_the_registry_are_not_named() {
    let mut brief = brief(3, 1);
    brief.overlaps[0].tool = "gone".to_owned();
    brief.clusters = vec![vec!["get_weather".to_owned(), "gone".to_owned()]];
    let slots = [golden_slots(&brief), labeled_slots(&brief, &Plan::new(&brief))].concat();
    assert!(!rendered(&slots).contains("gone"));
}

fn others(slot: &Slot) -> Vec<&str> {
    match &slot.purpose {
        Purpose::Together { tools, .. } | Purpose::Choice { others: tools, .. } => {
            tools.iter().map(String::as_str).collect()
        }
        _ => Vec::new(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn slots_match_the_plan(tools in 1_usize..80, overlaps in 0_usize..12, more in 0_usize..20) {
        let brief = brief(tools, overlaps);
        let mut plan = Plan::new(&brief);
        for tier in &mut plan.tiers {
            tier.wanted += if tier.wanted == 0 { 0 } else { more };
        }
        let slots = labeled_slots(&brief, &plan);
        let ids: Vec<String> = (1..=plan.cases()).map(|number| format!("ls-get-weather-{number:03}")).collect();
        prop_assert_eq!(slots.iter().map(|slot| slot.id.clone()).collect::<Vec<_>>(), ids);
        check_even_spread(&brief, &slots)?;
        check_overlaps_and_clusters(&brief, &slots)?;
    }
}

fn check_even_spread(brief: &Brief, slots: &[Slot]) -> Result<(), TestCaseError> {
    let tools = brief.registry.tools().len();
    let (mut sizes, mut combinations, mut kinds) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for slot in slots {
        match &slot.purpose {
            Purpose::Together { tools: together, count } => {
                prop_assert!(together.contains(&brief.tool.name) && (2..=tools).contains(count));
                prop_assert!(together.len() <= *count);
                *sizes.entry((*count).min(4)).or_insert(0_usize) += 1;
            }
            Purpose::Choice { combination, others } => {
                prop_assert!(!others.contains(&brief.tool.name));
                prop_assert!(*combination != Combination::Nor || others.is_empty());
                let names_any = !others.is_empty() || brief.overlaps.is_empty();
                prop_assert!(*combination == Combination::Nor || names_any);
                *combinations.entry(*combination).or_insert(0_usize) += 1;
            }
            Purpose::Edge(kind) => *kinds.entry(*kind).or_insert(0_usize) += 1,
            other => return Err(TestCaseError::fail(format!("{other:?}"))),
        }
    }
    let is_even = |counts: &[usize]| counts.iter().max().unwrap_or(&0) - counts.iter().min().unwrap_or(&0) <= 1;
    prop_assert!(is_even(&sizes.values().copied().collect::<Vec<_>>()), "{:?}", sizes);
    prop_assert!(is_even(&combinations.values().copied().collect::<Vec<_>>()), "{:?}", combinations);
    prop_assert_eq!(kinds.len(), EdgeKind::ALL.len());
    prop_assert!(is_even(&kinds.values().copied().collect::<Vec<_>>()), "{:?}", kinds);
    Ok(())
}

fn check_overlaps_and_clusters(brief: &Brief, slots: &[Slot]) -> Result<(), TestCaseError> {
    for overlap in &brief.overlaps {
        let is_named = |slot: &&Slot| {
            slot.purpose.difficulty() == Some(Difficulty::Ambiguous) && others(slot).contains(&overlap.tool.as_str())
        };
        prop_assert!(slots.iter().filter(is_named).count() >= 2, "{}", overlap.tool);
    }
    for cluster in &brief.clusters {
        let contains_all = |slot: &&Slot| {
            let named = others(slot);
            cluster.iter().all(|tool| *tool == brief.tool.name || named.contains(&tool.as_str()))
        };
        prop_assert!(slots.iter().any(|slot| contains_all(&slot)));
    }
    Ok(())
}
