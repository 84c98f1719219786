//! Compiles a pattern's syntax tree to a program.

use std::{collections::HashMap, ops::Range};

use oxc_allocator::Allocator;
use oxc_regular_expression::{
    LiteralParser, Options,
    ast::{
        Alternative, BoundaryAssertionKind, CapturingGroup, Disjunction, LookAroundAssertion, LookAroundAssertionKind,
        Modifier, Modifiers, Quantifier, Term,
    },
};

use super::{
    Engine, PatternError,
    captures::{Captures, Reference},
    class::{LINE_TERMINATOR, UnitRange, UnitSet, class_ranges, escape_ranges, unit},
    program::{Assertion, Entry, Instruction, Program},
    source::UNBOUNDED,
};

/// Maximum number of instructions. Also keeps every offset and index within 32 bits.
const MAX_INSTRUCTIONS: usize = 500_000;

/// Compiles a source from [`super::source::prepare`].
pub(super) fn compile(source: &str) -> Result<Engine, PatternError> {
    let allocator = Allocator::default();
    let pattern = LiteralParser::new(&allocator, source, None, Options::default())
        .parse()
        .map_err(|diagnostic| syntax_error(&diagnostic.to_string()))?;
    let captures = Captures::collect(&pattern.body);
    if captures.has_duplicate_name {
        return Err(syntax_error("Duplicated capturing group names"));
    }
    if let Some(literal) = literal(&pattern.body) {
        return Ok(Engine::Literal(literal));
    }

    let referenced = captures.referenced();
    let backtracks = !referenced.is_empty();
    let mut compiler = Compiler {
        slot_count: referenced.len() * 2,
        captures,
        referenced,
        set_indices: HashMap::new(),
        program: Program {
            code: Vec::new(),
            sets: Vec::new(),
            look_arounds: Vec::new(),
            main: Entry::default(),
            slot_count: 0,
        },
    };
    let body = compiler.disjunction(&pattern.body, Mode { edge: !backtracks, ..Mode::default() })?;
    compiler.program.main = compiler.entry(body, false)?;
    compiler.program.slot_count = compiler.slot_count;
    let program = compiler.program;
    Ok(if backtracks { Engine::Backtracking(program) } else { Engine::Linear(program) })
}

/// Rewords a message of the parser in terms of the pattern rather than the grammar.
fn syntax_error(message: &str) -> PatternError {
    const REWORDED: [(&str, &str); 4] = [
        ("Lone quantifier", "nothing to repeat"),
        ("Invalid braced quantifier", "nothing to repeat"),
        ("Could not parse the entire pattern", "unmatched `)`"),
        ("Invalid extended atom escape", "incomplete escape"),
    ];
    let message = message.trim_start_matches("Invalid regular expression:").trim_start();
    let reworded = REWORDED.iter().find(|(original, _)| message.starts_with(original));
    let mut message = reworded.map_or(message, |(_, reworded)| reworded).to_owned();
    if let Some(first) = message.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    PatternError::Syntax(message)
}

/// Drops optional repetitions at both ends. A match may begin and end anywhere, so they do not
/// affect whether there is one, and `.*foo.*` is just a slow `foo`.
fn without_optional_ends<'t, 'a>(mut terms: &'t [Term<'a>]) -> &'t [Term<'a>] {
    let is_optional = |term: &Term| matches!(term, Term::Quantifier(quantifier) if quantifier.min == 0);
    while let [first, rest @ ..] = terms
        && is_optional(first)
    {
        terms = rest;
    }
    while let [rest @ .., last] = terms
        && is_optional(last)
    {
        terms = rest;
    }
    terms
}

/// Returns the text of a pattern that consists only of characters.
fn literal(pattern: &Disjunction) -> Option<String> {
    let [alternative] = &pattern.body[..] else {
        return None;
    };
    let units = without_optional_ends(&alternative.body).iter().map(|term| match term {
        Term::Character(character) => Some(unit(character)),
        _ => None,
    });
    String::from_utf16(&units.collect::<Option<Vec<_>>>()?).ok()
}

