//! Tests of drafting, driven by commands like a page or a script.

use std::ops::ControlFlow;

use karat_forge::session::Session;
use karat_workflows::forge::{
    Command, CommandOutcome, Conversation, ConversationRequest, DrafterKind, DrafterRequest, DraftsRequest, Event,
    ForgeInputs, LoadedInputs, Mode, Refusal, Step, Tiers, ToolRequest, load_inputs,
};
use karat_workflows::{CancellationToken, Context, Error, ErrorKind, Hint};
use serde_json::{Value, json};

use crate::project::TestProject;
use crate::project_store::ProjectStore;

const GOLDEN: &str = "evals/get-weather.golden.json";
const SESSION: &str = ".karat/forge/get-weather.json";

fn tool(name: &str, subject: &str) -> Value {
    json!({
        "name": name,
        "description": format!("Fetches the {subject} of a city and returns its details. Use when the user asks about the {subject}. \
            For the mail, use send_mail instead."),
        "triggerPhrases": [format!("Show me the {subject} of Paris"), format!("Which {subject} is there in London?"),
            format!("I want to see the {subject} of Rome")],
    })
}

fn with_tools() -> TestProject {
    TestProject::new()
        .file("karat.json", json!({"toolRegistryPath": "tools.json", "agentEndpoint": "scripted:script.json"}))
        .file("tools.json", json!([tool("get_weather", "weather"), tool("send_invoice", "invoice")]))
        .file("evals/overlap-map.json", json!({"get_weather": {}}))
}

fn golden() -> ToolRequest {
    ToolRequest { tool: "get_weather".to_owned(), tiers: Tiers::Golden, triggers: Vec::new() }
}

fn attended() -> ConversationRequest {
    ConversationRequest {
        drafts: DraftsRequest::Drafter(DrafterRequest::default()),
        verify: false,
        mode: Mode::Attended { resume: false, restart: false },
        accept_description: false,
        approver: Some("Ada".to_owned()),
    }
}

async fn inputs(request: &ToolRequest, context: &Context<'_>) -> ForgeInputs {
    match load_inputs(request, true, context, &CancellationToken::new()).await.unwrap() {
        LoadedInputs::Ready(inputs) => *inputs,
        LoadedInputs::Vague(vague) => panic!("{vague:?}"),
    }
}

async fn open<'c>(
    request: ConversationRequest,
    tool: &ToolRequest,
    context: &'c Context<'c>,
) -> Result<Conversation<'c>, Error> {
    Conversation::open(request, inputs(tool, context).await, context, &CancellationToken::new()).await
}

/// Applies a command given as JSON.
async fn apply(conversation: &mut Conversation<'_>, command: Value) -> CommandOutcome {
    let command: Command = serde_json::from_value(command).unwrap();
    let mut ignore = |_: Event| ControlFlow::Continue(());
    conversation.apply(command, &mut ignore, &CancellationToken::new()).await.unwrap()
}

#[tokio::test]
async fn a_session_survives_between_commands() {
    let project = with_tools();
    let context = project.context();
    let mut conversation = open(attended(), &golden(), &context).await.unwrap();
    assert_eq!(conversation.next(), Step::Draft);
    apply(&mut conversation, json!({"command": "draft"})).await;
    assert_eq!(conversation.next(), Step::Decide);
    let refused = apply(&mut conversation, json!({"command": "drop", "numbers": [99]})).await;
    assert!(matches!(refused, CommandOutcome::Refused(Refusal::Command(_))), "{refused:?}");
    let refused = apply(&mut conversation, json!({"command": "redraft", "which": "all", "words": "shorter"})).await;
    assert!(matches!(refused, CommandOutcome::Refused(Refusal::InstructionsNotSupported)), "{refused:?}");
    apply(&mut conversation, json!({"command": "approve", "which": {"some": [1]}})).await;
    drop(conversation);
    assert!(!project.files.path().join(GOLDEN).exists());

    let mut conversation = open(attended(), &golden(), &context).await.unwrap();
    assert_eq!(conversation.resumed().map(Session::approved_count), Some(1));
    apply(&mut conversation, json!({"command": "approve", "which": "all"})).await;
    assert_eq!(conversation.next(), Step::Write);
    let CommandOutcome::Wrote { files, .. } = apply(&mut conversation, json!({"command": "write"})).await else {
        panic!("expected written files");
    };
    assert_eq!((files.len(), files[0].path.as_str(), conversation.next()), (1, GOLDEN, Step::Done));
    let summary = conversation.finish().unwrap();
    assert_eq!((summary.refused.len(), summary.report.files.len()), (0, 1));
    assert_eq!(project.files.read_json(GOLDEN)["metadata"]["approvals"][0]["approvedAt"], "2026-01-02T03:04:05Z");
    assert!(!project.files.path().join(SESSION).exists());
}

