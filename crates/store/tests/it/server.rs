//! Errors of PostgreSQL connections name the problem but never the password.

use karat_store::{Location, Store};
use rstest::rstest;

use crate::support::postgres_url;

async fn connection_error(url: &str) -> (String, String) {
    let error = Store::open(&Location::Postgres(url.to_owned())).await.expect_err("an error");
    let hint = error.hint.clone().unwrap_or_default();
    for text in [&error.message, &hint, &format!("{error:?}")] {
        assert!(!text.contains("hunter2"), "{text}");
    }
    (error.message, hint)
}

#[tokio::test]
async fn reports_an_unreachable_server() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
    let (message, hint) = connection_error(&format!("postgres://karat:hunter2@127.0.0.1:{port}/karat")).await;
    assert!(message.starts_with(&format!("cannot connect to PostgreSQL at 127.0.0.1:{port}/karat: ")), "{message}");
    assert!(hint.contains("check that the server is running"), "{hint}");
}

#[rstest]
#[case("postgres://karat:hunter2@host:port/db")]
#[case("postgres://karat:hunter2@[::1/db")]
#[case("postgres://karat:hunter2@host/db?sslmode=hunter2")]
#[tokio::test]
async fn reports_an_invalid_url(#[case] url: &str) {
    let (message, hint) = connection_error(url).await;
    assert_eq!(message, "invalid store URL");
    assert!(hint.contains("postgres://USER:PASSWORD@HOST:PORT/DATABASE"), "{hint}");
}

#[rstest]
#[case("postgres://me:p@hunter2/word@host/db")]
#[case("postgres://me:/hunter2=@localhost/db")]
#[case("postgres://me:x@hunter2?y@localhost/db")]
#[case("postgres://u:SEC@hunter2#x@localhost:1/db")]
#[case::escaped("postgres://me:1/hunter2%40localhost/db")]
#[tokio::test]
async fn hides_an_unescaped_password(#[case] url: &str) {
    let (message, hint) = connection_error(url).await;
    assert_eq!(message, "invalid store URL");
    assert!(hint.contains("%2F for /"), "{hint}");
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn reports_a_missing_schema() {
    let url = postgres_url();
    let separator = if url.contains('?') { '&' } else { '?' };
    let (message, hint) = connection_error(&format!("{url}{separator}options=-csearch_path%3Dkarat_nowhere")).await;
    assert!(message.ends_with("has no schema for karat: its search_path is karat_nowhere"), "{message}");
    assert!(hint.starts_with("create it with: create schema karat_nowhere"), "{hint}");
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn reports_a_missing_database() {
    let url = postgres_url();
    let (server, _) = url.split('?').next().and_then(|url| url.rsplit_once('/')).expect("a database");
    let (message, hint) = connection_error(&format!("{server}/karat_nowhere")).await;
    assert!(message.ends_with("has no database 'karat_nowhere'"), "{message}");
    assert_eq!(hint, "create it with: createdb karat_nowhere");
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn reports_a_rejected_user() {
    let url = postgres_url();
    let rest = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
    let server = rest.rsplit_once('@').map_or(rest, |(_, server)| server);
    let (message, hint) = connection_error(&format!("postgres://nobody_here:hunter2@{server}")).await;
    assert!(message.contains("rejected the user 'nobody_here'"), "{message}");
    assert!(hint.contains("KARAT_STORE"), "{hint}");
}
