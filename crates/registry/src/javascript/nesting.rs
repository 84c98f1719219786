//! How deeply a source is nested, before anything that recurses sees it.
//!
//! A parser goes one step deeper for each bracket, and for each operator of a chain. A source of nothing but brackets
//! would use up any stack, and a process cannot survive that. So this walks over the text first, without recursion.

/// Deeper than any source that a person or a generator writes.
pub(super) const DEEPEST: usize = 20_000;

/// Returns an upper bound of the nesting: open brackets, and the words and operators before them in each.
///
/// A comma or semicolon ends a chain, and so does a word that can only begin a statement.
pub(super) fn nesting(source: &str) -> usize {
    let bytes = source.as_bytes();
    let mut scan = Scan { bytes, at: 0, open: Vec::new(), here: Level::default(), sum: 0, deepest: 0 };
    scan.run();
    scan.deepest
}

#[derive(Clone, Copy, Default)]
struct Level {
    chain: usize,
    /// The bracket is `${` of a template, whose text goes on behind it.
    in_template: bool,
}

struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
    open: Vec<Level>,
    here: Level,
    /// The chains of all open levels.
    sum: usize,
    deepest: usize,
}

/// Words that stand only where a statement begins.
const BEGINNINGS: [&[u8]; 9] =
    [b"export", b"const", b"let", b"var", b"return", b"throw", b"interface", b"break", b"continue"];

impl Scan<'_> {
    fn run(&mut self) {
        // A slash begins a regular expression where a value may stand, and divides behind a value.
        let mut behind_value = false;
        while let Some(&byte) = self.bytes.get(self.at) {
            match byte {
                b'\'' | b'"' => {
                    self.skip_string(byte);
                    self.link();
                    behind_value = true;
                }
                b'`' => {
                    self.at += 1;
                    behind_value = self.skip_template();
                }
                b'/' if self.bytes.get(self.at + 1) == Some(&b'/') => self.skip_past(b"\n"),
                b'/' if self.bytes.get(self.at + 1) == Some(&b'*') => {
                    self.at += 2;
                    self.skip_past(b"*/");
                }
                b'/' if !behind_value => {
                    self.skip_regex();
                    self.link();
                    behind_value = true;
                }
                b'(' | b'[' | b'{' => {
                    self.open(false);
                    self.at += 1;
                    behind_value = false;
                }
                b')' | b']' | b'}' => {
                    self.at += 1;
                    let was_template = self.close();
                    behind_value = if was_template && byte == b'}' { self.skip_template() } else { true };
                }
                b',' | b';' => {
                    self.sum -= self.here.chain;
                    self.here.chain = 0;
                    self.at += 1;
                    behind_value = false;
                }
                _ if byte.is_ascii_whitespace() => self.at += 1,
                _ if is_word(byte) => behind_value = self.word(),
                _ => {
                    self.link();
                    self.at += 1;
                    behind_value = false;
                }
            }
        }
    }

    /// Notes a link of the chain in the innermost bracket.
    fn link(&mut self) {
        self.here.chain += 1;
        self.sum += 1;
        self.deepest = self.deepest.max(self.sum + self.open.len());
    }

    fn open(&mut self, in_template: bool) {
        self.open.push(self.here);
        self.here = Level { chain: 0, in_template };
        self.deepest = self.deepest.max(self.sum + self.open.len());
    }

    /// Returns whether the bracket was one of a template.
    fn close(&mut self) -> bool {
        let Some(outer) = self.open.pop() else { return false };
        self.sum -= self.here.chain;
        let was_template = self.here.in_template;
        self.here = outer;
        was_template
    }

    /// Returns whether the word is a value.
    fn word(&mut self) -> bool {
        let start = self.at;
        while self.bytes.get(self.at).is_some_and(|&byte| is_word(byte)) {
            self.at += 1;
        }
        let word = &self.bytes[start..self.at];
        let is_property = start > 0 && self.bytes[start - 1] == b'.';
        if BEGINNINGS.contains(&word) && !is_property {
            self.sum -= self.here.chain;
            self.here.chain = 0;
        }
        self.link();
        is_property || !matches!(word, b"return" | b"typeof" | b"case" | b"in" | b"of" | b"void" | b"delete" | b"new")
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

    /// Skips the text of a template up to its end, or to a hole, which is a bracket. Returns whether it ended.
    fn skip_template(&mut self) -> bool {
        while let Some(&byte) = self.bytes.get(self.at) {
            self.at += if byte == b'\\' { 2 } else { 1 };
            if byte == b'`' {
                self.link();
                return true;
            }
            if byte == b'$' && self.bytes.get(self.at) == Some(&b'{') {
                self.at += 1;
                self.open(true);
                return false;
            }
        }
        true
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
    #[case::statements("const a = 1\nconst b = 2\nexport {a}", 3)]
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
    #[case("a**")]
    #[case("<a>")]
    #[case("{a:")]
    fn whatever_repeats_is_found(#[case] piece: &str) {
        assert!(nesting(&piece.repeat(DEEPEST + 1)) > DEEPEST);
    }
}
