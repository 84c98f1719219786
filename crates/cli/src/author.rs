//! Who says something.

use crate::environment::Environment;
use crate::failure::Failure;

/// Returns who speaks: who is named, or else who works here.
pub(crate) fn author(named: Option<&str>, environment: &Environment) -> Result<String, Failure> {
    said_by("--author", named, environment)
}

/// Returns who approves: who is named, or else who works here.
pub(crate) fn approver(named: Option<&str>, environment: &Environment) -> Result<String, Failure> {
    said_by("--approved-by", named, environment)
}

fn said_by(flag: &str, named: Option<&str>, environment: &Environment) -> Result<String, Failure> {
    let name = named.or(environment.user_name.as_deref()).map(str::trim);
    match name {
        Some("") if named.is_some() => Err(Failure::invalid(format!("{flag} is empty"))),
        Some(name) if !name.is_empty() => Ok(name.to_owned()),
        _ => Err(Failure::invalid("it is not known who you are")
            .hint(format!("{flag} NAME says it, or the variable GIT_AUTHOR_NAME"))),
    }
}
