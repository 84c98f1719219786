//! The capturing groups of a pattern and the back-references to them, collected before it is compiled.

use oxc_regular_expression::{
    ast::{CapturingGroup, Disjunction, IndexedReference, NamedReference},
    visit::{Visit, walk},
};

/// The target of a back-reference.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reference<'a> {
    Index(u32),
    Name(&'a str),
}

/// The capturing groups of a pattern and the back-references to them.
#[derive(Debug, Default)]
pub(super) struct Captures<'a> {
    /// The source offset and name of each group; the first is group 1.
    groups: Vec<(u32, Option<&'a str>)>,
    references: Vec<Reference<'a>>,
    /// The names of groups that can take part in the same match as the next visited node.
    reachable_names: Vec<&'a str>,
    /// Whether two groups that can take part in the same match share a name. The parser also checks
    /// this, but misses some, such as `(?:(?<n>a)|b)(?:c|(?<n>d))`.
    pub(super) has_duplicate_name: bool,
}

impl<'a> Captures<'a> {
    pub(super) fn collect(pattern: &Disjunction<'a>) -> Self {
        let mut captures = Self::default();
        captures.visit_disjunction(pattern);
        captures
    }

    /// Returns the source offsets of the groups that any back-reference reads, in order.
    pub(super) fn referenced(&self) -> Vec<u32> {
        let mut referenced: Vec<u32> = self.references.iter().flat_map(|&reference| self.targets(reference)).collect();
        referenced.sort_unstable();
        referenced.dedup();
        referenced
    }

    /// Returns the source offsets of the groups that a back-reference reads.
    pub(super) fn targets(&self, reference: Reference) -> impl Iterator<Item = u32> {
        let is_target = move |&(index, (_, name)): &(u32, &(u32, Option<&str>))| match reference {
            Reference::Index(target) => index == target,
            Reference::Name(target) => *name == Some(target),
        };
        (1..).zip(&self.groups).filter(is_target).map(|(_, &(start, _))| start)
    }
}

impl<'a> Visit<'a> for Captures<'a> {
    fn visit_disjunction(&mut self, disjunction: &Disjunction<'a>) {
        let outside = self.reachable_names.len();
        let mut inside = Vec::new();
        for alternative in &disjunction.body {
            self.visit_alternative(alternative);
            inside.extend(self.reachable_names.drain(outside..));
        }
        self.reachable_names.extend(inside);
    }

    fn visit_capturing_group(&mut self, group: &CapturingGroup<'a>) {
        let name = group.name.map(|name| name.as_str());
        self.has_duplicate_name |= name.is_some_and(|name| self.reachable_names.contains(&name));
        self.reachable_names.extend(name);
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
