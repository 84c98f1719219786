//! A trace of the store in which something went wrong, as the template of a regression case.

use karat_core::document::UnreadableTrace;
use karat_core::port::TraceStore;
use karat_core::rating::Rating;
use karat_core::stored::TraceFilter;
use karat_evals::feedback::Feedback;
use karat_evals::port::FeedbackStore;
use karat_forge::{TraceTurn, personal_data, trace_turns};
use karat_json::text::shorten;
use karat_store::Store;

use super::template::Template;
use crate::context::Context;
use crate::error::Error;
use crate::hint::Hint;
use crate::trace_id::resolve_trace_id;

/// How much of an answer a description quotes.
const MAX_ANSWER_CHARS: usize = 80;

/// How many tools of other turns are named.
const MAX_NAMED_TOOLS: usize = 8;

struct SourceTrace {
    id: String,
    turns: Vec<TraceTurn>,
    rating: Option<Rating>,
    feedback: Vec<Feedback>,
}

/// Takes a message of a trace, and describes what went wrong.
pub(super) async fn from_trace(
    named: &str,
    step: Option<usize>,
    tool: Option<&str>,
    context: &Context<'_>,
) -> Result<Template, Error> {
    let trace = context.read_store(async |store| read(named, store).await).await?;
    let turn = trace.turn(step)?;
    let notices = context.notices;
    if trace.rating == Some(Rating::Positive) {
        notices.warn(&format!("people find the trace {} positive: does it show a bug?", trace.id));
    }
    let others = trace.turns.len() - 1;
    if turn.leans {
        notices
            .warn("the message leans on what was said before, and a case sends one message: reword it with --message");
    } else if others > 0 {
        let messages = if others == 1 { "1 further message".to_owned() } else { format!("{others} further messages") };
        notices
            .warn(&format!("the user sent {messages}, and a case sends one: the first is taken; --step takes another"));
    }
    if let Some(what) = personal_data(&turn.message) {
        notices.warn(&format!(
            "the message is a real one and holds {what}: replace it with --message unless it may be kept"
        ));
    }
    let tool = match tool {
        Some(tool) => tool.to_owned(),
        None => trace.only_tool(turn)?,
    };
    let is_first = trace.turns.first() == Some(turn);
    let place = if is_first { String::new() } else { format!(" step {}", turn.steps.start()) };
    Ok(Template {
        tool,
        message: turn.message.clone(),
        description: Some(trace.description(turn)),
        trace_ref: Some(format!("trace {}{place}", trace.id)),
        ..Template::default()
    })
}

async fn read(named: &str, store: &Store) -> Result<SourceTrace, Error> {
    let id = resolve_trace_id(store, named).await?;
    let gone = || Error::conflict(format!("the trace '{id}' is not in the store any more"));
    let stored = store.trace(&id).await?.ok_or_else(gone)?;
    let filter = TraceFilter { ids: vec![id.clone()], ..TraceFilter::default() };
    let listed = store.list_traces(&filter).await?;
    let feedback = store.feedback_of(&id).await?;
    let unusable =
        |why: UnreadableTrace| Error::invalid(format!("no case can be made of the trace {id}: {}", why.source));
    let turns = trace_turns(&stored.document().map_err(unusable)?);
    Ok(SourceTrace { id, turns, rating: listed.first().and_then(|listed| listed.rating), feedback })
}

impl SourceTrace {
    fn turn(&self, step: Option<usize>) -> Result<&TraceTurn, Error> {
        let found = match step {
            None => self.turns.first(),
            Some(step) => self.turns.iter().find(|turn| turn.steps.contains(&step)),
        };
        found.ok_or_else(|| match (step, self.turns.last()) {
            (Some(step), Some(last)) => {
                let first = self.turns.first().map_or(1, |turn| *turn.steps.start());
                Error::invalid(format!("step {step} of the trace {} is in no user's turn", self.id))
                    .hint(format!("users' turns are the steps {first} to {}", last.steps.end()))
            }
            _ => Error::invalid(format!("the trace {} holds no message of a user", self.id))
                .hint("give TOOL and --message instead of --from-trace"),
        })
    }

    /// Describes what went wrong: a person's note, else what failed, else what was done. Leaves personal data out.
    fn description(&self, turn: &TraceTurn) -> String {
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
                answer => format!("{called}, and answered: {}", shorten(&answer, MAX_ANSWER_CHARS)),
            }
        })
    }

    /// Returns the tool that a turn called, if it is the only one.
    fn only_tool(&self, turn: &TraceTurn) -> Result<String, Error> {
        let mut tools = turn.tools.clone();
        tools.sort();
        tools.dedup();
        match tools.as_slice() {
            [only] => Ok(only.clone()),
            [] => {
                let (first, last) = (turn.steps.start(), turn.steps.end());
                let steps = if first == last { format!("step {first}") } else { format!("steps {first} to {last}") };
                let error = Error::invalid(format!(
                    "no tool was called in the turn of this message ({steps}), so the tool under test is not known"
                ));
                let error = match self.called_elsewhere() {
                    Some(called) => error.hint(called),
                    None => error,
                };
                Err(error.hint(Hint::NameToolUnderTest { tool: None, trace: self.id.clone() }))
            }
            several => Err(Error::invalid(format!("several tools were called: {}", several.join(", ")))
                .hint(Hint::NameToolUnderTest { tool: Some(several[0].clone()), trace: self.id.clone() })),
        }
    }

    /// Lists the tools that the trace calls, each with the first turn that does: another message may be meant.
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
            called.iter().take(MAX_NAMED_TOOLS).map(|(tool, step)| format!("{tool} (--step {step})")).collect();
        let more = match called.len().saturating_sub(MAX_NAMED_TOOLS) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        (!shown.is_empty()).then(|| format!("other turns call {}{more}", shown.join(", ")))
    }
}
