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

#[rstest]
#[case::name_of_a_created_tool(
    "import { createTool } from '@mastra/core/tools'; export const a = createTool({ name: 'get', description: 'd' });",
    "get=d"
)]
fn tools_are_seen(#[case] source: &str, #[case] expected: &str) {
    assert_eq!(shown(&[("t.ts", source)]), expected, "{source}");
}

#[test]
fn a_schema_that_is_not_there_hides_none() {
    let source = "export const t = { name: 't', parameters: undefined, schema: { type: 'object' } };";
    assert_eq!(read(&[("t.ts", source)]).tools()[0].input_schema, Some(serde_json::json!({"type": "object"})));
}
