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
    class::{LINE_TERMINATOR, UnitRange, UnitSet, escaped, members, unit},
    program::{Assertion, Entry, Instruction, Program},
    source::ENDLESS,
    survey::{Reference, Survey},
};

/// The most instructions in a program. Also keeps every offset and number within 32 bits.
const SIZE_LIMIT: usize = 500_000;

/// Compiles a source that [`super::source::prepare`] has prepared.
pub(super) fn compile(source: &str) -> Result<Engine, PatternError> {
    let allocator = Allocator::default();
    let pattern = LiteralParser::new(&allocator, source, None, Options::default())
        .parse()
        .map_err(|diagnostic| syntax_error(&diagnostic.to_string()))?;
    let survey = Survey::of(&pattern.body);
    if survey.repeats_name {
        return Err(syntax_error("Duplicated capturing group names"));
    }
    if let Some(literal) = literal(&pattern.body) {
        return Ok(Engine::Literal(literal));
    }

    let captured = survey.captured();
    let backtracks = !captured.is_empty();
    let mut compiler = Compiler {
        slots: captured.len() * 2,
        survey,
        captured,
        set_numbers: HashMap::new(),
        program: Program { code: Vec::new(), sets: Vec::new(), looks: Vec::new(), main: Entry::default(), slots: 0 },
    };
    let body = compiler.disjunction(&pattern.body, Mode { edge: !backtracks, ..Mode::default() })?;
    compiler.program.main = compiler.entry(body, false)?;
    compiler.program.slots = compiler.slots;
    let program = compiler.program;
    Ok(if backtracks { Engine::Backtracking(program) } else { Engine::Linear(program) })
}

/// Words the parser's complaint as a fragment, in terms of the pattern rather than of the grammar.
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

/// Drops the repetitions at both ends that need not be there: a match may begin and end anywhere,
/// so there is one with them exactly if there is one without, and `.*foo.*` is but a slow `foo`.
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

/// Returns the text that a pattern of nothing but characters looks for.
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

/// How the part being compiled is read.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "three of them are the flags of the language")]
struct Mode {
    backward: bool,
    ignore_case: bool,
    multiline: bool,
    dot_all: bool,
    /// Whether this is a whole alternative of a pattern in which nothing is captured, whose ends
    /// can be cut as in [`without_optional_ends`].
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

/// Code that runs into whatever follows it.
struct Fragment {
    code: Vec<Instruction>,
    /// Whether it may match without reading anything.
    nullable: bool,
}

impl Fragment {
    /// Makes code that is always there and may read nothing.
    fn nullable(code: Vec<Instruction>) -> Self {
        Self { code, nullable: true }
    }

    /// Makes one instruction that reads a unit.
    fn reading(instruction: Instruction) -> Self {
        Self { code: vec![instruction], nullable: false }
    }
}

struct Compiler<'a> {
    survey: Survey<'a>,
    /// The places of the groups whose captures are kept, in order. If there are none, nothing is
    /// kept and the program is for the linear engine.
    captured: Vec<u32>,
    /// The number of slots so far: two for each captured group, then one for each loop that may
    /// iterate without reading.
    slots: usize,
    set_numbers: HashMap<UnitSet, u32>,
    program: Program,
}

