//! Matches a program with back-references by backtracking.
//!
//! The text that a back-reference reads depends on the path taken, so this engine follows
//! ECMAScript's order of alternatives, its captures and its rule against empty iterations. Pending
//! alternatives are on an explicit stack, together with the slots to restore before trying them.

use super::{
    StepLimitExceeded, class,
    program::{Budget, Instruction, Program, next_unit, offset},
};

/// Maximum number of frames on the stack, which bounds its memory.
const MAX_FRAMES: usize = 2_000_000;

/// The value of an empty slot; past the end of any text.
const EMPTY: usize = usize::MAX;

/// Whether the program matches anywhere in the text.
pub(super) fn is_match(program: &Program, text: &[u16]) -> Result<bool, StepLimitExceeded> {
    let (budget, slots) = (Budget::for_text(text.len()), vec![EMPTY; program.slot_count]);
    let mut search = Search { program, text, budget, slots, frames: Vec::new() };
    for start in 0..=text.len() {
        if (start == 0 || program.main.may_begin(text, start)) && search.matches_at(start)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// An action for when the current path fails; the latest comes first.
#[derive(Debug, Clone, Copy)]
enum Frame {
    /// Try this instead.
    Choice { at: usize, position: usize },
    /// Restore the previous value of a slot.
    Restore { slot: usize, previous: usize },
    /// Leave a look-around, which started here, after its body failed.
    LookAround { at: usize, position: usize, negative: bool },
}

struct Search<'a> {
    program: &'a Program,
    text: &'a [u16],
    budget: Budget,
    slots: Vec<usize>,
    frames: Vec<Frame>,
}

impl Search<'_> {
    /// Whether the program matches at the position.
    fn matches_at(&mut self, start: usize) -> Result<bool, StepLimitExceeded> {
        let mut state = Some((self.program.main.start, start));
        while let Some((at, position)) = state {
            self.budget.spend(1)?;
            let continue_if = |condition: bool| condition.then_some((at + 1, position));
            state = match self.program.code[at] {
                Instruction::Assert(assertion) => continue_if(assertion.holds(self.text, position)),
                Instruction::Split { first, second } => {
                    self.push(Frame::Choice { at: offset(at, second), position })?;
                    Some((offset(at, first), position))
                }
                Instruction::Jump(distance) => Some((offset(at, distance), position)),
                Instruction::Save(slot) => {
                    self.store(slot as usize, position)?;
                    continue_if(true)
                }
                Instruction::Clear(from, to) => {
                    self.budget.spend((to - from) as usize)?;
                    for slot in from as usize..to as usize {
                        self.store(slot, EMPTY)?;
                    }
                    continue_if(true)
                }
                Instruction::CheckAdvance(slot) => continue_if(self.slots[slot as usize] != position),
                Instruction::Reference { slot, ignore_case, backward } => self
                    .read_capture(slot as usize, position, ignore_case, backward)?
                    .map(|position| (at + 1, position)),
                Instruction::LookAround { index, negative } => {
                    self.push(Frame::LookAround { at, position, negative })?;
                    Some((self.program.look_arounds[index as usize].start, position))
                }
                Instruction::Match => {
                    let is_look_around = |frame: &Frame| matches!(frame, Frame::LookAround { .. });
                    match self.frames.iter().rposition(is_look_around) {
                        Some(index) => self.leave_look_around(index)?,
                        None => return Ok(true),
                    }
                }
                Instruction::Unit { unit, backward } => {
                    self.read(position, backward, |next| next == unit).map(|next| (at + 1, next))
                }
                Instruction::Set { set, backward } => {
                    let set = &self.program.sets[set as usize];
                    self.read(position, backward, |next| set.contains(next)).map(|next| (at + 1, next))
                }
            };
            if state.is_none() {
                state = self.backtrack();
            }
        }
        Ok(false)
    }

    /// Returns to the latest alternative.
    fn backtrack(&mut self) -> Option<(usize, usize)> {
        while let Some(frame) = self.frames.pop() {
            match frame {
                Frame::Choice { at, position } => return Some((at, position)),
                Frame::Restore { slot, previous } => self.slots[slot] = previous,
                Frame::LookAround { at, position, negative: true } => return Some((at + 1, position)),
                Frame::LookAround { negative: false, .. } => {}
            }
        }
        None
    }

    /// Leaves the look-around with this frame index after its body matched: the body's alternatives
    /// are dropped, and its captures are kept only if the look-around is positive.
    fn leave_look_around(&mut self, index: usize) -> Result<Option<(usize, usize)>, StepLimitExceeded> {
        self.budget.spend(self.frames.len() - index)?;
        let Frame::LookAround { at, position, negative } = self.frames[index] else {
            return Ok(None);
        };
        if negative {
            for frame in self.frames.drain(index..).rev() {
                if let Frame::Restore { slot, previous } = frame {
                    self.slots[slot] = previous;
                }
            }
            return Ok(None);
        }
        let mut end = index;
        for inside in index + 1..self.frames.len() {
            if matches!(self.frames[inside], Frame::Restore { .. }) {
                self.frames[end] = self.frames[inside];
                end += 1;
            }
        }
        self.frames.truncate(end);
        Ok(Some((at + 1, position)))
    }

    /// Reads one matching unit and returns the position after it.
    #[inline]
    fn read(&self, position: usize, backward: bool, matches: impl Fn(u16) -> bool) -> Option<usize> {
        next_unit(self.text, position, backward).filter(|&(unit, _)| matches(unit)).map(|(_, next)| next)
    }

    /// Reads the text of a capture again and returns the position after it.
    fn read_capture(
        &mut self,
        slot: usize,
        position: usize,
        ignore_case: bool,
        backward: bool,
    ) -> Result<Option<usize>, StepLimitExceeded> {
        // A group that took no part, or is still open, has an empty slot and matches the empty string.
        let Some(captured) = self.text.get(self.slots[slot]..self.slots[slot + 1]) else {
            return Ok(Some(position));
        };
        let begin = if backward { position.checked_sub(captured.len()) } else { Some(position) };
        let Some(candidate) = begin.and_then(|begin| self.text.get(begin..begin + captured.len())) else {
            return Ok(None);
        };
        let is_equal = |(&left, &right): (&u16, &u16)| {
            left == right || (ignore_case && class::canonicalize(left) == class::canonicalize(right))
        };
        let equal = captured.iter().zip(candidate).take_while(|&pair| is_equal(pair)).count();
        self.budget.spend(equal)?;
        let after = if backward { position - captured.len() } else { position + captured.len() };
        Ok((equal == captured.len()).then_some(after))
    }

    /// Changes a slot and records its previous value for backtracking.
    fn store(&mut self, slot: usize, position: usize) -> Result<(), StepLimitExceeded> {
        let previous = std::mem::replace(&mut self.slots[slot], position);
        if previous == position { Ok(()) } else { self.push(Frame::Restore { slot, previous }) }
    }

    /// Pushes a frame, up to the maximum.
    fn push(&mut self, frame: Frame) -> Result<(), StepLimitExceeded> {
        if self.frames.len() == MAX_FRAMES {
            return Err(self.budget.exhausted());
        }
        self.frames.push(frame);
        Ok(())
    }
}
