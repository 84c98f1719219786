//! Drafts cases from what users really said, and what the agent did then.

mod expected;
mod observed;
mod personal;
mod pool;
mod proof;
mod standing;
#[cfg(test)]
mod tests;
mod turns;
mod volatile;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::sync::Arc;

use karat_core::case::Case;
use karat_core::document::TraceDocument;
use karat_core::port::Pending;
use karat_core::trace::Usage;
use karat_tools::similarity::words;

pub use self::personal::found as personal_data;
pub use self::proof::proof_of_run;
pub use self::turns::{TraceTurn, trace_turns};

use self::expected::Maker;
use self::observed::{Observed, Reading, observe};
use self::pool::Pool;
use self::proof::{Rarity, choose};
use crate::token_values::TokenIndex;
use crate::{Draft, DraftError, DraftFinding, Drafter, Origin, Purpose, Request, Slot, examine};

/// With fewer values a golden case proves little.
const WANTED_PROOFS: usize = 2;

/// Reads traces, and keeps those in which a tool was called.
#[derive(Debug)]
pub struct TraceReader {
    tool: String,
    /// By their messages, so that what was said twice is kept once.
    observed: BTreeMap<String, Kept>,
    /// Messages to which the agent answered without the tool.
    elsewhere: HashSet<String>,
    report: TraceReport,
}

/// A message's trace: of several that with the first id.
#[derive(Debug)]
struct Kept {
    observed: Observed,
    /// A trace with the same message in which other tools were called.
    disagrees: Option<String>,
}

/// What came of reading traces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceReport {
    /// Traces, and lines that hold none.
    pub lines: usize,
    /// Traces in which the tool was called.
    pub calling: usize,
    /// Different messages of which cases can be made.
    pub usable: usize,
    /// Traces that call the tool and of which no case can be made.
    pub left_out: Vec<LeftOutTrace>,
    /// Lines that hold no trace.
    pub refused: Vec<RefusedLine>,
}

/// A trace of which no case can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOutTrace {
    pub id: String,
    /// A lower-case fragment.
    pub why: String,
}

/// A line that holds no trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedLine {
    pub number: u64,
    /// A lower-case fragment.
    pub why: String,
}

impl TraceReader {
    pub fn new(tool: &str) -> Self {
        let (observed, elsewhere) = (BTreeMap::new(), HashSet::new());
        Self { tool: tool.to_owned(), observed, elsewhere, report: TraceReport::default() }
    }

    /// Reads a line; a blank one is passed over.
    pub fn line(&mut self, number: u64, text: &[u8]) {
        let text = text.strip_prefix(b"\xEF\xBB\xBF").filter(|_| number == 1).unwrap_or(text).trim_ascii();
        if text.is_empty() {
            return;
        }
        let Ok(text) = std::str::from_utf8(text) else { return self.refuse(number, "not UTF-8".to_owned()) };
        match TraceDocument::read(text) {
            Ok(trace) => self.trace(trace.trace_id().unwrap_or_else(|| format!("line {number}")), &trace),
            Err(error) => self.refuse(number, error.to_string()),
        }
    }

    /// Takes a trace.
    pub fn trace(&mut self, id: String, trace: &TraceDocument) {
        self.report.lines += 1;
        match observe(&self.tool, id, trace) {
            Reading::Elsewhere { message } => self.elsewhere.extend(message.as_deref().map(folded)),
            Reading::LeftOut { id, why } => {
                self.report.calling += 1;
                self.report.left_out.push(LeftOutTrace { id, why });
            }
            Reading::Useful(observed) => {
                self.report.calling += 1;
                self.keep(observed);
            }
        }
    }

    /// Takes note of a line that could not be read at all.
    fn refuse(&mut self, number: u64, why: String) {
        self.report.lines += 1;
        self.report.refused.push(RefusedLine { number, why });
    }

    fn keep(&mut self, observed: Observed) {
        let message = folded(&observed.message);
        let Some(kept) = self.observed.get_mut(&message) else {
            self.observed.insert(message, Kept { observed, disagrees: None });
            return;
        };
        let differs = tools(&kept.observed) != tools(&observed);
        let later = if observed.id < kept.observed.id {
            std::mem::replace(&mut kept.observed, observed).id
        } else {
            observed.id
        };
        if differs && kept.disagrees.as_ref().is_none_or(|id| later < *id) {
            kept.disagrees = Some(later);
        }
    }

    /// Returns a drafter that uses what was read, and leaves the rest to another one.
    pub fn finish(self, fallback: Arc<dyn Drafter>) -> (TraceDrafter, TraceReport) {
        let Self { tool, observed, elsewhere, mut report } = self;
        let mut rarity = Rarity::default();
        let mut doubts = BTreeMap::new();
        let mut kept = Vec::new();
        for (message, Kept { observed, disagrees }) in observed {
            rarity.count(&observed);
            if elsewhere.contains(&message) {
                doubts.insert(
                    observed.id.clone(),
                    format!("to the same message the agent also answered without '{tool}'"),
                );
            } else if let Some(other) = disagrees {
                doubts
                    .insert(observed.id.clone(), format!("the same message led to other tools in the trace '{other}'"));
            }
            kept.push(observed);
        }
        for one in &mut kept {
            one.proofs = choose(one, &rarity, &TokenIndex::default(), WANTED_PROOFS).len();
        }
        report.usable = kept.len();
        (TraceDrafter { tool, observed: kept, rarity, doubts, fallback, with_stubs: false }, report)
    }
}

