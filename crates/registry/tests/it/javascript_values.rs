//! What expressions in TypeScript and JavaScript are worth, and sources that mean harm.

use proptest::prelude::*;
use rstest::rstest;

use crate::javascript::{read, unknown};

/// Returns the description that a module with these statements gives its tool.
fn description(statements: &str, expression: &str) -> Option<String> {
    let source = format!("{statements}\nexport const t = {{ name: 't', description: {expression}, run() {{}} }};\n");
    let registry = read(&[("t.ts", &source)]);
    assert_eq!(registry.names(), ["t"], "{source}\n{}", unknown(&registry));
    let tool = &registry.tools()[0];
    assert_eq!(tool.description.is_none(), !tool.unknown.is_empty(), "{source}");
    tool.description.clone()
}

#[rstest]
#[case::numbers("", "1 + 2 + 'a' + 1e21 + 0.1 + -0 + 0xff + 1_000", Some("3a1e+210.102551000"))]
#[case::words("", "'' + true + null + undefined + NaN + -Infinity", Some("truenullundefinedNaN-Infinity"))]
#[case::escapes(
    "",
    r"'\x41\u0042\u{43}\0\v\'\z\
x'",
    Some("ABC\0\u{b}'zx")
)]
#[case::join_of_nothing("", "['a', null, undefined, 1].join()", Some("a,,,1"))]
#[case::shadowed_inside("const a = 'x'; function f() { let a = 1; a = 2; return a; }", "a", Some("x"))]
#[case::let_never_assigned("let a = 'x';", "a", Some("x"))]
#[case::let_assigned_in_a_function("let a = 'x'; export const set = (v) => { a = v };", "a", None)]
#[case::let_assigned_in_a_pattern("let a = 'x'; [a] = f();", "a", None)]
#[case::let_in_a_loop("let a = 'x'; for (a of b) {}", "a", None)]
#[case::var_in_a_block("if (c) { var a = 'x'; }", "a", None)]
#[case::declared_only("declare const a: string;", "a", None)]
#[case::deep_change("const o = { a: { b: 'x' } }; o.a.b = 'y';", "o.a.b", None)]
#[case::computed_change("const o = { a: 'x' }; o[k] = 'y';", "o.a", None)]
#[case::deleted("const o = { a: 'x' }; delete o.a;", "o.a", None)]
#[case::other_key_changed("const o = { a: 'x', b: 'y' }; o.b = 'z';", "o.a", Some("x"))]
#[case::pushed("const o = ['x']; o.push('y');", "o.join()", None)]
#[case::assigned_by_object("const o = { a: 'x' }; Object.assign(o, p);", "o.a", None)]
#[case::frozen("const o = Object.freeze({ a: 'x' });", "o.a", Some("x"))]
#[case::optional("const o = { a: 'x' };", "o?.a", Some("x"))]
#[case::enum_members("enum E { A, B = 5, C, D = 'd', F = A }", "'' + E.A + E.C + E.D + E.F + E[5]", Some("06d0B"))]
#[case::enum_computed("enum E { A = f(), B }", "'' + E.B", None)]
#[case::function_without_parameters("const f = () => 'x';", "f() + 'y'", Some("xy"))]
#[case::function_with_a_body("const f = () => { log(); return 'x'; };", "f()", None)]
#[case::asynchronous_identity("const f = async (x) => x;", "f('x')", None)]
#[case::identity_with_a_default("const f = (x = 1) => x;", "f('x')", None)]
#[case::global("", "document.title", None)]
#[case::unicode_names("const größe = 'x';", "größe", Some("x"))]
#[case::inherited("", "`x${({}).toString}`", None)]
#[case::order_of_an_enum("enum E { A = -1, B = 2 }", "Object.values(E).join()", Some("B,-1,A,2"))]
#[case::setter("", "'x', set description(v) {}", None)]
#[case::assertions("const a = <const>'x';", "((a as string)! satisfies string)", Some("x"))]
fn descriptions_are_worth_what_they_are_at_run_time(
    #[case] statements: &str,
    #[case] expression: &str,
    #[case] expected: Option<&str>,
) {
    assert_eq!(description(statements, expression).as_deref(), expected);
}

