//! An agent that behaves as a test says, plans for it, and what came of a run.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use karat_core::assertion::{Mode, Strictness};
use karat_core::case::{Case, EvalFile, Expectation, Input, Tier};
use karat_core::event::{ReportError, Reporter};
use karat_core::event::{RunEvent, RunTotals};
use karat_core::port::{Agent, AgentError, Ask, Pending};
use karat_core::redact::Redactor;
use karat_core::result::{CaseResult, SuiteResult};
use karat_core::staleness::CurrentTool;
use karat_core::token::TokenSources;
use karat_core::tokenizer::Tokenizer;
use karat_core::trace::Trace;
use karat_runner::{Plan, Reporters, Rubrics, SuitePlan, run};
use karat_testkit::clock::FixedClock;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// What a case's agent does.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    Answer(Box<Trace>),
    /// Says this, and that it took so long.
    Break(String, Duration),
    /// Panics while answering.
    Panic(String),
    /// Panics before there is anything to wait for.
    PanicAtOnce(String),
    /// Answers, but panics when it is asked how the answer came about, on which the verdict depends.
    PanicAtMode,
    /// Answers `ok`, but the verdict cannot be reached before somebody has told something.
    JudgedAfter(Arc<Mutex<Receiver<()>>>),
    /// Answers `ok` and tells so.
    Tell(Sender<()>),
}

impl Act {
    pub(crate) fn say(response: &str) -> Self {
        Self::Answer(Box::new(Trace { response: response.to_owned(), ..Trace::default() }))
    }
}

/// Answers by message: after a while, in one of many ways. A message that nobody told it about is answered `ok`.
#[derive(Debug, Default)]
pub(crate) struct FakeAgent {
    identity: String,
    stubbed: bool,
    behaviours: HashMap<String, (Duration, Act)>,
    /// What it does when it is asked once more.
    samples: HashMap<(String, u32), (Duration, Act)>,
    log: Arc<Mutex<Log>>,
}

/// What an agent saw.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// When it was asked what, in this order.
    pub(crate) begun: Vec<(Instant, String)>,
    pub(crate) under_way: usize,
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

    pub(crate) fn called(self, identity: impl Into<String>) -> Self {
        Self { identity: identity.into(), ..self }
    }

    /// Does not run its own tools.
    pub(crate) fn stubbed(self) -> Self {
        Self { stubbed: true, ..self }
    }

    fn behaviour(&self, case: &Case) -> (Duration, Act) {
        self.behaviours.get(&case.input.message).cloned().unwrap_or_else(|| (Duration::ZERO, Act::say("ok")))
    }
}

impl Agent for FakeAgent {
    fn identity(&self) -> String {
        self.identity.clone()
    }

    fn determinants(&self, case: &Case) -> serde_json::Map<String, serde_json::Value> {
        [("message".to_owned(), case.input.message.as_str().into())].into_iter().collect()
    }

    fn mode(&self, case: &Case) -> Mode {
        match self.behaviour(case).1 {
            Act::PanicAtMode => panic!("no verdict on {}", case.id),
            Act::JudgedAfter(told) => told.lock().unwrap().recv_timeout(Duration::from_secs(5)).unwrap(),
            _ => {}
        }
        if self.stubbed { Mode::Stubbed } else { Mode::Endpoint }
    }

    fn answer<'a>(&'a self, ask: Ask<'a>) -> Pending<'a, Result<Trace, AgentError>> {
        let started = Instant::now();
        let presence = Presence::begin(&self.log, ask.case);
        let sample = self.samples.get(&(ask.case.input.message.clone(), ask.sample));
        let (delay, act) = sample.cloned().unwrap_or_else(|| self.behaviour(ask.case));
        if let Act::PanicAtOnce(what) = act {
            drop(presence);
            panic!("{what}");
        }
        Box::pin(async move {
            let _presence = presence;
            if !delay.is_zero() {
                sleep(delay).await;
            }
            let latency_ms = started.elapsed().as_secs_f64() * 1000.0;
            match act {
                Act::Answer(trace) => Ok(Trace { latency_ms, ..*trace }),
                Act::Break(message, elapsed) => Err(AgentError::new(message, elapsed)),
                Act::Panic(what) | Act::PanicAtOnce(what) => panic!("{what}"),
                Act::PanicAtMode => Ok(Trace { latency_ms, ..Trace::default() }),
                Act::JudgedAfter(_) => Ok(Trace { latency_ms, response: "ok".to_owned(), ..Trace::default() }),
                Act::Tell(told) => {
                    told.send(()).unwrap();
                    Ok(Trace { latency_ms, response: "ok".to_owned(), ..Trace::default() })
                }
            }
        })
    }
}

/// Counts an answer as under way until it is given or given up.
struct Presence(Arc<Mutex<Log>>);

impl Presence {
    fn begin(log: &Arc<Mutex<Log>>, case: &Case) -> Self {
        let mut seen = log.lock().unwrap();
        seen.begun.push((Instant::now(), case.input.message.clone()));
        seen.under_way += 1;
        seen.peak = seen.peak.max(seen.under_way);
        Self(Arc::clone(log))
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.0.lock().unwrap().under_way -= 1;
    }
}

/// A case that wants `ok` in the response.
pub(crate) fn case(id: &str, message: &str) -> Case {
    let expect = Expectation { response_contains: Some(vec!["ok".to_owned()]), ..Expectation::default() };
    Case {
        id: id.to_owned(),
        description: format!("about {id}"),
        difficulty: None,
        created_at: None,
        bug_ref: None,
        input: Input { message: message.to_owned() },
        stubs: None,
        max_turns: None,
        expect,
        line: 1,
    }
}

