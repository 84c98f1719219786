//! Ambiguous cases: several ways are right.

use std::collections::BTreeSet;

use karat_core::overlap::covers_cluster;
use karat_core::text::quoted_list;

use super::{DraftRule, Examination};
use crate::Combination;

impl Examination<'_> {
    pub(super) fn choice(&mut self, combination: Combination, others: &[String]) {
        let expect = &self.case.expect;
        if expect.tools_called.is_some() {
            let what = "an ambiguous case has several right ways: use 'toolsAcceptable' in place of 'toolsCalled'";
            self.error(DraftRule::BothRoutingKinds, "/expect/toolsCalled", what);
        }
        let Some(sets) = expect.tools_acceptable.as_deref() else {
            let what =
                format!("an ambiguous case names its acceptable sets in 'toolsAcceptable': {}", combination.form());
            return self.error(DraftRule::AmbiguousWithoutSets, "/expect", what);
        };
        if !combination.fits(sets) {
            let found = Combination::of(sets).map_or_else(String::new, |found| format!(", these are {}", found.name()));
            let what = format!("this is the place of {}: {}{found}", combination.name(), combination.form());
            self.warning(DraftRule::Combination, "/expect/toolsAcceptable", what);
        }
        if combination == Combination::Nor {
            return;
        }
        let named: BTreeSet<&String> = sets.iter().flatten().collect();
        let ours = &self.brief.tool.name;
        let missing: Vec<&String> = std::iter::once(ours).chain(others).filter(|tool| !named.contains(tool)).collect();
        if !missing.is_empty() {
            let what = format!("no set names {}, which the case is about", quoted_list(&missing));
            return self.error(DraftRule::NamesTools, "/expect/toolsAcceptable", what);
        }
        let members: BTreeSet<String> = std::iter::once(ours).chain(others).cloned().collect();
        let is_cluster = |cluster: &Vec<String>| cluster.iter().collect::<BTreeSet<_>>() == members.iter().collect();
        if self.brief.clusters.iter().any(is_cluster) && !covers_cluster(self.case, &members) {
            let what = "these tools are a cluster: one of the sets should hold all of them";
            self.warning(DraftRule::NamesTools, "/expect/toolsAcceptable", what);
        }
    }
}
