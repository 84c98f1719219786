//! Tests of refining an eval with a scripted model.

use std::ops::ControlFlow;

use karat_core::rating::Rating;
use karat_workflows::evals::history;
use karat_workflows::refine::{
    Adoption, CandidateFolder, Command, CommandOutcome, EvalFile, Event, Outcome, Refusal, Request, Step, question,
    refine,
};
use karat_workflows::trace_filter::TraceOrigin;
use karat_workflows::{CancellationToken, Context, ErrorKind, Hint};
use serde_json::{Value, json};

use crate::project::TestProject;
use crate::project_store::ProjectStore;

const CURRENT: &str = "def eval_tone(trace):\n    return True, 'always'\n";
const GOOD: &str =
    "def eval_tone(trace):\n    return 'polite' in trace['steps'][0]['input']['message'], 'by the tone'\n";
const FILE: &str = "evals/functions/tone.py";

fn request() -> Request {
    Request {
        eval: "tone".to_owned(),
        candidates: 1,
        rounds: 1,
        hold_out: 0.4,
        origin: TraceOrigin::default(),
        model: Some("scripted:model.json".to_owned()),
        write_to: None,
    }
}

/// Creates an eval that passes everything, and traces of which every second one is rated negative.
async fn with_ratings(count: usize, answer: Value) -> TestProject {
    let script = json!({"replies": [], "otherwise": {"value": answer, "usage": {"inputTokens": 9, "outputTokens": 4}}});
    let project = TestProject::new().file("model.json", script).file(FILE, CURRENT);
    let store = ProjectStore::open(&project.context()).await;
    for number in 0..count {
        let (word, rating) = if number % 2 == 0 { ("polite", Rating::Positive) } else { ("rude", Rating::Negative) };
        let id = format!("t-{number:02}");
        store.add_trace(&id, &format!("{word} {number}")).await;
        store.add_rating("ada", &id, rating).await;
    }
    store.close().await;
    add_version(&project, CURRENT).await;
    project
}

async fn add_version(project: &TestProject, code: &str) {
    project.files.write("elsewhere/tone.py", code);
    let functions = vec!["elsewhere/tone.py".to_owned()];
    let request = karat_workflows::evals::AddRequest { functions, note: None };
    karat_workflows::evals::add(request, &project.context()).await.unwrap();
}

fn candidates(codes: &[&str]) -> Value {
    json!({"candidates": codes.iter().map(|code| json!({"code": code, "why": "goes by the tone"})).collect::<Vec<_>>()})
}

async fn refined(request: &Request, context: &Context<'_>) -> (Outcome, Vec<Event>) {
    let mut events = Vec::new();
    let mut collect = |event: Event| {
        events.push(event);
        ControlFlow::Continue(())
    };
    let outcome = refine(request, context, &mut collect, &CancellationToken::new()).await.unwrap();
    (outcome, events)
}

fn adopt(candidate: u64) -> Command {
    serde_json::from_value(json!({"command": "adopt", "candidate": candidate, "approver": "Ada"})).unwrap()
}

