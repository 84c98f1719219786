//! Matches a program without back-references by simulating all its states in parallel.
//!
//! Without back-references, a match depends only on which (instruction, position) pairs are
//! reachable, so each is visited at most once: all states advance together, one code unit at a
//! time. A loop iteration that reads nothing leads back to a visited pair, so ECMAScript's rule
//! against empty iterations needs no bookkeeping.
//!
//! A look-around is a property of a position. It is computed for all positions beforehand, in one
//! pass over the text: a look-behind reads forward and holds wherever a match that began anywhere
//! ends; a look-ahead does the same backward. This is why the compiler reverses the direction of
//! look-arounds for this engine.

use super::{
    StepLimitExceeded,
    program::{Budget, Entry, Instruction, Program, next_unit, offset},
};

/// Whether the program matches anywhere in the text.
pub(super) fn is_match(program: &Program, text: &[u16]) -> Result<bool, StepLimitExceeded> {
    let mut simulation = Simulation {
        program,
        text,
        budget: Budget::for_text(text.len()),
        look_around_matches: Vec::with_capacity(program.look_arounds.len()),
        seen: vec![0; program.code.len()],
        round: 0,
    };
    for look_around in &program.look_arounds {
        // Also bounds the memory of the positions.
        simulation.budget.spend(text.len())?;
        let mut positions = vec![0_u64; text.len() / 64 + 1];
        simulation.run(look_around, |position| {
            positions[position / 64] |= 1 << (position % 64);
            false
        })?;
        simulation.look_around_matches.push(positions);
    }
    simulation.run(&program.main, |_| true)
}

struct Simulation<'a> {
    program: &'a Program,
    text: &'a [u16],
    budget: Budget,
    /// For each look-around, a bit per position where it matches.
    look_around_matches: Vec<Vec<u64>>,
    /// For each instruction, the last round in which it was visited.
    seen: Vec<usize>,
    /// The number of positions visited so far.
    round: usize,
}

impl Simulation<'_> {
    /// Finds the positions where a match that began anywhere ends, until `stop_at` returns true.
    fn run(&mut self, entry: &Entry, mut stop_at: impl FnMut(usize) -> bool) -> Result<bool, StepLimitExceeded> {
        let mut position = if entry.backward { self.text.len() } else { 0 };
        let mut states = vec![entry.start];
        let mut next_states = Vec::new();
        loop {
            let unit = next_unit(self.text, position, entry.backward);
            if !states.is_empty() {
                let unit = unit.map(|(unit, _)| unit);
                let matched = self.advance(&mut states, position, unit, &mut next_states)?;
                if matched && stop_at(position) {
                    return Ok(true);
                }
                std::mem::swap(&mut states, &mut next_states);
            }
            let Some((_, next)) = unit else {
                return Ok(false);
            };
            position = next;
            if entry.may_begin(self.text, position) {
                states.push(entry.start);
            }
        }
    }

    /// Drains the states at a position and collects those after the next code unit. Returns whether
    /// one of them is a match.
    fn advance(
        &mut self,
        states: &mut Vec<usize>,
        position: usize,
        unit: Option<u16>,
        next_states: &mut Vec<usize>,
    ) -> Result<bool, StepLimitExceeded> {
        let mut matched = false;
        let mut steps = 0;
        self.round += 1;
        while let Some(mut at) = states.pop() {
            loop {
                steps += 1;
                if std::mem::replace(&mut self.seen[at], self.round) == self.round {
                    break;
                }
                let (reads, continues) = match self.program.code[at] {
                    Instruction::Unit { unit: expected, .. } => (unit == Some(expected), false),
                    Instruction::Set { set, .. } => {
                        (unit.is_some_and(|unit| self.program.sets[set as usize].contains(unit)), false)
                    }
                    Instruction::Split { first, second } => {
                        states.push(offset(at, second));
                        at = offset(at, first);
                        continue;
                    }
                    Instruction::Jump(distance) => {
                        at = offset(at, distance);
                        continue;
                    }
                    Instruction::Assert(assertion) => (false, assertion.holds(self.text, position)),
                    Instruction::LookAround { index, negative } => {
                        let bits = self.look_around_matches[index as usize][position / 64];
                        (false, (bits >> (position % 64) & 1 == 1) != negative)
                    }
                    Instruction::Match => {
                        matched = true;
                        (false, false)
                    }
                    // Nothing is captured without back-references.
                    Instruction::Save(_)
                    | Instruction::Clear(..)
                    | Instruction::CheckAdvance(_)
                    | Instruction::Reference { .. } => (false, true),
                };
                if reads {
                    next_states.push(at + 1);
                }
                if !continues {
                    break;
                }
                at += 1;
            }
        }
        // At most the program size per call, so spending the steps at once is precise enough.
        self.budget.spend(steps)?;
        Ok(matched)
    }
}