/// Settings of the part being compiled.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "three of them are regex flags")]
struct Mode {
    backward: bool,
    ignore_case: bool,
    multiline: bool,
    dot_all: bool,
    /// Whether this is a whole alternative of a pattern without captures, whose ends can be
    /// dropped as in [`without_optional_ends`].
    edge: bool,
}

impl Mode {
    /// Applies the modifiers of a group such as `(?i-s:…)`.
    fn modified(self, modifiers: Option<&Modifiers>) -> Self {
        let Some(modifiers) = modifiers else {
            return self;
        };
        let apply = |flag: bool, modifier: Modifier| {
            (flag || modifiers.enabling.contains(modifier)) && !modifiers.disabling.contains(modifier)
        };
        Self {
            ignore_case: apply(self.ignore_case, Modifier::I),
            multiline: apply(self.multiline, Modifier::M),
            dot_all: apply(self.dot_all, Modifier::S),
            ..self
        }
    }
}

/// Code that continues with whatever follows it.
struct Fragment {
    code: Vec<Instruction>,
    /// Whether it may match the empty string.
    is_nullable: bool,
}

impl Fragment {
    fn nullable(code: Vec<Instruction>) -> Self {
        Self { code, is_nullable: true }
    }

    /// Wraps an instruction that reads a unit.
    fn reading(instruction: Instruction) -> Self {
        Self { code: vec![instruction], is_nullable: false }
    }
}

struct Compiler<'a> {
    captures: Captures<'a>,
    /// The source offsets of the groups whose captures are recorded, in order. If there are none,
    /// the program is for the linear engine.
    referenced: Vec<u32>,
    /// The number of slots so far: two for each referenced group, then one for each loop that may
    /// iterate without reading.
    slot_count: usize,
    set_indices: HashMap<UnitSet, u32>,
    program: Program,
}

