//! Validation of eval sources.

use karat_sandbox::{Finding, MAX_SOURCE_BYTES, Rule, display_source, validate};
use proptest::prelude::*;
use rstest::rstest;

const EVAL_FUNCTION: &str = "\ndef eval_x(trace):\n    return True, ''\n";

/// Returns the findings in a source as `rule line:column text`, where the text is the source at that range.
fn findings_of(source: &str) -> Vec<String> {
    let text = display_source(source.as_bytes());
    let format = |finding: Finding| {
        let before = &text[..finding.range.start];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap().chars().count() + 1;
        format!("{} {line}:{column} {}", finding.rule, &text[finding.range])
    };
    validate(source.as_bytes()).err().unwrap_or_default().into_iter().map(format).collect()
}

#[rstest]
#[case("eval_ResponseQuality", "eval_response_quality")]
#[case("eval_toneOfVoice2", "eval_tone_of_voice2")]
#[case("eval_TONE", "eval_tone")]
fn names_are_snake_case(#[case] name: &str, #[case] suggested: &str) {
    let source = format!("def {name}(trace):\n    return True, ''\n");
    let findings = validate(source.as_bytes()).expect_err(name);
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!((findings[0].rule, &source[findings[0].range.clone()]), (Rule::Function, name));
    assert_eq!(findings[0].help.as_deref(), Some(format!("rename it to '{suggested}'").as_str()));
}

fn single_rule(source: &str) -> Rule {
    let findings = validate(source.as_bytes()).expect_err(source);
    assert_eq!(findings.len(), 1, "{source}: {findings:?}");
    findings[0].rule
}

#[rstest]
#[case::only_the_function("")]
#[case::imports(
    "import json, re as r, typing\nfrom typing import Any, List as L\nimport json.decoder\nfrom json import decoder"
)]
#[case::star("from re import *")]
#[case::methods_of_modules("import re\nP = re.compile('x')\nQ = P.open, P.eval, P.input")]
#[case::comments_and_strings("# import os; eval()\nX = 'import os; __class__ eval(1)'\n'''__import__'''")]
#[case::text_in_f_strings("X = f'eval(1) {1:open} __class__'")]
#[case::string_annotations("def f(x: 'os.eval.__class__'): pass")]
#[case::classes(
    "class A:\n    __slots__ = ('a',)\n    __hash__ = None\n    __match_args__: tuple = ('a',)\n    def __init__(self): self.a = 1\n    def __add__(self, b): return self\n    __radd__ = __add__"
)]
#[case::bases("class A(Exception):\n    def __init__(self, a):\n        super().__init__(a)\n        self.__mine = a")]
#[case::names("X = __name__, type(1).__name__\nfor _, __, ___ in []: pass")]
#[case::pattern("def f(x):\n    match x:\n        case object(input=i): return i")]
#[case::decorated("def twice(f): return f\n@twice")]
#[case::nested("def f():\n    def eval_y(trace): pass\n    eval_z = 1\n    class eval_c: pass")]
#[case::called("def f(**k): return k\nX = f(eval_a=1)")]
#[case::future("from __future__ import annotations")]
#[case::text("from karat_text import levenshtein\nimport karat_text")]
#[case::own_input("def f(input):\n    return [input for x in input] + [lambda: input]\nX = f(input=1)")]
#[case::local_input("def f():\n    for input in []: pass\n    def g(): return input\n    return lambda input: input")]
#[case::comprehension_input("X = [input for input in []]")]
#[case::input_of_a_class("class A:\n    input: str = ''\n    def f(self): return self.input")]
#[case::comprehension("X = [eval_a for eval_a in ()]")]
fn accepts_allowed_constructs(#[case] before: &str) {
    let source = format!("{before}{EVAL_FUNCTION}");
    let function = validate(source.as_bytes()).unwrap_or_else(|findings| panic!("{source}\n{findings:?}"));
    assert_eq!((function.name.as_str(), &*function.source), ("eval_x", source.as_str()));
}

