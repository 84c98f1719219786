//! HTTPS and HTTP/2 with a server that has a self-signed certificate.

use serde_json::json;

use crate::support::{ok_case, only_result, project};
use karat_testkit::server::HttpsServer;

#[test]
fn uses_http2_when_offered() {
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
fn rejects_an_untrusted_certificate() {
    let server = HttpsServer::start();
    let project = project().file("evals/x.golden.json", json!([ok_case("gs-x-001", "m")]));
    let output = project.run(["run", "--agent-endpoint", &server.endpoint()]);
    assert_eq!(output.code, Some(3), "{}", output.both());
    let error = only_result(&project, "evals/results")["cases"][0]["error"].as_str().unwrap().to_owned();
    assert!(error.to_lowercase().contains("certificate"), "{error}");
}
