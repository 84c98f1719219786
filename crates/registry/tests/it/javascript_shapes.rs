//! The many ways in which people write their tools down, each in a few lines.

use rstest::rstest;

use crate::javascript::{read, unknown};

/// Shows tools as `name=description`, with `?` for what is unknown, and how many gaps there are.
fn shown(files: &[(&str, &str)]) -> String {
    let registry = read(files);
    let tool = |tool: &karat_core::registry::Tool| {
        let unknown: Vec<&str> = tool.unknown.iter().map(|unknown| unknown.field.name()).collect();
        let description = if unknown.contains(&"description") { "?" } else { "" };
        format!("{}={}{description}", tool.name, tool.description.as_deref().unwrap_or_default())
    };
    let mut parts: Vec<String> = registry.tools().iter().map(tool).collect();
    parts.extend(registry.gaps().iter().map(|gap| format!("{:?}", gap.kind)));
    parts.join(" ")
}

#[test]
fn a_recursive_function_of_types_ends() {
    let source = "import { z } from 'zod';\n\
        function node() { return z.object({ name: z.string(), left: z.lazy(node).optional(), right: z.lazy(node).optional() }) }\n\
        export const t = { name: 't', description: 'd', schema: node() };\n";
    let registry = read(&[("t.ts", source)]);
    insta::assert_snapshot!(unknown(&registry), @r"
    t: input schema at t.ts:2:61: it is recursive
    t: input schema at t.ts:2:93: it is recursive
    ");
}

/// What every table below begins with.
const IMPORTS: &str = "import { tool } from 'ai'; import { createTool } from '@mastra/core/tools';\n";

#[rstest]
#[case::name_of_a_created_tool("export const a = createTool({ name: 'get', description: 'd' });", "get=d")]
#[case::id_of_a_created_tool("export const a = createTool({ id: 'i', name: 'get', description: 'd' });", "i=d")]
#[case::a_key_beats_an_export(
    "export const weatherTool = tool({ description: 'd' }); export const tools = { weather: weatherTool };",
    "weather=d"
)]
#[case::one_definition_under_two_keys(
    "const mk = () => tool({ description: 'd' }); export const tools = { a: mk(), b: mk() };",
    "a=d b=d"
)]
#[case::a_nameless_tool_in_a_list("export const list = [tool({ description: 'd' })];", "Unknown")]
#[case::a_listed_tool_has_its_exports_name(
    "export const weather = tool({ description: 'd' }); export const list = [weather];",
    "weather=d"
)]
#[case::a_wrapper_whose_inside_changes(
    "export const t = { type: 'function', function: { name: 't', description: 'd' } }; t.function.description = 'x';",
    "t=?"
)]
#[case::an_agent_is_no_tool(
    "const t1 = { name: 't1', description: 'd', run() {} };\n\
     export const agent = { name: 'a', description: 'x', tools: [t1] };",
    "t1=d"
)]
#[case::a_definition_and_its_registration(
    "export const w = { name: 'w', description: 'd', schema: {} };\n\
     server.registerTool(w.name, { description: w.description }, () => {});",
    "w=d"
)]
#[case::a_definition_and_what_is_made_of_it(
    "export const def = { name: 'w', description: 'd', schema: {} }; export const t = { ...def, execute() {} };",
    "w=d"
)]
#[case::a_bound_handler("server.tool('w', 'd', {}, this.handle.bind(this));", "w=d")]
#[case::a_wrapped_handler("server.tool('w', 'd', withLog(async () => 1));", "w=d")]
#[case::a_configuration_of_a_package(
    "import { cfg } from '@acme/shared'; server.registerTool('w', cfg, () => {});",
    "w=?"
)]
#[case::a_tool_of_a_package("import { ext } from '@acme/shared'; server.addTool(ext);", "Unknown")]
#[case::a_name_of_a_package("import { N } from '@acme/shared'; server.tool(N.x, 'd', () => {});", "Unknown")]
#[case::a_package_beside_a_tool(
    "import { search } from '@acme/s'; const a = tool({ description: 'd' }); export const tools = { a, search };",
    "a=d Unknown"
)]
#[case::a_low_level_server(
    "server.setRequestHandler(ListToolsRequestSchema, async () => ({ tools: [{ name: 'a', description: 'd', inputSchema: {} }] }));",
    "a=d"
)]
#[case::a_low_level_server_that_computes(
    "server.setRequestHandler(ListToolsRequestSchema, async () => { if (x) return y; return { tools: [] }; });",
    "Unknown"
)]
#[case::a_factory(
    "export const a = { name: 'a', description: 'd' }; export const make = ({ session }) => tool({ description: 'x' });",
    "a=d Unknown"
)]
#[case::a_factory_function(
    "export const a = { name: 'a', description: 'd' }; export function make(s) { return tool({ description: 'x' }) }",
    "a=d Unknown"
)]
#[case::a_class(
    "export const a = { name: 'a', description: 'd' }; export class C { name = 'c'; description = 'x'; schema = 1 }",
    "a=d Unknown"
)]
#[case::a_namespace(
    "export const a = { name: 'a', description: 'd' }; export namespace N { export const b = { name: 'b' } }",
    "a=d Unknown"
)]
#[case::a_namespace_of_types(
    "export const a = { name: 'a', description: 'd' }; export namespace N { export type B = string }",
    "a=d"
)]
#[case::made_in_a_list(
    "export const a = { name: 'a', description: 'd' }; export const actions = [makeSearch(), makeFetch()];",
    "a=d Unknown Unknown"
)]
#[case::made_in_an_object(
    "export const a = { name: 'a', description: 'd' }; export const actions = { search: makeSearch() };",
    "a=d Unknown"
)]
#[case::spread_from_a_call(
    "export const a = { name: 'a', description: 'd' }; export const actions = [...makeSearch()];",
    "a=d Unknown"
)]
#[case::updated_by_its_handle(
    "const handle = server.registerTool('w', { description: 'd' }, () => {}); handle.update({ description: 'e' });",
    "w=?"
)]
fn tools_are_seen(#[case] source: &str, #[case] expected: &str) {
    assert_eq!(shown(&[("t.ts", &format!("{IMPORTS}{source}"))]), expected, "{source}");
}