#[rstest]
#[case("import os", "import 1:8 os")]
#[case("import json, os.path", "import 1:14 os.path")]
#[case("from os import path, eval", "import 1:6 os")]
#[case("from . import json", "import 1:1 from . import json")]
#[case("from .json import loads", "import 1:1 from .json import loads")]
#[case("import __future__", "import 1:8 __future__")]
#[case("import math", "import 1:8 math")]
#[case("from helpers import f", "import 1:6 helpers")]
#[case("from ..helpers import f", "import 1:1 from ..helpers import f")]
#[case("import jsonx", "import 1:8 jsonx")]
#[case("import \u{ff4f}s", "import 1:8 \u{ff4f}s")]
#[case("from json import __all__", "dunder 1:18 __all__")]
#[case("from re import compile", "name 1:16 compile")]
#[case("import json as open", "name 1:16 open")]
#[case("e = eval", "name 1:5 eval")]
#[case("\u{ff45}val('1')", "name 1:1 \u{ff45}val")]
#[case("exec('1')", "name 1:1 exec")]
#[case("é = 1; compile('1')", "name 1:8 compile")]
#[case("def open(): pass", "name 1:5 open")]
#[case("def f(): return input", "name 1:17 input")]
#[case("def f(input): pass\ninput()", "name 2:1 input")]
#[case("def f():\n    global input\n    input = 1", "name 2:12 input;name 3:5 input")]
#[case("input = 1", "name 1:1 input")]
#[case("def input(): pass", "name 1:5 input")]
#[case("def f(a=breakpoint): pass", "name 1:9 breakpoint")]
#[case("f = lambda open: 1", "name 1:12 open")]
#[case("f(open=1)", "name 1:3 open")]
#[case("del eval", "name 1:5 eval")]
#[case("for input in []: pass", "name 1:5 input")]
#[case("X = [1 for open in []]", "name 1:12 open")]
#[case("def f():\n    global exec", "name 2:12 exec")]
#[case("try: pass\nexcept Exception as eval: pass", "name 2:21 eval")]
#[case("match 1:\n    case open: pass", "name 2:10 open")]
#[case("match 1:\n    case [*open]: pass", "name 2:12 open")]
#[case("match 1:\n    case {**open}: pass", "name 2:13 open")]
#[case("X = f'{eval(1)}'", "name 1:8 eval")]
#[case("X = f'{1:{eval}}'", "name 1:11 eval")]
#[case("X = t'{eval}'", "name 1:8 eval")]
#[case("@eval\ndef f(): pass", "name 1:2 eval")]
#[case("def f(a: open) -> 1: pass", "name 1:10 open")]
#[case("def f[open](): pass", "name 1:7 open")]
#[case("type open = int", "name 1:6 open")]
#[case("class eval: pass", "name 1:7 eval")]
#[case("class A:\n    def __import__(self): pass", "name 2:9 __import__")]
#[case("().__class__", "dunder 1:4 __class__")]
#[case("x.__name__ = 1", "dunder 1:3 __name__")]
#[case("__name__ = 1", "dunder 1:1 __name__")]
#[case("X = __builtins__", "dunder 1:5 __builtins__")]
#[case("().__\u{ff43}lass__", "dunder 1:4 __\u{ff43}lass__")]
#[case("().__class__.__base__", "dunder 1:4 __class__;dunder 1:14 __base__")]
#[case("def __getattr__(name): pass", "dunder 1:5 __getattr__")]
#[case("def f(__a__): pass", "dunder 1:7 __a__")]
#[case("dict(__a__=1)", "dunder 1:6 __a__")]
#[case("match 1:\n    case object(__class__=c): pass", "dunder 2:17 __class__")]
#[case("try: pass\nexcept Exception as __x__: pass", "dunder 2:21 __x__")]
#[case("class A:\n    def f(self): return __class__", "dunder 2:25 __class__")]
#[case("class A:\n    x = __dict__", "dunder 2:9 __dict__")]
#[case("class A:\n    def f(self): return super().__getattribute__('x')", "dunder 2:33 __getattribute__")]
#[case("X = lambda: __debug__", "dunder 1:13 __debug__")]
#[case("eval_y = 1", "function 1:1 eval_y")]
#[case("import json as eval_json", "function 1:16 eval_json")]
#[case("class eval_y: pass", "function 1:7 eval_y")]
#[case("if 1:\n    def eval_y(trace): pass", "function 2:9 eval_y")]
#[case("def eval_(trace): pass", "function 1:5 eval_")]
fn rejects_forbidden_constructs(#[case] before: &str, #[case] expected: &str) {
    assert_eq!(findings_of(&format!("{before}{EVAL_FUNCTION}")).join(";"), expected);
}

