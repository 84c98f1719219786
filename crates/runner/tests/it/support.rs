//! A fake agent, plans for it, and the outcome of a run.

use std::collections::{BTreeMap, HashMap};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use karat_cases::token::TokenSources;
use karat_cases::{Case, CaseLocation, EvalFile, Expectation, Input, Tier};
use karat_core::assertion::{Mode, Strictness};
use karat_core::event::{ReportError, Reporter};
use karat_core::event::{RunEvent, RunTotals};
use karat_core::port::{Agent, AgentError, BoxFuture, Conversation, TrialContext};
use karat_core::redact::Redactor;
use karat_core::result::{CaseResult, MissingCases, SuiteResult};
use karat_core::staleness::CurrentTool;
use karat_core::tokenizer::Tokenizer;
use karat_core::trace::Trace;
use karat_runner::{Plan, Reporters, Rubrics, SuitePlan, run};
use karat_testkit::clock::FixedClock;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// The behaviour of the fake agent.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    Answer(Box<Trace>),
    /// Fails with this message and elapsed time.
    Fail(String, Duration),
    /// Gets no connection.
    Refuse,
    /// Panics while answering.
    Panic(String),
    /// Panics before it returns a future.
    PanicImmediately(String),
    /// Answers, but panics in `mode`, which judging calls.
    PanicInMode,
    /// Answers `ok`, but judging blocks until a signal is received.
    JudgeAfterSignal(Arc<Mutex<Receiver<()>>>),
    /// Answers `ok` and sends a signal.
    Signal(Sender<()>),
}

impl Act {
    pub(crate) fn reply(response: &str) -> Self {
        Self::Answer(Box::new(Trace { response: response.to_owned(), ..Trace::default() }))
    }
}

/// Behaves by message, after a delay. Other messages are answered with `ok`.
#[derive(Debug, Default)]
pub(crate) struct FakeAgent {
    identity: String,
    stubbed: bool,
    behaviours: HashMap<String, (Duration, Act)>,
    /// Behaviour for repeated messages, by sample.
    samples: HashMap<(String, u32), (Duration, Act)>,
    log: Arc<Mutex<Log>>,
}

/// The calls that an agent received.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// Start times and messages, in order.
    pub(crate) started: Vec<(Instant, String)>,
    pub(crate) in_flight: usize,
    pub(crate) peak: usize,
}

impl FakeAgent {
    pub(crate) fn on(mut self, message: &str, millis: u64, act: Act) -> Self {
        self.behaviours.insert(message.to_owned(), (Duration::from_millis(millis), act));
        self
    }

    pub(crate) fn on_sample(mut self, message: &str, sample: u32, millis: u64, act: Act) -> Self {
        self.samples.insert((message.to_owned(), sample), (Duration::from_millis(millis), act));
        self
    }

    pub(crate) fn with_identity(self, identity: impl Into<String>) -> Self {
        Self { identity: identity.into(), ..self }
    }

    /// Uses stubs instead of real tools.
    pub(crate) fn stubbed(self) -> Self {
        Self { stubbed: true, ..self }
    }

    fn behaviour(&self, message: &str) -> (Duration, Act) {
        self.behaviours.get(message).cloned().unwrap_or_else(|| (Duration::ZERO, Act::reply("ok")))
    }
}

impl Agent for FakeAgent {
    fn identity(&self) -> String {
        self.identity.clone()
    }

    fn determinants(&self, case: &Case, turn: usize) -> serde_json::Map<String, serde_json::Value> {
        [("message".to_owned(), case.message(turn).into())].into_iter().collect()
    }

    fn mode(&self, case: &Case) -> Mode {
        match self.behaviour(case.message(0)).1 {
            Act::PanicInMode => panic!("no verdict on {}", case.id),
            Act::JudgeAfterSignal(signal) => signal.lock().unwrap().recv_timeout(Duration::from_secs(5)).unwrap(),
            _ => {}
        }
        if self.stubbed { Mode::Stubbed } else { Mode::Endpoint }
    }

    fn start<'a>(&'a self, trial: TrialContext<'a>) -> Box<dyn Conversation + 'a> {
        Box::new(FakeConversation { agent: self, trial })
    }
}

struct FakeConversation<'a> {
    agent: &'a FakeAgent,
    trial: TrialContext<'a>,
}

impl Conversation for FakeConversation<'_> {
    fn send<'s>(&'s mut self, message: &'s str) -> BoxFuture<'s, Result<Trace, AgentError>> {
        let started = Instant::now();
        let guard = InFlightGuard::new(&self.agent.log, message);
        let sample = self.agent.samples.get(&(message.to_owned(), self.trial.sample));
        let (delay, act) = sample.cloned().unwrap_or_else(|| self.agent.behaviour(message));
        if let Act::PanicImmediately(message) = act {
            drop(guard);
            panic!("{message}");
        }
        Box::pin(async move {
            let _guard = guard;
            if !delay.is_zero() {
                sleep(delay).await;
            }
            let latency_ms = started.elapsed().as_secs_f64() * 1000.0;
            match act {
                Act::Answer(trace) => Ok(Trace { latency_ms, ..*trace }),
                Act::Fail(message, elapsed) => Err(AgentError::new(message, elapsed)),
                Act::Refuse => Err(AgentError::unreachable("connection refused", Duration::ZERO, 1)),
                Act::Panic(message) | Act::PanicImmediately(message) => panic!("{message}"),
                Act::PanicInMode => Ok(Trace { latency_ms, ..Trace::default() }),
                Act::JudgeAfterSignal(_) => Ok(Trace { latency_ms, response: "ok".to_owned(), ..Trace::default() }),
                Act::Signal(sender) => {
                    sender.send(()).unwrap();
                    Ok(Trace { latency_ms, response: "ok".to_owned(), ..Trace::default() })
                }
            }
        })
    }
}

