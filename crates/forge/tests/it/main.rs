//! Behaviour of the drafting of cases, through its public face.

mod drafts;
mod rules;
mod whole;
