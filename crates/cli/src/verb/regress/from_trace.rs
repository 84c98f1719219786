//! A trace of the store in which something went wrong, as the beginning of a regression case.

use karat_core::feedback::{Feedback, Rating};
use karat_core::port::{FeedbackStore, TraceStore};
use karat_core::stored::TraceFilter;
use karat_forge::{TraceTurn, personal_data, trace_turns};
use karat_json::text::shorten;
use karat_store::Store;
use serde_json::{Map, Value};

use super::basis::Basis;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::store::{open_store_to_read, with_store};
use karat_workflows::settings::Settings;
use karat_workflows::trace_id::resolve_trace_id;

/// How much of an answer is told in a description.
const LONGEST_ANSWER: usize = 80;

/// How many tools of other turns are named.
const MOST_TOOLS: usize = 8;

/// What is known of the trace.
struct Read {
    id: String,
    turns: Vec<TraceTurn>,
    rating: Option<Rating>,
    feedback: Vec<Feedback>,
}

impl Basis {
    /// Takes a message of a trace, and notes what came of it.
    pub(super) async fn of_trace(
        named: &str,
        step: Option<usize>,
        tool: Option<&str>,
        settings: &Settings,
        printer: &Printer,
    ) -> Result<Self, Failure> {
        let trace = with_store(open_store_to_read(settings), async |store| read(named, store).await).await?;
        let turn = trace.turn(step)?;
        if trace.rating == Some(Rating::Positive) {
            printer.warn(&format!("people find the trace {} positive: does it show a bug?", trace.id));
        }
        let others = trace.turns.len() - 1;
        if turn.leans {
            printer.warn(
                "the message leans on what was said before, and a case sends one message: reword it with --message",
            );
        } else if others > 0 {
            let messages =
                if others == 1 { "1 further message".to_owned() } else { format!("{others} further messages") };
            printer.warn(&format!(
                "the user sent {messages}, and a case sends one: the first is taken; --step takes another"
            ));
        }
        if let Some(what) = personal_data(&turn.message) {
            printer.warn(&format!(
                "the message is a real one and holds {what}: replace it with --message unless it may be kept"
            ));
        }
        let tool = match tool {
            Some(tool) => tool.to_owned(),
            None => trace.only_tool(turn)?,
        };
        let is_first = trace.turns.first() == Some(turn);
        let place = if is_first { String::new() } else { format!(" step {}", turn.steps.start()) };
        Ok(Self {
            tool,
            message: turn.message.clone(),
            expect: Map::new(),
            stubs: None,
            max_turns: None,
            said: Some(trace.went_wrong(turn)),
            trace: Some(format!("trace {}{place}", trace.id)),
        })
    }
}

async fn read(named: &str, store: &Store) -> Result<Read, Failure> {
    let id = resolve_trace_id(store, named).await?;
    let gone = || Failure::errored(format!("the trace '{id}' is not in the store any more"));
    let stored = store.trace(&id).await?.ok_or_else(gone)?;
    let filter = TraceFilter { ids: vec![id.clone()], ..TraceFilter::default() };
    let listed = store.list_traces(&filter).await?;
    let feedback = store.feedback_of(&id).await?;
    let document: Value = serde_json::from_str(&stored.document).unwrap_or_default();
    let turns = trace_turns(&document)
        .map_err(|why| Failure::invalid(format!("no case can be made of the trace {id}: {why}")))?;
    Ok(Read { id, turns, rating: listed.first().and_then(|listed| listed.rating), feedback })
}

impl Read {
    fn turn(&self, step: Option<usize>) -> Result<&TraceTurn, Failure> {
        let found = match step {
            None => self.turns.first(),
            Some(step) => self.turns.iter().find(|turn| turn.steps.contains(&step)),
        };
        found.ok_or_else(|| match (step, self.turns.last()) {
            (Some(step), Some(last)) => {
                let first = self.turns.first().map_or(1, |turn| *turn.steps.start());
                Failure::invalid(format!("step {step} of the trace {} is in no user's turn", self.id))
                    .hint(format!("users' turns are the steps {first} to {}", last.steps.end()))
            }
            _ => Failure::invalid(format!("the trace {} holds no message of a user", self.id))
                .hint("give TOOL and --message instead of --from-trace"),
        })
    }

    /// Says what went wrong: as a person noted it, else what failed, else what was done. What nobody else should read is
    /// left out.
    fn went_wrong(&self, turn: &TraceTurn) -> String {
        let mut newest: Vec<&Feedback> = self.feedback.iter().collect();
        newest.sort_by_key(|feedback| std::cmp::Reverse(feedback.created_at));
        let notes = newest.into_iter().filter(|feedback| feedback.rating == Some(Rating::Negative));
        let note = notes.filter_map(|feedback| feedback.note.as_deref()).find(|note| !note.trim().is_empty());
        let is_fine = |text: &String| personal_data(text).is_none();
        let told = note.map(str::to_owned).filter(is_fine).or_else(|| turn.error.clone().filter(is_fine));
        told.unwrap_or_else(|| {
            let called = if turn.tools.is_empty() {
                "called no tool".to_owned()
            } else {
                format!("called {}", turn.tools.join(", "))
            };
            let answer = turn.response.split_whitespace().collect::<Vec<_>>().join(" ");
            match answer {
                answer if answer.is_empty() => format!("{called}, and did not answer"),
                answer if !is_fine(&answer) => called,
                answer => format!("{called}, and answered: {}", shorten(&answer, LONGEST_ANSWER)),
            }
        })
    }

    /// Returns the tool that a turn called, which is the one under test where it is the only one.
    fn only_tool(&self, turn: &TraceTurn) -> Result<String, Failure> {
        let id = &self.id;
        let mut tools = turn.tools.clone();
        tools.sort();
        tools.dedup();
        match tools.as_slice() {
            [only] => Ok(only.clone()),
            [] => {
                let (first, last) = (turn.steps.start(), turn.steps.end());
                let steps = if first == last { format!("step {first}") } else { format!("steps {first} to {last}") };
                let failure = Failure::invalid(format!(
                    "no tool was called in the turn of this message ({steps}), so the tool under test is not known"
                ));
                let failure = match self.called_elsewhere() {
                    Some(called) => failure.hint(called),
                    None => failure,
                };
                Err(failure.hint(format!("name it: karat regress add TOOL --from-trace {id}")))
            }
            several => Err(Failure::invalid(format!("several tools were called: {}", several.join(", ")))
                .hint(format!("name the one under test: karat regress add {} --from-trace {id}", several[0]))),
        }
    }

    /// Says which tools the trace calls, each with the first turn that does: the message meant may be another one.
    fn called_elsewhere(&self) -> Option<String> {
        let mut called: Vec<(&str, usize)> = Vec::new();
        for turn in &self.turns {
            for tool in &turn.tools {
                if called.iter().all(|(known, _)| *known != tool.as_str()) {
                    called.push((tool.as_str(), *turn.steps.start()));
                }
            }
        }
        let shown: Vec<String> =
            called.iter().take(MOST_TOOLS).map(|(tool, step)| format!("{tool} (--step {step})")).collect();
        let more = match called.len().saturating_sub(MOST_TOOLS) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        (!shown.is_empty()).then(|| format!("other turns call {}{more}", shown.join(", ")))
    }
}
