//! Generates eval functions whose results depend on as much of Python's state as possible.

use std::fmt::Write as _;

/// Number of traces in `traces`.
pub(crate) const TRACES: usize = 51;

/// Returns traces that make Python allocate different amounts of memory.
pub(crate) fn traces(seed: u64) -> String {
    let mut random = Random(seed ^ 0x5851_F42D_4C95_7F2D);
    let mut lines = String::new();
    for number in 0..TRACES {
        let words: Vec<String> = (0..random.below(30)).map(|_| format!("w{}", random.below(90))).collect();
        let text = words.join(" ");
        let count = random.below(40);
        writeln!(
            lines,
            r#"{{"trace_id": "t{number}", "n": {count}, "text": "{text}", "steps": [{number}, null, 1.5]}}"#
        )
        .unwrap();
    }
    lines
}

/// Returns the source of `eval_generated`. The same seed gives the same source.
pub(crate) fn function(seed: u64) -> String {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let mut before = String::new();
    let mut body = String::new();
    for number in 0..1 + random.below(4) {
        let (definitions, statements) = FRAGMENTS[random.index(FRAGMENTS.len())];
        let objects = OBJECTS[random.index(OBJECTS.len())];
        let fill = |text: &str| {
            text.replace("OBJECTS", objects)
                .replace("SIZE", &(3 + seed % 7).to_string())
                .replace('#', &number.to_string())
        };
        before += &fill(definitions);
        for line in fill(statements).lines() {
            let _ = writeln!(body, "    {line}");
        }
    }
    let ending = ENDINGS[random.index(ENDINGS.len())];
    format!(
        "import json\nimport re\nimport typing\n\n\nclass Item:\n    pass\n\n\ndef helper(x):\n    return x\n\n\n{before}\n\n\
         def eval_generated(trace):\n    n, text, out = trace['n'], trace['text'], []\n    junk = [Item() for _ in range(n * 3)] \
         if n % 2 else [[i] for i in range(n)]\n{body}    {ending}\n    return len(' '.join(out)) % 2 == 0, ' | '.join(out)\n"
    )
}

/// Lists of objects of which most are hashed, compared or shown by their address.
const OBJECTS: [&str; 16] = [
    "[Item() for _ in range(SIZE)]",
    "[object() for _ in range(SIZE)]",
    "[re.search(p, text + 'w1') for p in (r'w\\d', r'\\w', r'[a-z]', r'w', r'.')]",
    "list(re.finditer(r'w', 'w' * SIZE))",
    "[lambda: i for i in range(SIZE)]",
    "[(i for i in range(3)) for _ in range(SIZE)]",
    "[(i, Item()) for i in range(SIZE)]",
    "[frozenset([Item()]) for _ in range(SIZE)]",
    "[type('T', (), {}) for _ in range(3)]",
    "[caught(i) for i in range(SIZE)]",
    "[text.upper, text.lower, text.split, text.title]",
    "[Item, helper, len, str.upper, print]",
    "[float('nan') for _ in range(SIZE)]",
    "[map(len, [text]) for _ in range(SIZE)]",
    "[memoryview(bytes([i])) for i in range(SIZE)]",
    "[i * 1000 for i in range(SIZE)]",
];

const CAUGHT: &str =
    "def caught(i):\n    try:\n        raise ValueError(i)\n    except ValueError as error:\n        return error\n";

