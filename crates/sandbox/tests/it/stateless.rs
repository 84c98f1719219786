//! Functions that are and are not stateless.

use karat_sandbox::{Isolation, validate};
use rstest::rstest;

use crate::support::{judge, sandbox, task};

fn is_stateless(source: &str) -> bool {
    validate(source.as_bytes()).unwrap_or_else(|findings| panic!("{source}\n{findings:?}")).is_stateless
}

/// Wraps lines in a function after imports of all modules.
fn function(body: &str) -> String {
    let body = body.replace('\n', "\n    ");
    format!("import json\nimport re\nimport typing\ndef eval_x(trace):\n    {body}\n    return True, ''\n")
}

#[rstest]
#[case("x = [step.get('output') for step in trace.get('steps', [])]\nx.append(1)\nx[0] = 2\ndel x[0]\nx += [3]")]
#[case("if re.search(r'\\d+', str(trace), re.IGNORECASE | re.M): print('seen', end='')")]
#[case(
    "try:\n    json.loads('[')\nexcept (json.JSONDecodeError, ValueError) as error:\n    return False, f'{error}: {error.msg!r:>10}'"
)]
#[case(
    "names = {call['name'] for call in trace['calls'] if isinstance(call, dict)}\nreturn 'a' in names, ', '.join(sorted(names))"
)]
#[case("return type(trace) is dict, type(trace).__name__")]
#[case("x = getattr(trace, 'args', None)\ny = hasattr(trace, 'keys')")]
#[case("return '{:.2f} {name!r} {0}'.format(1.5, name=2) != '', ''")]
#[case("for n, (a, b) in enumerate(zip([1], map(str.lower, ['x']))): print(n, *reversed([a, b]))")]
#[case("first = next(iter(sorted(trace, key=lambda k: len(k))), None)\nreturn any(x in trace for x in 'ab'), ''")]
#[case(
    "short = lambda text: text[:3]\nreturn True, short('abcd') + '|'.join(m.group() for m in re.finditer('a', 'b'))"
)]
#[case("match trace:\n    case {'steps': [first, *rest]}: pass\n    case str() | bytes(): pass\n    case _: pass")]
#[case("total = 0\ndef add(n):\n    nonlocal total\n    total += n\n    return total\nadd(1)")]
#[case("def numbers():\n    yield 1\n    yield from (2, 3)\nreturn sum(numbers()) == 6, ''")]
#[case("x: typing.Optional[typing.List[str]] = None\ny: dict[str, int | None] = {}\nz: 'Anything' = 1")]
#[case("P = re.compile('(?P<n>x)')\nm = P.match('x')\nreturn bool(m), re.sub('a', lambda m: m.group(0), 'b')")]
#[case("if (n := len(trace)) > 1: raise ValueError(n)")]
#[case("print(__name__)")]
fn accepts_stateless_bodies(#[case] body: &str) {
    assert!(is_stateless(&function(body)));
}

/// The documented examples run at full speed.
#[test]
fn the_documented_functions_are_stateless() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/it/fixtures/functions");
    for name in ["response_quality", "tool_usage", "customer_support", "response_format"] {
        let source = std::fs::read_to_string(folder.join(name).with_extension("py")).expect("a function");
        assert!(is_stateless(&source), "{name}");
    }
}

#[rstest]
#[case(
    "import json as j\nfrom re import escape as e, I\nfrom typing import Any, Dict\nAlias = Dict[str, Any]\ndef eval_x(t: Alias) -> 'x':\n    return bool(e(j.dumps(t))), ''"
)]
#[case(
    "SEEN = []\ndef eval_x(trace: dict) -> tuple[bool, str]:\n    global SEEN\n    SEEN.append(1)\n    SEEN = SEEN + [2]\n    return len(SEEN) == 2, ''"
)]
fn accepts_stateless_modules(#[case] source: &str) {
    assert!(is_stateless(source));
}

