//! Straightforward cases: several tools, and no doubt which.

use std::collections::BTreeSet;

use karat_core::case::ToolsCalledMatch;
use karat_core::text::quoted_list;

use super::{DraftRule, Examination};

impl Examination<'_> {
    pub(super) fn together(&mut self, planned: &[String]) {
        let expect = &self.case.expect;
        let ours = &self.brief.tool.name;
        let called = expect.tools_called.as_deref().unwrap_or_default();
        if called.is_empty() {
            let what = format!("a straightforward case names all its tools in 'toolsCalled', '{ours}' among them");
            return self.error(DraftRule::ToolCount, "/expect", what);
        }
        if !called.contains(ours) {
            let what = format!("'{ours}' is not among the tools, though the case is one of its cases");
            self.error(DraftRule::ToolCount, "/expect/toolsCalled", what);
        }
        let distinct: BTreeSet<&String> = called.iter().collect();
        let planned: BTreeSet<&String> = planned.iter().collect();
        let tools = self.brief.registry.tools().len();
        if called.len() > tools {
            let what = format!("{} calls, but the registry has only {tools} tools", called.len());
            self.error(DraftRule::ToolCount, "/expect/toolsCalled", what);
        } else if distinct.len() != planned.len() {
            let what = format!("this is the place of a case with {} tools, found {}", planned.len(), distinct.len());
            self.error(DraftRule::ToolCount, "/expect/toolsCalled", what);
        } else if distinct != planned {
            let missing: Vec<&String> = planned.difference(&distinct).copied().collect();
            let what = format!(
                "the plan names {} here too: leave it out only where other tools fit better",
                quoted_list(&missing)
            );
            self.warning(DraftRule::Companions, "/expect/toolsCalled", what);
        }
        if expect.tools_called_match != Some(ToolsCalledMatch::AnyOrder) {
            let what = "a straightforward case takes its tools in any order: \"toolsCalledMatch\": \"anyOrder\"";
            self.error(DraftRule::AnyOrder, "/expect/toolsCalledMatch", what);
        }
    }
}
