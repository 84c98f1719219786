//! Creates the template of a regression case from a stored trace.

use karat_core::document::UnreadableTrace;
use karat_core::port::TraceStore;
use karat_core::rating::Rating;
use karat_core::stored::TraceFilter;
use karat_evals::feedback::Feedback;
use karat_evals::port::FeedbackStore;
use karat_forge::{TraceTurn, find_personal_data, trace_turns};
use karat_json::text::shorten;
use karat_store::Store;
use serde_json::json;

use super::template::Template;
use crate::context::Context;
use crate::error::Error;
use crate::hint::Hint;
use crate::trace_id::resolve_trace_id;

/// Maximum length of a quoted answer.
const MAX_ANSWER_CHARS: usize = 80;

/// Maximum number of tools in a hint.
const MAX_LISTED_TOOLS: usize = 8;

struct SourceTrace {
    id: String,
    turns: Vec<TraceTurn>,
    rating: Option<Rating>,
    feedback: Vec<Feedback>,
}

/// Uses the messages of a trace and describes what went wrong. `trace` is an id or a prefix.
///
/// Several messages make a conversation that ends with the turn of `step`, unless `message` replaces them.
pub(super) async fn from_trace(
    trace: &str,
    step: Option<usize>,
    tool: Option<&str>,
    message: Option<&str>,
    context: &Context<'_>,
) -> Result<Template, Error> {
    let trace = context.read_store(async |store| read(trace, store).await).await?;
    let turns = trace.turns_up_to(step)?;
    let turn = &joined(turns);
    let notices = context.notices;
    if trace.rating == Some(Rating::Positive) {
        notices.warn(&format!("trace {} is rated good: does it show a bug?", trace.id));
    }
    if message.is_none() {
        if turn.has_history {
            notices
                .warn("the first message may depend on earlier ones that the trace lacks: replace it with --message");
        }
        if let Some(data) = find_personal_data(&turn.message) {
            let subject = if turns.len() > 1 { "a message" } else { "the message" };
            notices.warn(&format!(
                "{subject} has personal data ({data}): replace it with --message unless it may be stored"
            ));
        }
    }
    let tool = match tool {
        Some(tool) => tool.to_owned(),
        None => trace.only_tool(turn)?,
    };
    let last = turns.last().filter(|_| turns.len() < trace.turns.len());
    let step = last.map_or_else(String::new, |last| format!(" step {}", last.steps.start()));
    let is_conversation = turns.len() > 1 && message.is_none();
    let messages = || turns.iter().map(|turn| json!({"message": turn.message})).collect();
    Ok(Template {
        tool,
        message: if is_conversation {
            String::new()
        } else {
            turns.first().map_or_else(String::new, |turn| turn.message.clone())
        },
        turns: is_conversation.then(messages),
        description: Some(trace.description(turn)),
        trace_ref: Some(format!("trace {}{step}", trace.id)),
        ..Template::default()
    })
}

/// Returns several turns as one: all messages and calls, the last answer and the first error.
fn joined(turns: &[TraceTurn]) -> TraceTurn {
    let texts: Vec<&str> = turns.iter().map(|turn| turn.message.as_str()).collect();
    let (first, last) = (turns.first(), turns.last());
    TraceTurn {
        steps: first.map_or(1, |turn| *turn.steps.start())..=last.map_or(1, |turn| *turn.steps.end()),
        message: texts.join("\n"),
        has_history: first.is_some_and(|turn| turn.has_history),
        tools: turns.iter().flat_map(|turn| turn.tools.iter().cloned()).collect(),
        response: last.map(|turn| turn.response.clone()).unwrap_or_default(),
        error: turns.iter().find_map(|turn| turn.error.clone()),
    }
}