/// Counts a call as in flight until it completes or is dropped.
struct InFlightGuard(Arc<Mutex<Log>>);

impl InFlightGuard {
    fn new(log: &Arc<Mutex<Log>>, message: &str) -> Self {
        let mut calls = log.lock().unwrap();
        calls.started.push((Instant::now(), message.to_owned()));
        calls.in_flight += 1;
        calls.peak = calls.peak.max(calls.in_flight);
        Self(Arc::clone(log))
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.0.lock().unwrap().in_flight -= 1;
    }
}

/// A case that expects `ok` in the response.
pub(crate) fn case(id: &str, message: &str) -> Case {
    let expect = Expectation { response_contains: Some(vec!["ok".to_owned()]), ..Expectation::default() };
    Case {
        id: id.to_owned(),
        description: format!("about {id}"),
        difficulty: None,
        created_at: None,
        bug_ref: None,
        input: Some(Input { message: message.to_owned() }),
        turns: None,
        user: None,
        on_turn_failure: None,
        stubs: None,
        injections: None,
        max_turns: None,
        expect,
        safety: None,
        tags: Vec::new(),
        skip: None,
        location: CaseLocation { line: 1, ..CaseLocation::default() },
    }
}

/// Cases with the messages as ids.
pub(crate) fn cases(messages: &[&str]) -> Vec<Case> {
    messages.iter().map(|message| case(message, message)).collect()
}

pub(crate) fn suite(tool: &str, cases: Vec<Case>) -> SuitePlan {
    SuitePlan {
        agent: 0,
        path: format!("./evals/{tool}.golden.json"),
        project_path: format!("evals/{tool}.golden.json"),
        file: EvalFile {
            metadata: None,
            tier: Tier::Golden,
            tool_name: tool.to_owned(),
            hash: "0123456789ab".to_owned(),
            cases,
        },
        skipped: Vec::new(),
        all_selected: Vec::new(),
        current: CurrentTool::default(),
        baseline: None,
    }
}

/// Runs one case at a time, with a timeout of one second.
pub(crate) fn plan(suites: Vec<SuitePlan>) -> Plan {
    Plan {
        run_id: "run-1".to_owned(),
        suites,
        rubrics: Rubrics::default(),
        simulated_users: BTreeMap::new(),
        shard: None,
        concurrency: 1,
        timeout: Duration::from_secs(1),
        trials: 1,
        strictness: Strictness::default(),
        fail_fast: false,
        gates: None,
        baseline_missing: MissingCases::default(),
        tokens: TokenSources::default(),
        registry: None,
        tokenizer: Tokenizer::default(),
        functions: None,
        state_sources: None,
        hooks: None,
        redactor: Redactor::default(),
    }
}

/// The events and totals of a run.
pub(crate) struct FinishedRun {
    pub(crate) events: Vec<RunEvent>,
    pub(crate) totals: RunTotals,
    pub(crate) errors: Vec<ReportError>,
    pub(crate) log: Log,
}

/// Runs a plan to completion.
pub(crate) async fn run_plan(plan: Plan, agent: FakeAgent) -> FinishedRun {
    run_with(plan, agent, None, Vec::new()).await
}

/// Runs a plan and cancels it after some milliseconds.
pub(crate) async fn run_until(millis: u64, plan: Plan, agent: FakeAgent) -> FinishedRun {
    run_with(plan, agent, Some(Duration::from_millis(millis)), Vec::new()).await
}

/// Runs a plan with a recorder after other reporters, and checks the invariants of every run.
pub(crate) async fn run_with(
    plan: Plan,
    agent: FakeAgent,
    cancel_after: Option<Duration>,
    others: Vec<Box<dyn Reporter>>,
) -> FinishedRun {
    let cancel = CancellationToken::new();
    if let Some(after) = cancel_after {
        let cancel = cancel.clone();
        if after.is_zero() {
            cancel.cancel();
        }
        tokio::spawn(async move {
            sleep(after).await;
            cancel.cancel();
        });
    }
    let mut reporters = Reporters::default();
    for other in others {
        reporters.add(other);
    }
    let recorder = Recorder::default();
    let events = Arc::clone(&recorder.0);
    reporters.add(Box::new(recorder));
    let selected = plan.suites.iter().map(|suite| suite.file.cases.len()).collect::<Vec<_>>();
    let log = Arc::clone(&agent.log);
    let totals = run(plan, vec![Arc::new(agent)], &FixedClock::default(), &cancel, &mut reporters).await;
    let log = std::mem::take(&mut *log.lock().unwrap());
    let finished = FinishedRun {
        events: std::mem::take(&mut *events.lock().unwrap()),
        totals,
        errors: reporters.into_errors(),
        log,
    };
    finished.check(&selected);
    finished
}

