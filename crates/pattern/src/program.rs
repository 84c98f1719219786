//! The instructions a pattern is compiled to, and what both engines need to run them.

use super::{
    Exhausted,
    class::{self, UnitRange, UnitSet},
};

/// The steps every text may take, before its length is counted.
const BASE_STEPS: u64 = 20_000_000;

/// The further steps per code unit of the text.
const STEPS_PER_UNIT: u64 = 32;

/// An instruction. Offsets are relative to it, so that code can be copied and joined.
#[derive(Debug, Clone, Copy)]
pub(super) enum Instruction {
    /// Reads this code unit.
    Unit { unit: u16, backward: bool },
    /// Reads a code unit of the set with this number.
    Set { set: u32, backward: bool },
    /// Goes on if the assertion holds.
    Assert(Assertion),
    /// Goes on if the look-around with this number matches here, or if it does not.
    Look { look: u32, negative: bool },
    /// Goes on at the first offset, or else at the second.
    Split { first: i32, second: i32 },
    /// Goes on at the offset.
    Jump(i32),
    /// Stores the position in a slot.
    Save(u32),
    /// Empties the slots from the first to before the second.
    Clear(u32, u32),
    /// Goes on if the slot does not hold the position: rejects an empty iteration.
    Check(u32),
    /// Reads what the group whose two slots begin here has captured.
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
    NoWordBoundary,
}

impl Assertion {
    /// Reports whether the assertion holds at the position.
    pub(super) fn holds(self, text: &[u16], position: usize) -> bool {
        let before = position.checked_sub(1).map(|before| text[before]);
        let after = text.get(position).copied();
        match self {
            Self::TextStart => before.is_none(),
            Self::TextEnd => after.is_none(),
            Self::LineStart => before.is_none_or(class::is_line_terminator),
            Self::LineEnd => after.is_none_or(class::is_line_terminator),
            Self::WordBoundary => before.is_some_and(class::is_word) != after.is_some_and(class::is_word),
            Self::NoWordBoundary => !Self::WordBoundary.holds(text, position),
        }
    }
}

/// A compiled pattern.
#[derive(Debug, Clone)]
pub(super) struct Program {
    pub(super) code: Vec<Instruction>,
    pub(super) sets: Vec<UnitSet>,
    /// The look-arounds, each after those inside it.
    pub(super) looks: Vec<Entry>,
    pub(super) main: Entry,
    /// The number of slots.
    pub(super) slots: usize,
}

/// A part of the code that ends in [`Instruction::Match`].
#[derive(Debug, Clone, Default)]
pub(super) struct Entry {
    pub(super) start: usize,
    pub(super) backward: bool,
    /// The code units that a match can begin with, except at the very first position tried; absent
    /// if it can begin with anything or be empty. Saves trying positions that cannot match.
    pub(super) first: Option<UnitSet>,
}

impl Program {
    /// Makes the entry for the code from `start` on.
    pub(super) fn entry(&self, start: usize, backward: bool) -> Entry {
        Entry { start, backward, first: self.first_units(start, backward) }
    }

    /// Collects the units a match can begin with.
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
                // It held at most at the first position tried, which is not asked about.
                Instruction::Assert(assertion) if assertion == anchor => {}
                Instruction::Reference { .. } | Instruction::Match => return None,
                _ => pending.push(at + 1),
            }
        }
        Some(UnitSet::new(units))
    }
}

impl Entry {
    /// Reports whether a match may begin at the position, which is not the first one tried.
    #[inline]
    pub(super) fn may_begin(&self, text: &[u16], position: usize) -> bool {
        self.first
            .as_ref()
            .is_none_or(|first| next_unit(text, position, self.backward).is_some_and(|(unit, _)| first.contains(unit)))
    }
}

/// Returns the unit next to the position in the direction of reading, and the position after it.
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
    left: u64,
}

impl Budget {
    /// Makes the budget for a text of this many code units.
    pub(super) fn for_text(length: usize) -> Self {
        let limit = BASE_STEPS.saturating_add(STEPS_PER_UNIT.saturating_mul(length as u64));
        Self { limit, left: limit }
    }

    /// Takes steps from the budget.
    #[inline]
    pub(super) fn spend(&mut self, steps: usize) -> Result<(), Exhausted> {
        match self.left.checked_sub(steps as u64) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(self.exhausted()),
        }
    }

    /// Makes the error for giving up now.
    #[cold]
    pub(super) fn exhausted(&self) -> Exhausted {
        Exhausted { steps: self.limit - self.left }
    }
}
