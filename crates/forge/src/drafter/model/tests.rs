//! Drafting with a scripted model.

mod prompt;
mod rules;

use std::collections::VecDeque;
use std::time::Duration;

use karat_cases::registry::{Registry, Tool};
use karat_cases::token::TokenSources;
use karat_core::chat::ChatReply;
use karat_core::port::{UnusableReply, WaitObserver};
use proptest::prelude::*;
use rstest::rstest;
use serde_json::{Map, json};

use super::*;
use karat_lints::{Rule, Severity};

use crate::{Origin, Overlap, Purpose, Revision};

/// A model that returns scripted replies and records the prompts.
#[derive(Default)]
struct ScriptedModel {
    replies: Mutex<VecDeque<Result<ChatReply, AgentError>>>,
    prompts: Mutex<Vec<ChatPrompt>>,
}

impl ScriptedModel {
    fn new(replies: impl IntoIterator<Item = Result<ChatReply, AgentError>>) -> Arc<Self> {
        Arc::new(Self { replies: Mutex::new(replies.into_iter().collect()), prompts: Mutex::default() })
    }

    fn prompts(&self) -> Vec<ChatPrompt> {
        self.prompts.lock().unwrap().clone()
    }

    fn documents(&self) -> Vec<Value> {
        self.prompts().iter().map(|prompt| serde_json::from_str(&prompt.user).expect("one JSON document")).collect()
    }
}

impl ChatModel for ScriptedModel {
    fn identity(&self) -> String {
        "openai:drafting".to_owned()
    }

    fn parameters(&self) -> Map<String, Value> {
        Map::new()
    }

    fn complete<'a>(
        &'a self,
        prompt: &'a ChatPrompt,
        _wait_observer: &'a dyn WaitObserver,
    ) -> BoxFuture<'a, Result<ChatReply, AgentError>> {
        self.prompts.lock().unwrap().push(prompt.clone());
        let reply = self.replies.lock().unwrap().pop_front().expect("a scripted reply");
        Box::pin(async { reply })
    }
}

#[expect(clippy::unnecessary_wraps, reason = "other replies are errors")]
fn reply_with(value: Value) -> Result<ChatReply, AgentError> {
    let usage = Usage { input_tokens: Some(100), output_tokens: Some(10), cost_usd: Some(0.5), ..Usage::default() };
    Ok(ChatReply { value, usage: Some(usage), latency_ms: 1.0 })
}

fn cases(cases: impl IntoIterator<Item = Value>) -> Result<ChatReply, AgentError> {
    reply_with(json!({"cases": cases.into_iter().collect::<Value>()}))
}

fn unusable_reply(message: &str, text: &str) -> Result<ChatReply, AgentError> {
    let usage = Usage { input_tokens: Some(100), output_tokens: Some(1), cost_usd: Some(0.25), ..Usage::default() };
    let reply = UnusableReply { text: text.to_owned(), usage: Some(usage) };
    Err(AgentError::unusable(message, Duration::ZERO, reply))
}

fn failed_call(message: &str) -> Result<ChatReply, AgentError> {
    Err(AgentError::new(message, Duration::ZERO))
}

/// Simple rules: the id, known tools, known keys, and no duplicate messages.
fn check_draft(brief: &Brief, slot: &Slot, case: &Value, others: &[Case]) -> Vec<DraftFinding> {
    let case = match Case::read_one(case) {
        Ok(case) => case,
        Err(problems) => {
            return problems.into_iter().map(|problem| DraftFinding::error(problem.pointer, problem.message)).collect();
        }
    };
    let mut findings = Vec::new();
    if case.id != slot.id {
        findings.push(DraftFinding::error("/id", format!("must be '{}'", slot.id)));
    }
    for tool in case.expect.tools_called.iter().flatten().filter(|tool| brief.registry.tool(tool).is_none()) {
        findings.push(DraftFinding::error("/expect/toolsCalled", format!("unknown tool '{tool}'")));
    }
    for other in others.iter().filter(|other| other.input == case.input) {
        findings.push(DraftFinding::error("/input/message", format!("same message as {}", other.id)));
    }
    if case.expect.response_contains.is_none() {
        findings.push(DraftFinding::new(Rule::FewProofValues, "/expect", "needs two values of proof"));
    }
    findings
}