#[tokio::test]
async fn asks_questions_before_the_session_starts() {
    let mut tools = json!([tool("get_weather", "weather"), tool("get_forecast", "weather forecast")]);
    tools[0].as_object_mut().unwrap().remove("triggerPhrases");
    let project = with_tools().file("tools.json", tools).file("evals/overlap-map.json", json!({}));
    let context = project.context();
    let request = ConversationRequest { approver: None, ..attended() };
    let both = ToolRequest { tiers: Tiers::Both, ..golden() };
    let mut conversation = open(request, &both, &context).await.unwrap();
    assert!(matches!(conversation.next(), Step::DeclareOverlap { tool, .. } if tool == "get_forecast"));
    let refused = apply(&mut conversation, json!({"command": "proceed"})).await;
    assert!(matches!(refused, CommandOutcome::Refused(Refusal::UnavailableCommand)), "{refused:?}");
    apply(&mut conversation, json!({"command": "declareOverlap", "declare": true})).await;
    for phrase in ["Is it warm?", "is it WARM?", "Is it cold?"] {
        assert_eq!(conversation.next(), Step::AddTriggers);
        apply(&mut conversation, json!({"command": "addTrigger", "phrase": phrase})).await;
    }
    let refused = apply(&mut conversation, json!({"command": "endTriggers"})).await;
    assert!(matches!(refused, CommandOutcome::Refused(Refusal::TooFewTriggers)), "{refused:?}");
    apply(&mut conversation, json!({"command": "addTrigger", "phrase": "Is it wet?"})).await;
    apply(&mut conversation, json!({"command": "endTriggers"})).await;
    assert_eq!(conversation.next(), Step::NameApprover);
    assert!(!project.files.path().join(SESSION).exists());
    apply(&mut conversation, json!({"command": "nameApprover", "name": "Ada"})).await;
    let session = project.files.read_json(SESSION);
    assert_eq!(session["declared"][0]["tool"], "get_forecast");
    assert_eq!(session["triggers"], json!(["Is it warm?", "Is it cold?", "Is it wet?"]));
}

#[tokio::test]
async fn runs_unattended_and_verifies_drafts() {
    let calls = json!([{"name": "get_weather", "params": {}, "success": true}]);
    let answer = json!({"response": "It is 21.5 °C in Paris.", "toolCalls": calls});
    let project = with_tools().file("script.json", json!({"replies": {}, "otherwise": answer}));
    let context = project.context();
    let request = ConversationRequest { verify: true, mode: Mode::DryRun, ..attended() };
    let mut conversation = open(request, &golden(), &context).await.unwrap();
    let (mut steps, mut events) = (Vec::new(), Vec::new());
    let mut observe = |_: &Conversation<'_>, step: &Step| steps.push(step.clone());
    let mut collect = |event: Event| {
        events.push(event);
        ControlFlow::Continue(())
    };
    conversation.run_unattended(&mut observe, &mut collect, &CancellationToken::new()).await.unwrap();
    assert_eq!(steps, [Step::Draft, Step::Verify, Step::Decide, Step::Write, Step::Done]);
    assert!(matches!(events.as_slice(), [Event::Verifying { .. }]), "{events:?}");
    let summary = conversation.finish().unwrap();
    assert!(summary.report.batches[0].drafts.iter().all(|draft| draft.evidence.is_some()));
    assert!(!project.files.path().join(".karat").exists() && !project.files.path().join(GOLDEN).exists());
}

#[tokio::test]
async fn unattended_mode_does_not_resume_implicitly() {
    let project = with_tools();
    let context = project.context();
    drop(open(attended(), &golden(), &context).await.unwrap());
    let unattended = |resume, restart| ConversationRequest { mode: Mode::Unattended { resume, restart }, ..attended() };
    let error = open(unattended(false, false), &golden(), &context).await.err().unwrap();
    let tool = || "get_weather".to_owned();
    assert_eq!((error.kind, error.hints), (ErrorKind::Invalid, vec![Hint::ResumeOrRestartForge { tool: tool() }]));
    // An unreadable session can be discarded.
    project.files.write(SESSION, "{");
    let error = open(unattended(true, false), &golden(), &context).await.err().unwrap();
    assert_eq!((error.kind, error.hints), (ErrorKind::Invalid, vec![Hint::RestartForge { tool: tool() }]));
    assert!(open(unattended(false, true), &golden(), &context).await.is_ok());
}

#[tokio::test]
async fn returns_a_vague_description_as_a_result() {
    let project = with_tools().file("tools.json", json!([{"name": "get_weather", "description": "Helps with stuff."}]));
    let loaded = load_inputs(&golden(), true, &project.context(), &CancellationToken::new()).await.unwrap();
    let LoadedInputs::Vague(vague) = loaded else { panic!("expected a vague description") };
    assert_eq!((vague.tool.as_str(), vague.findings.len()), ("get_weather", 2));
}

#[tokio::test]
async fn rejects_unreadable_traces() {
    let project = with_tools();
    let context = project.context();
    let store = ProjectStore::open(&context).await;
    store.add_trace("t-1", "Is it cold in Oslo?").await;
    store.add_text("t-2", "[\"not a trace\"]").await;
    store.close().await;
    let drafter = DrafterRequest { kind: Some(DrafterKind::Traces), ..DrafterRequest::default() };
    let request = ConversationRequest { drafts: DraftsRequest::Drafter(drafter), ..attended() };
    let error = open(request, &golden(), &context).await.map(|_| ()).unwrap_err();
    let message = "cannot read the document of trace 't-2': the trace is not an object";
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Unavailable, message));
}
