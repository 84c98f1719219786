//! Drafting without a model.

use std::collections::BTreeSet;

use karat_cases::Case;
use karat_forge::{Brief, Draft, Drafter, Overlap, Plan, Purpose, Request, Slot, TemplateDrafter};
use karat_forge::{golden_slots, labeled_slots};
use karat_lints::Rule;
use rstest::rstest;

use crate::registries::{brief, write_brief};

fn drafts(brief: &Brief, slots: &[Slot]) -> Vec<Draft> {
    let slots: Vec<Slot> = slots.iter().filter(|slot| TemplateDrafter.can_fill(slot)).cloned().collect();
    let other_cases: Vec<Case> = brief.existing().cloned().collect();
    let request = Request { brief, slots: &slots, other_cases: &other_cases, attempt: 0, revision: None };
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(TemplateDrafter.draft(request)).expect("drafts")
}

fn rendered(drafts: &[Draft]) -> String {
    let line = |draft: &Draft| draft.case.as_ref().expect("a case").to_string();
    drafts.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn golden_cases_are_trigger_phrases_and_a_leak_check() {
    let mut brief = brief(3, 1);
    brief.triggers.push("What's the forecast-free weather right now in Oslo?".to_owned());
    brief.overlaps[0] = Overlap { tool: "get_forecast".to_owned(), reasons: vec!["both are about weather".to_owned()] };
    insta::assert_snapshot!(rendered(&drafts(&brief, &golden_slots(&brief))));
}

/// Returns the texts that the draft against leaks forbids.
fn forbidden_by_the_leak_check() -> Vec<String> {
    let brief = brief(3, 0);
    let is_leak_check = |draft: &&Draft| draft.slot.purpose == Purpose::NoLeak;
    let drafts = drafts(&brief, &golden_slots(&brief));
    let case = drafts.iter().find(is_leak_check).and_then(Draft::parse_case).expect("a draft against leaks");
    case.expect.response_not_contains.expect("forbidden texts")
}

#[rstest]
#[case::compact(r#"{"status":"processing","total":59.0}"#)]
#[case::spaced(r#"{"status": "processing", "carrier": null}"#)]
#[case::pretty("{\n  \"status\": \"processing\"\n}")]
#[case::list(r#"[{"id": 1}, {"id": 2}]"#)]
#[case::names(r#"["Oslo", "Rome"]"#)]
#[case::in_a_sentence(r#"Here is your order: {"status": "processing"}"#)]
#[case::python("{'status': 'processing', 'carrier': None}")]
#[case::javascript("The order is [object Object].")]
#[case::missing("The total is undefined EUR.")]
fn the_leak_check_fails_for_raw_data(#[case] answer: &str) {
    assert!(forbidden_by_the_leak_check().iter().any(|text| answer.contains(text.as_str())), "{answer}");
}

#[rstest]
#[case("Order 1042 is being processed and will ship tomorrow.")]
#[case("It costs 39.90 EUR: the \"Red Kettle\", in stock (12 left).")]
#[case("- Oslo: 3 °C\n- Rome: 18 °C [source: station 7]")]
#[case("The status is 'processing'; no carrier yet.")]
#[case("I fetched it at 10:00: \"sunny\" {almost}.")]
fn the_leak_check_passes_for_plain_words(#[case] answer: &str) {
    let forbidden = forbidden_by_the_leak_check().into_iter().find(|text| answer.contains(text.as_str()));
    assert_eq!(forbidden, None, "{answer}");
}

/// In a list of results, cases are distinguished by their descriptions.
#[test]
fn descriptions_differ_and_limits_are_not_set() {
    for brief in [brief(3, 1), write_brief(3)] {
        let slots = [golden_slots(&brief), labeled_slots(&brief, &Plan::new(&brief))].concat();
        let cases: Vec<Case> = drafts(&brief, &slots).iter().filter_map(Draft::parse_case).collect();
        let descriptions: BTreeSet<&str> = cases.iter().map(|case| case.description.as_str()).collect();
        assert_eq!(descriptions.len(), cases.len(), "{descriptions:?}");
        assert!(cases.iter().all(|case| case.expect.max_latency_ms.is_none()));
    }
}

#[test]
fn a_tool_that_needs_confirmation_gets_consent_or_is_not_called() {
    let brief = write_brief(3);
    insta::assert_snapshot!(rendered(&drafts(&brief, &golden_slots(&brief))));
}

#[test]
fn edge_messages_are_used_once_and_run_out() {
    let mut brief = brief(60, 2);
    let slots = labeled_slots(&brief, &Plan::new(&brief));
    let first = drafts(&brief, &slots);
    let messages: BTreeSet<String> =
        first.iter().filter_map(Draft::parse_case).map(|case| case.message(0).to_owned()).collect();
    assert_eq!((first.len(), messages.len()), (20, 20), "20 of 25 slots are filled");
    assert!(first.iter().all(|draft| matches!(draft.slot.purpose, Purpose::Edge(_))));
    brief.labeled = first.iter().filter_map(Draft::parse_case).collect();
    assert_eq!(drafts(&brief, &labeled_slots(&brief, &Plan::new(&brief))), []);
}

/// The only finding is one that a drafter cannot avoid without knowing the answers.
#[test]
fn every_draft_can_be_approved() {
    for brief in [brief(1, 0), brief(3, 1), brief(12, 3), write_brief(1), write_brief(5)] {
        let slots = [golden_slots(&brief), labeled_slots(&brief, &Plan::new(&brief))].concat();
        for draft in drafts(&brief, &slots) {
            assert!(draft.can_be_approved(), "{draft:#?}");
            assert!(draft.findings.iter().all(|finding| finding.rule == Rule::FewProofValues), "{:#?}", draft.findings);
        }
    }
}

/// A case must not forbid a tool that may rightly be called.
#[test]
fn skips_edge_messages_related_to_the_tool() {
    let mut brief = brief(3, 0);
    let describe = |brief: &mut Brief, description: &str| brief.tool.description = Some(description.to_owned()).into();
    let messages = |brief: &Brief| -> Vec<String> {
        let made = drafts(brief, &labeled_slots(brief, &Plan::new(brief)));
        made.iter().filter_map(Draft::parse_case).map(|case| case.message(0).to_owned()).collect()
    };
    describe(&mut brief, "Runs Python code. Use when the user wants a Python function to be written.");
    assert!(messages(&brief).iter().all(|message| !message.contains("Python")));
    describe(&mut brief, "Searches the web. Use when the user asks for facts.");
    assert!(messages(&brief).iter().all(|message| !message.contains("triangle") && !message.contains("spider")));
}
