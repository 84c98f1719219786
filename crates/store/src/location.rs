//! Locations of databases.

use std::fmt;
use std::path::PathBuf;

/// The location of a database.
#[derive(Clone, PartialEq, Eq)]
pub enum Location {
    /// An SQLite file; it and its folder are created if missing.
    File(PathBuf),
    /// A URL, which may contain the user and password.
    Postgres(String),
}

/// Shows the location without secrets.
impl fmt::Display for Location {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::File(path) => write!(out, "{}", path.display()),
            Location::Postgres(url) => out.write_str(&redact_url(url)),
        }
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Location({self})")
    }
}

/// URL parameters whose values may contain an `@`; they are never shown.
const PARAMETERS_WITH_AT: [&str; 7] =
    ["user", "password", "application_name", "options", "sslrootcert", "sslcert", "sslkey"];

/// Whether a URL seems to contain an unescaped password: one of `/?#` in it ends the host, and its `@` is left in a
/// later part. The host and database that are shown would then be a part of the password.
pub(crate) fn has_unescaped_password(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (_, after) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (after, fragment) = after.split_once('#').unwrap_or((after, ""));
    let (path, query) = after.split_once('?').unwrap_or((after, ""));
    let is_parameter = |part: &str| part.split_once('=').is_some_and(|(key, _)| PARAMETERS_WITH_AT.contains(&key));
    let is_remainder = |part: &str| part.contains('@') && !is_parameter(part);
    path.contains('@') || fragment.contains('@') || query.split('&').any(is_remainder)
}

/// Returns a URL's scheme, host and path: user info and parameters may contain a password.
fn redact_url(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("postgres", url));
    if has_unescaped_password(url) {
        // Any part may belong to the password.
        return format!("{scheme}://***");
    }
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    // A password may contain `@`, so only the part after the last one is safe.
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    format!("{scheme}://{host}")
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
    fn hides_passwords(#[case] url: &str, #[case] displayed: &str) {
        let location = Location::Postgres(url.to_owned());
        assert_eq!(location.to_string(), displayed);
        assert_eq!(format!("{location:?}"), format!("Location({displayed})"));
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
    fn detects_unescaped_passwords(#[case] url: &str, #[case] expected: bool) {
        assert_eq!(has_unescaped_password(url), expected);
    }
}
