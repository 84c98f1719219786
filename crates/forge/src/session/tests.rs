use std::collections::BTreeMap;

use karat_cases::registry::{Registry, Tool};
use karat_cases::token::TokenSources;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{BATCH_SIZE, EdgeKind, Overlap, Purpose, TemplateDrafter};

const ADA: Approver<'static> = Approver { name: "Ada", time: "2026-01-02T03:04:05Z" };

fn brief() -> Brief {
    let tool = |name: &str| Tool {
        name: name.to_owned(),
        description: Some(format!("Does {name}.")).into(),
        ..Tool::default()
    };
    Brief {
        tool: tool("get_weather"),
        registry: Registry::from_tools([tool("get_weather"), tool("get_forecast"), tool("send_mail")]),
        triggers: vec!["weather?".to_owned()],
        overlaps: vec![Overlap { tool: "get_forecast".to_owned(), reasons: Vec::new() }],
        clusters: Vec::new(),
        sources: TokenSources::default(),
        silenced: Vec::new(),
        golden: Vec::new(),
        labeled: Vec::new(),
    }
}

fn slots(tier: Tier, count: usize, from: usize) -> Vec<Slot> {
    let slot = |number: usize| Slot {
        id: format!("{}get-weather-{number:03}", tier.id_prefix().expect("a prefix")),
        purpose: if tier == Tier::Golden { Purpose::NoLeak } else { Purpose::Edge(EdgeKind::OffTopic) },
    };
    (from..from + count).map(slot).collect()
}

fn session(golden: usize, labeled: usize) -> Session {
    let brief = brief();
    let labeled = slots(Tier::Labeled, labeled * BATCH_SIZE, 1);
    let slots = [slots(Tier::Golden, golden, 1), labeled].concat();
    Session::new(&brief, Plan::new(&brief), slots, &TemplateDrafter)
}

/// Returns the approved cases of a tier, written or not.
fn approved(session: &Session, tier: Tier) -> Vec<&Value> {
    let entries = session.entries(tier).filter(|entry| entry.is_approved());
    entries.filter_map(|entry| entry.draft.as_ref()?.case.as_ref()).collect()
}

fn draft(slot: &Slot, message: &str) -> Draft {
    let case = json!({"id": slot.id, "input": {"message": message}, "expect": {"toolsCalled": ["get_weather"]}});
    Draft { slot: slot.clone(), case: Some(case), origin: Origin::Template, findings: Vec::new() }
}

/// Fills the slots without a draft.
fn fill(session: &mut Session) {
    let slots = session.batch().expect("a batch").slots_without_draft();
    let drafts: Vec<Draft> = slots.iter().map(|slot| draft(slot, &slot.id)).collect();
    session.fill(&drafts, "template", None);
}

fn approve(session: &mut Session) {
    fill(session);
    assert_eq!(session.approve(&CaseSelection::All, ADA), Ok(Vec::new()));
}

#[test]
fn golden_is_written_before_the_plan_is_shown() {
    let mut session = session(5, 2);
    assert_eq!(session.stage(), Stage::Draft);
    fill(&mut session);
    assert_eq!((session.stage(), session.position()), (Stage::Decide, (1, 1)));
    approve(&mut session);
    assert_eq!(session.stage(), Stage::Write(Tier::Golden));
    session.mark_written(Tier::Golden);
    assert_eq!(session.stage(), Stage::ApprovePlan);
    session.approve_plan();
    assert_eq!(session.position(), (1, 2));
    approve(&mut session);
    assert_eq!((session.stage(), session.position()), (Stage::Draft, (2, 2)));
    approve(&mut session);
    assert_eq!(session.stage(), Stage::Write(Tier::Labeled));
    assert_eq!(session.approvals(Tier::Labeled)[0].cases.len(), 10);
    session.mark_written(Tier::Labeled);
    assert_eq!(session.stage(), Stage::Done);
}

#[test]
fn a_session_can_have_one_tier() {
    let mut golden = session(5, 0);
    approve(&mut golden);
    assert_eq!(golden.stage(), Stage::Write(Tier::Golden));
    golden.mark_written(Tier::Golden);
    assert_eq!(golden.stage(), Stage::Done);
    assert_eq!(session(0, 1).stage(), Stage::ApprovePlan);
    assert_eq!(session(0, 0).stage(), Stage::Done);
}

