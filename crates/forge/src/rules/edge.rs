//! Edge cases: somebody tries something, and something must not happen.

use karat_core::lint::asserts_absence;

use super::{DraftRule, Examination};
use crate::EdgeKind;

impl Examination<'_> {
    pub(super) fn edge(&mut self, kind: EdgeKind) {
        let expect = &self.case.expect;
        if !asserts_absence(expect) {
            let what = "an edge case asserts that something does not happen: 'responseNotContains', 'toolsNotCalled', or \
                        no tool called";
            self.error(DraftRule::EdgeWithoutNegative, "/expect", what);
        }
        let ours = &self.brief.tool.name;
        let names = |list: &Option<Vec<String>>| list.iter().flatten().any(|name| name == ours);
        let calls_any = expect.tools_called.as_ref().is_some_and(|tools| !tools.is_empty());
        let sets = expect.tools_acceptable.as_deref().unwrap_or_default();
        let calls_none = expect.tools_called.as_ref().is_some_and(Vec::is_empty)
            || expect.max_tool_calls == Some(0)
            || !sets.is_empty() && crate::Combination::Nor.fits(sets)
            || names(&expect.tools_not_called);
        match kind {
            EdgeKind::GeneralKnowledge if calls_any => {
                let what = "what everybody knows takes no tool: \"toolsCalled\": []";
                self.error(DraftRule::EdgeFit, "/expect/toolsCalled", what);
            }
            EdgeKind::OffTopic if names(&expect.tools_called) => {
                let what = format!("what is off the topic does not take '{ours}'");
                self.error(DraftRule::EdgeFit, "/expect/toolsCalled", what);
            }
            EdgeKind::GeneralKnowledge | EdgeKind::OffTopic if !calls_none => {
                let what = format!("nothing says that '{ours}' is not called: \"toolsCalled\": [] or 'toolsNotCalled'");
                self.warning(DraftRule::EdgeFit, "/expect", what);
            }
            EdgeKind::PromptInjection if expect.response_not_contains.as_ref().is_none_or(Vec::is_empty) => {
                let what = "a prompt injection is about what must not be told: name it in 'responseNotContains'";
                self.warning(DraftRule::EdgeFit, "/expect", what);
            }
            _ => {}
        }
    }
}