impl Compiler<'_> {
    fn disjunction(&mut self, disjunction: &Disjunction, mode: Mode) -> Result<Fragment, PatternError> {
        let mut code = Vec::new();
        let mut is_nullable = false;
        let mut exits = Vec::new();
        let last = disjunction.body.len().saturating_sub(1);
        for (index, alternative) in disjunction.body.iter().enumerate() {
            let fragment = self.alternative(alternative, mode)?;
            is_nullable |= fragment.is_nullable;
            if index < last {
                code.push(Instruction::Split { first: 1, second: distance(fragment.code.len() + 2) });
            }
            append(&mut code, &fragment.code)?;
            if index < last {
                exits.push(code.len());
                code.push(Instruction::Jump(0));
            }
        }
        for exit in exits {
            code[exit] = Instruction::Jump(distance(code.len() - exit));
        }
        Ok(Fragment { code, is_nullable })
    }

    fn alternative(&mut self, alternative: &Alternative, mode: Mode) -> Result<Fragment, PatternError> {
        let mut whole = Fragment::nullable(Vec::new());
        let mut terms = &alternative.body[..];
        if mode.edge {
            terms = without_optional_ends(terms);
        }
        let inner = Mode { edge: false, ..mode };
        for index in 0..terms.len() {
            let is_end = index == 0 || index + 1 == terms.len();
            let term = &terms[if mode.backward { terms.len() - 1 - index } else { index }];
            let fragment = match term {
                Term::Quantifier(quantifier) if mode.edge && is_end => {
                    self.quantifier(quantifier, Some(quantifier.min), inner)?
                }
                _ => self.term(term, inner)?,
            };
            whole.is_nullable &= fragment.is_nullable;
            append(&mut whole.code, &fragment.code)?;
        }
        Ok(whole)
    }

    fn term(&mut self, term: &Term, mode: Mode) -> Result<Fragment, PatternError> {
        Ok(match term {
            Term::BoundaryAssertion(assertion) => {
                let assertion = match assertion.kind {
                    BoundaryAssertionKind::Start if mode.multiline => Assertion::LineStart,
                    BoundaryAssertionKind::Start => Assertion::TextStart,
                    BoundaryAssertionKind::End if mode.multiline => Assertion::LineEnd,
                    BoundaryAssertionKind::End => Assertion::TextEnd,
                    BoundaryAssertionKind::Boundary => Assertion::WordBoundary,
                    BoundaryAssertionKind::NegativeBoundary => Assertion::NotWordBoundary,
                };
                Fragment::nullable(vec![Instruction::Assert(assertion)])
            }
            Term::LookAroundAssertion(assertion) => self.look_around(assertion, mode)?,
            Term::Quantifier(quantifier) => self.quantifier(quantifier, quantifier.max, mode)?,
            Term::Character(character) => {
                let unit = unit(character);
                self.set(vec![(unit, unit)], false, mode)
            }
            Term::Dot(_) if mode.dot_all => self.set(Vec::new(), true, mode),
            Term::Dot(_) => self.set(LINE_TERMINATOR.to_vec(), true, mode),
            Term::CharacterClassEscape(escape) => self.set(escape_ranges(escape.kind), false, mode),
            Term::CharacterClass(class) => self.set(class_ranges(class)?, class.negative, mode),
            Term::CapturingGroup(group) => self.group(group, mode)?,
            Term::IgnoreGroup(group) => self.disjunction(&group.body, mode.modified(group.modifiers.as_ref()))?,
            Term::IndexedReference(reference) => self.reference(Reference::Index(reference.index), mode),
            Term::NamedReference(reference) => self.reference(Reference::Name(reference.name.as_str()), mode),
            Term::UnicodePropertyEscape(_) => return Err(PatternError::needs_flag()),
        })
    }

    /// Compiles reading one unit inside or outside of a set.
    fn set(&mut self, ranges: Vec<UnitRange>, inverted: bool, mode: Mode) -> Fragment {
        let mut set = UnitSet::new(ranges);
        if mode.ignore_case {
            set = set.closed_over_case();
        }
        if inverted {
            set = set.inverted();
        }
        let backward = mode.backward;
        if let Some(unit) = set.single() {
            return Fragment::reading(Instruction::Unit { unit, backward });
        }
        let sets = &mut self.program.sets;
        let index = *self.set_indices.entry(set).or_insert_with_key(|set| {
            sets.push(set.clone());
            index_u32(sets.len() - 1)
        });
        Fragment::reading(Instruction::Set { set: index, backward })
    }

    fn group(&mut self, group: &CapturingGroup, mode: Mode) -> Result<Fragment, PatternError> {
        let mut body = self.disjunction(&group.body, mode)?;
        if let Ok(index) = self.referenced.binary_search(&group.span.start) {
            let (start, end) = (Instruction::Save(index_u32(index * 2)), Instruction::Save(index_u32(index * 2 + 1)));
            let (before, after) = if mode.backward { (end, start) } else { (start, end) };
            body.code.insert(0, before);
            body.code.push(after);
        }
        Ok(body)
    }

    /// Compiles a back-reference. Of several groups with one name, at most one has taken part, and
    /// the others match the empty string.
    fn reference(&self, reference: Reference, mode: Mode) -> Fragment {
        let Mode { ignore_case, backward, .. } = mode;
        let indices = self.captures.targets(reference).filter_map(|group| self.referenced.binary_search(&group).ok());
        let slots = indices.map(|index| index_u32(index * 2));
        Fragment::nullable(slots.map(|slot| Instruction::Reference { slot, ignore_case, backward }).collect())
    }

    fn look_around(&mut self, assertion: &LookAroundAssertion, mode: Mode) -> Result<Fragment, PatternError> {
        let (behind, negative) = match assertion.kind {
            LookAroundAssertionKind::Lookahead => (false, false),
            LookAroundAssertionKind::NegativeLookahead => (false, true),
            LookAroundAssertionKind::Lookbehind => (true, false),
            LookAroundAssertionKind::NegativeLookbehind => (true, true),
        };
        // The linear engine looks for the ends of matches that begin anywhere, so it reads the
        // other way.
        let backward = behind != self.referenced.is_empty();
        let body = self.disjunction(&assertion.body, Mode { backward, ..mode })?;
        let entry = self.entry(body, backward)?;
        self.program.look_arounds.push(entry);
        let index = index_u32(self.program.look_arounds.len() - 1);
        Ok(Fragment::nullable(vec![Instruction::LookAround { index, negative }]))
    }

    /// Adds a separate part to the program.
    fn entry(&mut self, mut body: Fragment, backward: bool) -> Result<Entry, PatternError> {
        body.code.push(Instruction::Match);
        let start = self.program.code.len();
        append(&mut self.program.code, &body.code)?;
        Ok(self.program.entry(start, backward))
    }

    /// Compiles a repetition by expanding it: first the mandatory iterations, then the optional ones.
    fn quantifier(&mut self, quantifier: &Quantifier, max: Option<u64>, mode: Mode) -> Result<Fragment, PatternError> {
        let Fragment { mut code, is_nullable } = self.term(&quantifier.body, mode)?;
        // Each iteration starts with the captures of the previous one cleared.
        let referenced = self.captured_in(quantifier.span.start..quantifier.span.end);
        if !referenced.is_empty() {
            code.insert(0, Instruction::Clear(index_u32(referenced.start * 2), index_u32(referenced.end * 2)));
        }
        // An optional iteration that has read nothing is rejected.
        let check = (is_nullable && !self.referenced.is_empty()).then(|| {
            self.slot_count += 1;
            index_u32(self.slot_count - 1)
        });
        let mut optional = code.clone();
        if let Some(slot) = check {
            optional.insert(0, Instruction::Save(slot));
            optional.push(Instruction::CheckAdvance(slot));
        }
        let split = |inside: i32, outside: i32| {
            let (first, second) = if quantifier.greedy { (inside, outside) } else { (outside, inside) };
            Instruction::Split { first, second }
        };

        let min = quantifier.min;
        let mut whole = Vec::new();
        if let Some(max) = max.filter(|&max| max < UNBOUNDED) {
            append_times(&mut whole, &code, min)?;
            let size = optional.len() + 1;
            let rest = within_limit((max - min).saturating_mul(size as u64))?;
            for done in (0..rest).step_by(size) {
                whole.push(split(1, distance(rest - done)));
                append(&mut whole, &optional)?;
            }
        } else {
            // The last mandatory iteration shares its code with the optional ones; otherwise nested
            // loops would double in size at each level. It alone may read nothing, so it skips the
            // instruction that saves the position, with an empty slot.
            append_times(&mut whole, &code, min.saturating_sub(1))?;
            match check {
                _ if min == 0 => whole.push(split(1, distance(optional.len() + 2))),
                Some(slot) => whole.extend([Instruction::Clear(slot, slot + 1), Instruction::Jump(2)]),
                None => {}
            }
            append(&mut whole, &optional)?;
            whole.push(split(-distance(optional.len()), 1));
        }
        Ok(Fragment { code: whole, is_nullable: is_nullable || min == 0 })
    }

    /// Returns which referenced groups are in a part of the source.
    fn captured_in(&self, span: Range<u32>) -> Range<usize> {
        let index = |offset: u32| self.referenced.partition_point(|&start| start < offset);
        index(span.start)..index(span.end)
    }
}

/// Appends code, up to the maximum program size.
fn append(code: &mut Vec<Instruction>, added: &[Instruction]) -> Result<(), PatternError> {
    append_times(code, added, 1)
}

/// Appends code several times, up to the maximum program size.
fn append_times(code: &mut Vec<Instruction>, added: &[Instruction], times: u64) -> Result<(), PatternError> {
    let size = within_limit(times.saturating_mul(added.len() as u64))?;
    within_limit((code.len() + size) as u64)?;
    code.extend(added.iter().cycle().take(size));
    Ok(())
}

/// Fails if a size exceeds the maximum program size.
fn within_limit(size: u64) -> Result<usize, PatternError> {
    match usize::try_from(size) {
        Ok(size) if size <= MAX_INSTRUCTIONS => Ok(size),
        _ => Err(PatternError::TooLarge),
    }
}

/// Converts the index of a slot, set or look-around, which the program size keeps small.
fn index_u32(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// Converts an offset, which the program size keeps small.
fn distance(length: usize) -> i32 {
    i32::try_from(length).unwrap_or(i32::MAX)
}
