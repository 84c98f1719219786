//! Sets of UTF-16 code units: character classes, escapes and case folding.

use std::sync::LazyLock;

use oxc_regular_expression::ast::{Character, CharacterClass, CharacterClassContents, CharacterClassEscapeKind};

use super::PatternError;

/// A range of code units, both ends included.
pub(super) type UnitRange = (u16, u16);

/// The units of `\d`.
const DIGIT: &[UnitRange] = &[(0x30, 0x39)];

/// The units of `\w`.
const WORD: &[UnitRange] = &[(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)];

/// The units of `\s`: ECMAScript's whitespace and line terminators.
const SPACE: &[UnitRange] = &[
    (0x09, 0x0D),
    (0x20, 0x20),
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x2028, 0x2029),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
    (0xFEFF, 0xFEFF),
];

/// The units that `.` does not match.
pub(super) const LINE_TERMINATOR: &[UnitRange] = &[(0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029)];

/// A set of code units.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct UnitSet {
    /// The members below 128 as bits, since most strings are mostly ASCII.
    ascii: u128,
    /// All members, as sorted ranges that neither overlap nor touch.
    ranges: Vec<UnitRange>,
}

impl UnitSet {
    pub(super) fn new(mut ranges: Vec<UnitRange>) -> Self {
        ranges.sort_unstable();
        ranges.dedup_by(|next, previous| {
            let joins = next.0 <= previous.1.saturating_add(1);
            if joins {
                previous.1 = previous.1.max(next.1);
            }
            joins
        });
        let ascii = (0..128).filter(|&unit| in_ranges(&ranges, unit)).map(|unit| 1 << unit).sum();
        Self { ascii, ranges }
    }

    #[inline]
    pub(super) fn contains(&self, unit: u16) -> bool {
        if unit < 128 { self.ascii >> unit & 1 == 1 } else { in_ranges(&self.ranges, unit) }
    }

    /// Returns the member of a one-element set.
    pub(super) fn single(&self) -> Option<u16> {
        match self.ranges[..] {
            [(first, last)] if first == last => Some(first),
            _ => None,
        }
    }

    pub(super) fn ranges(&self) -> &[UnitRange] {
        &self.ranges
    }

    /// Returns the complement.
    pub(super) fn inverted(&self) -> Self {
        let mut gaps = Vec::with_capacity(self.ranges.len() + 1);
        let mut next_free = Some(0);
        for &(first, last) in &self.ranges {
            if let Some(start) = next_free.filter(|&start| start < first) {
                gaps.push((start, first - 1));
            }
            next_free = last.checked_add(1);
        }
        gaps.extend(next_free.map(|start| (start, u16::MAX)));
        Self::new(gaps)
    }

    /// Adds every unit that differs from a member only in case.
    pub(super) fn closed_over_case(self) -> Self {
        let grown = |set: Self, from: fn(&UnitRange) -> UnitRange| {
            let added = CASE_PAIRS.iter().map(from);
            let added = added.filter(|&(present, _)| set.contains(present));
            let added = added.map(|(_, absent)| (absent, absent)).collect::<Vec<_>>();
            Self::new([set.ranges, added].concat())
        };
        // Add the canonical form of every member, then all units with the same form.
        grown(grown(self, |&pair| pair), |&(unit, canonical)| (canonical, unit))
    }
}

/// Whether sorted, disjoint ranges contain the unit.
fn in_ranges(ranges: &[UnitRange], unit: u16) -> bool {
    let after = ranges.partition_point(|&(first, _)| first <= unit);
    after > 0 && unit <= ranges[after - 1].1
}

/// The units that differ from their canonical form, with that form.
static CASE_PAIRS: LazyLock<Vec<(u16, u16)>> = LazyLock::new(|| {
    let pairs = (0..=u16::MAX).map(|unit| (unit, canonicalize(unit)));
    pairs.filter(|(unit, canonical)| unit != canonical).collect()
});

/// Returns the canonical form of a unit, which most cases of a letter share: ECMAScript's `Canonicalize` without `u`.
pub(super) fn canonicalize(unit: u16) -> u16 {
    let Some(character) = char::from_u32(u32::from(unit)) else {
        return unit;
    };
    let mut upper = character.to_uppercase();
    match (upper.next().map(|upper| u16::try_from(u32::from(upper))), upper.next()) {
        (Some(Ok(upper)), None) if unit < 128 || upper >= 128 => upper,
        _ => unit,
    }
}

/// Whether `\w` matches the unit.
pub(super) fn is_word(unit: u16) -> bool {
    in_ranges(WORD, unit)
}

pub(super) fn is_line_terminator(unit: u16) -> bool {
    in_ranges(LINE_TERMINATOR, unit)
}

/// Returns the code unit of a character.
#[expect(
    clippy::cast_possible_truncation,
    reason = "without the flags u and v, the parser splits the source into code units"
)]
pub(super) fn unit(character: &Character) -> u16 {
    character.value as u16
}

/// Returns the units of an escape such as `\d`.
pub(super) fn escape_ranges(kind: CharacterClassEscapeKind) -> Vec<UnitRange> {
    let (ranges, negative) = match kind {
        CharacterClassEscapeKind::D => (DIGIT, false),
        CharacterClassEscapeKind::NegativeD => (DIGIT, true),
        CharacterClassEscapeKind::S => (SPACE, false),
        CharacterClassEscapeKind::NegativeS => (SPACE, true),
        CharacterClassEscapeKind::W => (WORD, false),
        CharacterClassEscapeKind::NegativeW => (WORD, true),
    };
    if negative { UnitSet::new(ranges.to_vec()).inverted().ranges } else { ranges.to_vec() }
}

/// Returns the units of a class before negation.
pub(super) fn class_ranges(class: &CharacterClass) -> Result<Vec<UnitRange>, PatternError> {
    let mut ranges = Vec::with_capacity(class.body.len());
    for content in &class.body {
        match content {
            CharacterClassContents::CharacterClassRange(range) => ranges.push((unit(&range.min), unit(&range.max))),
            CharacterClassContents::CharacterClassEscape(escape) => ranges.extend(escape_ranges(escape.kind)),
            CharacterClassContents::Character(character) => ranges.push((unit(character), unit(character))),
            CharacterClassContents::UnicodePropertyEscape(_)
            | CharacterClassContents::NestedCharacterClass(_)
            | CharacterClassContents::ClassStringDisjunction(_) => return Err(PatternError::needs_flag()),
        }
    }
    Ok(ranges)
}
