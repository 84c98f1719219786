//! PostgreSQL that is not there, or does not let karat in: what is wrong is said, and never the password.

use karat_store::{Location, Store};
use rstest::rstest;

use crate::support::postgres_url;

async fn refused(url: &str) -> (String, String) {
    let refused = Store::open(&Location::Postgres(url.to_owned())).await.expect_err("refused");
    let hint = refused.hint.clone().unwrap_or_default();
    for text in [&refused.message, &hint, &format!("{refused:?}")] {
        assert!(!text.contains("hunter2"), "{text}");
    }
    (refused.message, hint)
}

#[tokio::test]
async fn no_server_is_said_so() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
    let (message, hint) = refused(&format!("postgres://karat:hunter2@127.0.0.1:{port}/karat")).await;
    assert!(message.starts_with(&format!("PostgreSQL at 127.0.0.1:{port}/karat cannot be reached: ")), "{message}");
    assert!(hint.contains("make sure that the server runs"), "{hint}");
}

#[rstest]
#[case("postgres://karat:hunter2@host:port/db")]
#[case("postgres://karat:hunter2@[::1/db")]
#[case("postgres://karat:hunter2@host/db?sslmode=hunter2")]
#[tokio::test]
async fn a_url_that_is_none_is_said_so(#[case] url: &str) {
    let (message, hint) = refused(url).await;
    assert_eq!(message, "the store's URL is not valid");
    assert!(hint.contains("postgres://USER:PASSWORD@HOST:PORT/DATABASE"), "{hint}");
}

#[rstest]
#[case("postgres://me:p@hunter2/word@host/db")]
#[case("postgres://me:/hunter2=@localhost/db")]
#[case("postgres://me:x@hunter2?y@localhost/db")]
#[case("postgres://u:SEC@hunter2#x@localhost:1/db")]
#[case::what_is_parsed("postgres://me:1/hunter2%40localhost/db")]
#[tokio::test]
async fn a_password_that_tears_the_url_apart_is_not_told(#[case] url: &str) {
    let (message, hint) = refused(url).await;
    assert_eq!(message, "the store's URL is not valid");
    assert!(hint.contains("%2F for /"), "{hint}");
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn no_schema_is_said_so() {
    let url = postgres_url();
    let between = if url.contains('?') { '&' } else { '?' };
    let (message, hint) = refused(&format!("{url}{between}options=-csearch_path%3Dkarat_nowhere")).await;
    assert!(message.ends_with("has no schema for karat: its search_path is karat_nowhere"), "{message}");
    assert!(hint.starts_with("make it with: create schema karat_nowhere"), "{hint}");
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn no_database_is_said_so() {
    let url = postgres_url();
    let (server, _) = url.split('?').next().and_then(|url| url.rsplit_once('/')).expect("a database");
    let (message, hint) = refused(&format!("{server}/karat_nowhere")).await;
    assert!(message.ends_with("has no database 'karat_nowhere'"), "{message}");
    assert_eq!(hint, "make it with: createdb karat_nowhere");
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn a_user_who_is_not_let_in_is_said_so() {
    let url = postgres_url();
    let rest = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
    let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
    let (message, hint) = refused(&format!("postgres://nobody_here:hunter2@{place}")).await;
    assert!(message.contains("does not let the user 'nobody_here' in"), "{message}");
    assert!(hint.contains("KARAT_STORE"), "{hint}");
}
