//! Compiles a pattern's syntax tree to a program.

use std::{collections::HashMap, ops::Range};

use oxc_allocator::Allocator;
use oxc_regular_expression::{
    LiteralParser, Options,
    ast::{
        Alternative, BoundaryAssertionKind, CapturingGroup, Character, CharacterClass, CharacterClassContents,
        CharacterClassEscapeKind, Disjunction, IndexedReference, LookAroundAssertion, LookAroundAssertionKind,
        Modifier, Modifiers, NamedReference, Quantifier, Term,
    },
    visit::{Visit, walk},
};

use super::{
    Engine, PatternError,
    class::{DIGIT, LINE_TERMINATOR, SPACE, UnitRange, UnitSet, WORD},
    program::{Assertion, Entry, Instruction, Program},
    source::ENDLESS,
};

/// The most instructions in a program. Also keeps every offset and number within 32 bits.
const SIZE_LIMIT: usize = 200_000;

/// Compiles a source that [`super::source::prepare`] has prepared.
pub(super) fn compile(source: &str) -> Result<Engine, PatternError> {
    let allocator = Allocator::default();
    let pattern = LiteralParser::new(&allocator, source, None, Options::default())
        .parse()
        .map_err(|diagnostic| syntax_error(&diagnostic.to_string()))?;
    if let Some(literal) = literal(&pattern.body) {
        return Ok(Engine::Literal(literal));
    }

    let mut survey = Survey::default();
    survey.visit_disjunction(&pattern.body);
    if survey.repeats_name {
        return Err(syntax_error("Duplicated capturing group names"));
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
    let body = compiler.disjunction(&pattern.body, Mode::default())?;
    compiler.program.main = compiler.entry(body, false)?;
    compiler.program.slots = compiler.slots;
    let program = compiler.program;
    Ok(if backtracks { Engine::Backtracking(program) } else { Engine::Linear(program) })
}

/// Words the parser's complaint as a fragment, in terms of the pattern rather than of the grammar.
fn syntax_error(message: &str) -> PatternError {
    let message = message.trim_start_matches("Invalid regular expression:").trim_start();
    let mut characters = message.chars();
    let first = characters.next().map(|first| first.to_ascii_lowercase());
    PatternError::Syntax(match message {
        _ if message.starts_with("Lone quantifier") => "nothing to repeat".to_owned(),
        _ if message.starts_with("Invalid braced quantifier") => "nothing to repeat".to_owned(),
        _ if message.starts_with("Could not parse") => "unmatched `)`".to_owned(),
        _ if message.starts_with("Invalid extended atom") => "incomplete escape".to_owned(),
        _ => first.into_iter().chain(characters).collect(),
    })
}

/// Returns the text that a pattern of nothing but characters stands for.
fn literal(pattern: &Disjunction) -> Option<String> {
    let [alternative] = &pattern.body[..] else {
        return None;
    };
    let units = alternative.body.iter().map(|term| match term {
        Term::Character(character) => Some(unit(character)),
        _ => None,
    });
    String::from_utf16(&units.collect::<Option<Vec<_>>>()?).ok()
}

/// Returns the code unit that a character stands for.
#[expect(
    clippy::cast_possible_truncation,
    reason = "without the flags u and v, the parser takes the source apart into code units"
)]
fn unit(character: &Character) -> u16 {
    character.value as u16
}

/// What must be known of the whole pattern before any of it is compiled.
#[derive(Default)]
struct Survey<'a> {
    /// Where each capturing group begins in the source; the first is group 1.
    starts: Vec<u32>,
    /// The name of each capturing group.
    names: Vec<Option<&'a str>>,
    indexed_references: Vec<u32>,
    named_references: Vec<&'a str>,
    /// The names that can take part in the same match as what is visited next. The parser's own
    /// check for duplicates lets some pass, such as `(?:(?<n>a)|b)(?:c|(?<n>d))`.
    names_in_reach: Vec<&'a str>,
    repeats_name: bool,
}

impl<'a> Visit<'a> for Survey<'a> {
    fn visit_disjunction(&mut self, disjunction: &Disjunction<'a>) {
        let outside = self.names_in_reach.len();
        let mut inside = Vec::new();
        for alternative in &disjunction.body {
            self.visit_alternative(alternative);
            inside.extend(self.names_in_reach.drain(outside..));
        }
        self.names_in_reach.extend(inside);
    }

    fn visit_capturing_group(&mut self, group: &CapturingGroup<'a>) {
        let name = group.name.as_ref().map(|name| name.as_str());
        if let Some(name) = name {
            self.repeats_name |= self.names_in_reach.contains(&name);
            self.names_in_reach.push(name);
        }
        self.starts.push(group.span.start);
        self.names.push(name);
        walk::walk_capturing_group(self, group);
    }

    fn visit_indexed_reference(&mut self, reference: &IndexedReference) {
        self.indexed_references.push(reference.index);
    }

    fn visit_named_reference(&mut self, reference: &NamedReference<'a>) {
        self.named_references.push(reference.name.as_str());
    }
}

impl Survey<'_> {
    /// Returns the places in the source of the groups that a reference reads, in order.
    fn captured(&self) -> Vec<u32> {
        let indexed = self.indexed_references.iter().filter_map(|&index| self.by_index(index));
        let named = self.named_references.iter().flat_map(|name| self.by_name(name));
        let mut captured: Vec<u32> = indexed.chain(named).collect();
        captured.sort_unstable();
        captured.dedup();
        captured
    }

    fn by_index(&self, index: u32) -> Option<u32> {
        self.starts.get((index as usize).checked_sub(1)?).copied()
    }

    fn by_name(&self, name: &str) -> impl Iterator<Item = u32> {
        let named = self.names.iter().zip(&self.starts);
        named.filter(move |(other, _)| **other == Some(name)).map(|(_, &start)| start)
    }
}

