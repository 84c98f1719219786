//! Behaviour of the drafting of cases, through its public face.

mod rules;
mod whole;
