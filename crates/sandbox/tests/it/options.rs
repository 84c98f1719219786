//! Optional features of eval functions: contexts, modules, helpers, flexible returns and similarity.

use std::sync::Arc;
use std::time::{Duration, Instant};

use karat_core::judgement::{Conclusion, ErrorKind, EvalContext, Judgement, Limits, ReturnForm};
use karat_sandbox::{Finding, Function, FunctionRunner, Isolation, OPTIONAL_MODULES, ProjectRules, validate_with};
use rstest::rstest;
use serde_json::json;

use crate::support::{outcome, sandbox};

const TRACE: &str = r#"{"steps": [{"output": {"response": "Sunny, 21 degrees"}}]}"#;

/// The helper modules of the tests.
fn helper(name: &str) -> Option<Vec<u8>> {
    let source = match name {
        "helpers" => {
            "import re\nfrom numbers_of import first\nseen = []\ndef number(text):\n    seen.append(text)\n    return first(re.findall(r'\\d+', text))\n"
        }
        "numbers_of" => "def first(found):\n    return int(found[0])\n",
        "network" => "X = 1\nimport socket\n",
        "broken" => "def f(:\n",
        "counting" => "from math import floor\n",
        _ => return None,
    };
    Some(source.as_bytes().to_vec())
}

fn validate(source: &str, imports: &[&str], returns: ReturnForm) -> Result<Function, Vec<Finding>> {
    let imports: Vec<String> = imports.iter().map(|name| (*name).to_owned()).collect();
    validate_with(
        source.as_bytes(),
        &ProjectRules { imports: &imports, returns, helper: &helper, ..ProjectRules::default() },
    )
}

fn valid(source: &str, imports: &[&str], returns: ReturnForm) -> Function {
    validate(source, imports, returns).unwrap_or_else(|findings| panic!("{source}\n{findings:?}"))
}

fn judge_in_context(function: Function, context: &EvalContext) -> Judgement {
    let name = function.name.clone();
    let functions = vec![Arc::new(function)];
    let runner = FunctionRunner::new(sandbox(), functions, Limits::default(), Isolation::default(), 1).unwrap();
    let first = runner.judge_text(&name, TRACE.as_bytes(), context);
    let second = runner.judge_text(&name, TRACE.as_bytes(), context);
    assert_eq!(
        (&first.conclusion, first.score),
        (&second.conclusion, second.score),
        "the second trace gets the same judgement"
    );
    first
}

fn judge(function: Function) -> Judgement {
    judge_in_context(function, &EvalContext::default())
}

fn reason(judgement: &Judgement) -> &str {
    match &judgement.conclusion {
        Conclusion::Verdict { reason, .. } | Conclusion::NotApplicable { reason } => reason,
        Conclusion::Error(error) => panic!("{}: {}", error.kind, error.message),
    }
}

#[rstest]
#[case("True", "pass", None, "")]
#[case("False", "fail", None, "")]
#[case("None", "not applicable", None, "")]
#[case("(None, 'no number')", "not applicable", None, "no number")]
#[case("0.75", "pass", Some(0.75), "")]
#[case("0.25", "fail", Some(0.25), "")]
#[case("1", "pass", Some(1.0), "")]
#[case("(0.5, 'half')", "pass", Some(0.5), "half")]
#[case("(True, 'fine')", "pass", None, "fine")]
#[case("{'pass': True, 'score': 0.1, 'reason': 'r\\nr'}", "pass", Some(0.1), "r\nr")]
#[case("{'passed': False, 'score': 1}", "fail", Some(1.0), "")]
#[case("{'score': 0.6, 'reason': 'x', 'details': {}}", "pass", Some(0.6), "x")]
#[case("{'score': 0.6, 'threshold': 0.9}", "fail", Some(0.6), "")]
#[case("{'score': None, 'reason': 'no data'}", "not applicable", None, "no data")]
#[case("float('nan')", "return", None, "")]
#[case("'yes'", "return", None, "")]
#[case("{'correct': 1}", "return", None, "")]
#[case("{'pass': 1}", "return", None, "")]
#[case("{'pass': True, 'passed': False}", "return", None, "")]
#[case("{'score': 10 ** 400}", "return", None, "")]
fn accepts_flexible_returns(
    #[case] value: &str,
    #[case] expected: &str,
    #[case] score: Option<f64>,
    #[case] expected_reason: &str,
) {
    let source = format!("def eval_x(trace):\n    value = {value}\n    return value\n");
    let judgement = judge(valid(&source, &[], ReturnForm::Flexible));
    assert_eq!((outcome(&judgement), judgement.score), (expected, score));
    match &judgement.conclusion {
        Conclusion::Error(error) => {
            assert!(error.message.starts_with("must return a bool, a finite number"), "{error}");
        }
        _ => assert_eq!(reason(&judgement), expected_reason),
    }
    // The contract form accepts only `(bool, str)`.
    let judgement = judge(valid(&source, &[], ReturnForm::Contract));
    assert_eq!(outcome(&judgement), if value == "(True, 'fine')" { "pass" } else { "return" });
}