#[test]
fn a_variable_is_worth_nothing_before_its_declaration() {
    let registry = read(&[("t.js", "export const t = { name: 't', description: a, run() {} };\nvar a = 'x';\n")]);
    insta::assert_snapshot!(unknown(&registry), @"t: description at t.js:1:44: 'a' is used before it is declared");
}

#[test]
fn what_is_changed_says_where() {
    let source =
        "const lines = ['a'];\nlines.push('x');\nexport const t = { name: 't', description: lines.join(' ') };\n";
    insta::assert_snapshot!(unknown(&read(&[("t.ts", source)])), @"t: description at t.ts:2:1: 'lines' is changed here");
}

#[test]
fn copies_of_copies_are_given_up() {
    let steps: Vec<String> =
        (1..3_000).map(|step| format!("const o{step} = {{ ...o{}, k{step}: 1 }};\n", step - 1)).collect();
    let source = format!("const o0 = {{ k0: 'x' }};\n{}", steps.concat());
    assert_eq!(description(&source, "o2999.k0"), None);
}

/// Writes a text as a JavaScript expression, in one of many ways.
fn written(pieces: &[(String, u8)]) -> String {
    let escape = |text: &str, quote: char| {
        let mut out = String::new();
        for character in text.chars() {
            match character {
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\u{2028}' => out.push_str("\\u2028"),
                '\u{2029}' => out.push_str("\\u2029"),
                '\\' => out.push_str("\\\\"),
                '$' => out.push_str("\\$"),
                _ if character == quote => out.extend(['\\', character]),
                _ => out.push(character),
            }
        }
        format!("{quote}{out}{quote}")
    };
    let units = |text: &str| {
        let units: Vec<String> = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
        format!("'{}'", units.concat())
    };
    let points = |text: &str| {
        let point = |character| format!("\\u{{{:x}}}", u32::from(character));
        let points: Vec<String> = text.chars().map(point).collect();
        format!("`{}`", points.concat())
    };
    let mut parts: Vec<String> = vec!["''".to_owned()];
    for (text, way) in pieces {
        parts.push(match way % 6 {
            0 => escape(text, '\''),
            1 => escape(text, '"'),
            2 => escape(text, '`'),
            3 => units(text),
            4 => points(text),
            _ => format!("`${{{}}}`", escape(text, '\'')),
        });
    }
    parts.join(" + ")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_text_comes_back_however_it_is_written(pieces in prop::collection::vec((any::<String>(), any::<u8>()), 0..6)) {
        let text: String = pieces.iter().map(|(text, _)| text.as_str()).collect();
        prop_assert_eq!(description("", &written(&pieces)), Some(text));
    }

    #[test]
    fn any_source_is_read_without_breaking(pieces in prop::collection::vec(any::<prop::sample::Index>(), 0..60)) {
        let known: Vec<&str> = PIECES.split_whitespace().collect();
        let source: Vec<&str> = pieces.iter().map(|piece| *piece.get(&known)).collect();
        read(&[("any.ts", &source.join(" "))]);
    }
}

/// What sources are made of.
const PIECES: &str = "export const let default import * from './any' { } ( ) [ ] ... = => ; , : . ?. ! + - as satisfies \
                      name description schema a b 'text' `${ }` 1 null enum class function return async await \
                      module.exports require from 'zod' z string object optional tool server.registerTool \
                      Object.assign /x/ //";

