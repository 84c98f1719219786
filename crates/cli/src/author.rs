//! Who says something.

use crate::environment::Environment;
use crate::failure::Failure;

/// Returns who speaks: who is named, or else who works here.
pub(crate) fn author(named: Option<&str>, environment: &Environment) -> Result<String, Failure> {
    let name = named.or(environment.user_name.as_deref()).map(str::trim);
    match name {
        Some("") => Err(Failure::invalid("--author is empty")),
        Some(name) => Ok(name.to_owned()),
        None => Err(Failure::invalid("nobody says who speaks").hint("--author NAME, or the variable GIT_AUTHOR_NAME")),
    }
}