#[test]
fn a_draft_with_an_error_cannot_be_approved() {
    let mut session = session(3, 0);
    fill(&mut session);
    let bad = session.batch().expect("a batch").entries[1].slot.clone();
    session.fill(&[Draft::failed(bad, Origin::Template, "nothing came")], "template", None);
    assert_eq!(session.approve(&CaseSelection::All, ADA), Ok(vec![2]));
    assert_eq!((session.stage(), session.approved_count()), (Stage::Decide, 2));
    assert_eq!(session.forward(), Err(InvalidAction("not decided yet: 2".to_owned())));
    let case = json!({"id": "gs-get-weather-002", "input": {"message": "mine"}, "expect": {}});
    session.replace(2, case.clone(), Vec::new()).expect("a slot");
    assert_eq!(session.approve(&CaseSelection::Some(vec![2]), ADA), Ok(Vec::new()));
    assert_eq!(session.stage(), Stage::Write(Tier::Golden));
    assert_eq!(approved(&session, Tier::Golden)[1], &case);
}

#[test]
fn going_back_keeps_approvals() {
    let mut session = session(3, 3);
    assert_eq!(session.back(), Err(InvalidAction("this is the first batch".to_owned())));
    approve(&mut session);
    session.mark_written(Tier::Golden);
    session.approve_plan();
    session.back().expect("golden cases can be looked at");
    let written = Err(InvalidAction("case 1 is already written: edit the file".to_owned()));
    assert_eq!(session.drop_cases(&[1]), written);
    session.forward().expect("all is decided");
    approve(&mut session);
    approve(&mut session);
    session.back().expect("a batch before");
    session.back().expect("a batch before");
    assert_eq!((session.position(), session.approved_count()), ((1, 3), 13));
    // The session does not advance from a batch that was already decided.
    session.drop_cases(&[2]).expect("a case");
    assert_eq!((session.position(), session.approved_count()), ((1, 3), 12));
    let redrafted = session.redraftable(&CaseSelection::Some(vec![1]));
    assert!(redrafted.is_err_and(|refusal| refusal.0.contains("is approved")));
    session.forward().expect("all is decided");
    assert_eq!(session.position(), (2, 3));
    session.approve(&CaseSelection::All, ADA).expect("a batch");
    assert_eq!(session.position(), (3, 3));
    assert_eq!(session.dropped(Tier::Labeled).count(), 1);
}

#[test]
fn a_new_draft_does_not_replace_an_approved_one() {
    let mut session = session(2, 0);
    fill(&mut session);
    session.approve(&CaseSelection::Some(vec![1]), ADA).expect("a case");
    let slots: Vec<Slot> = session.batch().expect("a batch").entries.iter().map(|entry| entry.slot.clone()).collect();
    let by_model = |slot| Draft { origin: Origin::Model("openai:m".to_owned()), ..draft(slot, "again") };
    session.fill(&slots.iter().map(by_model).collect::<Vec<_>>(), "model", Some("openai:m"));
    let cases: Vec<&Value> =
        session.batches()[0].entries.iter().filter_map(|entry| entry.draft.as_ref()?.case.as_ref()).collect();
    assert_eq!(cases[0]["input"]["message"], "gs-get-weather-001");
    assert_eq!(cases[1]["input"]["message"], "again");
    assert_eq!(session.batches()[0].entries[1].attempts, 2);
    session.approve(&CaseSelection::All, ADA).expect("a case");
    let approvals = session.approvals(Tier::Golden);
    let drafters: Vec<(&str, Option<&str>)> =
        approvals.iter().map(|approval| (approval.drafter.as_str(), approval.model.as_deref())).collect();
    assert_eq!(drafters, [("template", None), ("model", Some("openai:m"))]);
}

#[test]
fn others_are_distinct_cases_of_files_and_batches() {
    let mut session = session(2, 1);
    let mut brief = brief();
    approve(&mut session);
    let slots = slots(Tier::Labeled, 1, 1);
    let ids = |cases: Vec<Case>| cases.into_iter().map(|case| case.id).collect::<Vec<_>>();
    assert_eq!(ids(session.others(&brief, &slots)), ["gs-get-weather-001", "gs-get-weather-002"]);
    // A written case is in the file as well.
    let written = approved(&session, Tier::Golden)[0].clone();
    brief.golden.push(Case::read_one(&written).expect("a case"));
    assert_eq!(session.others(&brief, &slots).len(), 2);
}