#[rstest]
#[case::brackets("export const x = ", "[", "]")]
#[case::parentheses("export const x = ", "(", ")")]
#[case::objects("export const x = ", "{a:", "}")]
#[case::templates("export const x = ", "`${", "}`")]
#[case::prefixes("export const x = ", "!", "")]
#[case::arrows("export const x = ", "a=>", "")]
#[case::conditions("export const x = ", "a?b:", "")]
#[case::additions("export const x = ", "'a'+", "")]
#[case::members("export const x = ", "a.", "")]
#[case::calls("export const x = ", "z.string(", ")")]
#[case::ifs("", "if(a)", "")]
#[case::generics("export const x = ", "<T>", "")]
fn hostile_nesting_ends_no_process(#[case] start: &str, #[case] open: &str, #[case] close: &str) {
    for depth in [100, 2_400, 4_900, 9_900, 1_000_000] {
        let source = format!(
            "export const good = {{ name: 'good', description: 'd' }};\n{start}{}'x'{};\n",
            open.repeat(depth),
            close.repeat(depth)
        );
        let registry = read(&[("t.ts", &source)]);
        assert!(registry.names() == ["good"] || !registry.gaps().is_empty(), "{depth}");
    }
}

#[rstest]
#[case::texts("t.tsx", "<a>,", "")]
#[case::values("t.tsx", "<a>{x}b", "</a>")]
#[case::lines("t.js", "<a>{x}\nb", "</a>")]
fn hostile_markup_ends_no_process(#[case] name: &str, #[case] open: &str, #[case] close: &str) {
    for depth in [100, 4_900, 9_900, 400_000] {
        let source = format!(
            "export const good = {{ name: 'good', description: 'd' }};\nconst x = {}{};\n",
            open.repeat(depth),
            close.repeat(depth)
        );
        let registry = read(&[(name, &source)]);
        assert!(registry.names() == ["good"] || !registry.gaps().is_empty(), "{depth}");
    }
}

#[test]
fn long_flat_sources_are_read() {
    let rows: Vec<String> = (0..450).map(|row| format!("  <Row id=\"{row}\">item {row} here</Row>\n")).collect();
    let members: Vec<String> = (0..2_600).map(|member| format!("  | 'm{member}'\n")).collect();
    let functions: Vec<String> = (0..2_600).map(|at| format!("function f{at}(a){{return a}} ")).collect();
    for rest in [
        format!("export const view = () => <div>\n{}</div>;", rows.concat()),
        format!("export type U =\n{}", members.concat()),
        functions.concat(),
    ] {
        let source = format!("export const good = {{ name: 'good', description: 'd' }};\n{rest}\n");
        let registry = read(&[("t.tsx", &source)]);
        assert_eq!((registry.names(), unknown(&registry)), (vec!["good"], String::new()));
    }
}

#[test]
fn values_that_double_and_double_are_given_up() {
    let doubling = |first: &str, next: &dyn Fn(usize) -> String| {
        let steps: Vec<String> = (1..60).map(|step| format!("const v{step} = {};\n", next(step - 1))).collect();
        format!("import {{ z }} from 'zod';\nconst v0 = {first};\n{}", steps.concat())
    };
    let texts = doubling("'x'", &|last| format!("v{last} + v{last}"));
    assert_eq!(description(&texts, "v59"), None);
    let calls = doubling("() => 'x'", &|last| format!("() => v{last}() + v{last}()"));
    assert_eq!(description(&calls, "v59()"), None);
    for (first, next) in [
        ("z.string()", "z.object({ a: v#, b: v# })"),
        ("[1]", "[v#, v#]"),
        ("{}", "{ a: v#, b: v# }"),
        ("[1]", "[...v#, ...v#]"),
    ] {
        let source = doubling(first, &|last| next.replace('#', &last.to_string()));
        let tool = "export const t = { name: 't', description: 'd', parameters: { type: 'object', properties: { a: v59 }, examples: v59 } };";
        let registry = read(&[("t.ts", &format!("{source}{tool}\nexport const tools = v59;\n"))]);
        assert_eq!(registry.names(), ["t"]);
        assert!(!registry.tools()[0].unknown.is_empty(), "{next}");
    }
}