#[tokio::test]
async fn adopts_a_candidate_and_writes_the_file() {
    let project = with_ratings(60, candidates(&[GOOD])).await;
    let context = project.context();
    let (Outcome { refinement, adoption }, events) = refined(&request(), &context).await;
    assert!(matches!(&events[..], [Event::Prompting { .. }, Event::Used(usage)] if usage.input_tokens == Some(9)));
    assert_eq!(refinement.suggested().map(|candidate| candidate.number), Some(1));
    assert!(!project.files.path().join(".karat/refine").exists());

    let state = serde_json::to_string(&adoption.unwrap()).unwrap();
    let mut adoption: Adoption = serde_json::from_str(&state).unwrap();
    let applied = adoption.apply(adopt(2), &context).await.unwrap();
    assert_eq!(applied, CommandOutcome::Refused(Refusal::UnknownCandidate));
    let applied = adoption.apply(Command::WriteFile { write: true }, &context).await.unwrap();
    assert_eq!((applied, adoption.next()), (CommandOutcome::Refused(Refusal::UnavailableCommand), &Step::Choose));
    let applied = adoption.apply(adopt(1), &context).await.unwrap();
    let file = EvalFile::Outdated(FILE.to_owned());
    assert_eq!(applied, CommandOutcome::Adopted { candidate: 1, version: 2, file });
    assert_eq!(adoption.next(), &Step::WriteFile { candidate: 1, file: FILE.to_owned() });
    let applied = adoption.apply(Command::WriteFile { write: true }, &context).await.unwrap();
    assert_eq!((applied, adoption.next()), (CommandOutcome::Wrote { file: FILE.to_owned() }, &Step::Done));
    assert_eq!(project.files.read(FILE), GOOD);

    let newest = history("tone", &context).await.unwrap().versions.remove(0);
    let note = "refined by scripted:model.json, approved by Ada: goes by the tone";
    assert_eq!((newest.note.as_deref(), newest.created_at), (Some(note), context.clock.now()));
    question(&request(), &context).await.unwrap();
    assert_eq!(project.notices(), Vec::<String>::new());
    question(&Request { hold_out: 0.5, ..request() }, &context).await.unwrap();
    let notices = project.notices();
    assert!(notices.len() == 1 && notices[0].contains("an earlier version was refined"), "{notices:?}");
}

#[tokio::test]
async fn a_concurrent_version_is_a_conflict() {
    let project = with_ratings(60, candidates(&[GOOD])).await;
    let context = project.context();
    let request = Request { write_to: Some(CandidateFolder::Given("ideas".into())), ..request() };
    let (Outcome { refinement, adoption }, _) = refined(&request, &context).await;
    assert_eq!(refinement.candidates[0].file.as_deref(), Some("ideas/candidate_1.py"));
    assert_eq!(project.files.read("ideas/candidate_1.py"), GOOD);
    let mut adoption = adoption.unwrap();
    add_version(&project, "def eval_tone(trace):\n    return False, 'never'\n").await;
    let error = adoption.apply(adopt(1), &context).await.unwrap_err();
    let file = ".karat/refine/eval_tone/candidate_1.py".to_owned();
    let hint = Hint::RefineNewest { eval: "eval_tone".to_owned(), file };
    assert_eq!((error.kind, error.hints), (ErrorKind::Conflict, vec![hint]));
    assert_eq!(adoption.apply(Command::Decline, &context).await.unwrap(), CommandOutcome::Declined);
    assert_eq!((adoption.next(), project.files.read(FILE).as_str()), (&Step::Done, CURRENT));
}

#[tokio::test]
async fn fails_to_adopt_without_candidates() {
    let project = with_ratings(60, candidates(&[CURRENT])).await;
    let (Outcome { refinement, adoption }, _) = refined(&request(), &project.context()).await;
    assert_eq!(refinement.refused.len(), 1);
    let error = adoption.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert_eq!(error.message, "scripted:model.json did not write a new valid function");
}

#[tokio::test]
async fn rejects_invalid_requests_and_too_few_ratings() {
    let project = with_ratings(4, json!({})).await;
    let context = project.context();
    let fails = async |request: Request| {
        let mut ignore = |_: Event| ControlFlow::Continue(());
        refine(&request, &context, &mut ignore, &CancellationToken::new()).await.err().unwrap()
    };
    assert_eq!(fails(Request { hold_out: 1.0, ..request() }).await.kind, ErrorKind::Invalid);
    assert_eq!(fails(Request { candidates: 21, ..request() }).await.kind, ErrorKind::Invalid);
    assert_eq!(fails(Request { model: None, ..request() }).await.kind, ErrorKind::Invalid);
    assert_eq!(fails(Request { eval: "tune".to_owned(), ..request() }).await.kind, ErrorKind::NotFound);
    let error = fails(request()).await;
    assert_eq!((error.kind, &error.hints[0]), (ErrorKind::NothingSelected, &Hint::RateTraces));
}
