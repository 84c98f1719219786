//! The instructions of a compiled pattern, with helpers for both engines.

use super::{
    StepLimitExceeded,
    class::{self, UnitRange, UnitSet},
};

/// Steps that are allowed for every text, regardless of its length.
const BASE_STEPS: u64 = 20_000_000;

/// Additional steps per code unit of the text.
const STEPS_PER_UNIT: u64 = 32;

/// An instruction. Offsets are relative, so that code can be copied and joined.
#[derive(Debug, Clone, Copy)]
pub(super) enum Instruction {
    /// Matches this code unit.
    Unit { unit: u16, backward: bool },
    /// Matches a code unit in the set with this index.
    Set { set: u32, backward: bool },
    /// Continues if the assertion holds.
    Assert(Assertion),
    /// Continues if the look-around with this index matches here or, if negative, does not match.
    LookAround { index: u32, negative: bool },
    /// Continues at the first offset or, if that fails, at the second.
    Split { first: i32, second: i32 },
    /// Continues at the offset.
    Jump(i32),
    /// Stores the position in a slot.
    Save(u32),
    /// Clears the slots from the first index to the second, exclusive.
    Clear(u32, u32),
    /// Continues if the slot does not hold the current position, to reject empty iterations.
    CheckAdvance(u32),
    /// Matches the text captured by a group, whose bounds are in this slot and the next.
    Reference { slot: u32, ignore_case: bool, backward: bool },
    /// Ends the look-around or the whole match.
    Match,
}

/// A condition on a position that depends only on the units next to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Assertion {
    TextStart,
    TextEnd,
    LineStart,
    LineEnd,
    WordBoundary,
    NotWordBoundary,
}

impl Assertion {
    pub(super) fn holds(self, text: &[u16], position: usize) -> bool {
        let before = position.checked_sub(1).map(|before| text[before]);
        let after = text.get(position).copied();
        match self {
            Self::TextStart => before.is_none(),
            Self::TextEnd => after.is_none(),
            Self::LineStart => before.is_none_or(class::is_line_terminator),
            Self::LineEnd => after.is_none_or(class::is_line_terminator),
            Self::WordBoundary => before.is_some_and(class::is_word) != after.is_some_and(class::is_word),
            Self::NotWordBoundary => !Self::WordBoundary.holds(text, position),
        }
    }
}

/// A compiled pattern.
#[derive(Debug, Clone)]
pub(super) struct Program {
    pub(super) code: Vec<Instruction>,
    pub(super) sets: Vec<UnitSet>,
    /// The look-arounds, inner ones first.
    pub(super) look_arounds: Vec<Entry>,
    pub(super) main: Entry,
    pub(super) slot_count: usize,
}

/// A part of the code that ends in [`Instruction::Match`].
#[derive(Debug, Clone, Default)]
pub(super) struct Entry {
    pub(super) start: usize,
    pub(super) backward: bool,
    /// The code units that a match can begin with, except at the first position tried; `None` if it
    /// can begin with anything or be empty. Used to skip positions that cannot match.
    pub(super) first: Option<UnitSet>,
}

impl Program {
    pub(super) fn entry(&self, start: usize, backward: bool) -> Entry {
        Entry { start, backward, first: self.first_units(start, backward) }
    }

    /// Collects the units that a match can begin with.
    fn first_units(&self, start: usize, backward: bool) -> Option<UnitSet> {
        let anchor = if backward { Assertion::TextEnd } else { Assertion::TextStart };
        let mut units: Vec<UnitRange> = Vec::new();
        let mut seen = vec![false; self.code.len() - start];
        let mut pending = vec![start];
        while let Some(at) = pending.pop() {
            if std::mem::replace(&mut seen[at - start], true) {
                continue;
            }
            match self.code[at] {
                Instruction::Unit { unit, .. } => units.push((unit, unit)),
                Instruction::Set { set, .. } => units.extend(self.sets[set as usize].ranges()),
                Instruction::Split { first, second } => {
                    pending.extend([offset(at, first), offset(at, second)]);
                }
                Instruction::Jump(distance) => pending.push(offset(at, distance)),
                // Holds only at the first position, for which the set is not used.
                Instruction::Assert(assertion) if assertion == anchor => {}
                Instruction::Reference { .. } | Instruction::Match => return None,
                _ => pending.push(at + 1),
            }
        }
        Some(UnitSet::new(units))
    }
}

impl Entry {
    /// Whether a match may begin at a position other than the first one tried.
    #[inline]
    pub(super) fn may_begin(&self, text: &[u16], position: usize) -> bool {
        self.first
            .as_ref()
            .is_none_or(|first| next_unit(text, position, self.backward).is_some_and(|(unit, _)| first.contains(unit)))
    }
}

/// Returns the next unit in the matching direction, and the position after it.
#[inline]
pub(super) fn next_unit(text: &[u16], position: usize, backward: bool) -> Option<(u16, usize)> {
    let (at, next) = if backward {
        let before = position.checked_sub(1)?;
        (before, before)
    } else {
        (position, position + 1)
    };
    Some((*text.get(at)?, next))
}

/// Returns the address at an offset from an instruction.
#[inline]
pub(super) fn offset(at: usize, distance: i32) -> usize {
    at.wrapping_add_signed(distance as isize)
}

/// Counts steps against a limit that depends only on the text's length.
#[derive(Debug)]
pub(super) struct Budget {
    limit: u64,
    remaining: u64,
}

impl Budget {
    /// Returns the budget for a string of this many code units.
    pub(super) fn for_text(length: usize) -> Self {
        let limit = BASE_STEPS.saturating_add(STEPS_PER_UNIT.saturating_mul(length as u64));
        Self { limit, remaining: limit }
    }

    /// Subtracts steps, or fails if too few remain.
    #[inline]
    pub(super) fn spend(&mut self, steps: usize) -> Result<(), StepLimitExceeded> {
        match self.remaining.checked_sub(steps as u64) {
            Some(remaining) => {
                self.remaining = remaining;
                Ok(())
            }
            None => Err(self.exhausted()),
        }
    }

    /// Returns the error for the steps used so far.
    #[cold]
    pub(super) fn exhausted(&self) -> StepLimitExceeded {
        StepLimitExceeded { steps: self.limit - self.remaining }
    }
}