fn weather() -> Brief {
    let tool = Tool {
        name: "get_weather".to_owned(),
        description: Some(
            "Returns the current weather of a city. Use when somebody asks how it is outside.".to_owned(),
        )
        .into(),
        category: Some("read".to_owned()).into(),
        input_schema: Some(json!({
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "units": {"type": "string", "enum": ["metric", "imperial"], "default": "metric"}
            },
            "required": ["city"]
        }))
        .into(),
        ..Tool::default()
    };
    let other = |name: &str, description: &str| Tool {
        name: name.to_owned(),
        description: Some(description.to_owned()).into(),
        ..Tool::default()
    };
    let forecast = other("get_forecast", "Returns the forecast of a city. Use when somebody asks about coming days.");
    let calendar = other("list_events", "Lists the events of a day. Use when somebody asks what is planned.");
    Brief {
        tool: tool.clone(),
        registry: Registry::from_tools([tool, forecast, calendar]),
        triggers: ["What's the weather in Paris?", "Is it cold outside?", "Do I need a coat?"]
            .map(str::to_owned)
            .to_vec(),
        overlaps: vec![Overlap { tool: "get_forecast".to_owned(), reasons: vec!["both are about weather".to_owned()] }],
        clusters: vec![["get_weather", "get_forecast", "list_events"].map(str::to_owned).to_vec()],
        sources: TokenSources { seed: Some(json!({"cities": [{"name": "Paris", "station": "LFPB"}]})), snapshot: None },
        silenced: Vec::new(),
        golden: Vec::new(),
        labeled: Vec::new(),
    }
}

fn slots(count: usize) -> Vec<Slot> {
    let brief = weather();
    let slot = |number: usize| Slot {
        id: format!("gs-get-weather-{number:03}"),
        purpose: Purpose::Trigger(brief.triggers[(number - 1) % 3].clone()),
    };
    (1..=count).map(slot).collect()
}

fn case(number: usize) -> Value {
    with_message(number, &format!("How is it outside in city {number}?"))
}

fn with_message(number: usize, message: &str) -> Value {
    json!({
        "id": format!("gs-get-weather-{number:03}"),
        "description": "trigger phrase",
        "input": {"message": message},
        "expect": {"toolsCalled": ["get_weather"], "responseContains": ["{{seed:cities[0].station}}", "°C"]}
    })
}

fn request<'a>(brief: &'a Brief, slots: &'a [Slot]) -> Request<'a> {
    Request { brief, slots, other_cases: &[], attempt: 0, revision: None }
}

fn drafter(model: &Arc<ScriptedModel>) -> ModelDrafter {
    ModelDrafter { check_draft, ..ModelDrafter::new(Arc::clone(model) as Arc<dyn ChatModel>) }
}

/// Drafts `count` slots with a model.
async fn draft(model: &Arc<ScriptedModel>, count: usize) -> Result<Vec<Draft>, DraftError> {
    let (brief, slots) = (weather(), slots(count));
    drafter(model).draft(request(&brief, &slots)).await
}

fn messages(draft: &Draft) -> Vec<&str> {
    draft.findings.iter().map(|finding| finding.message.as_str()).collect()
}

#[tokio::test]
async fn valid_drafts_need_one_prompt() {
    let model = ScriptedModel::new([cases([case(1), case(2)])]);
    let drafts = draft(&model, 2).await.unwrap();
    assert_eq!(drafts.iter().map(|draft| draft.case.clone()).collect::<Vec<_>>(), [Some(case(1)), Some(case(2))]);
    assert!(drafts.iter().all(|draft| draft.can_be_approved() && draft.findings.is_empty()));
    assert_eq!(drafts[0].origin, Origin::Model("openai:drafting".to_owned()));
    assert_eq!(drafts.into_iter().map(|draft| draft.slot).collect::<Vec<_>>(), slots(2));
    assert_eq!(model.prompts().len(), 1);
}

