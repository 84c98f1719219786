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

/// The parameters of a URL whose values may have an `@`; none of them is told.
const MAY_HAVE_AT: [&str; 7] = ["user", "password", "application_name", "options", "sslrootcert", "sslcert", "sslkey"];

/// Tells whether a password has torn a URL apart: one of `/?#` in it ends the server's name, and an `@` is left behind. What
/// is taken for the server and the database, and told, would be of the password then.
pub(crate) fn is_torn(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (_, after) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (after, fragment) = after.split_once('#').unwrap_or((after, ""));
    let (path, query) = after.split_once('?').unwrap_or((after, ""));
    let is_parameter = |part: &str| part.split_once('=').is_some_and(|(key, _)| MAY_HAVE_AT.contains(&key));
    let is_left = |part: &str| part.contains('@') && !is_parameter(part);
    path.contains('@') || fragment.contains('@') || query.split('&').any(is_left)
}

/// Leaves a URL's host and path: the user's part and the parameters may hold a password.
fn without_secrets(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("postgres", url));
    if is_torn(url) {
        // Nobody knows which part of it is the password.
        return format!("{scheme}://***");
    }
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
    #[case("postgres://u:p/ss@host/db", "postgres://***")]
    #[case("postgres://u:x@SECRET?y@host/db", "postgres://***")]
    fn a_password_is_never_shown(#[case] url: &str, #[case] shown: &str) {
        let location = Location::Postgres(url.to_owned());
        assert_eq!(location.to_string(), shown);
        assert_eq!(format!("{location:?}"), format!("Location({shown})"));
    }

    #[rstest]
    #[case("postgres://me:12/34@host/db", true)]
    #[case("postgres://me:12?34@host/db", true)]
    #[case("postgres://me:12#34@host/db", true)]
    #[case("postgres://me:12/3?4@host/db", true)]
    #[case("postgres://me:p@ss/word@host/db", true)]
    #[case("postgres://me:/abcSECRET=@localhost/db", true)]
    #[case("postgres://me:x@SECRET?y@localhost/db", true)]
    #[case("postgres://me:x@SECRET?y=@localhost/db", true)]
    #[case("postgres://me:1?dbname=SECRET@localhost/db", true)]
    #[case("postgres://me:12?34@host/db?sslmode=require", true)]
    #[case("postgres://u:SEC@RET#x@localhost:1/db", true)]
    #[case("postgres://me:12%2F34@host/db", false)]
    #[case("postgres://me:p@ss@host:5432/db", false)]
    #[case("postgres://host/db", false)]
    #[case("postgres://host/db?user=me@there&password=a@b", false)]
    #[case("postgres://me:karat@host/db?options=-csearch_path%3Dkarat", false)]
    fn a_torn_url_is_found(#[case] url: &str, #[case] torn: bool) {
        assert_eq!(is_torn(url), torn);
    }
}