#[rstest]
#[case::attribute_named_by_a_text("'{0.__globals__}'.format(re.compile)")]
#[case::attribute_named_by_a_text_in_a_format("'{0:{1.x}}'.format(1, 2)")]
#[case::attribute_named_by_any_text("trace['x'].format(1)")]
#[case::attribute_named_by_a_string_method("f = str.format")]
#[case::attribute_named_by_a_mapping("'{a.b}'.format_map(trace)")]
#[case::flags_from_the_trace("re.search('a', 'b', trace['f'])")]
#[case::flags_by_name("re.sub('a', 'b', 'c', flags=trace['f'])")]
#[case::flags_that_are_a_float("re.search('a', 'b', 2.0)")]
#[case::flags_in_starred_arguments("re.search(*trace)")]
#[case::flags_in_keyword_arguments("re.search('a', 'b', **trace)")]
#[case::a_search_as_a_value("s = re.search")]
#[case::the_same_text("re.compile(trace['p']).pattern is trace['p']")]
#[case::not_the_same("a = b = ''\nreturn a is not b, ''")]
#[case::a_union_in_another_order("x = typing.List[typing.Union[int, str]]")]
#[case::one_name_for_two_modules("import typing as j\ndef other():\n    import re as j")]
#[case::a_module_and_a_variable("json = 1")]
#[case::a_function_as_a_text("return True, f'{eval_x}'")]
#[case::a_function_in_a_list("x = [eval_x]")]
#[case::a_function_as_an_argument("def show(f): return str(f)\nshow(eval_x)")]
#[case::a_lambda_as_a_text("x = str(lambda: 0)")]
#[case::a_lambda_returned("def make(): return lambda: 0\nmake()")]
#[case::a_generator_as_a_text("x = str(y for y in [])")]
#[case::a_generator_in_a_variable("g = (y for y in [])")]
#[case::a_generator_of_a_function("def g(): yield 1\nx = repr(g())")]
#[case::an_iterator_in_a_variable("x = map(str, [])")]
#[case::an_iterator_of_matches("x = re.finditer('a', 'b')\nreturn True, str(x)")]
#[case::a_method_as_a_text("x = str(trace.get)")]
#[case::a_method_by_text("x = getattr(trace, 'get')")]
#[case::a_method_by_pattern("match trace:\n    case dict(keys=k): return True, str(k)")]
#[case::a_decorated_function("def deco(f): return f\n@deco\ndef g(): pass")]
#[case::an_object_of_json("x = str(json.JSONDecoder())")]
#[case::attribute_stored("json.loads = None")]
#[case::attribute_stored_on_anything("trace.x = 1")]
#[case::attribute_deleted("del trace.x")]
#[case::attribute_as_a_target("for trace.x in []: pass")]
#[case::attribute_in_a_tuple("a, trace.x = 1, 2")]
#[case::attribute_added_to("trace.x += 1")]
#[case::attribute_with_a_type("trace.x: int = 1")]
#[case::with_a_target("with trace as trace.x: pass")]
#[case::a_module_as_a_value("m = json")]
#[case::a_module_as_an_argument("setup(json)\ndef setup(m): m.loads = 1")]
#[case::a_submodule_of_a_module("json.decoder")]
#[case::a_private_name_of_a_module("re._cache.clear()")]
#[case::purging_patterns("re.purge()")]
#[case::debug_output("re.compile('x', re.DEBUG)")]
#[case::typing_that_evaluates("typing.get_type_hints(eval_x)")]
#[case::typing_with_values("typing.Annotated[int, len(trace)]")]
#[case::typing_with_numbers("typing.Literal[1]")]
#[case::typing_with_variables("x = 1\ntyping.List[x]")]
#[case::typing_as_a_value("x = typing.List")]
#[case::a_class("class A: pass")]
#[case::named_tuple("typing.NamedTuple('A', [('a', int)])")]
#[case::a_class_by_type("type('A', (), {})")]
#[case::the_type_of_a_type("t = type(type(1))")]
#[case::type_by_name("x = [type]")]
#[case::type_with_a_star("type(*trace) is dict")]
#[case::frame_of_a_generator("g = (x for x in [])\ng.gi_frame")]
#[case::frame_by_pattern("match trace:\n    case object(gi_frame=f): pass")]
#[case::frame_by_text("getattr(trace, 'gi_frame')")]
#[case::attribute_by_a_built_name("getattr(trace, '__' + 'class__')")]
#[case::attribute_by_private_text("getattr(trace, '_x')")]
#[case::attribute_of_a_module_by_text("getattr(json, 'loads')")]
#[case::code("eval_x.co_consts")]
#[case::traceback("def f(tb): return tb.tb_frame")]
#[case::registry("trace.register(1)")]
#[case::private_attribute("trace._x")]
#[case::generator_with_finally("def g():\n    try:\n        yield 1\n    finally:\n        print('late')\nnext(g())")]
#[case::generator_with_except(
    "def g():\n    try:\n        yield 1\n    except GeneratorExit:\n        pass\nnext(g())"
)]
#[case::generator_with_with("def g():\n    with trace:\n        yield 1")]
#[case::coroutine("async def f(): pass\nf()")]
#[case::own_name_shadows_a_builtin("def f():\n    vars = 1\nvars(json)")]
#[case::template("x = t'{trace}'")]
#[case::type_alias("type X = int")]
#[case::type_parameters("def f[T](): pass")]
#[case::submodule("import json.decoder")]
#[case::star_import("pass\nfrom json import decoder")]
#[case::unknown_name("unknown")]
#[case::module_imported_as_a_builtin("import json as len\nlen.x")]
fn rejects_possibly_stateful_bodies(#[case] body: &str) {
    assert!(!is_stateless(&function(body)));
}