#[test]
fn constants_of_a_file_override_the_form_and_threshold() {
    let source = |head: &str| format!("{head}\ndef eval_x(trace):\n    score = 0.75\n    return score\n");
    let flexible = valid(&source("KARAT_RETURNS = 'flexible'\nKARAT_THRESHOLD = 0.8"), &[], ReturnForm::Contract);
    assert_eq!(flexible.options.threshold, Some(0.8));
    assert_eq!(outcome(&judge(flexible)), "fail");
    let contract = valid(&source("KARAT_RETURNS = 'contract'"), &[], ReturnForm::Flexible);
    assert_eq!((contract.options.is_default(), outcome(&judge(contract))), (true, "return"));
    for (head, message) in [
        ("KARAT_RETURNS = 'flexibel'", "KARAT_RETURNS must be \"contract\" or \"flexible\""),
        ("KARAT_THRESHOLD = '0.8'", "KARAT_THRESHOLD must be a number"),
    ] {
        let findings = validate(&source(head), &[], ReturnForm::Contract).unwrap_err();
        assert_eq!(findings[0].message, message);
    }
}

#[test]
fn passes_the_context_to_the_function() {
    let source = "def eval_x(trace, context):\n    return context.case is None, repr([trace['steps'][0], context])\n";
    let judgement = judge(valid(source, &[], ReturnForm::Contract));
    assert_eq!(
        reason(&judgement),
        "[{'output': {'response': 'Sunny, 21 degrees'}}, Context(case=None, reference=None, params={})]"
    );
    let context = EvalContext {
        case: Some(json!({"id": "c-1", "steps": [1]})),
        reference: Some(json!("Sünny")),
        params: json!({"min": 2, "steps": null}).as_object().unwrap().clone(),
    };
    let judgement = judge_in_context(valid(source, &[], ReturnForm::Contract), &context);
    assert_eq!(outcome(&judgement), "fail");
    assert!(
        reason(&judgement).ends_with(
            "Context(case={'id': 'c-1', 'steps': [1]}, reference='Sünny', params={'min': 2, 'steps': None})]"
        ),
        "{}",
        reason(&judgement)
    );
}

#[rstest]
#[case(&[], "only json, karat_text, re, typing and helper modules can be imported")]
#[case(&["math"], "only json, karat_text, re, typing, math and helper modules can be imported")]
fn says_what_can_be_imported(#[case] imports: &[&str], #[case] help: &str) {
    let source = "import socket\ndef eval_x(trace):\n    return True, ''\n";
    let findings = validate(source, imports, ReturnForm::Contract).unwrap_err();
    assert_eq!(findings[0].help.as_deref(), Some(help));
}

#[test]
fn helper_modules_are_imported() {
    let source = "import helpers\nfrom .helpers import number\ndef eval_x(trace):\n    \
                  found = number(trace['steps'][0]['output']['response'])\n    return found == 21, f'{found} {helpers.seen}'\n";
    let function = valid(source, &[], ReturnForm::Contract);
    let helpers: Vec<&String> = function.options.helpers.keys().collect();
    assert_eq!(helpers, ["helpers", "numbers_of"]);
    // Helpers are executed for each trace.
    assert_eq!(reason(&judge(function)), "21 ['Sunny, 21 degrees']");
}