#[tokio::test]
async fn no_slots_need_no_prompt() {
    assert_eq!(draft(&ScriptedModel::new([]), 0).await, Ok(Vec::new()));
}

#[tokio::test]
async fn returns_only_rejected_cases_with_reasons() {
    let mut wrong = case(2);
    wrong["expect"]["toolsCalled"] = json!(["get_wether"]);
    let model = ScriptedModel::new([cases([case(1), wrong.clone(), case(3)]), cases([case(2)])]);
    let drafts = draft(&model, 3).await.unwrap();
    assert!(drafts.iter().all(|draft| draft.findings.is_empty()));
    assert_eq!(drafts[1].case, Some(case(2)));
    let request = &model.documents()[1];
    assert_eq!(request["asked"].as_array().map(Vec::len), Some(1));
    assert_eq!(
        request["returned"],
        json!([{
            "id": "gs-get-weather-002",
            "case": wrong,
            "reasons": ["/expect/toolsCalled: unknown tool 'get_wether'"]
        }])
    );
    let accepted = json!({
        "gs-get-weather-001": "How is it outside in city 1?", "gs-get-weather-003": "How is it outside in city 3?"
    });
    assert_eq!(request["casesSoFar"]["messages"], accepted);
    assert_eq!(
        model.prompts()[1].schema["properties"]["cases"]["items"]["properties"]["id"]["enum"],
        json!(["gs-get-weather-002"])
    );
}

#[tokio::test]
async fn shows_the_findings_of_a_case_that_stays_invalid() {
    let mut unknown = case(1);
    unknown["expect"]["responseHas"] = json!(["x"]);
    let model = ScriptedModel::new([(); 3].map(|()| cases([unknown.clone(), case(2)])));
    let drafts = draft(&model, 2).await.unwrap();
    assert_eq!(drafts[0].case, Some(unknown));
    assert!(!drafts[0].can_be_approved());
    assert_eq!(drafts[0].findings[0].pointer, "/expect/responseHas");
    assert!(drafts[1].can_be_approved());
    assert_eq!(model.prompts().len(), 3);
    // The second case was requested once and returned twice more.
    assert_eq!(
        messages(&drafts[1]),
        ["the model also returned 2 unrequested cases: 'How is it outside in city 2?', 'How is it outside in city 2?'"]
    );
}

#[tokio::test]
async fn rejects_the_second_of_two_equal_messages() {
    let same = with_message(2, "How is it outside in city 1?");
    let model = ScriptedModel::new([cases([case(1), same]), cases([case(2)])]);
    let drafts = draft(&model, 2).await.unwrap();
    assert!(drafts.iter().all(Draft::can_be_approved));
    assert_eq!(
        model.documents()[1]["returned"][0]["reasons"],
        json!(["/input/message: same message as gs-get-weather-001"])
    );
}

#[tokio::test]
async fn existing_cases_are_not_repeated() {
    let (brief, slots) = (weather(), slots(2));
    let other_cases = [Case::read_one(&with_message(9, "How is it outside in city 1?")).unwrap()];
    let model = ScriptedModel::new([cases([case(1), case(2)]), cases([with_message(1, "Is it raining in Rome?")])]);
    let drafts = drafter(&model).draft(Request { other_cases: &other_cases, ..request(&brief, &slots) }).await.unwrap();
    assert!(drafts.iter().all(Draft::can_be_approved));
    assert_eq!(model.documents()[0]["casesSoFar"]["messages"]["gs-get-weather-009"], "How is it outside in city 1?");
}

