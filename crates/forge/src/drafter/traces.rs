//! Drafts cases from real messages of users and what the agent did.

mod case_builder;
mod leak;
mod observed;
mod personal_data;
mod pool;
mod proof;
#[cfg(test)]
mod tests;
mod turns;
mod value_match;
mod volatile;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::sync::Arc;

use karat_cases::Case;
use karat_core::document::TraceDocument;
use karat_core::port::BoxFuture;
use karat_core::trace::Usage;
use karat_tools::similarity::words;

pub use self::leak::leak_markers;
pub use self::personal_data::find_personal_data;
pub use self::proof::proof_values;
pub use self::turns::{TraceTurn, trace_turns};

use self::case_builder::CaseBuilder;
use self::observed::{Extraction, ObservedTurn, extract_turn};
use self::pool::Pool;
use self::proof::{Rarity, choose_proofs};
use crate::token_values::TokenIndex;
use crate::{Draft, DraftError, DraftFinding, Drafter, Origin, Purpose, Request, Slot, check_draft};

/// Number of proof values that a golden case should have.
const WANTED_PROOFS: usize = 2;

/// Reads traces and collects those in which a tool was called.
#[derive(Debug)]
pub struct TraceReader {
    tool: String,
    /// One turn per message, by normalized message.
    turns: BTreeMap<String, UniqueTurn>,
    /// Messages that the agent answered without the tool.
    answered_without_tool: HashSet<String>,
    report: TraceReport,
}

/// The turn of a message; of several traces, that of the smallest id.
#[derive(Debug)]
struct UniqueTurn {
    turn: ObservedTurn,
    /// The id of a trace with the same message and other tools.
    conflicting_trace: Option<String>,
}

/// Counts of the traces that were read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceReport {
    /// Traces and invalid lines.
    pub lines: usize,
    /// Traces in which the tool was called.
    pub calling: usize,
    /// Distinct messages that can become cases.
    pub usable: usize,
    /// Traces that call the tool but cannot become cases.
    pub rejected: Vec<RejectedTrace>,
    pub invalid_lines: Vec<InvalidLine>,
}

/// A trace that cannot become a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedTrace {
    pub id: String,
    /// A lower-case fragment.
    pub reason: String,
}

/// A line that is not a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidLine {
    pub number: u64,
    /// A lower-case fragment.
    pub reason: String,
}

impl TraceReader {
    pub fn new(tool: &str) -> Self {
        let (turns, answered_without_tool) = (BTreeMap::new(), HashSet::new());
        Self { tool: tool.to_owned(), turns, answered_without_tool, report: TraceReport::default() }
    }

    /// Reads a line; blank lines are ignored.
    pub fn read_line(&mut self, number: u64, text: &[u8]) {
        let text = text.strip_prefix(b"\xEF\xBB\xBF").filter(|_| number == 1).unwrap_or(text).trim_ascii();
        if text.is_empty() {
            return;
        }
        let Ok(text) = std::str::from_utf8(text) else { return self.reject_line(number, "not UTF-8".to_owned()) };
        match TraceDocument::parse(text) {
            Ok(trace) => self.add_trace(trace.trace_id().unwrap_or_else(|| format!("line {number}")), &trace),
            Err(error) => self.reject_line(number, error.to_string()),
        }
    }

    pub fn add_trace(&mut self, id: String, trace: &TraceDocument) {
        self.report.lines += 1;
        match extract_turn(&self.tool, id, trace) {
            Extraction::ToolNotCalled { message } => {
                self.answered_without_tool.extend(message.as_deref().map(normalized));
            }
            Extraction::Rejected { id, reason } => {
                self.report.calling += 1;
                self.report.rejected.push(RejectedTrace { id, reason });
            }
            Extraction::Usable(turn) => {
                self.report.calling += 1;
                self.add_turn(turn);
            }
        }
    }

    fn reject_line(&mut self, number: u64, reason: String) {
        self.report.lines += 1;
        self.report.invalid_lines.push(InvalidLine { number, reason });
    }

