//! How deeply a source is nested, before anything that recurses sees it.
//!
//! A parser goes one step deeper for each bracket, and for each operator of a chain. A source of nothing but brackets
//! would use up any stack, and a process cannot survive that. So this walks over the text first, without recursion.

/// Deeper than any source that a person or a generator writes.
pub(super) const DEEPEST: usize = 5_000;

/// Returns an upper bound of the nesting: open brackets, and the words and operators before them in each.
///
/// A chain ends with a comma, a semicolon, or a line behind which something new begins.
pub(super) fn nesting(source: &str) -> usize {
    let bytes = source.as_bytes();
    let mut scan =
        Scan { bytes, at: 0, open: Vec::new(), here: Level::default(), sum: 0, deepest: 0, last: Last::Other };
    scan.run();
    scan.deepest
}

#[derive(Clone, Copy, Default)]
struct Level {
    chain: usize,
    opened: Opened,
}

/// What kind of bracket is open.
#[derive(Clone, Copy, Default, PartialEq)]
enum Opened {
    #[default]
    Plain,
    /// `${` of a template, whose text goes on behind it.
    Hole,
    /// What stands behind `if` and the like, which is no value.
    Head,
}

/// What stands before the place that is looked at.
#[derive(Clone, Copy, PartialEq)]
enum Last {
    Value,
    /// A word behind which a bracket is a head.
    Heading,
    Other,
}

struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
    open: Vec<Level>,
    here: Level,
    /// The chains of all open levels.
    sum: usize,
    deepest: usize,
    last: Last,
}

/// Words behind which a value stands, so that a slash begins a regular expression.
const BEFORE_VALUES: [&[u8]; 18] = [
    b"return",
    b"typeof",
    b"case",
    b"in",
    b"of",
    b"void",
    b"delete",
    b"new",
    b"else",
    b"do",
    b"await",
    b"yield",
    b"throw",
    b"extends",
    b"default",
    b"instanceof",
    b"as",
    b"satisfies",
];

/// Words that carry on what the line before began.
const CARRYING_ON: [&[u8]; 12] = [
    b"in",
    b"of",
    b"instanceof",
    b"as",
    b"satisfies",
    b"is",
    b"extends",
    b"implements",
    b"else",
    b"while",
    b"catch",
    b"finally",
];

const HEADING: [&[u8]; 5] = [b"if", b"while", b"for", b"with", b"switch"];