#[tokio::test]
async fn a_fixable_warning_is_retried_but_does_not_fail() {
    let mut bare = case(1);
    bare["expect"].as_object_mut().unwrap().shift_remove("responseContains");
    let mut worse = bare.clone();
    worse["expect"]["toolsCalled"] = json!(["get_wether"]);
    let model = ScriptedModel::new([cases([bare.clone()]), cases([worse.clone()]), cases([worse])]);
    let drafts = draft(&model, 1).await.unwrap();
    assert_eq!(drafts[0].case, Some(bare), "an approvable draft is kept over one that is not");
    assert_eq!(messages(&drafts[0]), ["needs two values of proof"]);
    assert!(drafts[0].can_be_approved());
}

#[rstest]
#[case(unusable_reply("the answer is not valid JSON (expected value): Sure! Here you are", "Sure! Here you are"))]
#[case(unusable_reply(
    "the answer is not valid JSON (EOF while parsing): {\"cases\": [{\"id\"",
    "{\"cases\": [{\"id\""
))]
#[case(unusable_reply("the model refused: I can't help with that", "I can't help with that"))]
#[case(unusable_reply("the answer was cut off at the token limit", "{\"cases\": [{"))]
#[case(reply_with(json!([case(1)])))]
#[case(reply_with(json!({"cases": "none"})))]
#[case(reply_with(json!({"cases": [case(1), case(2)], "note": "as you like"})))]
#[case(reply_with(json!({})))]
#[tokio::test]
async fn retries_an_answer_without_cases(#[case] first: Result<ChatReply, AgentError>) {
    let model = ScriptedModel::new([first, cases([case(1), case(2)])]);
    let drafts = draft(&model, 2).await.unwrap();
    assert!(drafts.iter().all(|draft| draft.can_be_approved() && draft.findings.is_empty()));
    let request = &model.documents()[1];
    assert!(request["problem"].as_str().is_some_and(|problem| !problem.is_empty()), "{request}");
    assert_eq!((request.get("returned"), request["asked"].as_array().map(Vec::len)), (None, Some(2)));
}

#[rstest]
#[case(
    unusable_reply("the model refused: I can't help with that", "I can't help with that"),
    "the model refused: I can't help with that"
)]
#[case(unusable_reply("the model refused", ""), "the model refused")]
#[case(
    unusable_reply("the answer was cut off at the token limit", "{\"ca"),
    "the answer was cut off at the token limit: {\"ca"
)]
#[case(reply_with(json!(["x"])), "the answer must be an object with 'cases', found an array: [\"x\"]")]
#[case(reply_with(json!({"cases": [], "notes": 1})), "the answer has an unknown key: 'notes': {\"cases\":[],\"notes\":1}")]
#[case(cases([]), "the model returned no case for this slot")]
#[case(cases([json!("gs-get-weather-001"), json!(7)]), "expected a case, found a string: \"gs-get-weather-001\"")]
#[tokio::test]
async fn repeated_invalid_answers_leave_failed_drafts(
    #[case] reply: Result<ChatReply, AgentError>,
    #[case] reason: &str,
) {
    let model = ScriptedModel::new([reply.clone(), reply.clone(), reply]);
    let drafts = draft(&model, 2).await.unwrap();
    assert_eq!(drafts.iter().map(|draft| draft.slot.clone()).collect::<Vec<_>>(), slots(2));
    assert!(drafts.iter().all(|draft| draft.case.is_none() && !draft.can_be_approved()));
    assert_eq!(messages(&drafts[0]), [reason]);
    assert_eq!(model.prompts().len(), 3);
}

#[tokio::test]
async fn truncates_long_answers() {
    let long = "no ".repeat(10_000);
    let reply = || unusable_reply(&format!("the answer is not valid JSON: {long}"), &long);
    let model = ScriptedModel::new([reply(), reply(), reply()]);
    let drafts = draft(&model, 1).await.unwrap();
    assert_eq!(drafts[0].findings[0].message.chars().count(), 200);
    assert!(model.prompts()[1].user.len() < model.prompts()[0].user.len() + 3000);
}