    fn add_turn(&mut self, turn: ObservedTurn) {
        let message = normalized(&turn.message);
        let Some(existing) = self.turns.get_mut(&message) else {
            self.turns.insert(message, UniqueTurn { turn, conflicting_trace: None });
            return;
        };
        let differs = tools(&existing.turn) != tools(&turn);
        let later = if turn.id < existing.turn.id { std::mem::replace(&mut existing.turn, turn).id } else { turn.id };
        if differs && existing.conflicting_trace.as_ref().is_none_or(|id| later < *id) {
            existing.conflicting_trace = Some(later);
        }
    }

    /// Returns a drafter that uses the traces and leaves other slots to `fallback`.
    pub fn finish(self, fallback: Arc<dyn Drafter>) -> (TraceDrafter, TraceReport) {
        let Self { tool, turns, answered_without_tool, mut report } = self;
        let mut rarity = Rarity::default();
        let mut warnings = BTreeMap::new();
        let mut observed = Vec::new();
        for (message, UniqueTurn { turn, conflicting_trace }) in turns {
            rarity.count(&turn);
            if answered_without_tool.contains(&message) {
                warnings.insert(turn.id.clone(), format!("the agent also answered the same message without '{tool}'"));
            } else if let Some(other) = conflicting_trace {
                warnings.insert(turn.id.clone(), format!("the same message led to other tools in trace '{other}'"));
            }
            observed.push(turn);
        }
        for turn in &mut observed {
            turn.proofs = choose_proofs(turn, &rarity, &TokenIndex::default(), WANTED_PROOFS).len();
        }
        report.usable = observed.len();
        (TraceDrafter { tool, observed, rarity, warnings, fallback, with_stubs: false }, report)
    }
}

/// Normalizes a message for comparison.
fn normalized(message: &str) -> String {
    message.trim().to_lowercase()
}

fn tools(observed: &ObservedTurn) -> BTreeSet<&str> {
    observed.calls.iter().map(|call| call.name.as_str()).collect()
}

/// Drafts cases from traces, and from a fallback where traces do not suffice.
pub struct TraceDrafter {
    tool: String,
    observed: Vec<ObservedTurn>,
    rarity: Rarity,
    /// Why a trace may be misleading, by its id.
    warnings: BTreeMap<String, String>,
    fallback: Arc<dyn Drafter>,
    with_stubs: bool,
}

impl fmt::Debug for TraceDrafter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "TraceDrafter({} traces of {})", self.observed.len(), self.tool)
    }
}

impl TraceDrafter {
    /// Adds stubs with the tool results of the trace, for agents without tools.
    #[must_use]
    pub fn with_stubs(self) -> Self {
        Self { with_stubs: true, ..self }
    }

    /// Fills the slots for which there is a trace.
    fn fill(&self, request: &Request<'_>) -> Vec<Option<Draft>> {
        let Request { brief, slots, other_cases, attempt, .. } = *request;
        let is_known = |turn: &&ObservedTurn| turn.calls.iter().all(|call| brief.registry.tool(&call.name).is_some());
        let mut pool = Pool::new(self.observed.iter().filter(|_| self.tool == brief.tool.name).filter(is_known));
        for case in brief.existing().chain(other_cases) {
            pool.exclude_near(&words(&case.message_text()));
        }
        // Earlier attempts take traces from the pool, so they are not drafted again.
        let mut picked: Vec<Option<&ObservedTurn>> = Vec::new();
        for _ in 0..=attempt {
            picked = slots.iter().map(|slot| self.pick(&mut pool, &slot.purpose)).collect();
            if picked.iter().all(Option::is_none) {
                break;
            }
        }
        let builder = CaseBuilder {
            brief,
            rarity: &self.rarity,
            tokens: TokenIndex::new(&brief.sources),
            with_stubs: self.with_stubs,
        };
        let mut others: Vec<Case> = other_cases.to_vec();
        let draft = |(slot, observed): (&Slot, Option<&ObservedTurn>)| {
            let observed = observed?;
            let slot = Slot { id: slot.id.clone(), purpose: adapted_purpose(&slot.purpose, observed) };
            let (case, mut findings) = builder.build(&slot, observed);
            findings.extend(self.warnings.get(&observed.id).map(|warning| DraftFinding::warning("", warning.as_str())));
            findings.extend(check_draft(brief, &slot, &case, &others));
            others.extend(Case::read_one(&case));
            Some(Draft { slot, case: Some(case), origin: Origin::Trace(observed.id.clone()), findings })
        };
        slots.iter().zip(picked).map(draft).collect()
    }