#[derive(Default)]
struct Recorder(Arc<Mutex<Vec<RunEvent>>>);

impl Reporter for Recorder {
    fn on_event(&mut self, event: &RunEvent) -> Result<(), ReportError> {
        self.0.lock().unwrap().push(event.clone());
        Ok(())
    }
}

impl FinishedRun {
    pub(crate) fn suites(&self) -> Vec<&SuiteResult> {
        let mut results = Vec::new();
        for event in &self.events {
            if let RunEvent::SuiteFinished { result, .. } = event {
                results.push(result.as_ref());
            }
        }
        results
    }

    /// Returns the result of the only suite.
    pub(crate) fn suite(&self) -> &SuiteResult {
        let [suite] = self.suites()[..] else { panic!("expected one suite, found {}", self.totals.suites) };
        suite
    }

    /// Returns a case's result by its id.
    pub(crate) fn case(&self, id: &str) -> &CaseResult {
        self.suites().into_iter().flat_map(|suite| &suite.cases).find(|case| case.id == id).unwrap()
    }

    /// Returns the ids of the cases, in order of completion.
    pub(crate) fn completed(&self) -> Vec<&str> {
        let mut ids = Vec::new();
        for event in &self.events {
            if let RunEvent::CaseFinished { result, .. } = event {
                ids.push(result.id.as_str());
            }
        }
        ids
    }

    /// Returns the messages that the agent received, in order.
    pub(crate) fn started(&self) -> Vec<String> {
        self.log.started.iter().map(|(_, message)| message.clone()).collect()
    }

    /// Returns a label for each event: `run`, the id of a case, `suite N`, `end`.
    pub(crate) fn event_labels(&self) -> Vec<String> {
        let label = |event: &RunEvent| match event {
            RunEvent::RunStarted { .. } => "run".to_owned(),
            RunEvent::CaseFinished { result, .. } => result.id.clone(),
            RunEvent::SuiteFinished { suite, .. } => format!("suite {suite}"),
            RunEvent::RubricFinished { suite } => format!("rubric {}", suite.tool_name),
            RunEvent::RunFinished { .. } => "end".to_owned(),
        };
        self.events.iter().map(label).collect()
    }

    /// Checks the invariants that every reporter may rely on.
    fn check(&self, selected: &[usize]) {
        let [RunEvent::RunStarted { run_id, suites, total_cases }, between @ .., last] = &self.events[..] else {
            panic!("the first event is not RunStarted: {:?}", self.event_labels());
        };
        let RunEvent::RunFinished { run_id: last_run_id, totals } = last else {
            panic!("the last event is not RunFinished: {:?}", self.event_labels());
        };
        assert_eq!(run_id, last_run_id);
        assert_eq!(totals, &self.totals);
        assert_eq!(*total_cases, selected.iter().sum::<usize>());
        assert_eq!(suites.iter().map(|header| header.selected).collect::<Vec<_>>(), selected);

        let mut seen: Vec<Vec<Option<Arc<CaseResult>>>> = selected.iter().map(|count| vec![None; *count]).collect();
        let mut sums = RunTotals::default();
        for event in between {
            match event {
                RunEvent::CaseFinished { suite, index, result } => {
                    assert!(*suite >= sums.suites, "{} finished after its suite", result.id);
                    let previous = seen[*suite][*index].replace(Arc::clone(result));
                    assert!(previous.is_none(), "{} finished twice", result.id);
                }
                RunEvent::SuiteFinished { suite, result } => {
                    assert_eq!(*suite, sums.suites, "suites finish in order");
                    let cases: Vec<_> = seen[*suite].iter().flatten().cloned().collect();
                    assert_eq!(result.cases, cases, "a suite contains its finished cases, in the order of the file");
                    assert_eq!(result.summary.total_cases + result.summary.not_run, selected[*suite]);
                    assert_eq!(&result.run_id, run_id);
                    sums.add(result);
                }
                RunEvent::RubricFinished { suite } => {
                    assert_eq!(sums.suites, selected.len(), "rubrics finish after all suites");
                    sums.rubric.get_or_insert_default().add(suite);
                }
                RunEvent::RunStarted { .. } | RunEvent::RunFinished { .. } => {
                    panic!("duplicate event: {:?}", self.event_labels())
                }
            }
        }
        assert_eq!(sums.suites, selected.len(), "every suite is reported");
        sums.wall_clock_ms = totals.wall_clock_ms;
        sums.interrupted = totals.interrupted;
        sums.gates.clone_from(&totals.gates);
        sums.unreachable.clone_from(&totals.unreachable);
        assert_eq!(totals, &sums);
        assert_eq!(totals.passed + totals.failed, totals.cases);
        assert_eq!(self.log.in_flight, 0, "no call is in flight");
    }
}