/// Cases whose ids and messages are the same.
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
        current: CurrentTool::default(),
        baseline: None,
    }
}

/// One case at a time, a second for each.
pub(crate) fn plan(suites: Vec<SuitePlan>) -> Plan {
    Plan {
        run_id: "run-1".to_owned(),
        suites,
        rubrics: Rubrics::default(),
        concurrency: 1,
        timeout: Duration::from_secs(1),
        trials: 1,
        strictness: Strictness::default(),
        fail_fast: false,
        gates: None,
        tokens: TokenSources::default(),
        registry: None,
        tokenizer: Tokenizer::default(),
        functions: None,
        redactor: Redactor::default(),
    }
}

/// What came of a run.
pub(crate) struct Ran {
    pub(crate) events: Vec<RunEvent>,
    pub(crate) totals: RunTotals,
    pub(crate) errors: Vec<ReportError>,
    pub(crate) log: Log,
}

/// Runs a plan to its end.
pub(crate) async fn play(plan: Plan, agent: FakeAgent) -> Ran {
    play_with(plan, agent, None, Vec::new()).await
}

/// Runs a plan that is cancelled after a while.
pub(crate) async fn play_until(millis: u64, plan: Plan, agent: FakeAgent) -> Ran {
    play_with(plan, agent, Some(Duration::from_millis(millis)), Vec::new()).await
}

/// Runs a plan with a recorder behind other reporters, and holds what came to the laws of every run.
pub(crate) async fn play_with(
    plan: Plan,
    agent: FakeAgent,
    cancel_after: Option<Duration>,
    others: Vec<Box<dyn Reporter>>,
) -> Ran {
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
    let ran =
        Ran { events: std::mem::take(&mut *events.lock().unwrap()), totals, errors: reporters.into_errors(), log };
    ran.check(&selected);
    ran
}

#[derive(Default)]
struct Recorder(Arc<Mutex<Vec<RunEvent>>>);

impl Reporter for Recorder {
    fn on_event(&mut self, event: &RunEvent) -> Result<(), ReportError> {
        self.0.lock().unwrap().push(event.clone());
        Ok(())
    }
}

impl Ran {
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
        let [suite] = self.suites()[..] else { panic!("not one suite, but {}", self.totals.suites) };
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

    /// Returns the messages that the agent got, in order.
    pub(crate) fn begun(&self) -> Vec<String> {
        self.log.begun.iter().map(|(_, message)| message.clone()).collect()
    }

    /// Returns what each event is about: `run`, the case's id, `suite N`, `end`.
    pub(crate) fn story(&self) -> Vec<String> {
        let word = |event: &RunEvent| match event {
            RunEvent::RunStarted { .. } => "run".to_owned(),
            RunEvent::CaseFinished { result, .. } => result.id.clone(),
            RunEvent::SuiteFinished { suite, .. } => format!("suite {suite}"),
            RunEvent::RubricFinished { suite } => format!("rubric {}", suite.tool_name),
            RunEvent::RunFinished { .. } => "end".to_owned(),
        };
        self.events.iter().map(word).collect()
    }

    /// Holds the events to what every reporter may rely on, whatever happened.
    fn check(&self, selected: &[usize]) {
        let [RunEvent::RunStarted { run_id, suites, total_cases }, between @ .., last] = &self.events[..] else {
            panic!("the run does not begin with its start: {:?}", self.story());
        };
        let RunEvent::RunFinished { run_id: ended, totals } = last else {
            panic!("the run does not end with its end: {:?}", self.story());
        };
        assert_eq!(run_id, ended);
        assert_eq!(totals, &self.totals);
        assert_eq!(*total_cases, selected.iter().sum::<usize>());
        assert_eq!(suites.iter().map(|header| header.selected).collect::<Vec<_>>(), selected);

        let mut seen: Vec<Vec<Option<Arc<CaseResult>>>> = selected.iter().map(|count| vec![None; *count]).collect();
        let mut sums = RunTotals::default();
        for event in between {
            match event {
                RunEvent::CaseFinished { suite, index, result } => {
                    assert!(*suite >= sums.suites, "{} came after its suite", result.id);
                    let before = seen[*suite][*index].replace(Arc::clone(result));
                    assert!(before.is_none(), "{} came twice", result.id);
                }
                RunEvent::SuiteFinished { suite, result } => {
                    assert_eq!(*suite, sums.suites, "suites come in order");
                    let cases: Vec<_> = seen[*suite].iter().flatten().cloned().collect();
                    assert_eq!(result.cases, cases, "a suite holds what was told of it, in the file's order");
                    assert_eq!(result.summary.total_cases + result.summary.not_run, selected[*suite]);
                    assert_eq!(&result.run_id, run_id);
                    sums.add(result);
                }
                RunEvent::RubricFinished { suite } => {
                    assert_eq!(sums.suites, selected.len(), "only when all suites have ended");
                    sums.rubric.get_or_insert_default().add(suite);
                }
                RunEvent::RunStarted { .. } | RunEvent::RunFinished { .. } => panic!("twice: {:?}", self.story()),
            }
        }
        assert_eq!(sums.suites, selected.len(), "every suite is told of");
        sums.wall_clock_ms = totals.wall_clock_ms;
        sums.interrupted = totals.interrupted;
        sums.gates.clone_from(&totals.gates);
        assert_eq!(totals, &sums);
        assert_eq!(totals.passed + totals.failed, totals.cases);
        assert_eq!(self.log.under_way, 0, "nobody is asked any more");
    }
}