/// How the part being compiled is read.
#[derive(Debug, Clone, Copy, Default)]
struct Mode {
    backward: bool,
    ignore_case: bool,
    multiline: bool,
    dot_all: bool,
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
        let mut terms = alternative.body.iter();
        while let Some(term) = if mode.backward { terms.next_back() } else { terms.next() } {
            let fragment = self.term(term, mode)?;
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
            Term::Quantifier(quantifier) => self.quantifier(quantifier, mode)?,
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
            Term::IndexedReference(reference) => {
                let groups = self.survey.by_index(reference.index).into_iter().collect();
                self.references(groups, mode)
            }
            Term::NamedReference(reference) => {
                let groups = self.survey.by_name(reference.name.as_str()).collect();
                self.references(groups, mode)
            }
            Term::UnicodePropertyEscape(_) => return Err(needs_flag()),
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

    /// Compiles reading again what groups captured. Of several with one name at most one has taken
    /// part, and the others match nothing.
    fn references(&self, groups: Vec<u32>, mode: Mode) -> Fragment {
        let indices = groups.iter().filter_map(|group| self.captured.binary_search(group).ok());
        Fragment::nullable(
            indices
                .map(|index| Instruction::Reference {
                    slot: number(index * 2),
                    ignore_case: mode.ignore_case,
                    backward: mode.backward,
                })
                .collect(),
        )
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
    fn quantifier(&mut self, quantifier: &Quantifier, mode: Mode) -> Result<Fragment, PatternError> {
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
        let split = |inside: i32, outside: i32| match quantifier.greedy {
            true => Instruction::Split { first: inside, second: outside },
            false => Instruction::Split { first: outside, second: inside },
        };

        let (minimum, maximum) = (quantifier.min, quantifier.max.filter(|&max| max < ENDLESS));
        let mut whole = Vec::new();
        match maximum {
            Some(maximum) => {
                append_times(&mut whole, &code, minimum)?;
                let unit = optional.len() + 1;
                let rest = maximum - minimum;
                let rest = within_limit(rest.saturating_mul(unit as u64))?;
                for done in (0..rest).step_by(unit) {
                    whole.push(split(1, distance(rest - done)));
                    append(&mut whole, &optional)?;
                }
            }
            None if minimum == 0 => {
                whole.push(split(1, distance(optional.len() + 2)));
                append(&mut whole, &optional)?;
                whole.push(Instruction::Jump(-distance(optional.len() + 1)));
            }
            None => {
                // The last iteration that must be shares its code with those that may follow, or
                // nested loops would double in size at each level. It alone may read nothing, so
                // it enters past the saving of the position, with an empty slot.
                append_times(&mut whole, &code, minimum - 1)?;
                if let Some(slot) = check {
                    whole.extend([Instruction::Clear(slot, slot + 1), Instruction::Jump(2)]);
                }
                append(&mut whole, &optional)?;
                whole.push(split(-distance(optional.len()), 1));
            }
        }
        Ok(Fragment { code: whole, nullable: nullable || minimum == 0 })
    }

    /// Returns which of the captured groups are in a part of the source.
    fn captured_in(&self, span: Range<u32>) -> Range<usize> {
        let index = |place: u32| self.captured.partition_point(|&start| start < place);
        index(span.start)..index(span.end)
    }
}

/// Returns what an escape such as `\d` matches.
fn escaped(kind: CharacterClassEscapeKind) -> Vec<UnitRange> {
    let (ranges, negative) = match kind {
        CharacterClassEscapeKind::D => (DIGIT, false),
        CharacterClassEscapeKind::NegativeD => (DIGIT, true),
        CharacterClassEscapeKind::S => (SPACE, false),
        CharacterClassEscapeKind::NegativeS => (SPACE, true),
        CharacterClassEscapeKind::W => (WORD, false),
        CharacterClassEscapeKind::NegativeW => (WORD, true),
    };
    let ranges = ranges.to_vec();
    if negative { UnitSet::new(ranges).inverted().ranges().to_vec() } else { ranges }
}

/// Returns the members of a class, before it is negated.
fn members(class: &CharacterClass) -> Result<Vec<UnitRange>, PatternError> {
    let mut ranges = Vec::with_capacity(class.body.len());
    for content in &class.body {
        match content {
            CharacterClassContents::CharacterClassRange(range) => {
                ranges.push((unit(&range.min), unit(&range.max)));
            }
            CharacterClassContents::CharacterClassEscape(escape) => {
                ranges.extend(escaped(escape.kind));
            }
            CharacterClassContents::Character(character) => {
                ranges.push((unit(character), unit(character)));
            }
            CharacterClassContents::UnicodePropertyEscape(_)
            | CharacterClassContents::NestedCharacterClass(_)
            | CharacterClassContents::ClassStringDisjunction(_) => return Err(needs_flag()),
        }
    }
    Ok(ranges)
}

/// Makes the error for syntax that the parser never reports without the flags u and v.
fn needs_flag() -> PatternError {
    PatternError::Syntax("syntax that needs the flag u or v".to_owned())
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