#[test]
fn an_error_in_a_helper_names_its_file_and_line() {
    let source = "from helpers import number\ndef eval_x(trace):\n    return bool(number('none')), ''\n";
    let judgement = judge(valid(source, &[], ReturnForm::Contract));
    let Conclusion::Error(error) = judgement.conclusion else { panic!("{judgement:?}") };
    assert_eq!((error.kind, error.line()), (ErrorKind::Exception, Some(3)));
    assert!(error.message.contains("File \"numbers_of.py\", line 2, in first"), "{error}");
    assert!(error.message.contains("return int(found[0])"), "{error}");
}

#[rstest]
#[case("import network", "network.py, line 2: import of 'socket' is not allowed", 7..14)]
#[case("from broken import f", "broken.py, line 1: ", 5..11)]
#[case("import counting", "counting.py, line 1: import of 'math' is not allowed", 7..15)]
#[case("import unknown", "import of 'unknown' is not allowed", 7..14)]
fn helpers_are_validated(#[case] import: &str, #[case] message: &str, #[case] range: std::ops::Range<usize>) {
    let source = format!("{import}\ndef eval_x(trace):\n    return True, ''\n");
    let findings = validate(&source, &[], ReturnForm::Contract).unwrap_err();
    assert!(findings[0].message.starts_with(message), "{findings:?}");
    assert_eq!(findings[0].range, range);
}

#[test]
fn the_code_hash_covers_the_options() {
    let source = "from helpers import number\nimport json\ndef eval_x(trace):\n    return True, ''\n";
    let plain = valid(source.trim_start_matches("from helpers import number\n"), &[], ReturnForm::Contract);
    assert_eq!(plain.code_hash, karat_json::hash::short_hash(plain.source.as_bytes()));
    // Modules that are allowed but not imported do not count.
    let with = |imports: &[&str], returns| valid(source, imports, returns).code_hash;
    assert_eq!(with(&[], ReturnForm::Contract), with(&["math"], ReturnForm::Contract));
    assert_ne!(with(&[], ReturnForm::Contract), with(&[], ReturnForm::Flexible));
    assert_ne!(with(&[], ReturnForm::Contract), karat_json::hash::short_hash(source.as_bytes()));
}

/// An expression for each optional module, and its text.
const USES: [(&str, &str, &str); 26] = [
    ("abc", "abc.ABC", "<class 'abc.ABC'>"),
    ("ast", "ast.literal_eval('[1, 2]')", "[1, 2]"),
    ("collections", "collections.Counter('aab').most_common(1)", "[('a', 2)]"),
    ("contextlib", "contextlib.nullcontext(3).enter_result", "3"),
    ("copy", "copy.deepcopy([[1]])", "[[1]]"),
    ("dataclasses", "dataclasses.make_dataclass('P', ['x'])(1)", "P(x=1)"),
    ("datetime", "datetime.datetime.strptime('2026-02-03', '%Y-%m-%d').isoformat()", "2026-02-03T00:00:00"),
    ("decimal", "decimal.Decimal('0.1') + decimal.Decimal('0.2')", "0.3"),
    ("difflib", "difflib.SequenceMatcher(None, 'abcd', 'bcde').ratio()", "0.75"),
    ("enum", "enum.Enum('E', 'A').A", "E.A"),
    ("fractions", "fractions.Fraction(2, 6)", "1/3"),
    ("functools", "functools.reduce(lambda a, b: a + b, [1, 2])", "3"),
    ("hashlib", "hashlib.sha256(b'a').hexdigest()[:6] + hashlib.md5(b'a').hexdigest()[:6]", "ca97810cc175"),
    ("itertools", "list(itertools.pairwise([1, 2]))", "[(1, 2)]"),
    ("logging", "logging.getLogger('x').warning('w') or 'logged'", "logged"),
    ("math", "math.isclose(0.1 + 0.2, 0.3)", "True"),
    ("operator", "operator.itemgetter(1)('ab')", "b"),
    ("statistics", "statistics.mean([1, 2, 6])", "3"),
    ("string", "string.digits", "0123456789"),
    ("textwrap", "textwrap.shorten('a b c d', 6)", "[...]"),
    ("traceback", "traceback.format_exception_only(ValueError('x'))", "['ValueError: x\\n']"),
    ("types", "types.SimpleNamespace(a=1)", "namespace(a=1)"),
    ("unicodedata", "unicodedata.normalize('NFKC', 'ﬁ')", "fi"),
    ("urllib.parse", "urllib.parse.urlsplit('https://a.b/c').netloc", "a.b"),
    ("warnings", "warnings.warn('x')", "None"),
    ("xml.etree", "xml.etree.ElementTree.fromstring('<a>b</a>').text", "b"),
];

