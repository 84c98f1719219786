use karat_cases::registry::{Registry, Tool};
use karat_cases::token::TokenSources;
use karat_core::assertion::{Evidence, Mode, Strictness, judge};
use karat_core::tokenizer::Tokenizer;
use karat_core::trace::Trace;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use karat_lints::Severity;

use crate::{Brief, Combination, EdgeKind, TemplateDrafter};

/// Returns a failed draft for each slot.
struct FailingDrafter;

impl Drafter for FailingDrafter {
    fn name(&self) -> &'static str {
        "template"
    }

    fn draft<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Vec<Draft>, DraftError>> {
        let reason = format!("{} cases so far", request.other_cases.len());
        let draft = |slot: &Slot| Draft::failed(slot.clone(), Origin::Template, reason.as_str());
        let drafts = request.slots.iter().map(draft).collect();
        Box::pin(async move { Ok(drafts) })
    }
}

fn tool(name: &str) -> Tool {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}});
    Tool { name: name.to_owned(), input_schema: Some(schema).into(), ..Tool::default() }
}

fn brief(seed: Option<Value>) -> Brief {
    let tools = ["get_weather", "get_forecast", "get_news", "get_map"];
    Brief {
        tool: tool("get_weather"),
        registry: Registry::from_tools(tools.map(tool)),
        triggers: Vec::new(),
        overlaps: Vec::new(),
        clusters: Vec::new(),
        sources: TokenSources { seed, snapshot: None },
        silenced: Vec::new(),
        golden: Vec::new(),
        labeled: Vec::new(),
    }
}

fn trace(id: &str, message: &str, calls: &Value, response: &str) -> Value {
    json!({"trace_id": id, "steps": [
        {"input": {"message": message}, "output": {"response": response}, "tool_calls": calls, "error": null}
    ]})
}

fn weather(city: &str, sky: &str, degrees: u32) -> Value {
    json!({
        "name": "get_weather", "arguments": {"city": city, "secret": city}, "success": true,
        "result": {"city": city, "sky": sky, "degrees": degrees, "fetchedAt": "2024-05-15T10:00:00Z"}
    })
}

fn about(id: &str, message: &str, city: &str, sky: &str, degrees: u32) -> Value {
    let response = format!("In {city} it is {sky} at {degrees} degrees.");
    trace(id, message, &json!([weather(city, sky, degrees)]), &response)
}

fn some_traces() -> Vec<Value> {
    vec![
        about("t1", "What's the weather in Paris?", "Paris", "partly cloudy", 18),
        about("t2", "what's the weather in paris??", "Paris", "partly cloudy", 18),
        about("t3", "Do I need sun cream in Lisbon", "Lisbon", "glaringly sunny", 31),
        about("t4", "Is Oslo freezing? Mail me at jo@example.org", "Oslo", "snowing hard", 11),
        trace(
            "t5",
            "Weather in Rome and what it will be",
            &json!([
                weather("Rome", "stormy", 22),
                {"name": "get_forecast", "arguments": {"days": 3}, "result": {"outlook": "brightening up"}}
            ]),
            "Rome is stormy at 22 degrees, brightening up.",
        ),
        trace("t6", "Tell me a joke", &json!([]), "Knock, knock."),
        trace("t7", "Weather of Mars", &json!([{"name": "get_weather", "error": "no such place"}]), "I am unable to."),
        trace(
            "t8",
            "Anything going on in Berlin",
            &json!([weather("Berlin", "windy", 14), {"name": "gone_tool", "result": "a fair"}]),
            "windy, a fair",
        ),
    ]
}

fn read(traces: &[Value]) -> (TraceDrafter, TraceReport) {
    let mut reader = TraceReader::new("get_weather");
    for (at, trace) in traces.iter().enumerate() {
        reader.read_line(u64::try_from(at).unwrap_or_default() + 1, trace.to_string().as_bytes());
    }
    reader.finish(Arc::new(FailingDrafter))
}

