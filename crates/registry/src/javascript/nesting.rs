//! How deeply a source is nested, before anything that recurses sees it.
//!
//! A parser goes one step deeper for each bracket, and for each operator of a chain. A source of nothing but brackets
//! would use up any stack, and a process cannot survive that. So this walks over the text first, without recursion.

/// Deeper than any source that a person or a generator writes.
pub(super) const DEEPEST: usize = 10_000;

/// Returns an upper bound of the nesting: open brackets, and the words and operators before them in each.
///
/// A chain ends with a comma, a semicolon, or a line behind which something new begins. Where a regular expression, a
/// template or a comment begins cannot be told without parsing: a slash may divide, and the text of markup may hold
/// anything. So the text is walked over as it probably is, with every slash as a division, and with nothing passed over
/// at all; the deepest of them counts.
pub(super) fn nesting(source: &str) -> usize {
    let bytes = source.as_bytes();
    let guesses = [Guess::Likely, Guess::NoRegex, Guess::NothingSkipped];
    let deepest = guesses.map(|guess| {
        let mut scan = Scan {
            bytes,
            guess,
            at: 0,
            open: Vec::new(),
            here: Level::default(),
            sum: 0,
            deepest: 0,
            last: Last::Other,
            words_of_type: 0,
        };
        scan.run();
        scan.deepest
    });
    deepest.into_iter().max().unwrap_or_default()
}

/// Returns an upper bound of how deeply markup is nested: between tags stands text, in which nothing ends anything.
pub(super) fn tags(source: &str) -> usize {
    let begins =
        |pair: &&[u8]| pair[0] == b'<' && (is_word(pair[1]) || pair[1] == b'>' || pair[1].is_ascii_whitespace());
    source.as_bytes().windows(2).filter(begins).count()
}

/// What is taken for something other than code.
#[derive(Clone, Copy, PartialEq)]
enum Guess {
    /// Texts, templates, comments, and regular expressions where a value may stand.
    Likely,
    /// The same without regular expressions.
    NoRegex,
    /// Nothing; the end of a line ends a chain then, since texts have long ones.
    NothingSkipped,
}

#[derive(Clone, Copy, Default)]
struct Level {
    chain: usize,
    /// It is the right side of `type X =`, where a union of texts is flat.
    is_type: bool,
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
    guess: Guess,
    at: usize,
    open: Vec<Level>,
    here: Level,
    /// The chains of all open levels.
    sum: usize,
    deepest: usize,
    last: Last,
    /// How much of `type X =` stands before the place, on one line.
    words_of_type: u8,
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
                    self.words_of_type = 0;
                    self.at += 1;
                    if self.guess == Guess::NothingSkipped {
                        self.end_chain();
                    }
                    continue;
                }
                _ if byte.is_ascii_whitespace() => {
                    self.at += 1;
                    continue;
                }
                b'/' | b'\'' | b'"' | b'`' if self.guess == Guess::NothingSkipped => self.at += 1,
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
                    if new_line && self.last == Last::Value {
                        self.end_chain();
                    }
                    self.skip_string(byte);
                    if self.here.is_type {
                        self.last = Last::Value;
                    } else {
                        self.link(Last::Value);
                    }
                }
                b'|' if self.here.is_type && self.text_follows() => self.at += 1,
                b'=' if self.words_of_type == 2 && next != Some(&b'=') => {
                    self.here.is_type = true;
                    self.words_of_type = 0;
                    self.link(Last::Other);
                    self.at += 1;
                }
                b'`' => {
                    self.at += 1;
                    self.skip_template();
                }
                // A slash begins a regular expression where a value may stand, and divides behind a value.
                b'/' if self.last != Last::Value && self.guess == Guess::Likely => {
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
        self.here.is_type = false;
    }

    /// Tells whether a text stands behind the next byte.
    fn text_follows(&self) -> bool {
        let rest = self.bytes.get(self.at + 1..).unwrap_or_default();
        rest.iter().find(|byte| !byte.is_ascii_whitespace()).is_some_and(|byte| matches!(byte, b'\'' | b'"'))
    }

    fn open(&mut self, opened: Opened) {
        self.open.push(self.here);
        self.here = Level { opened, ..Level::default() };
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
        let before = self.bytes[..start].iter().rev().find(|byte| !byte.is_ascii_whitespace());
        let is_behind = new_line || before == Some(&b'}');
        if is_behind && self.last == Last::Value && !CARRYING_ON.contains(&word) {
            self.end_chain();
        }
        self.words_of_type = match (self.words_of_type, word) {
            (0, b"type") => 1,
            (1, _) => 2,
            _ => 0,
        };
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
    #[case::functions_on_one_line("function a(){} function b(){} function c(){}", 3)]
    #[case::unions_of_texts("type A =\n  | 'a'\n  | 'b'\n  | 'c'", 3)]
    #[case::unions_of_values("type = 'a' | 'b' | 'c'", 7)]
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

    #[rstest]
    #[case::behind_an_increment("let x = a++ / ", " / 1")]
    #[case::behind_an_assertion("let x = a! / ", " / 1")]
    #[case::behind_a_name_like_a_word("let x = of / ", " / g")]
    #[case::behind_markup("const v=<p>it`s</p>; const x=", "; const w=<p>it`s</p>;")]
    #[case::behind_a_comment_in_markup("const v=<p>/*</p>; const x=", "; const w=<p>*/</p>;")]
    fn nothing_hides_what_repeats(#[case] before: &str, #[case] behind: &str) {
        let many = DEEPEST + 1;
        for (open, close) in [("[", "]"), ("(", ")")] {
            assert!(nesting(&format!("{before}{}1{}{behind}", open.repeat(many), close.repeat(many))) > DEEPEST);
        }
    }
}