#[rstest]
#[case("def check(trace): pass", "function 1:5 check")]
#[case("", "function 1:1 ")]
#[case("class A:\n    def eval_x(self): pass", "function 1:1 ")]
#[case("eval_x = lambda trace: (True, '')", "function 1:1 eval_x")]
#[case("async def eval_x(trace): pass", "function 1:11 eval_x")]
#[case("def eval_x(): pass", "function 1:11 ()")]
#[case("def eval_x(a, b=1): pass", "function 1:11 (a, b=1)")]
#[case("def eval_x(context, trace): pass", "function 1:11 (context, trace)")]
#[case("def eval_x(trace, context, c): pass", "function 1:11 (trace, context, c)")]
#[case("def eval_x(a, *b): pass", "function 1:11 (a, *b)")]
#[case("def eval_x(a, **b): pass", "function 1:11 (a, **b)")]
#[case("def eval_x(a, *, b=1): pass", "function 1:11 (a, *, b=1)")]
#[case("def eval_x(*, a): pass", "function 1:11 (*, a)")]
#[case("def eval_x(a):\n    if a: yield 1", "function 2:11 yield 1")]
#[case("def eval_x(a):\n    yield from a", "function 2:5 yield from a")]
#[case("def eval_a(t): pass\ndef eval_b(t): pass", "function 2:5 eval_b")]
#[case("def eval_a(t): pass\ndef eval_a(t): pass", "function 2:5 eval_a")]
fn rejects_invalid_signatures(#[case] source: &str, #[case] expected: &str) {
    assert_eq!(findings_of(source).join(";"), expected);
}

#[rstest]
#[case("def eval_x(a, /): pass")]
#[case("def eval_x(a=None): pass")]
#[case("def eval_x(trace, context): pass")]
#[case("def eval_x(trace, context=None, /): pass")]
#[case("def eval_x(a):\n    def f(): yield 1\n    return True, str(list(f()))")]
#[case("def eval_x(a):\n    return (lambda: (yield)), ''")]
fn accepts_valid_signatures(#[case] source: &str) {
    assert_eq!(findings_of(source), Vec::<String>::new());
}

#[test]
fn reports_all_findings_in_order() {
    let source = "import os\ndef eval_x(trace, b):\n    open('x')\n    return ().__class__, eval\nimport sys\n";
    assert_eq!(
        findings_of(source),
        [
            "import 1:8 os",
            "function 2:11 (trace, b)",
            "name 3:5 open",
            "dunder 4:15 __class__",
            "name 4:26 eval",
            "import 5:8 sys"
        ]
    );
    let two_names = validate(b"def eval_a(t): pass\ndef eval_b(t): pass").unwrap_err();
    assert!(two_names[0].message.contains("'eval_a', 'eval_b'"), "{two_names:?}");
}

#[test]
fn reports_syntax_errors_with_other_findings() {
    let findings = findings_of("import os\ndef eval_x(trace)\n    return True, ''\nx = = 1\n");
    assert_eq!(findings.first().map(String::as_str), Some("import 1:8 os"));
    assert!(findings.iter().any(|finding| finding.starts_with("syntax 2:")), "{findings:?}");
    assert!(findings.iter().any(|finding| finding.starts_with("syntax 4:")), "{findings:?}");
    assert!(!findings.iter().any(|finding| finding.starts_with("function")), "{findings:?}");
}

#[rstest]
#[case("return 1", "syntax 1:1 return 1")]
#[case("break", "syntax 1:1 break")]
#[case("for x in []:\n    def f(): continue", "syntax 2:14 continue")]
#[case("for x in []: pass\nelse: break", "syntax 2:7 break")]
#[case("X = [(yield) for x in ()]", "syntax 1:7 yield")]
#[case("def f(a, a): pass", "syntax 1:10 a")]
#[case("def f(): await g()", "syntax 1:10 await g()")]
#[case("def f():\n    from json import *", "syntax 2:5 from json import *")]
#[case("def f():\n    *a, *b = g", "syntax 2:5 *a, *b")]
fn rejects_semantic_errors(#[case] before: &str, #[case] expected: &str) {
    assert_eq!(findings_of(&format!("{before}{EVAL_FUNCTION}")).join(";"), expected);
}