impl Compiler<'_> {
    fn disjunction(&mut self, disjunction: &Disjunction, mode: Mode) -> Result<Fragment, PatternError> {
        let mut code = Vec::new();
        let mut nullable = false;
        let mut exits = Vec::new();
        let last = disjunction.body.len().saturating_sub(1);
        for (index, alternative) in disjunction.body.iter().enumerate() {
            let fragment = self.alternative(alternative, mode)?;
            nullable |= fragment.nullable;
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
        Ok(Fragment { code, nullable })
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
            whole.nullable &= fragment.nullable;
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
                    BoundaryAssertionKind::NegativeBoundary => Assertion::NoWordBoundary,
                };
                Fragment::nullable(vec![Instruction::Assert(assertion)])
            }
            Term::LookAroundAssertion(look) => self.look(look, mode)?,
            Term::Quantifier(quantifier) => self.quantifier(quantifier, quantifier.max, mode)?,
            Term::Character(character) => {
                let unit = unit(character);
                self.set(vec![(unit, unit)], false, mode)
            }
            Term::Dot(_) if mode.dot_all => self.set(Vec::new(), true, mode),
            Term::Dot(_) => self.set(LINE_TERMINATOR.to_vec(), true, mode),
            Term::CharacterClassEscape(escape) => self.set(escaped(escape.kind), false, mode),
            Term::CharacterClass(class) => self.set(members(class)?, class.negative, mode),
            Term::CapturingGroup(group) => self.group(group, mode)?,
            Term::IgnoreGroup(group) => self.disjunction(&group.body, mode.modified(group.modifiers.as_ref()))?,
            Term::IndexedReference(reference) => self.reference(Reference::Index(reference.index), mode),
            Term::NamedReference(reference) => self.reference(Reference::Name(reference.name.as_str()), mode),
            Term::UnicodePropertyEscape(_) => return Err(PatternError::needs_flag()),
        })
    }

    /// Compiles reading one unit that is in a set, or that is not.
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
        let number = *self.set_numbers.entry(set).or_insert_with_key(|set| {
            sets.push(set.clone());
            number(sets.len() - 1)
        });
        Fragment::reading(Instruction::Set { set: number, backward })
    }

    fn group(&mut self, group: &CapturingGroup, mode: Mode) -> Result<Fragment, PatternError> {
        let mut body = self.disjunction(&group.body, mode)?;
        if let Ok(index) = self.captured.binary_search(&group.span.start) {
            let (start, end) = (Instruction::Save(number(index * 2)), Instruction::Save(number(index * 2 + 1)));
            let (before, after) = if mode.backward { (end, start) } else { (start, end) };
            body.code.insert(0, before);
            body.code.push(after);
        }
        Ok(body)
    }

    /// Compiles reading again what a group captured. Of several groups with one name at most one has
    /// taken part, and the others match nothing.
    fn reference(&self, reference: Reference, mode: Mode) -> Fragment {
        let Mode { ignore_case, backward, .. } = mode;
        let indices = self.survey.targets(reference).filter_map(|group| self.captured.binary_search(&group).ok());
        let slots = indices.map(|index| number(index * 2));
        Fragment::nullable(slots.map(|slot| Instruction::Reference { slot, ignore_case, backward }).collect())
    }

    fn look(&mut self, look: &LookAroundAssertion, mode: Mode) -> Result<Fragment, PatternError> {
        let (behind, negative) = match look.kind {
            LookAroundAssertionKind::Lookahead => (false, false),
            LookAroundAssertionKind::NegativeLookahead => (false, true),
            LookAroundAssertionKind::Lookbehind => (true, false),
            LookAroundAssertionKind::NegativeLookbehind => (true, true),
        };
        // The linear engine asks where matches end that begin anywhere, so it reads the other way.
        let backward = behind != self.captured.is_empty();
        let body = self.disjunction(&look.body, Mode { backward, ..mode })?;
        let entry = self.entry(body, backward)?;
        self.program.looks.push(entry);
        let look = number(self.program.looks.len() - 1);
        Ok(Fragment::nullable(vec![Instruction::Look { look, negative }]))
    }

    /// Adds code to the program as a part of its own.
    fn entry(&mut self, mut body: Fragment, backward: bool) -> Result<Entry, PatternError> {
        body.code.push(Instruction::Match);
        let start = self.program.code.len();
        append(&mut self.program.code, &body.code)?;
        Ok(self.program.entry(start, backward))
    }

    /// Compiles a repetition, written out: first the iterations that must be, then those that may.
    fn quantifier(
        &mut self,
        quantifier: &Quantifier,
        maximum: Option<u64>,
        mode: Mode,
    ) -> Result<Fragment, PatternError> {
        let Fragment { mut code, nullable } = self.term(&quantifier.body, mode)?;
        // Each iteration starts with what the one before has captured forgotten.
        let captured = self.captured_in(quantifier.span.start..quantifier.span.end);
        if !captured.is_empty() {
            code.insert(0, Instruction::Clear(number(captured.start * 2), number(captured.end * 2)));
        }
        // An iteration that need not be and has read nothing is rejected.
        let check = (nullable && !self.captured.is_empty()).then(|| {
            self.slots += 1;
            number(self.slots - 1)
        });
        let mut optional = code.clone();
        if let Some(slot) = check {
            optional.insert(0, Instruction::Save(slot));
            optional.push(Instruction::Check(slot));
        }
        let split = |inside: i32, outside: i32| {
            let (first, second) = if quantifier.greedy { (inside, outside) } else { (outside, inside) };
            Instruction::Split { first, second }
        };

        let minimum = quantifier.min;
        let mut whole = Vec::new();
        if let Some(maximum) = maximum.filter(|&maximum| maximum < ENDLESS) {
            append_times(&mut whole, &code, minimum)?;
            let size = optional.len() + 1;
            let rest = within_limit((maximum - minimum).saturating_mul(size as u64))?;
            for done in (0..rest).step_by(size) {
                whole.push(split(1, distance(rest - done)));
                append(&mut whole, &optional)?;
            }
        } else {
            // The last iteration that must be shares its code with those that may follow, or
            // nested loops would double in size at each level. It alone may read nothing, so
            // it enters past the saving of the position, with an empty slot.
            append_times(&mut whole, &code, minimum.saturating_sub(1))?;
            match check {
                _ if minimum == 0 => whole.push(split(1, distance(optional.len() + 2))),
                Some(slot) => whole.extend([Instruction::Clear(slot, slot + 1), Instruction::Jump(2)]),
                None => {}
            }
            append(&mut whole, &optional)?;
            whole.push(split(-distance(optional.len()), 1));
        }
        Ok(Fragment { code: whole, nullable: nullable || minimum == 0 })
    }

    /// Returns which of the captured groups are in a part of the source.
    fn captured_in(&self, span: Range<u32>) -> Range<usize> {
        let index = |place: u32| self.captured.partition_point(|&start| start < place);
        index(span.start)..index(span.end)
    }
}

/// Adds code, within the limit on a program's size.
fn append(code: &mut Vec<Instruction>, added: &[Instruction]) -> Result<(), PatternError> {
    append_times(code, added, 1)
}

/// Adds code several times, within the limit on a program's size.
fn append_times(code: &mut Vec<Instruction>, added: &[Instruction], times: u64) -> Result<(), PatternError> {
    let size = within_limit(times.saturating_mul(added.len() as u64))?;
    within_limit((code.len() + size) as u64)?;
    code.extend(added.iter().cycle().take(size));
    Ok(())
}

/// Refuses a size past the limit on a program's.
fn within_limit(size: u64) -> Result<usize, PatternError> {
    match usize::try_from(size) {
        Ok(size) if size <= SIZE_LIMIT => Ok(size),
        _ => Err(PatternError::TooLarge),
    }
}

/// Makes a number of a slot, set or look-around, which the limit on a program's size keeps small.
fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// Makes an offset, which the limit on a program's size keeps small.
fn distance(length: usize) -> i32 {
    i32::try_from(length).unwrap_or(i32::MAX)
}