fn slot(number: usize, purpose: Purpose) -> Slot {
    Slot { id: format!("gs-get-weather-{number:03}"), purpose }
}

fn golden_slots() -> Vec<Slot> {
    let phrase = || "weather now".to_owned();
    vec![
        slot(1, Purpose::Trigger(phrase())),
        slot(2, Purpose::Edge(EdgeKind::OffTopic)),
        slot(3, Purpose::NoLeak),
        slot(4, Purpose::Rephrasing(phrase())),
        slot(5, Purpose::Rephrasing(phrase())),
    ]
}

fn drafts(drafter: &TraceDrafter, brief: &Brief, slots: &[Slot], other_cases: &[Case], attempt: u32) -> Vec<Draft> {
    let request = Request { brief, slots, other_cases, attempt, revision: None };
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(drafter.draft(request)).expect("drafts")
}

fn origins(drafts: &[Draft]) -> Vec<String> {
    let name = |draft: &Draft| match &draft.origin {
        Origin::Trace(id) => id.clone(),
        other => format!("{other:?}"),
    };
    drafts.iter().map(name).collect()
}

#[test]
fn reports_rejected_traces_and_invalid_lines() {
    let mut reader = TraceReader::new("get_weather");
    for (number, trace) in (1..).zip(some_traces()) {
        reader.read_line(number, trace.to_string().as_bytes());
    }
    reader.read_line(9, b"  ");
    reader.read_line(10, b"{");
    reader.reject_line(11, "longer than 32 MB".to_owned());
    let (drafter, report) = reader.finish(Arc::new(FailingDrafter));
    assert_eq!((report.lines, report.calling, report.usable), (10, 7, 6));
    let rejected = RejectedTrace { id: "t7".to_owned(), reason: "the call to 'get_weather' failed".to_owned() };
    assert_eq!(report.rejected, [rejected]);
    let invalid: Vec<u64> = report.invalid_lines.iter().map(|line| line.number).collect();
    assert_eq!(invalid, [10, 11]);
    assert_eq!((drafter.name(), drafter.model(), drafter.accepts_instructions()), ("traces", None, false));
}