#[test]
fn optional_modules_can_be_used_if_the_project_allows_them() {
    assert_eq!(USES.map(|(module, ..)| module), OPTIONAL_MODULES);
    for (module, expression, expected) in USES {
        let import = if module == "xml.etree" { "xml.etree.ElementTree" } else { module };
        let source = format!("import {import}\ndef eval_x(trace):\n    return True, str({expression})\n");
        let findings = validate(&source, &[], ReturnForm::Contract).unwrap_err();
        let help = format!("to allow it, add \"{module}\" to \"evalImports\" in karat.json");
        assert_eq!(findings[0].help, Some(help));
        let function = valid(&source, &OPTIONAL_MODULES, ReturnForm::Contract);
        assert_eq!(function.options.imports, [module]);
        let judgement = judge(function);
        assert_eq!(reason(&judgement), expected, "{module}");
        if module == "logging" {
            assert_eq!(judgement.stderr, "w\n");
        }
    }
}

#[test]
fn a_module_that_is_not_allowed_cannot_be_imported_at_run_time() {
    for source in ["import math", "import os", "import helpers", "from urllib import parse"] {
        let source = format!("def eval_x(trace):\n    {source}\n    return True, ''\n");
        let judgement = judge(Function::unvalidated("eval_x", &source));
        let Conclusion::Error(error) = judgement.conclusion else { panic!("{judgement:?}") };
        assert!(error.message.starts_with("ImportError: import of '"), "{error}");
    }
}

#[rstest]
#[case("import logging\nlogging.basicConfig(level=logging.INFO, format='%(asctime)s %(name)s %(message)s')\ndef eval_x(trace):\n    logging.getLogger('a').info('b')\n    return True, ''\n", &["logging"])]
#[case("from __future__ import annotations\nfrom dataclasses import dataclass\nfrom typing import ClassVar\n@dataclass(frozen=True)\nclass P:\n    x: int\n    k: ClassVar[int] = 1\ndef eval_x(trace):\n    return P(1) == P(1), ''\n", &["dataclasses"])]
#[case("from urllib import parse\nfrom xml.etree import ElementTree as ET\nfrom collections.abc import Mapping\ndef eval_x(trace):\n    return isinstance(trace, Mapping), parse.quote('a b')\n", &["collections", "urllib.parse", "xml.etree"])]
#[case("from datetime import datetime, timedelta\ndef eval_x(trace):\n    return datetime(2026, 1, 31) + timedelta(days=1) == datetime(2026, 2, 1), f'{datetime(2026, 1, 2):%d %B}'\n", &["datetime"])]
fn typical_uses_of_modules_work(#[case] source: &str, #[case] imports: &[&str]) {
    let judgement = judge(valid(source, imports, ReturnForm::Contract));
    assert_eq!(outcome(&judgement), "pass", "{judgement:?}");
}

#[test]
fn reading_the_clock_is_an_exception() {
    for now in ["datetime.datetime.now()", "datetime.datetime.now(datetime.UTC)", "datetime.date.today()"] {
        let source = format!("import datetime\ndef eval_x(trace):\n    return True, str({now})\n");
        let judgement = judge(valid(&source, &["datetime"], ReturnForm::Contract));
        let Conclusion::Error(error) = judgement.conclusion else { panic!("{judgement:?}") };
        assert_eq!(
            (error.kind, &*error.message),
            (ErrorKind::Exception, "RuntimeError: there is no clock in the sandbox")
        );
    }
}