#[test]
fn rejects_star_imports() {
    assert!(!is_stateless("from re import *\ndef eval_x(trace):\n    return True, ''\n"));
}

/// The names of Python 3.14's `builtins`, except those that are blocked and those that only compute.
#[rstest]
fn rejects_other_built_in_names(
    #[values(
        "aiter",
        "anext",
        "classmethod",
        "copyright",
        "credits",
        "delattr",
        "dir",
        "exit",
        "getattr",
        "globals",
        "hasattr",
        "hash",
        "help",
        "id",
        "license",
        "locals",
        "memoryview",
        "object",
        "property",
        "quit",
        "setattr",
        "staticmethod",
        "super",
        "type",
        "vars",
        "BaseExceptionGroup",
        "MemoryError",
        "GeneratorExit",
        "SystemExit"
    )]
    name: &str,
) {
    assert!(!is_stateless(&function(&format!("x = {name}"))));
    assert!(!is_stateless(&function(&format!("x = [{name}]\nx[0](trace)"))));
}

/// The contents of Python's caches must not show in verdicts or reasons.
#[rstest]
#[case::cached_patterns(
    "import re\ndef eval_x(trace):\n    re.search(trace['p'], 'x')\n    return True, '{0.__globals__[_cache]}'.format(re.compile)"
)]
#[case::flags("import re\ndef eval_x(trace):\n    return bool(re.search('zzq', 'aZZQ', trace['f'])), ''")]
#[case::texts("import re\ndef eval_x(trace):\n    s = trace['p']\n    return re.compile(s).pattern is s, ''")]
#[case::addresses(
    "def eval_x(trace):\n    n = int(f'{eval_x}'.split('0x')[1][:-1], 16)\n    keep = [trace, lambda: keep]\n    return n % 32 < 16, ''"
)]
#[case::unions(
    "import typing\ndef eval_x(trace):\n    if trace['p'] == 'one':\n        x = typing.List[typing.Union[int, str]]\n    else:\n        x = typing.List[typing.Union[str, int]]\n    return str(x).startswith('typing.List[str'), str(x)"
)]
#[case::modules(
    "def eval_x(trace):\n    import typing as j\n    def other():\n        import re as j\n    x = j.Match[trace['f']]\n    return True, str(x)"
)]
fn strict_isolation_gives_the_same_results(#[case] source: &str) {
    let sandbox = sandbox();
    let first = r#"{"trace_id":"1","p":"one","f":2}"#;
    let second = r#"{"trace_id":"2","p":"two","f":2.0}"#;
    let lines = [first, second, first, second, first, second, second, second, first].join("\n");
    let function = std::sync::Arc::new(validate(source.as_bytes()).expect("valid"));
    let conclusions_in = |isolation| {
        let mut task = task(&[std::sync::Arc::clone(&function)], isolation);
        task.jobs = 1;
        let conclusions =
            |judged: crate::support::Judged| judged.judgements.into_iter().map(|judgement| judgement.conclusion);
        judge(sandbox, &task, lines.clone()).into_iter().flat_map(conclusions).collect::<Vec<_>>()
    };
    assert_eq!(conclusions_in(Isolation::Namespace), conclusions_in(Isolation::Strict));
}
