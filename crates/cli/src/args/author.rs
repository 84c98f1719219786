//! Who says something, for all verbs that write down who it was.

use clap::Args;

use crate::environment::Environment;
use crate::failure::Failure;

/// Says who it is where nobody is named.
macro_rules! or_whoever_works_here {
    ($who:literal) => {
        concat!($who, " [default: GIT_AUTHOR_NAME, else who is logged in]")
    };
}

/// For a file in which rows name their authors.
pub(super) const IN_ROWS: &str = or_whoever_works_here!("Who says so in rows that name nobody");

#[derive(Debug, Args)]
pub(crate) struct AuthorArgs {
    #[arg(long, value_name = "NAME", help = or_whoever_works_here!("Who says so"))]
    pub(crate) author: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ApproverArgs {
    #[arg(long, value_name = "NAME", help = or_whoever_works_here!("Who approves"))]
    pub(crate) approved_by: Option<String>,
}

impl AuthorArgs {
    /// Returns who speaks: who is named, or else who works here.
    pub(crate) fn name(&self, environment: &Environment) -> Result<String, Failure> {
        said_by("--author", self.author.as_deref(), environment)
    }
}

impl ApproverArgs {
    /// Returns who approves: who is named, or else who works here.
    pub(crate) fn name(&self, environment: &Environment) -> Result<String, Failure> {
        said_by("--approved-by", self.approved_by.as_deref(), environment)
    }
}

fn said_by(flag: &str, named: Option<&str>, environment: &Environment) -> Result<String, Failure> {
    let name = named.or(environment.process.user_name.as_deref()).map(str::trim);
    match name {
        Some("") if named.is_some() => Err(Failure::invalid(format!("{flag} is empty"))),
        Some(name) if !name.is_empty() => Ok(name.to_owned()),
        _ => Err(Failure::invalid("it is not known who you are")
            .hint(format!("{flag} NAME says it, or the variable GIT_AUTHOR_NAME"))),
    }
}
