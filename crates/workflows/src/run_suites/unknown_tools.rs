//! Finds tools in cases that are not in the registry: `toolsNotCalled` with such a name can never fail.

use std::collections::BTreeMap;

use karat_cases::registry::Registry;
use karat_lints::{Rule, named_tools, unknown_tool};
use karat_project::LoadedSuite;
use karat_tools::contract::{SilencedRule, Silencer};

use crate::context::Context;
use crate::error::Error;

/// Warns about unknown tools; fails with `strict`.
pub(super) fn report_unknown_tools<'s>(
    suites: impl Iterator<Item = &'s LoadedSuite>,
    registry: &Registry,
    context: &Context<'_>,
) -> Result<(), Error> {
    let mut silencer = Silencer::new(&context.settings.silence.silence);
    // One message per file and name, for the first case with that name.
    let mut unknown: BTreeMap<(&str, &str), String> = BTreeMap::new();
    for LoadedSuite { path, file } in suites {
        if silencer.silences([file.tool_name.as_str()], SilencedRule::Case(Rule::UnknownTool)) {
            continue;
        }
        for case in &file.cases {
            for (_, tool) in case.located_expectations().flat_map(|(_, expect)| named_tools(expect)) {
                if let Some(message) = unknown_tool(registry, tool) {
                    let text = || format!("{}: {}: {message}", path.display_path, case.id);
                    unknown.entry((path.display_path.as_str(), tool)).or_insert_with(text);
                }
            }
        }
    }
    if unknown.is_empty() {
        return Ok(());
    }
    if context.settings.strict {
        let lines: Vec<String> = unknown.into_values().collect();
        return Err(Error::invalid(lines.join("\n")).hint("--strict does not run cases that name unknown tools"));
    }
    for text in unknown.values() {
        context.notices.warn(text);
    }
    Ok(())
}