#[test]
fn similarity_is_computed_by_the_host() {
    let source = "import karat_text\nfrom karat_text import levenshtein, rouge1, rougeL\ndef eval_x(trace):\n    \
                  values = [levenshtein('kitten', 'sitting'), rouge1('a b', 'b c'), karat_text.rougeL('a b', 'b a'), levenshtein('\\ud800', '?')]\n    \
                  return True, ' '.join(f'{value:.3f}' for value in values)\n";
    assert_eq!(reason(&judge(valid(source, &[], ReturnForm::Contract))), "0.571 0.500 0.500 1.000");
    for (call, error) in [
        ("karat_text.levenshtein('a', 1)", "TypeError: levenshtein() compares two strings"),
        ("karat_text.levenshtein('a' * 300000, 'b' * 300000)", "ValueError: the texts are too long to compare"),
    ] {
        let source = format!("import karat_text\ndef eval_x(trace):\n    return True, str({call})\n");
        let judgement = judge(valid(&source, &[], ReturnForm::Contract));
        let Conclusion::Error(found) = judgement.conclusion else { panic!("{judgement:?}") };
        assert!(found.message.starts_with(error), "{found}");
    }
}

#[test]
fn long_texts_are_compared_quickly() {
    let source = "from karat_text import levenshtein, rougeL\ndef eval_x(trace):\n    \
                  a, b = 'the quick fox ' * 150, 'a lazy dog sat ' * 140\n    return levenshtein(a, b) < 1, str(rougeL(a, b))\n";
    let started = Instant::now();
    assert_eq!(outcome(&judge(valid(source, &[], ReturnForm::Contract))), "pass");
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
}

#[rstest]
#[case("return {'pass': True}", ReturnForm::Contract, &["returns a dict instead of a tuple of a boolean and a string"])]
#[case("return True", ReturnForm::Contract, &["returns a boolean without a reason instead of a tuple of a boolean and a string"])]
#[case("return 0.5", ReturnForm::Contract, &["returns a number instead of a tuple of a boolean and a string"])]
#[case("return True, 1", ReturnForm::Contract, &["returns a tuple whose second element is not a string instead of a tuple of a boolean and a string"])]
#[case("pass", ReturnForm::Contract, &["'eval_x' has no 'return', so it never returns a verdict"])]
#[case("if trace: return\n    return None", ReturnForm::Contract, &["returns None instead of a tuple of a boolean and a string", "returns None instead of a tuple of a boolean and a string"])]
#[case("if trace: return None\n    return True, 'x'", ReturnForm::Contract, &[])]
#[case("return check(trace)", ReturnForm::Contract, &[])]
#[case("return bool(trace), f'{trace}'", ReturnForm::Contract, &[])]
#[case("return {'pass': True}", ReturnForm::Flexible, &[])]
#[case("return {**trace}", ReturnForm::Flexible, &[])]
#[case("return", ReturnForm::Flexible, &[])]
#[case("return {'accuracy': 1}", ReturnForm::Flexible, &["returns a dict without 'pass', 'passed' and 'score' instead of a verdict"])]
#[case("return 'yes'", ReturnForm::Flexible, &["returns a string instead of a verdict"])]
#[case("return [True]", ReturnForm::Flexible, &["returns a list instead of a verdict"])]
fn warns_about_returns_that_always_fail(#[case] body: &str, #[case] form: ReturnForm, #[case] expected: &[&str]) {
    let function = valid(&format!("def eval_x(trace):\n    {body}\n"), &[], form);
    let messages: Vec<&str> = function.warnings.iter().map(|finding| finding.message.as_str()).collect();
    assert_eq!(messages, expected);
}

#[test]
fn reports_variables_with_the_prefix() {
    let source = "eval_threshold = 0.5\ndef eval_x(trace):\n    return True, ''\n";
    let findings = validate(source, &[], ReturnForm::Contract).unwrap_err();
    assert_eq!(findings[0].message, "the variable 'eval_threshold' has the prefix of eval functions");
    let help = "rename it, for example to 'threshold': only the eval function may start with 'eval_'";
    assert_eq!(findings[0].help.as_deref(), Some(help));
}
