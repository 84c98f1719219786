//! Where a database is.

use std::fmt;
use std::path::PathBuf;

/// Where the database is.
#[derive(Clone, PartialEq, Eq)]
pub enum Location {
    /// A file of SQLite's; it and its folder are made when they are not there.
    File(PathBuf),
    /// A URL with the user, and perhaps the password.
    Postgres(String),
}

/// Says where it is without what is secret.
impl fmt::Display for Location {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::File(path) => write!(out, "{}", path.display()),
            Location::Postgres(url) => out.write_str(&without_secrets(url)),
        }
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Location({self})")
    }
}

/// Leaves a URL's host and path: the user's part and the parameters may hold a password.
fn without_secrets(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("postgres", url));
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    // A password may hold any of `/@:`, so that only what stands after the last `@` is known to be none.
    let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
    format!("{scheme}://{place}")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("postgres://karat:hunter2@localhost:5433/db?sslmode=require", "postgres://localhost:5433/db")]
    #[case("postgresql://localhost/db", "postgresql://localhost/db")]
    #[case("postgres://u:p@ss@host/db", "postgres://host/db")]
    #[case("postgres://host/db?password=hunter2", "postgres://host/db")]
    #[case("postgres://u:p/ss@host/db", "postgres://host/db")]
    fn a_password_is_never_shown(#[case] url: &str, #[case] shown: &str) {
        let location = Location::Postgres(url.to_owned());
        assert_eq!(location.to_string(), shown);
        assert_eq!(format!("{location:?}"), format!("Location({shown})"));
    }
}