async fn read(trace: &str, store: &Store) -> Result<SourceTrace, Error> {
    let id = resolve_trace_id(store, trace).await?;
    let removed = || Error::conflict(format!("trace '{id}' is no longer in the store"));
    let stored = store.trace(&id).await?.ok_or_else(removed)?;
    let filter = TraceFilter { ids: vec![id.clone()], ..TraceFilter::default() };
    let traces = store.list_traces(&filter).await?;
    let feedback = store.feedback_of(&id).await?;
    let unusable =
        |error: UnreadableTrace| Error::invalid(format!("cannot create a case from trace {id}: {}", error.source));
    let turns = trace_turns(&stored.document().map_err(unusable)?);
    Ok(SourceTrace { id, turns, rating: traces.first().and_then(|trace| trace.rating), feedback })
}

impl SourceTrace {
    /// Returns the turns up to that of a step; all of them without a step.
    fn turns_up_to(&self, step: Option<usize>) -> Result<&[TraceTurn], Error> {
        let last = match step {
            None => self.turns.len().checked_sub(1),
            Some(step) => self.turns.iter().position(|turn| turn.steps.contains(&step)),
        };
        last.map(|last| &self.turns[..=last]).ok_or_else(|| match (step, self.turns.last()) {
            (Some(step), Some(last)) => {
                let first = self.turns.first().map_or(1, |turn| *turn.steps.start());
                Error::invalid(format!("step {step} of trace {} does not belong to a user's turn", self.id))
                    .hint(format!("the user's turns are steps {first} to {}", last.steps.end()))
            }
            _ => Error::invalid(format!("trace {} has no user message", self.id))
                .hint("pass TOOL and --message instead of --from-trace"),
        })
    }

    /// Describes what went wrong: a person's note, else the error, else the calls and the answer. Omits personal data.
    fn description(&self, turn: &TraceTurn) -> String {
        let mut newest: Vec<&Feedback> = self.feedback.iter().collect();
        newest.sort_by_key(|feedback| std::cmp::Reverse(feedback.created_at));
        let notes = newest.into_iter().filter(|feedback| feedback.rating == Some(Rating::Negative));
        let note = notes.filter_map(|feedback| feedback.note.as_deref()).find(|note| !note.trim().is_empty());
        let is_allowed = |text: &String| find_personal_data(text).is_none();
        let problem = note.map(str::to_owned).filter(is_allowed).or_else(|| turn.error.clone().filter(is_allowed));
        problem.unwrap_or_else(|| {
            let called = if turn.tools.is_empty() {
                "called no tool".to_owned()
            } else {
                format!("called {}", turn.tools.join(", "))
            };
            let answer = turn.response.split_whitespace().collect::<Vec<_>>().join(" ");
            match answer {
                answer if answer.is_empty() => format!("{called}, and did not answer"),
                answer if !is_allowed(&answer) => called,
                answer => format!("{called}, and answered: {}", shorten(&answer, MAX_ANSWER_CHARS)),
            }
        })
    }

    /// Returns the only tool that a turn called; an error if there is not exactly one.
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
                    "cannot determine the tool under test: no tool was called in the turns of the case ({steps})"
                ));
                let error = match self.other_tools_hint() {
                    Some(called) => error.hint(called),
                    None => error,
                };
                Err(error.hint(Hint::NameToolUnderTest { tool: None, trace: self.id.clone() }))
            }
            several => Err(Error::invalid(format!("several tools were called: {}", several.join(", ")))
                .hint(Hint::NameToolUnderTest { tool: Some(several[0].clone()), trace: self.id.clone() })),
        }
    }

    /// Lists the tools that the trace calls, each with its first turn, in case another message should be used.
    fn other_tools_hint(&self) -> Option<String> {
        let mut called: Vec<(&str, usize)> = Vec::new();
        for turn in &self.turns {
            for tool in &turn.tools {
                if called.iter().all(|(known, _)| *known != tool.as_str()) {
                    called.push((tool.as_str(), *turn.steps.start()));
                }
            }
        }
        let calls: Vec<String> =
            called.iter().take(MAX_LISTED_TOOLS).map(|(tool, step)| format!("{tool} (--step {step})")).collect();
        let more = match called.len().saturating_sub(MAX_LISTED_TOOLS) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        (!calls.is_empty()).then(|| format!("other turns call {}{more}", calls.join(", ")))
    }
}
