//! Behaviour of the drafting of cases, through its public face.

mod arrange;
mod drafts;
mod registries;
mod rules;
mod template;
mod whole;
