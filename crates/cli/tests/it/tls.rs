//! HTTPS and HTTP/2, against a real server with a certificate of its own.

use serde_json::json;

use crate::support::{ok_case, only_result, project};
use karat_testkit::server::HttpsServer;

#[test]
fn http2_is_spoken_where_it_is_offered() {
    let server = HttpsServer::start();
    let project = project()
        .file("ca.pem", server.certificate())
        .file("evals/x.golden.json", json!([ok_case("gs-x-001", "m"), ok_case("gs-x-002", "m")]));
    let output = project
        .command(["run", "--agent-endpoint", &server.endpoint()])
        .env("SSL_CERT_FILE", project.path().join("ca.pem"))
        .run();
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert_eq!(server.versions(), ["HTTP/2.0", "HTTP/2.0"]);
}

#[test]
fn a_certificate_that_nobody_trusts_is_an_error() {
    let server = HttpsServer::start();
    let project = project().file("evals/x.golden.json", json!([ok_case("gs-x-001", "m")]));
    let output = project.run(["run", "--agent-endpoint", &server.endpoint()]);
    assert_eq!(output.code, Some(3), "{}", output.both());
    let error = only_result(&project, "evals/results")["cases"][0]["error"].as_str().unwrap().to_owned();
    assert!(error.to_lowercase().contains("certificate"), "{error}");
}