#[rstest]
#[case::alias("const b = t; b.description = 'x';")]
#[case::loop_over_all("const all = [t]; for (const each of all) each.description += 'x';")]
#[case::loop_with_any_key("const all = [t]; for (const each of all) each[key] = 'x';")]
#[case::for_each("[t].forEach(each => { each.description = 'x' });")]
#[case::parameter("function decorate(it) { it.description = 'x' } decorate(t);")]
#[case::item("const l = [t]; l[0].description = 'x';")]
#[case::member("const all = { t }; all.t.description = 'x';")]
#[case::reflect("Reflect.set(t, 'description', 'x');")]
#[case::target_of_a_loop("for (t.description of ['x']) {}")]
#[case::define_through_an_alias("const b = t; Object.defineProperty(b, 'description', { value: 'x' });")]
#[case::assign_in_a_loop("for (const each of [t]) Object.assign(each, extra);")]
fn a_tool_that_may_be_changed_has_no_known_description(#[case] change: &str) {
    let source = format!("export const t = {{ name: 't', description: 'd', run() {{}} }};\n{change}");
    assert_eq!(shown(&[("t.ts", &source)]), "t=?", "{change}");
}

#[rstest]
#[case::of_its_own("const o = { description: 'x' }; o.description = 'y';")]
#[case::of_an_error("function fail(e) { e.name = 'x'; throw e }")]
#[case::in_a_tools_function(
    "export const u = { name: 'u', run(args) { args.description = 'x'; rows.forEach(r => { r.status = 1 }) } };"
)]
#[case::in_a_class("class A { constructor() { this.description = 'x' } }")]
#[case::by_any_key("const f = (into, key) => { into[key] = 1 };")]
#[case::of_what_was_awaited("async function f() { const r = await g(); r.status = 2 }")]
fn other_writes_change_no_tool(#[case] write: &str) {
    let source = format!("export const t = {{ name: 't', description: 'd', status: 'active', run() {{}} }};\n{write}");
    let registry = read(&[("t.ts", &source)]);
    assert_eq!(unknown(&registry), "", "{write}");
}

#[test]
fn an_object_that_changes_itself_is_not_known() {
    let source = "export const t = { name: 't', description: 'd', init() { this.description = 'x' } }; t.init();";
    assert_eq!(shown(&[("t.ts", source)]), "t=?");
}

#[rstest]
#[case::imported("import { t } from './t'; t.description = 'x'; export * from './t';")]
#[case::in_a_loop(
    "import * as all from './t'; for (const t of Object.values(all)) t.description = 'x'; export * from './t';"
)]
fn a_barrel_may_change_what_it_passes_on(#[case] barrel: &str) {
    let tool = "export const t = { name: 't', description: 'd', run() {} };";
    assert_eq!(shown(&[("barrel.ts", barrel), ("t.ts", tool)]), "t=?", "{barrel}");
}

#[test]
fn a_function_may_change_the_tools_of_those_who_import_it() {
    let files = [
        ("t.ts", "import { mark } from './mark'; export const t = mark({ name: 't', description: 'd' });"),
        ("mark.ts", "export const mark = (it) => { it.description = 'x'; return it };"),
    ];
    assert_eq!(shown(&files), "Unknown");
}