#[tokio::test]
async fn a_failed_first_call_is_an_error() {
    let model = ScriptedModel::new([failed_call("openai returned HTTP 429 Too Many Requests: slow down")]);
    let error = draft(&model, 2).await.unwrap_err();
    assert_eq!(error.message, "openai:drafting: openai returned HTTP 429 Too Many Requests: slow down");
    assert_eq!(model.prompts().len(), 1, "the client retries by itself");
}

#[tokio::test]
async fn keeps_drafts_after_a_failed_call() {
    let model = ScriptedModel::new([
        cases([case(1), json!({"id": "gs-get-weather-002"})]),
        failed_call("the budget is used up"),
    ]);
    let drafts = draft(&model, 2).await.unwrap();
    assert!(drafts[0].can_be_approved() && drafts[0].findings.is_empty());
    assert!(!drafts[1].can_be_approved());
    let last = drafts[1].findings.last().unwrap();
    assert_eq!(last.message, "the model could not be asked to fix this: the budget is used up");
    assert_eq!(last.severity, Severity::Warning);
}

#[tokio::test]
async fn retries_missing_cases_and_reports_extra_ones() {
    let model = ScriptedModel::new([cases([case(1)]), cases([case(2), case(7)])]);
    let drafts = draft(&model, 2).await.unwrap();
    assert_eq!(drafts[1].case, Some(case(2)));
    assert_eq!(messages(&drafts[1]), ["the model also returned 1 unrequested case: 'How is it outside in city 7?'"]);
    let missing = json!([{"id": "gs-get-weather-002", "reasons": ["the model returned no case for this slot"]}]);
    assert_eq!(model.documents()[1]["returned"], missing);
}

#[tokio::test]
async fn matches_cases_by_id_in_any_order() {
    let model = ScriptedModel::new([cases([case(3), case(1), case(2)])]);
    let drafts = draft(&model, 3).await.unwrap();
    let ids: Vec<_> = drafts.iter().map(|draft| draft.case.as_ref().unwrap()["id"].clone()).collect();
    assert_eq!(ids, ["gs-get-weather-001", "gs-get-weather-002", "gs-get-weather-003"]);
}

#[tokio::test]
async fn matches_by_position_if_all_ids_are_wrong() {
    let named = |id: Value, number: usize| {
        let mut named = case(number);
        named["id"] = id;
        named
    };
    let mut unnamed = case(3);
    unnamed.as_object_mut().unwrap().shift_remove("id");
    let model = ScriptedModel::new([cases([named(json!("case-1"), 1), named(json!(2), 2), unnamed])]);
    let drafts = draft(&model, 3).await.unwrap();
    let warning = |other: &str| format!("the model returned the id '{other}'; matched by position");
    for (draft, (number, other)) in drafts.iter().zip([(1, "case-1"), (2, "2"), (3, "")]) {
        assert_eq!(draft.case, Some(case(number)));
        assert_eq!(messages(draft), [warning(other)]);
        assert!(draft.can_be_approved());
    }
}

#[tokio::test]
async fn does_not_match_by_position_if_some_ids_are_right() {
    let mut misnamed = case(2);
    misnamed["id"] = json!("gs-get-weather-02");
    let model = ScriptedModel::new([cases([case(1), misnamed]), cases([case(2)])]);
    let drafts = draft(&model, 2).await.unwrap();
    assert_eq!(drafts[1].case, Some(case(2)));
    assert!(messages(&drafts[1])[0].contains("1 unrequested case"));
}