    fn pick<'o>(&self, pool: &mut Pool<'o>, purpose: &Purpose) -> Option<&'o ObservedTurn> {
        match purpose {
            // Prefer turns with proof that the tool ran.
            Purpose::Trigger(_) | Purpose::Rephrasing(_) | Purpose::Plain | Purpose::NoLeak => pool.take(|turn| {
                let is_only_call = matches!(turn.calls.as_slice(), [call] if call.name == self.tool);
                is_only_call.then_some(WANTED_PROOFS - turn.proofs)
            }),
            // Prefer the slot's number of tools, then few repeated calls.
            Purpose::Together { count, .. } => pool.take(|turn| {
                let tools = tools(turn).len();
                (tools > 1).then(|| (tools.abs_diff(*count), turn.calls.len() - tools))
            }),
            Purpose::Disambiguation { .. } | Purpose::Confirmation | Purpose::Choice { .. } | Purpose::Edge(_) => None,
        }
    }
}

/// Adapts the purpose of a slot to the trace: the trigger is the user's message, and the tools are those that were
/// called.
fn adapted_purpose(purpose: &Purpose, observed: &ObservedTurn) -> Purpose {
    match purpose {
        Purpose::Trigger(_) => Purpose::Trigger(observed.message.clone()),
        Purpose::Together { .. } => {
            let mut seen = HashSet::new();
            let names = observed.calls.iter().map(|call| &call.name).filter(|name| seen.insert(*name));
            Purpose::together(names.cloned().collect())
        }
        other => other.clone(),
    }
}

impl Drafter for TraceDrafter {
    fn name(&self) -> &'static str {
        "traces"
    }

    fn model(&self) -> Option<String> {
        self.fallback.model()
    }

    fn usage(&self) -> Option<Usage> {
        self.fallback.usage()
    }

    fn accepts_instructions(&self) -> bool {
        self.fallback.accepts_instructions()
    }

    fn can_fill(&self, slot: &Slot) -> bool {
        let matches_purpose = match &slot.purpose {
            Purpose::Trigger(_)
            | Purpose::Rephrasing(_)
            | Purpose::Plain
            | Purpose::NoLeak
            | Purpose::Together { .. } => true,
            Purpose::Disambiguation { .. } | Purpose::Confirmation | Purpose::Choice { .. } | Purpose::Edge(_) => false,
        };
        matches_purpose || self.fallback.can_fill(slot)
    }

    fn draft<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Result<Vec<Draft>, DraftError>> {
        Box::pin(async move {
            // Traces cannot follow instructions.
            if request.revision.is_some() {
                return self.fallback.draft(request).await;
            }
            let mut drafts: Vec<Draft> = self.fill(&request).into_iter().flatten().collect();
            let is_open = |slot: &&Slot| drafts.iter().all(|draft| draft.slot.id != slot.id);
            let rest: Vec<Slot> = request.slots.iter().filter(is_open).cloned().collect();
            let other_cases: Vec<Case> =
                request.other_cases.iter().cloned().chain(drafts.iter().filter_map(Draft::parse_case)).collect();
            drafts.extend(self.fallback.draft(Request { slots: &rest, other_cases: &other_cases, ..request }).await?);
            let slot_index = |draft: &Draft| request.slots.iter().position(|slot| slot.id == draft.slot.id);
            drafts.sort_by_key(slot_index);
            Ok(drafts)
        })
    }
}