#[test]
fn approved_cases_can_be_written_at_any_time() {
    let mut session = session(3, 0);
    fill(&mut session);
    session.approve(&CaseSelection::Some(vec![2]), ADA).expect("a case");
    assert_eq!((session.stage(), session.unwritten(Tier::Golden).len()), (Stage::Decide, 1));
    session.mark_written(Tier::Golden);
    assert_eq!((session.stage(), session.unwritten_count(), session.approved_count()), (Stage::Decide, 0, 1));
    session.approve(&CaseSelection::All, ADA).expect("cases");
    assert_eq!((session.stage(), session.unwritten(Tier::Golden).len()), (Stage::Write(Tier::Golden), 2));
}

#[test]
fn slots_that_cannot_be_filled_stay_open() {
    let brief = brief();
    let together = Purpose::Together { tools: vec!["get_weather".to_owned()], count: 2 };
    let slot = |number: usize, purpose: Purpose| Slot { id: format!("ls-get-weather-{number:03}"), purpose };
    let slots = vec![slot(1, together), slot(2, Purpose::Edge(EdgeKind::OffTopic))];
    let mut session = Session::new(&brief, Plan::new(&brief), slots, &TemplateDrafter);
    session.approve_plan();
    let ids = |slots: &[Slot]| slots.iter().map(|slot| slot.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&session.batch().expect("a batch").slots_without_draft()), ["ls-get-weather-001"]);
    assert_eq!(ids(session.open_slots()), ["ls-get-weather-002"]);
    // A drafter that gives up on a slot leaves it open too.
    session.fill(&[], "template", None);
    assert_eq!((session.stage(), session.open_slots().len()), (Stage::Done, 2));
    session.batch_open_slots(&TemplateDrafter);
    assert_eq!((session.stage(), session.open_slots().len()), (Stage::Draft, 1));
}

#[test]
fn drafts_of_a_file_are_saved_with_the_session() {
    let brief = brief();
    let slots = [slots(Tier::Golden, 5, 1), slots(Tier::Labeled, 2 * BATCH_SIZE, 1)].concat();
    let drafts: Vec<Draft> = slots.iter().map(|slot| draft(slot, &slot.id)).collect();
    let session = Session::with_drafts(&brief, Plan::new(&brief), &drafts, Vec::new(), &TemplateDrafter);
    let mut saved = Session::read(&session.to_json()).expect("a session");
    for _ in 0..3 {
        assert_eq!(saved.stage(), Stage::Decide);
        saved.approve(&CaseSelection::All, ADA).expect("cases");
        if saved.stage() == Stage::Write(Tier::Golden) {
            saved.mark_written(Tier::Golden);
            saved.approve_plan();
        }
    }
    assert_eq!((saved.stage(), saved.unwritten(Tier::Labeled).len()), (Stage::Write(Tier::Labeled), 2 * BATCH_SIZE));
}

#[test]
fn describes_changes_of_the_basis() {
    let (before, mut now) = (brief(), brief());
    let basis = Basis::new(&before);
    assert_eq!(basis.changes(&Basis::new(&now)), Vec::<String>::new());
    let tool = |name: &str, description: &str| Tool {
        name: name.to_owned(),
        description: Some(description.to_owned()).into(),
        ..Tool::default()
    };
    now.registry = Registry::from_tools([
        tool("get_weather", "Other words."),
        tool("get_forecast", "Other words."),
        tool("new_one", "New."),
    ]);
    now.overlaps.clear();
    now.clusters.push(vec!["get_weather".to_owned()]);
    assert_eq!(
        basis.changes(&Basis::new(&now)),
        [
            "the description of get_weather",
            "new tools: new_one",
            "removed tools: send_mail",
            "changed descriptions of other tools: get_forecast",
            "removed overlaps: get_forecast",
            "the clusters of the tool",
        ]
    );
}