impl Scan<'_> {
    fn run(&mut self) {
        let mut new_line = false;
        while let Some(&byte) = self.bytes.get(self.at) {
            let next = self.bytes.get(self.at + 1);
            match byte {
                b'\n' => {
                    new_line = true;
                    self.at += 1;
                    continue;
                }
                _ if byte.is_ascii_whitespace() => {
                    self.at += 1;
                    continue;
                }
                b'/' if next == Some(&b'/') => {
                    self.skip_past(b"\n");
                    new_line = true;
                    continue;
                }
                b'/' if next == Some(&b'*') => {
                    self.at += 2;
                    self.skip_past(b"*/");
                    continue;
                }
                b'\'' | b'"' => {
                    self.skip_string(byte);
                    self.link(Last::Value);
                }
                b'`' => {
                    self.at += 1;
                    self.skip_template();
                }
                // A slash begins a regular expression where a value may stand, and divides behind a value.
                b'/' if self.last != Last::Value => {
                    self.skip_regex();
                    self.link(Last::Value);
                }
                b'(' | b'[' | b'{' => {
                    self.open(if byte == b'(' && self.last == Last::Heading { Opened::Head } else { Opened::Plain });
                    self.at += 1;
                }
                b')' | b']' | b'}' => {
                    self.at += 1;
                    let opened = self.close();
                    self.last = if opened == Opened::Head { Last::Other } else { Last::Value };
                    if opened == Opened::Hole && byte == b'}' {
                        self.skip_template();
                    }
                }
                b',' | b';' => {
                    self.end_chain();
                    self.at += 1;
                    self.last = Last::Other;
                }
                _ if is_word(byte) => self.word(new_line),
                _ => {
                    self.link(Last::Other);
                    self.at += 1;
                }
            }
            new_line = false;
        }
    }

    /// Notes a link of the chain in the innermost bracket.
    fn link(&mut self, last: Last) {
        self.here.chain += 1;
        self.sum += 1;
        self.deepest = self.deepest.max(self.sum + self.open.len());
        self.last = last;
    }

    fn end_chain(&mut self) {
        self.sum -= self.here.chain;
        self.here.chain = 0;
    }

    fn open(&mut self, opened: Opened) {
        self.open.push(self.here);
        self.here = Level { chain: 0, opened };
        self.deepest = self.deepest.max(self.sum + self.open.len());
        self.last = Last::Other;
    }

    fn close(&mut self) -> Opened {
        let Some(outer) = self.open.pop() else { return Opened::Plain };
        self.sum -= self.here.chain;
        std::mem::replace(&mut self.here, outer).opened
    }

    fn word(&mut self, new_line: bool) {
        let start = self.at;
        while self.bytes.get(self.at).is_some_and(|&byte| is_word(byte)) {
            self.at += 1;
        }
        let word = &self.bytes[start..self.at];
        let is_property = start > 0 && self.bytes[start - 1] == b'.';
        // A value cannot stand behind a value: a statement has ended.
        if new_line && self.last == Last::Value && !CARRYING_ON.contains(&word) {
            self.end_chain();
        }
        self.link(match word {
            _ if is_property => Last::Value,
            _ if HEADING.contains(&word) => Last::Heading,
            _ if BEFORE_VALUES.contains(&word) => Last::Other,
            _ => Last::Value,
        });
    }

    fn skip_string(&mut self, quote: u8) {
        self.at += 1;
        while let Some(&byte) = self.bytes.get(self.at) {
            self.at += if byte == b'\\' { 2 } else { 1 };
            // Strings end with their line; what seemed to be one may have been part of a regular expression.
            if byte == quote || byte == b'\n' {
                break;
            }
        }
    }

    fn skip_regex(&mut self) {
        self.at += 1;
        let mut in_class = false;
        while let Some(&byte) = self.bytes.get(self.at) {
            self.at += if byte == b'\\' { 2 } else { 1 };
            match byte {
                b'[' => in_class = true,
                b']' => in_class = false,
                b'/' if !in_class => break,
                b'\n' => break,
                _ => {}
            }
        }
    }

    /// Skips the text of a template up to its end, or to a hole, which is a bracket.
    fn skip_template(&mut self) {
        while let Some(&byte) = self.bytes.get(self.at) {
            self.at += if byte == b'\\' { 2 } else { 1 };
            if byte == b'`' {
                return self.link(Last::Value);
            }
            if byte == b'$' && self.bytes.get(self.at) == Some(&b'{') {
                self.at += 1;
                return self.open(Opened::Hole);
            }
        }
    }

    fn skip_past(&mut self, end: &[u8]) {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        self.at +=
            rest.windows(end.len()).position(|window| window == end).map_or(rest.len(), |found| found + end.len());
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::brackets("[[[1]]]", 4)]
    #[case::closed_ones_do_not_add_up("[1],[2],[3]", 2)]
    #[case::prefixes("!!!!a", 5)]
    #[case::in_a_string("'((((((' + \"[[[[\"", 3)]
    #[case::in_a_comment("/* (((( */ a // [[[[", 1)]
    #[case::in_a_regex("a = /[(/'{](/, b", 3)]
    #[case::in_a_template("`(((( ${a} (((`", 2)]
    #[case::statements("const a = 1\nconst b = 2\nexport {a}", 4)]
    #[case::calls_without_semicolons("a.b(c)\na.b(c)\na.b(c)", 5)]
    #[case::conditions_on_lines_of_their_own("if (a)\nif (a)\nb", 4)]
    #[case::members_without_semicolons("interface A {\n  a: string\n  b: string\n}", 6)]
    fn what_stands_inside_of_something_is_counted(#[case] source: &str, #[case] expected: usize) {
        assert_eq!(nesting(source), expected);
    }

    #[rstest]
    #[case("[")]
    #[case("(")]
    #[case("`${")]
    #[case("!")]
    #[case("a=>")]
    #[case("a?b:")]
    #[case("new ")]
    #[case("if(a)")]
    #[case("if (a)\n")]
    #[case("a\n+")]
    #[case("typeof\n")]
    #[case("a\n.b")]
    #[case("a**")]
    #[case("<a>")]
    #[case("{a:")]
    fn whatever_repeats_is_found(#[case] piece: &str) {
        assert!(nesting(&piece.repeat(DEEPEST + 1)) > DEEPEST);
    }
}
