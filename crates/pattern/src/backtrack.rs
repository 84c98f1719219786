//! Matches a program with back-references by trying one way after the other.
//!
//! What a back-reference reads depends on the way taken, so this engine keeps ECMAScript's order of
//! trying, its captures and its rule against empty iterations. What is still to be tried is on a
//! stack of its own, together with what must be put back before trying it.

use super::{
    Exhausted, class,
    program::{Budget, Instruction, Program, next_unit, offset},
};

/// The most frames on the stack, which bounds the memory it takes.
const FRAME_LIMIT: usize = 2_000_000;

/// The value of a slot that holds no position; past the end of any text.
const EMPTY: usize = usize::MAX;

/// Reports whether the program matches anywhere in the text.
pub(super) fn is_match(program: &Program, text: &[u16]) -> Result<bool, Exhausted> {
    let (budget, slots) = (Budget::for_text(text.len()), vec![EMPTY; program.slots]);
    let mut search = Search { program, text, budget, slots, frames: Vec::new() };
    for start in 0..=text.len() {
        if (start == 0 || program.main.may_begin(text, start)) && search.matches_at(start)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A thing to do when the way being tried fails; the latest comes first.
#[derive(Debug, Clone, Copy)]
enum Frame {
    /// Try this instead.
    Choice { at: usize, position: usize },
    /// Put back what a slot held.
    Restore { slot: usize, held: usize },
    /// Leave a look-around whose body did not match; it began here.
    Look { at: usize, position: usize, negative: bool },
}

struct Search<'a> {
    program: &'a Program,
    text: &'a [u16],
    budget: Budget,
    slots: Vec<usize>,
    frames: Vec<Frame>,
}

impl Search<'_> {
    /// Reports whether the program matches at the position.
    fn matches_at(&mut self, start: usize) -> Result<bool, Exhausted> {
        let mut state = Some((self.program.main.start, start));
        while let Some((at, position)) = state {
            self.budget.spend(1)?;
            let goes_on = |condition: bool| condition.then_some((at + 1, position));
            state = match self.program.code[at] {
                Instruction::Assert(assertion) => goes_on(assertion.holds(self.text, position)),
                Instruction::Split { first, second } => {
                    self.push(Frame::Choice { at: offset(at, second), position })?;
                    Some((offset(at, first), position))
                }
                Instruction::Jump(distance) => Some((offset(at, distance), position)),
                Instruction::Save(slot) => {
                    self.store(slot as usize, position)?;
                    goes_on(true)
                }
                Instruction::Clear(from, to) => {
                    self.budget.spend((to - from) as usize)?;
                    for slot in from as usize..to as usize {
                        self.store(slot, EMPTY)?;
                    }
                    goes_on(true)
                }
                Instruction::Check(slot) => goes_on(self.slots[slot as usize] != position),
                Instruction::Reference { slot, ignore_case, backward } => {
                    self.read_again(slot as usize, position, ignore_case, backward)?.map(|position| (at + 1, position))
                }
                Instruction::Look { look, negative } => {
                    self.push(Frame::Look { at, position, negative })?;
                    Some((self.program.looks[look as usize].start, position))
                }
                Instruction::Match => {
                    let is_look = |frame: &Frame| matches!(frame, Frame::Look { .. });
                    match self.frames.iter().rposition(is_look) {
                        Some(look) => self.leave(look)?,
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
                state = self.retry();
            }
        }
        Ok(false)
    }

    /// Goes back to the latest thing still to be tried.
    fn retry(&mut self) -> Option<(usize, usize)> {
        while let Some(frame) = self.frames.pop() {
            match frame {
                Frame::Choice { at, position } => return Some((at, position)),
                Frame::Restore { slot, held } => self.slots[slot] = held,
                Frame::Look { at, position, negative: true } => return Some((at + 1, position)),
                Frame::Look { negative: false, .. } => {}
            }
        }
        None
    }

    /// Leaves the look-around with this frame, its body having matched: the body's other ways are
    /// never tried, and its captures stay only if the look-around is positive.
    fn leave(&mut self, look: usize) -> Result<Option<(usize, usize)>, Exhausted> {
        self.budget.spend(self.frames.len() - look)?;
        let Frame::Look { at, position, negative } = self.frames[look] else {
            return Ok(None);
        };
        if negative {
            for frame in self.frames.drain(look..).rev() {
                if let Frame::Restore { slot, held } = frame {
                    self.slots[slot] = held;
                }
            }
            return Ok(None);
        }
        let mut kept = look;
        for inside in look + 1..self.frames.len() {
            if matches!(self.frames[inside], Frame::Restore { .. }) {
                self.frames[kept] = self.frames[inside];
                kept += 1;
            }
        }
        self.frames.truncate(kept);
        Ok(Some((at + 1, position)))
    }

    /// Reads one unit that fits and returns the position after it.
    #[inline]
    fn read(&self, position: usize, backward: bool, fits: impl Fn(u16) -> bool) -> Option<usize> {
        next_unit(self.text, position, backward).filter(|&(unit, _)| fits(unit)).map(|(_, next)| next)
    }

    /// Reads what a group captured once more and returns the position after it.
    fn read_again(
        &mut self,
        slot: usize,
        position: usize,
        ignore_case: bool,
        backward: bool,
    ) -> Result<Option<usize>, Exhausted> {
        // A group that took no part, or is still open, has an empty slot, and is read as nothing.
        let Some(captured) = self.text.get(self.slots[slot]..self.slots[slot + 1]) else {
            return Ok(Some(position));
        };
        let begin = if backward { position.checked_sub(captured.len()) } else { Some(position) };
        let Some(candidate) = begin.and_then(|begin| self.text.get(begin..begin + captured.len())) else {
            return Ok(None);
        };
        let same = |(&one, &other): (&u16, &u16)| {
            one == other || (ignore_case && class::canonicalize(one) == class::canonicalize(other))
        };
        let agreeing = captured.iter().zip(candidate).take_while(|&pair| same(pair)).count();
        self.budget.spend(agreeing)?;
        let after = if backward { position - captured.len() } else { position + captured.len() };
        Ok((agreeing == captured.len()).then_some(after))
    }

    /// Changes a slot so that going back restores it.
    fn store(&mut self, slot: usize, position: usize) -> Result<(), Exhausted> {
        let held = std::mem::replace(&mut self.slots[slot], position);
        if held == position { Ok(()) } else { self.push(Frame::Restore { slot, held }) }
    }

    /// Puts a frame on the stack.
    fn push(&mut self, frame: Frame) -> Result<(), Exhausted> {
        if self.frames.len() == FRAME_LIMIT {
            return Err(self.budget.exhausted());
        }
        self.frames.push(frame);
        Ok(())
    }
}