#[rstest]
#[case("while 1:\n    if 1: break\n    for x in []: continue\n    else: continue")]
#[case("def f():\n    yield 1\n    return (lambda: (yield)), [x for x in (yield)]")]
#[case("async def f():\n    await g()\n    async with a as b: return [x async for x in b]")]
#[case(
    "class A:\n    def f(self, a, *b, c=1, **d):\n        nonlocal_ = [y for x in b for y in x]\n        return self"
)]
fn accepts_valid_python(#[case] before: &str) {
    assert_eq!(findings_of(&format!("{before}{EVAL_FUNCTION}")), Vec::<String>::new());
}

#[rstest]
#[case::byte_order_mark("\u{feff}x = 1\nopen")]
#[case::windows("x = 1\r\nopen")]
#[case::old_mac("x = 1\ropen")]
#[case::form_feed("\u{c}x = 1\nopen")]
#[case::line_separator_does_not_end_a_line("'\u{2028}'\nopen")]
fn reports_positions_for_all_line_endings(#[case] source: &str) {
    assert_eq!(findings_of(&format!("{source}{EVAL_FUNCTION}")), ["name 2:1 open"]);
}

#[test]
fn strips_the_byte_order_mark() {
    let function = validate(format!("\u{feff}{EVAL_FUNCTION}").as_bytes()).unwrap();
    assert_eq!(Ok(function), validate(EVAL_FUNCTION.as_bytes()));
}

#[test]
fn rejects_invalid_utf8_and_nul() {
    assert_eq!(validate(b"x = '\xff'").unwrap_err()[0].range, 5..5);
    assert_eq!(findings_of(&format!("x = '\0'{EVAL_FUNCTION}")), ["syntax 1:6 \0"]);
}

#[test]
fn rejects_large_sources() {
    let source = |length: usize| format!("#{}{EVAL_FUNCTION}", "x".repeat(length - EVAL_FUNCTION.len() - 1));
    assert!(validate(source(MAX_SOURCE_BYTES).as_bytes()).is_ok());
    assert_eq!(single_rule(&source(MAX_SOURCE_BYTES + 1)), Rule::Size);
}

/// Constructs for which a parser recurses, each repeated until the source has about the maximum size.
#[rstest]
#[case::parentheses("(", "", "")]
#[case::closed_parentheses("(", "1", ")")]
#[case::closed_lists("[", "", "]")]
#[case::dictionaries("{1:", "1", "}")]
#[case::sets("{", "1", "}")]
#[case::subscripts("a[", "1", "]")]
#[case::calls("f(", "", ")")]
#[case::calls_of_calls("f", "", "()")]
#[case::attributes("a", "", ".b")]
#[case::not("not ", "x", "")]
#[case::minus("-", "x", "")]
#[case::tilde("~", "x", "")]
#[case::lambda("lambda:", "x", "")]
#[case::lambda_with_commas("lambda a,b:", "x", "")]
#[case::lambda_defaults("lambda a=", "x", ":1")]
#[case::conditions("x if x else ", "x", "")]
#[case::sums("1+", "1", "")]
#[case::powers("2**", "2", "")]
#[case::lines_of_a_sum("(1\n+", "1", ")")]
#[case::awaits("await ", "x", "")]
#[case::stars("*", "x", "")]
#[case::walrus("(x:=", "1", ")")]
#[case::f_strings("f'{", "1", "}'")]
#[case::format_specs("f'{x:{", "1", "}}'")]
#[case::unclosed_f_strings("f\"{f'{", "", "")]
#[case::yields("(yield ", "", ")")]
#[case::comprehensions("[x for x in ", "y", "]")]
#[case::patterns("match x:\n case [", "", "]")]
#[case::broken_conditions("x if ", "", "")]
#[case::broken_mixture("(lambda[not{-", "", "")]
#[case::broken_lines("(\n", "", "")]
#[case::broken_statements("def(", "", "")]
fn rejects_deep_nesting_without_overflow(#[case] before: &str, #[case] middle: &str, #[case] after: &str) {
    let times = 60_000 / (before.len() + after.len());
    let source = format!("{}{middle}{}", before.repeat(times), after.repeat(times));
    assert!(validate(source.as_bytes()).is_err());
    // Accepted depths must not overflow the stack either.
    for times in [50, 95, 190, 240, 480, 990] {
        let source = format!("{}{middle}{}{EVAL_FUNCTION}", before.repeat(times), after.repeat(times));
        let _ = validate(source.as_bytes());
    }
}