#[test]
fn a_case_expects_the_observed_behaviour() {
    let (drafter, _) = read(&some_traces());
    let brief = brief(Some(json!({"paris": {"degrees": 18}})));
    let slot_drafts = drafts(&drafter, &brief, &[slot(1, Purpose::NoLeak)], &[], 0);
    assert_eq!(origins(&slot_drafts), ["t1"]);
    insta::assert_json_snapshot!(slot_drafts[0].case, @r#"
    {
      "id": "gs-get-weather-001",
      "description": "real message: no raw field names in the response",
      "input": {
        "message": "What's the weather in Paris?"
      },
      "expect": {
        "toolsCalled": [
          "get_weather"
        ],
        "toolParams": [
          {
            "tool": "get_weather",
            "paramName": "city",
            "assertion": "equals",
            "value": "Paris"
          }
        ],
        "noToolErrors": true,
        "responseNonEmpty": true,
        "responseContains": [
          "{{seed:paris.degrees}}",
          "partly cloudy"
        ],
        "responseNotContains": [
          "I don't know",
          "unable to",
          "no information",
          "fetchedAt",
          "\"city\":",
          "\"sky\":",
          "\"degrees\":",
          "{\"",
          "{'",
          "{\n",
          "[\"",
          "undefined",
          "[object Object]"
        ]
      }
    }
    "#);
}

#[test]
fn a_case_expects_all_called_tools() {
    let (drafter, _) = read(&some_traces());
    let together = Purpose::together(["get_weather", "get_news", "get_map"].map(str::to_owned).to_vec());
    let slot_drafts = drafts(&drafter, &brief(None), &[slot(1, together.clone()), slot(2, together)], &[], 0);
    // A trace with a tool that the registry lacks is not used.
    assert_eq!(origins(&slot_drafts), ["t5", "Template"]);
    let called = ["get_weather", "get_forecast"].map(str::to_owned).to_vec();
    assert_eq!(slot_drafts[0].slot.purpose, Purpose::together(called.clone()));
    let case = slot_drafts[0].parse_case().expect("a case");
    assert_eq!(case.difficulty.map(karat_cases::Difficulty::name), Some("straightforward"));
    assert_eq!(case.expect.tools_called, Some(called));
    assert_eq!(
        case.expect.response_contains.as_deref(),
        Some(&["stormy", "brightening up", "22"].map(str::to_owned)[..])
    );
}

#[test]
fn slots_without_a_trace_are_left_to_the_fallback() {
    let (drafter, _) = read(&some_traces());
    let slot_drafts = drafts(&drafter, &brief(None), &golden_slots(), &[], 0);
    assert_eq!(origins(&slot_drafts), ["t1", "Template", "t3", "t4", "Template"]);
    let ids: Vec<&str> = slot_drafts.iter().map(|draft| draft.slot.id.as_str()).collect();
    assert_eq!(ids, golden_slots().iter().map(|slot| slot.id.as_str()).collect::<Vec<_>>());
    // The fallback gets the drafts, so that it does not repeat them.
    assert_eq!(slot_drafts[1].findings[0].message, "3 cases so far");
    assert_eq!(slot_drafts[0].slot.purpose, Purpose::Trigger("What's the weather in Paris?".to_owned()));
    let choice = Purpose::Choice { combination: Combination::Or, others: vec!["get_forecast".to_owned()] };
    let none = [slot(1, choice), slot(2, Purpose::Confirmation), slot(3, Purpose::disambiguation("get_news"))];
    assert_eq!(origins(&drafts(&drafter, &brief(None), &none, &[], 0)), ["Template"; 3]);
}

#[test]
fn existing_messages_and_earlier_attempts_are_not_repeated() {
    let (drafter, _) = read(&some_traces());
    let slots = [slot(1, Purpose::NoLeak)];
    let first = drafts(&drafter, &brief(None), &slots, &[], 0);
    let existing: Vec<Case> = first.iter().filter_map(Draft::parse_case).collect();
    assert_eq!(origins(&drafts(&drafter, &brief(None), &slots, &existing, 0)), ["t3"]);
    let again: Vec<_> = (0..5).map(|attempt| origins(&drafts(&drafter, &brief(None), &slots, &[], attempt))).collect();
    assert_eq!(again.concat(), ["t1", "t3", "t4", "Template", "Template"]);
    assert_eq!(origins(&drafts(&drafter, &brief(None), &slots, &[], u32::MAX)), ["Template"]);
    let with_golden = Brief { golden: existing, ..brief(None) };
    assert_eq!(origins(&drafts(&drafter, &with_golden, &slots, &[], 0)), ["t3"]);
    let other_tool = Brief { tool: tool("get_news"), ..brief(None) };
    assert_eq!(origins(&drafts(&drafter, &other_tool, &slots, &[], 0)), ["Template"]);
}

#[test]
fn warns_of_personal_data_and_conflicting_traces() {
    let long = format!("How warm is it in Athens? {}", "It is for my journey. ".repeat(30));
    let traces = [
        about("a", "Is Oslo freezing? Mail me at jo@example.org", "Oslo", "snowing hard", 11),
        about("b", &long, "Athens", "dry", 33),
        about("c", "And Madrid, how is it there", "Madrid", "cloudless", 29),
        trace("d", "and madrid, how is it there", &json!([]), "Fine."),
        about("e", "Sky over Vienna please", "Vienna", "hazy", 19),
        trace("f", "Sky over Vienna please", &json!([weather("Vienna", "hazy", 19), {"name": "get_map"}]), "hazy"),
    ];
    let (drafter, report) = read(&traces);
    assert_eq!(report.usable, 4);
    let slots: Vec<Slot> = (1..=4).map(|number| slot(number, Purpose::NoLeak)).collect();
    let slot_drafts = drafts(&drafter, &brief(None), &slots, &[], 0);
    let mut warnings: Vec<String> = Vec::new();
    for draft in &slot_drafts {
        let own = draft.findings.iter().filter(|finding| finding.severity == Severity::Warning);
        warnings.extend(own.map(|finding| format!("{:?} {}", draft.origin, finding.message)));
    }
    warnings.retain(|warning| ["e-mail", "characters", "same message"].iter().any(|word| warning.contains(word)));
    warnings.sort();
    let length = long.trim().chars().count();
    assert_eq!(
        warnings,
        [
            "Trace(\"a\") the message contains an e-mail address: replace it unless it may be stored".to_owned(),
            format!("Trace(\"b\") the message has {length} characters: shorten it"),
            "Trace(\"c\") the agent also answered the same message without 'get_weather'".to_owned(),
            "Trace(\"e\") the same message led to other tools in trace 'f'".to_owned(),
        ]
    );
}

#[test]
fn stubs_are_the_observed_results() {
    let (drafter, _) = read(&some_traces());
    let drafter = drafter.with_stubs();
    let slot_drafts = drafts(&drafter, &brief(None), &[slot(1, Purpose::NoLeak)], &[], 0);
    let case = slot_drafts[0].parse_case().expect("a case");
    assert_eq!(
        case.stubs.map(Value::Object),
        Some(json!({"get_weather": weather("Paris", "partly cloudy", 18)["result"]}))
    );
    let mut secret = about("t1", "What's the weather in Paris?", "Paris", "partly cloudy", 18);
    secret["steps"][0]["tool_calls"][0]["result"]["owner"] = json!("jo@example.org");
    let (drafter, _) = read(&[secret]);
    let slot_drafts = drafts(&drafter.with_stubs(), &brief(None), &[slot(1, Purpose::NoLeak)], &[], 0);
    assert_eq!(slot_drafts[0].parse_case().and_then(|case| case.stubs), None);
    assert!(
        slot_drafts[0]
            .findings
            .iter()
            .any(|finding| finding.message.contains("no stubs: the result of 'get_weather' contains"))
    );
}

#[test]
fn messages_with_proof_values_come_first() {
    let traces = [
        trace("a", "Anything falling from above", &json!([weather("Bonn", "dull", 9)]), "Not much."),
        about("b", "What's the weather in Paris?", "Paris", "partly cloudy", 18),
    ];
    let (drafter, _) = read(&traces);
    let slots = [slot(1, Purpose::NoLeak), slot(2, Purpose::NoLeak)];
    assert_eq!(origins(&drafts(&drafter, &brief(None), &slots, &[], 0)), ["b", "a"]);
}

#[test]
fn drafts_of_templates_and_traces_can_be_approved() {
    let mut reader = TraceReader::new("get_weather");
    for (number, trace) in (1..).zip(some_traces()) {
        reader.read_line(number, trace.to_string().as_bytes());
    }
    let (drafter, _) = reader.finish(Arc::new(TemplateDrafter));
    let description = Some("Fetches the weather of a city. Use when somebody asks how it is outside.".to_owned());
    let mut brief = brief(None);
    brief.tool.description = description.into();
    brief.triggers = ["what's the weather", "is it raining", "how cold is it"].map(str::to_owned).to_vec();
    let golden = crate::golden_slots(&brief);
    let slot_drafts = drafts(&drafter, &brief, &golden, &[], 0);
    assert_eq!((slot_drafts.len(), golden.len()), (4, 6), "rephrasings without a trace stay open");
    let real = slot_drafts.iter().filter(|draft| matches!(draft.origin, Origin::Trace(_))).count();
    assert_eq!(real, 3);
    for draft in &slot_drafts {
        let errors: Vec<_> = draft.findings.iter().filter(|finding| finding.severity == Severity::Error).collect();
        assert!(draft.can_be_approved(), "{:?}: {errors:?}", draft.origin);
    }
}

/// Converts a trace of one step to the answer of an agent.
fn replayed(trace: &Value) -> Trace {
    let step = &trace["steps"][0];
    let call = |call: &Value| karat_core::trace::ToolCall {
        name: call["name"].as_str().unwrap_or_default().to_owned(),
        success: Some(true),
        params: call["arguments"].as_object().cloned().unwrap_or_default(),
        ..Default::default()
    };
    Trace {
        response: step["output"]["response"].as_str().unwrap_or_default().to_owned(),
        tool_calls: step["tool_calls"].as_array().map(|calls| calls.iter().map(call).collect()).unwrap_or_default(),
        ..Trace::default()
    }
}

proptest! {
    #[test]
    fn a_case_passes_for_its_own_trace(
        words in prop::collection::vec("[a-zA-Z0-9é.,:{}'\"-]{1,8}", 1..8),
        values in prop::collection::vec(prop_oneof![
            "[a-zA-Z0-9é .:{}-]{0,12}".prop_map(Value::from), any::<i32>().prop_map(Value::from),
            (-1e6..1e6).prop_map(Value::from), Just(json!("{{seed:a}}")), Just(json!("jo@example.org")),
        ], 0..6),
        second in any::<bool>(),
        turn in 0_usize..4,
    ) {
        let texts: Vec<String> = values.iter().map(|value| karat_json::text::text_form(value).into_owned()).collect();
        let message = format!("{} {}", words.join(" "), texts.first().cloned().unwrap_or_default());
        let mut calls = vec![
            json!({"name": "get_weather", "arguments": {"city": texts.first(), "days": 3}, "result": values}),
        ];
        if second {
            calls.push(json!({"name": "get_map", "arguments": {"days": values.last()}, "result": texts}));
        }
        let mut traces = vec![
            trace("a", &message, &Value::Array(calls), &format!("So: {}.", texts.join(", "))),
            trace("b", "something else", &json!([{"name": "get_weather", "result": 77}]), "77"),
            trace("c", "a third matter", &json!([{"name": "get_weather", "result": "x"}, {"name": "get_map"}]), "x unable to"),
            trace("d", "the weather", &json!([]), "none"),
        ];
        let brief = brief(Some(json!({"a": "seed's", "list": texts})));
        let slots = [
            slot(1, Purpose::Trigger("t".to_owned())), slot(2, Purpose::NoLeak),
            slot(3, Purpose::together(vec!["get_weather".to_owned(), "get_map".to_owned()])),
        ];
        let (drafter, _) = read(&traces);
        let slot_drafts = drafts(&drafter, &brief, &slots, &[], 0);
        for draft in &slot_drafts {
            let Origin::Trace(id) = &draft.origin else { continue };
            let case = draft.parse_case();
            prop_assert!(case.is_some(), "no case: {:?}", draft);
            let Some(case) = case else { continue };
            let of = traces.iter().find(|trace| trace["trace_id"] == id.as_str()).map(replayed).unwrap_or_default();
            let evidence = Evidence {
                case: &case, trace: &of, earlier: &[], mode: Mode::Endpoint, tokens: &brief.sources, registry: Some(&brief.registry),
                tokenizer: Tokenizer::default(),
            };
            let verdict = judge(evidence, Strictness { all_failures: true, strict: true });
            prop_assert!(verdict.passed() && verdict.assertions_skipped == 0, "{verdict:?} {case:?}");
        }
        // The result does not depend on the order of the lines.
        traces.rotate_left(turn);
        let (rotated, _) = read(&traces);
        prop_assert_eq!(slot_drafts, drafts(&rotated, &brief, &slots, &[], 0));
    }

    #[test]
    fn reads_arbitrary_lines(line in prop::collection::vec(any::<u8>(), 0..60), text in "[\\[\\]{}\":,a-z0-9 ]{0,60}") {
        let mut reader = TraceReader::new("get_weather");
        reader.read_line(1, &line);
        reader.read_line(2, text.as_bytes());
        reader.read_line(3, format!("{{\"steps\": [{text}]}}").as_bytes());
        let (_, report) = reader.finish(Arc::new(FailingDrafter));
        prop_assert!(report.invalid_lines.len() <= report.lines && report.usable <= report.calling);
    }
}
