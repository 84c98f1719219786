//! The author of ratings, resolutions and approvals.

use clap::Args;

use crate::environment::Environment;
use crate::failure::Failure;

macro_rules! with_default_name {
    ($help:literal) => {
        concat!($help, " [default: GIT_AUTHOR_NAME, or the user of the operating system]")
    };
}

/// Help text of `--author` for files whose rows may name an author.
pub(super) const ROW_AUTHOR_HELP: &str = with_default_name!("Author of rows without one");

#[derive(Debug, Args)]
pub(crate) struct AuthorArgs {
    #[arg(long, value_name = "NAME", help = with_default_name!("Your name"))]
    pub(crate) author: Option<String>,
}

impl AuthorArgs {
    /// Returns the author from the flag or the environment.
    pub(crate) fn name(&self, environment: &Environment) -> Result<String, Failure> {
        resolve_name("--author", self.author.as_deref(), environment)
    }
}

fn resolve_name(flag: &str, value: Option<&str>, environment: &Environment) -> Result<String, Failure> {
    let name = value.or(environment.process.user_name.as_deref()).map(str::trim);
    match name {
        Some("") if value.is_some() => Err(Failure::invalid(format!("{flag} is empty"))),
        Some(name) if !name.is_empty() => Ok(name.to_owned()),
        _ => {
            Err(Failure::invalid("cannot determine your name")
                .hint(format!("pass {flag} NAME, or set GIT_AUTHOR_NAME")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fails_without_a_name() {
        let mut environment = Environment::from_process();
        environment.process.user_name = None;
        let failure = resolve_name("--author", None, &environment).unwrap_err();
        assert_eq!(failure.message, "cannot determine your name");
        assert_eq!(failure.hints, ["pass --author NAME, or set GIT_AUTHOR_NAME"]);
        assert_eq!(resolve_name("--author", Some("Ada"), &environment).unwrap(), "Ada");
    }
}