/// Returns what makes two messages the same.
fn folded(message: &str) -> String {
    message.trim().to_lowercase()
}

fn tools(observed: &Observed) -> BTreeSet<&str> {
    observed.calls.iter().map(|call| call.name.as_str()).collect()
}

/// Drafts cases from traces, as far as they go.
pub struct TraceDrafter {
    tool: String,
    observed: Vec<Observed>,
    rarity: Rarity,
    /// Why a person should not trust a trace, by its id.
    doubts: BTreeMap<String, String>,
    fallback: Arc<dyn Drafter>,
    with_stubs: bool,
}

impl fmt::Debug for TraceDrafter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "TraceDrafter({} traces of {})", self.observed.len(), self.tool)
    }
}

impl TraceDrafter {
    /// Gives each case what its tools answered, for agents that have no tools of their own.
    #[must_use]
    pub fn with_stubs(self) -> Self {
        Self { with_stubs: true, ..self }
    }

    /// Fills the slots for which there is a trace; none where there is not.
    fn fill(&self, request: &Request<'_>) -> Vec<Option<Draft>> {
        let Request { brief, slots, so_far, attempt, .. } = *request;
        let is_known = |one: &&Observed| one.calls.iter().all(|call| brief.registry.tool(&call.name).is_some());
        let mut pool = Pool::new(self.observed.iter().filter(|_| self.tool == brief.tool.name).filter(is_known));
        for case in brief.existing().chain(so_far) {
            pool.keep_away(&words(&case.input.message));
        }
        // What was drafted before is passed over, as if it were there.
        let mut picked: Vec<Option<&Observed>> = Vec::new();
        for _ in 0..=attempt {
            picked = slots.iter().map(|slot| self.pick(&mut pool, &slot.purpose)).collect();
            if picked.iter().all(Option::is_none) {
                break;
            }
        }
        let maker =
            Maker { brief, rarity: &self.rarity, tokens: TokenIndex::of(&brief.sources), with_stubs: self.with_stubs };
        let mut others: Vec<Case> = so_far.to_vec();
        let draft = |(slot, observed): (&Slot, Option<&Observed>)| {
            let observed = observed?;
            let slot = Slot { id: slot.id.clone(), purpose: as_observed(&slot.purpose, observed) };
            let (case, mut findings) = maker.make(&slot, observed);
            findings.extend(self.doubts.get(&observed.id).map(|doubt| DraftFinding::warning("", doubt.as_str())));
            findings.extend(examine(brief, &slot, &case, &others));
            others.extend(Case::read_one(&case));
            Some(Draft { slot, case: Some(case), origin: Origin::Trace(observed.id.clone()), findings })
        };
        slots.iter().zip(picked).map(draft).collect()
    }

    fn pick<'o>(&self, pool: &mut Pool<'o>, purpose: &Purpose) -> Option<&'o Observed> {
        match purpose {
            // Best with proof that the tool ran.
            Purpose::Trigger(_) | Purpose::Rephrasing(_) | Purpose::Plain | Purpose::NoLeak => pool.take(|one| {
                let is_alone = matches!(one.calls.as_slice(), [call] if call.name == self.tool);
                is_alone.then_some(WANTED_PROOFS - one.proofs)
            }),
            // As many tools as the place says, or nearly; best none of them twice.
            Purpose::Together { count, .. } => pool.take(|one| {
                let tools = tools(one).len();
                (tools > 1).then(|| (tools.abs_diff(*count), one.calls.len() - tools))
            }),
            Purpose::Disambiguation { .. } | Purpose::AsksFirst | Purpose::Choice { .. } | Purpose::Edge(_) => None,
        }
    }
}

/// Returns what a case tests that was made of this trace: a user's own words are the better trigger, and the tools are
/// those that were called.
fn as_observed(purpose: &Purpose, observed: &Observed) -> Purpose {
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

    fn understands_words(&self) -> bool {
        self.fallback.understands_words()
    }

    fn can_fill(&self, slot: &Slot) -> bool {
        let suits = match &slot.purpose {
            Purpose::Trigger(_)
            | Purpose::Rephrasing(_)
            | Purpose::Plain
            | Purpose::NoLeak
            | Purpose::Together { .. } => true,
            Purpose::Disambiguation { .. } | Purpose::AsksFirst | Purpose::Choice { .. } | Purpose::Edge(_) => false,
        };
        suits || self.fallback.can_fill(slot)
    }

    fn draft<'a>(&'a self, request: Request<'a>) -> Pending<'a, Result<Vec<Draft>, DraftError>> {
        Box::pin(async move {
            // No trace knows what a person asks for.
            if request.revision.is_some() {
                return self.fallback.draft(request).await;
            }
            let mut drafts: Vec<Draft> = self.fill(&request).into_iter().flatten().collect();
            let is_open = |slot: &&Slot| drafts.iter().all(|draft| draft.slot.id != slot.id);
            let rest: Vec<Slot> = request.slots.iter().filter(is_open).cloned().collect();
            let so_far: Vec<Case> =
                request.so_far.iter().cloned().chain(drafts.iter().filter_map(Draft::read)).collect();
            drafts.extend(self.fallback.draft(Request { slots: &rest, so_far: &so_far, ..request }).await?);
            let place = |draft: &Draft| request.slots.iter().position(|slot| slot.id == draft.slot.id);
            drafts.sort_by_key(place);
            Ok(drafts)
        })
    }
}