#[tokio::test]
async fn removes_empty_keys_and_orders_the_rest() {
    let verbose = json!({
        "expect": {
            "responseNotContains": [], "toolParams": null, "maxLatencyMs": null, "noToolErrors": null,
            "responseContains": ["LFPB", "°C"], "toolsCalled": ["get_weather"], "responseNonEmpty": true
        },
        "input": {"message": "How is it outside in city 1?"},
        "description": "trigger phrase",
        "id": "gs-get-weather-001",
    });
    let model = ScriptedModel::new([cases([verbose])]);
    let drafts = draft(&model, 1).await.unwrap();
    insta::assert_snapshot!(drafts[0].case.as_ref().unwrap().to_string(), @r#"{"id":"gs-get-weather-001","description":"trigger phrase","input":{"message":"How is it outside in city 1?"},"expect":{"toolsCalled":["get_weather"],"responseNonEmpty":true,"responseContains":["LFPB","°C"]}}"#);
}

#[tokio::test]
async fn an_unexpected_null_is_an_error() {
    let mut null = case(1);
    null["expect"]["toolOrder"] = Value::Null;
    let model = ScriptedModel::new([cases([null]), cases([case(1)])]);
    assert_eq!(draft(&model, 1).await.unwrap()[0].case, Some(case(1)));
    assert_eq!(model.prompts().len(), 2);
}

#[tokio::test]
async fn adds_up_the_usage_of_answers() {
    let model =
        ScriptedModel::new([unusable_reply("the model refused", ""), cases([case(1)]), failed_call("HTTP 500")]);
    let drafter = drafter(&model);
    let (brief, slots) = (weather(), slots(1));
    assert_eq!((drafter.usage(), drafter.answers()), (None, 0));
    drafter.draft(request(&brief, &slots)).await.unwrap();
    drafter.draft(request(&brief, &slots)).await.unwrap_err();
    let used = Usage { input_tokens: Some(200), output_tokens: Some(11), cost_usd: Some(0.75), ..Usage::default() };
    assert_eq!((drafter.usage(), drafter.answers()), (Some(used), 2));
}

#[tokio::test]
async fn a_revision_sends_instructions_and_drafts() {
    let (brief, slots) = (weather(), slots(2));
    let origin = Origin::Model("openai:drafting".to_owned());
    let drafts = [
        Draft { slot: slots[0].clone(), case: Some(case(1)), origin: origin.clone(), findings: Vec::new() },
        Draft::failed(slots[1].clone(), origin, "nothing"),
    ];
    let revision = Some(Revision { drafts: &drafts, instructions: "more polite, and about Rome" });
    let model = ScriptedModel::new([cases([case(1), case(2)])]);
    drafter(&model).draft(Request { revision, attempt: 2, ..request(&brief, &slots) }).await.unwrap();
    let request = &model.documents()[0];
    assert_eq!(request["revision"], json!({"wish": "more polite, and about Rome", "drafts": [case(1)]}));
    assert_eq!(request["filledBefore"], 2);
}

fn any_json() -> impl Strategy<Value = Value> {
    let key = prop_oneof!["cases", "id", "input", "expect", "toolParams", "message", "[a-z]{0,3}"];
    let id = "gs-get-weather-00[1-3]".prop_map(Value::from);
    let leaf =
        prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), any::<i64>().prop_map(Value::from), id];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        let members = proptest::collection::btree_map(key.clone(), inner.clone(), 0..5);
        prop_oneof![
            proptest::collection::vec(inner, 0..5).prop_map(Value::from),
            members.prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_answer_yields_a_draft_for_each_slot(value in any_json(), wrapped in any::<bool>()) {
        let value = if wrapped { json!({"cases": [value.clone(), value]}) } else { value };
        let model = ScriptedModel::new([reply_with(value.clone()), reply_with(value.clone()), reply_with(value)]);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let drafts = runtime.block_on(draft(&model, 3)).unwrap();
        prop_assert_eq!(drafts.iter().map(|draft| draft.slot.clone()).collect::<Vec<_>>(), slots(3));
        prop_assert!(drafts.iter().all(|draft| draft.can_be_approved() || !draft.findings.is_empty()));
    }
}