#[rstest]
#[case::lost_exports("exports.lost = T('a'); module.exports = { kept: T('b') }; exports.lost2 = T('c');", "b=d")]
#[case::conditional("module.exports = T('a'); if (c) module.exports = T('b');", "Unknown")]
#[case::conditional_name("exports.a = T('a'); if (c) exports.b = T('b');", "a=d Unknown")]
#[case::chained("exports = module.exports = { kept: T('a') }; exports.more = T('b');", "a=d b=d")]
#[case::deep_change("module.exports = { a: T('a') }; module.exports.a.description = 'x';", "a=?")]
fn commonjs_exports_what_it_does_at_run_time(#[case] source: &str, #[case] expected: &str) {
    let written = |source: &str| {
        let mut out = source.to_owned();
        for name in ["a", "b", "c"] {
            out = out.replace(&format!("T('{name}')"), &format!("{{ name: '{name}', description: 'd', run() {{}} }}"));
        }
        out
    };
    assert_eq!(shown(&[("t.cjs", &written(source))]), expected, "{source}");
    let required = [("main.cjs", "module.exports = require('./t.cjs');"), ("t.cjs", &written(source))];
    assert_eq!(shown(&required), expected, "{source}, required");
}

#[rstest]
#[case::of_a_namespace("import * as weather from './w.js'; weather.register(server);")]
#[case::in_a_loop("import { registerA } from './w.js'; for (const each of [registerA]) each(server);")]
fn modules_that_register_are_followed(#[case] source: &str) {
    let registering = "export function register(server) { server.tool('w', 'd', {}, () => {}) }";
    assert_eq!(shown(&[("t.js", source), ("w.js", registering)]), "w=d", "{source}");
}

#[test]
fn a_name_that_two_modules_give_is_given_by_none() {
    let files = [
        ("t.ts", "export * from './a'; export * from './b';"),
        ("a.ts", "export const t = { name: 'a', description: 'd' }; export * from './t';"),
        ("b.ts", "export const t = { name: 'b', description: 'd' };"),
    ];
    insta::assert_snapshot!(
        unknown(&read(&files)),
        @"Unknown at t.ts:1:36: 't' is exported by a.ts and by b.ts, so that it is exported by none"
    );
    let same = [
        ("t.ts", "export * from './a'; export * from './b';"),
        ("a.ts", "export * from './c';"),
        ("b.ts", "export { t } from './c';"),
        ("c.ts", "export const t = { name: 'c', description: 'd' };"),
    ];
    assert_eq!(shown(&same), "c=d");
}

#[test]
fn what_was_compiled_is_no_second_tool() {
    let tool = "export const t = { name: 't', description: 'd' };";
    let folder = tempfile::tempdir().unwrap();
    for path in ["src/w.tool.ts", "dist/w.tool.js"] {
        std::fs::create_dir_all(folder.path().join(path).parent().unwrap()).unwrap();
        std::fs::write(folder.path().join(path), tool).unwrap();
    }
    let registry = karat_registry::read_path(folder.path(), folder.path()).unwrap();
    assert_eq!((registry.names(), registry.gaps().len()), (vec!["t"], 0));
}

#[test]
fn a_schema_that_is_not_there_hides_none() {
    let source = "export const t = { name: 't', parameters: undefined, schema: { type: 'object' } };";
    assert_eq!(read(&[("t.ts", source)]).tools()[0].input_schema, Some(serde_json::json!({"type": "object"})));
}

#[rstest]
#[case("z.string().transform(Number).prefault('5')", r#"{"default":"5","type":"string"}"#, false)]
#[case("z.string().catch('c').transform(Number).prefault('p')", r#"{"default":"p","type":"string"}"#, false)]
#[case("z.string().transform(Number).default(5)", r#"{"type":"string"}"#, false)]
#[case("z.string().catch('c')", r#"{"default":"c","type":"string"}"#, true)]
#[case("z.string().catch('c').readonly()", r#"{"default":"c","readOnly":true,"type":"string"}"#, false)]
#[case("z.preprocess(x => x, z.string())", r#"{"type":"string"}"#, true)]
#[case("z.preprocess(x => x, z.string()).nullable()", r#"{"type":["string","null"]}"#, false)]
fn types_are_written_as_zod_writes_them(#[case] field: &str, #[case] expected: &str, #[case] required: bool) {
    let source =
        format!("import {{ z }} from 'zod'; export const t = {{ name: 't', schema: z.object({{ a: {field} }}) }};");
    let registry = read(&[("t.ts", &source)]);
    let schema = registry.tools()[0].input_schema.clone().unwrap();
    assert_eq!(schema["properties"]["a"], serde_json::from_str::<serde_json::Value>(expected).unwrap(), "{field}");
    assert_eq!(schema.get("required").is_some(), required, "{field}");
}

#[rstest]
#[case("z.string().email().min(3).regex(/x/)")]
#[case("z.string().uuid().email()")]
fn patterns_of_zods_own_are_not_known(#[case] field: &str) {
    let source =
        format!("import {{ z }} from 'zod'; export const t = {{ name: 't', schema: z.object({{ a: {field} }}) }};");
    assert_eq!(read(&[("t.ts", &source)]).tools()[0].unknown.len(), 1, "{field}");
}