#[test]
fn accepts_wide_sources() {
    let wide = [
        format!("if 1: pass\n{}", "elif 1: pass\n".repeat(4000)),
        format!("X = [{}]", "-1, ".repeat(15_000)),
        format!("X = {{{}}}", "'a': {'b': [-1]}, ".repeat(3000)),
        format!("X = ({})", "'a'\n".repeat(15_000)),
        "x = 1\n".repeat(10_000),
        format!("X = {}1", "1 + ".repeat(900)),
        format!("def f():\n{}    pass", "    x.y = -1\n".repeat(4000)),
    ];
    for source in wide {
        assert_eq!(findings_of(&format!("{source}{EVAL_FUNCTION}")), Vec::<String>::new(), "{}", &source[..40]);
    }
}

/// The compiler in the guest has less stack than a native Python.
#[test]
fn applies_the_limits_of_the_guest() {
    let nested = |open: &str, close: &str, count: usize| {
        let expression = format!("{}1{}", open.repeat(count), close.repeat(count));
        findings_of(&format!("x = {expression}\ndef eval_x(trace):\n    return True, ''\n"))
    };
    assert_eq!(nested("[", " for a in [1]]", 20), Vec::<String>::new());
    assert!(nested("[", " for a in [1]]", 21)[0].starts_with("size "));
    assert!(nested("(lambda: ", ")", 21)[0].starts_with("size "));
    assert_eq!(nested("(", ")", 100), Vec::<String>::new());
    assert!(nested("(", ")", 101)[0].starts_with("size "));
    let number =
        |digits: usize| findings_of(&format!("x = {}\ndef eval_x(trace):\n    return True, ''\n", "9".repeat(digits)));
    assert_eq!(number(4300), Vec::<String>::new());
    assert!(number(4301)[0].starts_with("syntax 1:5 999"));
    let rebound = findings_of("def eval_x(trace):\n    return True, ''\ndef f():\n    global eval_x\n    eval_x = 1\n");
    assert_eq!(rebound, ["function 4:12 eval_x"]);
}

#[test]
fn rejects_deeply_nested_blocks() {
    let lines: Vec<_> = (0..120).map(|depth| format!("{}if 1:\n", " ".repeat(depth))).collect();
    let source = lines.concat();
    let findings = validate(format!("{source}{}pass{EVAL_FUNCTION}", " ".repeat(120)).as_bytes()).unwrap_err();
    assert_eq!((findings[0].rule, findings.len()), (Rule::Size, 1));
}

#[test]
fn reports_an_unclosed_bracket() {
    let source = format!("x = (\n{}", "y = a.b + c\n".repeat(2000));
    assert_eq!(findings_of(&source), ["syntax 1:5 ("]);
}

proptest! {
    #[test]
    fn handles_any_bytes(source in proptest::collection::vec(any::<u8>(), 0..400)) {
        let findings = validate(&source).err().unwrap_or_default();
        let text = display_source(&source);
        for finding in findings {
            prop_assert!(text.get(finding.range).is_some());
        }
    }

    #[test]
    fn handles_any_python_like_text(words in proptest::collection::vec(prop_oneof![
        Just("def "), Just("eval_x"), Just("("), Just(")"), Just(":"), Just("\n"), Just("    "), Just("lambda "), Just("f'{"),
        Just("}'"), Just("["), Just("]"), Just("import "), Just("os"), Just("__class__"), Just("."), Just("="), Just("match "),
        Just("case "), Just("é"), Just("\r"), Just("\t"), Just("'''"), Just("\\"), Just("#"), Just("async "), Just("yield "),
        Just("if "), Just("else "), Just(","), Just("*"), Just("@"), Just("class "), Just("return "), Just("\u{c}"), Just("{"),
    ], 0..120)) {
        let source = words.concat();
        let findings = validate(source.as_bytes()).err().unwrap_or_default();
        let text = display_source(source.as_bytes());
        prop_assert!(findings.is_sorted_by_key(|finding| finding.range.start));
        for finding in findings {
            prop_assert!(text.get(finding.range).is_some());
        }
    }
}