#[test]
fn rejects_invalid_sessions() {
    let text = session(3, 1).to_json();
    assert_eq!(Session::read(&text), Ok(session(3, 1)));
    assert_eq!(Session::read(&text.replace("\"format\": 2", "\"format\": 1")), Err(SessionError::Format));
    for broken in ["", "{}", "[1", &text.replace("\"at\": 0", "\"at\": 9"), &text[..text.len() / 2]] {
        assert!(matches!(Session::read(broken), Err(SessionError::Invalid(_))), "{broken}");
    }
}

#[derive(Debug, Clone)]
enum Action {
    Approve(CaseSelection),
    Drop(usize),
    Replace(usize, bool),
    Redraft(CaseSelection),
    Back,
    Forward,
    /// Write the cases approved so far.
    Write,
    /// Save the session and load it again.
    Resume,
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let selection = || {
        prop_oneof![Just(CaseSelection::All), proptest::collection::vec(0..8_usize, 1..3).prop_map(CaseSelection::Some)]
    };
    let action = prop_oneof![
        selection().prop_map(Action::Approve),
        (0..8_usize).prop_map(Action::Drop),
        (0..8_usize, any::<bool>()).prop_map(|(number, good)| Action::Replace(number, good)),
        selection().prop_map(Action::Redraft),
        Just(Action::Back),
        Just(Action::Forward),
        Just(Action::Write),
        Just(Action::Resume),
    ];
    proptest::collection::vec(action, 0..40)
}

/// Returns the approved cases of all batches, by id.
fn all_approved(session: &Session) -> BTreeMap<String, Value> {
    let approved = [Tier::Golden, Tier::Labeled].into_iter().flat_map(|tier| approved(session, tier));
    approved.map(|case| (case["id"].as_str().unwrap_or_default().to_owned(), case.clone())).collect()
}

proptest! {
    /// Approved cases stay approved unless they are dropped or edited, and written cases never change.
    #[test]
    fn approvals_are_not_lost(actions in actions()) {
        let mut session = session(4, 2);
        let mut written: Vec<Value> = Vec::new();
        for (turn, action) in actions.into_iter().enumerate() {
            match session.stage() {
                Stage::ApprovePlan => session.approve_plan(),
                Stage::Draft => fill(&mut session),
                Stage::Write(tier) => {
                    written.extend(session.unwritten(tier).into_iter().cloned());
                    session.mark_written(tier);
                }
                Stage::Decide | Stage::Done => {}
            }
            let before = all_approved(&session);
            let mut touched = None;
            let id = |session: &Session, number: usize| {
                Some(session.batch()?.entries.get(number.checked_sub(1)?)?.slot.id.clone())
            };
            match action {
                Action::Approve(selection) => { session.approve(&selection, ADA).ok(); }
                Action::Drop(number) => { touched = id(&session, number); session.drop_cases(&[number]).ok(); }
                Action::Replace(number, good) => {
                    touched = id(&session, number);
                    let findings = if good { Vec::new() } else { vec![DraftFinding::error("", "bad")] };
                    let case = json!({"id": touched, "input": {"message": turn.to_string()}, "expect": {}});
                    session.replace(number, case, findings).ok();
                }
                Action::Redraft(selection) => {
                    let slots = session.redraftable(&selection).map(|entries| entries.iter().map(|entry| entry.slot.clone()).collect());
                    let slots: Vec<Slot> = slots.unwrap_or_default();
                    session.fill(&slots.iter().map(|slot| draft(slot, "anew")).collect::<Vec<_>>(), "template", None);
                }
                Action::Back => { session.back().ok(); }
                Action::Forward => { session.forward().ok(); }
                Action::Write => {
                    for tier in [Tier::Golden, Tier::Labeled] {
                        written.extend(session.unwritten(tier).into_iter().cloned());
                        session.mark_written(tier);
                    }
                }
                Action::Resume => {
                    let saved = Session::read(&session.to_json());
                    prop_assert_eq!(saved.as_ref(), Ok(&session));
                }
            }
            let after = all_approved(&session);
            for (id, case) in &before {
                prop_assert!(touched.as_ref() == Some(id) || after.get(id) == Some(case), "{id} was lost");
            }
        }
        let approved = all_approved(&session);
        for case in written {
            prop_assert_eq!(approved.get(case["id"].as_str().unwrap_or_default()), Some(&case));
        }
    }
}
