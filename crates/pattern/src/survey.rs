//! What must be known of a whole pattern before any of it is compiled: its groups and who reads them.

use oxc_regular_expression::{
    ast::{CapturingGroup, Disjunction, IndexedReference, NamedReference},
    visit::{Visit, walk},
};

/// What a back-reference reads.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reference<'a> {
    Index(u32),
    Name(&'a str),
}

/// The capturing groups of a pattern and the back-references to them.
#[derive(Debug, Default)]
pub(super) struct Survey<'a> {
    /// Where each group begins in the source, and its name; the first is group 1.
    groups: Vec<(u32, Option<&'a str>)>,
    references: Vec<Reference<'a>>,
    /// The names of groups that can take part in the same match as what is visited next.
    names_in_reach: Vec<&'a str>,
    /// Whether two groups that can take part in the same match share a name. The parser has such a
    /// check too, but lets some pass, such as `(?:(?<n>a)|b)(?:c|(?<n>d))`.
    pub(super) repeats_name: bool,
}

impl<'a> Survey<'a> {
    /// Surveys a pattern.
    pub(super) fn of(pattern: &Disjunction<'a>) -> Self {
        let mut survey = Self::default();
        survey.visit_disjunction(pattern);
        survey
    }

    /// Returns the places in the source of the groups that any back-reference reads, in order.
    pub(super) fn captured(&self) -> Vec<u32> {
        let mut captured: Vec<u32> = self.references.iter().flat_map(|&reference| self.targets(reference)).collect();
        captured.sort_unstable();
        captured.dedup();
        captured
    }

    /// Returns the places in the source of the groups that a back-reference reads.
    pub(super) fn targets(&self, reference: Reference) -> impl Iterator<Item = u32> {
        let is_target = move |&(index, (_, name)): &(u32, &(u32, Option<&str>))| match reference {
            Reference::Index(wanted) => index == wanted,
            Reference::Name(wanted) => *name == Some(wanted),
        };
        (1..).zip(&self.groups).filter(is_target).map(|(_, &(start, _))| start)
    }
}

impl<'a> Visit<'a> for Survey<'a> {
    fn visit_disjunction(&mut self, disjunction: &Disjunction<'a>) {
        let outside = self.names_in_reach.len();
        let mut inside = Vec::new();
        for alternative in &disjunction.body {
            self.visit_alternative(alternative);
            inside.extend(self.names_in_reach.drain(outside..));
        }
        self.names_in_reach.extend(inside);
    }

    fn visit_capturing_group(&mut self, group: &CapturingGroup<'a>) {
        let name = group.name.map(|name| name.as_str());
        self.repeats_name |= name.is_some_and(|name| self.names_in_reach.contains(&name));
        self.names_in_reach.extend(name);
        self.groups.push((group.span.start, name));
        walk::walk_capturing_group(self, group);
    }

    fn visit_indexed_reference(&mut self, reference: &IndexedReference) {
        self.references.push(Reference::Index(reference.index));
    }

    fn visit_named_reference(&mut self, reference: &NamedReference<'a>) {
        self.references.push(Reference::Name(reference.name.as_str()));
    }
}