/// Definitions outside of the function, and statements in it. Each number sign becomes the fragment's number.
const FRAGMENTS: &[(&str, &str)] = &[
    (CAUGHT, "d# = {x: i for i, x in enumerate(OBJECTS)}\nout.append(str([d#[x] for x in set(d#)]))"),
    (CAUGHT, "l# = OBJECTS\nout.append(str([l#.index(x) for x in sorted(l#, key=id)]))"),
    (CAUGHT, "l# = OBJECTS\nout.append(str(hash(l#[0]) % 97) + str(id(l#[-1]) % 1024))"),
    (CAUGHT, "l# = OBJECTS\nout.append(f'{l#[0]}')"),
    (CAUGHT, "l# = OBJECTS\nprint(l#[0], repr(l#))"),
    (
        CAUGHT,
        "s# = set(OBJECTS)\nfirst# = s#.pop()\nout.append(str(len(s#)) + type(first#).__name__ + str(hash(first#) % 8))",
    ),
    (CAUGHT, "l# = OBJECTS\nout.append(str(id(l#) < id(out)) + str(id(l#[0]) < id(l#[-1])))"),
    ("SEEN# = []\n", "SEEN#.append(text)\nout.append(str(len(SEEN#)))"),
    ("CACHE# = {}\n", "CACHE#[text] = n\nout.append(str(sorted(CACHE#.values())))"),
    ("class Count#:\n    total = 0\n", "Count#.total += n\nout.append(str(Count#.total))"),
    ("def add#(x, seen=[]):\n    seen.append(x)\n    return len(seen)\n", "out.append(str(add#(n)))"),
    (
        "def counter#():\n    total = 0\n    def add(x):\n        nonlocal total\n        total += x\n        return total\n    return add\nADD# = counter#()\n",
        "ADD#(n)\nout.append(str(ADD#(1)))",
    ),
    (
        "CLOSED# = []\ndef late#():\n    try:\n        yield 1\n    finally:\n        CLOSED#.append(1)\nOPEN# = []\n",
        "g# = late#()\nnext(g#)\nOPEN#.append(g#)\ndel g#\nout.append(f'{len(OPEN#)} {len(CLOSED#)}')",
    ),
    (
        "class Late#:\n    def __init__(self, other):\n        self.other = other\n    def __del__(self):\n        print('deleted', len(self.other))\n",
        "late# = Late#([n] * n)\nlate#.me = late# if n % 3 else None",
    ),
    (
        "",
        "p# = re.compile('a' + text[:4] + 'b?')\nout.append(str(p#.pattern is re.compile(p#.pattern).pattern) + str(id(p#) % 512))",
    ),
    ("", "out.append(str(hasattr(json, 'mark')))\njson.mark = text"),
    ("", "re.search(text[:5] or 'x', text, 2 if n % 2 else 2.0)\nout.append(str(re.search('W', text, 2)))"),
    ("", "u# = typing.Union[int, str] if n % 2 else typing.Union[str, int]\nout.append(str(typing.List[u#]))"),
    ("", "a#, b# = 'x' * (n % 3), ''.join(['x'] * (n % 3))\nout.append(str(a# is b#))"),
    ("", "out.append(' '.join(set(text.split())) + str({n, n * 7, 1.5, None}))"),
    ("", "big# = bytearray(n * 10_000)\nout.append(str(len(big#)) + str(id(big#) % 4096))"),
    ("", "out.append(str(sum(len(str(i)) for i in range(n * 20))))"),
    ("", "out.append(json.dumps(trace, sort_keys=True)[:80])"),
    ("", "m# = map\nout.append(f'{m#(len, [text])}'.split('0x')[1])"),
    (
        "class Key#:\n    def __init__(self, v):\n        self.v = v\n    def __hash__(self):\n        return id(self) >> 4\n    def __eq__(self, other):\n        return self.v == other.v\n",
        "out.append(str([k.v for k in {Key#(i) for i in range(SIZE)}]))",
    ),
    ("def deep#(x):\n    return [x] if x == 0 else [deep#(x - 1)]\n", "out.append(str(id(deep#(n % 20)) % 256))"),
    ("", "l# = [[object() for _ in range(5)] for _ in range(n)]\nl#.append(l#)\nout.append(str(len(l#)))"),
    ("", "out.append(str(divmod(10 ** (n * 50), 3 ** (n + 1))[1] % 1000))"),
];

const ENDINGS: [&str; 8] = [
    "pass",
    "pass",
    "pass",
    "junk.append(junk)",
    "if n % 5 == 4: raise ValueError(f'{Item()} {len(junk)}')",
    "if n % 7 == 6: return Item()",
    "assert n % 6 != 5, junk[:1]",
    "print(len(out), out[-1][:20] if out else '')",
];

/// A small generator of numbers: the same on every platform.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or_default()
    }
}
