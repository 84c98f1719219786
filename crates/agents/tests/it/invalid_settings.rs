//! Invalid settings are rejected before anything is sent, and errors contain no secrets.

use karat_agents::{ClientError, HttpAgent, HttpAgentError, HttpConfig, MissingVariable, expand_variables};
use rstest::rstest;

fn client_error(url: &str, headers: &[(&str, &str)]) -> ClientError {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    match HttpAgent::new(url, HttpConfig { headers, ..HttpConfig::default() }, &|_| None) {
        Err(HttpAgentError::Client(error)) => error,
        other => panic!("{url}: {other:?}"),
    }
}

#[rstest]
#[case("", "'' is not a URL: relative URL without a base")]
#[case("localhost/chat", "'localhost/chat' is not a URL: relative URL without a base")]
#[case("http://", "'http://' is not a URL: empty host")]
#[case("http://host:99999/chat", "'http://host:99999/chat' is not a URL: invalid port number")]
#[case("http://ho st/", "'http://ho st/' is not a URL: invalid international domain name")]
#[case("localhost:3000", "'localhost:3000' is not a URL: expected http or https, found 'localhost'")]
#[case("ftp://host/chat", "'ftp://host/chat' is not a URL: expected http or https, found 'ftp'")]
#[case("file:///etc/passwd", "'file:///etc/passwd' is not a URL: expected http or https, found 'file'")]
fn rejects_invalid_urls(#[case] url: &str, #[case] message: &str) {
    let error = client_error(url, &[]);
    assert!(matches!(error, ClientError::Url { .. }), "{error:?}");
    assert_eq!(error.to_string(), message);
}

#[rstest]
#[case("http://me:s3cr3t@host:99999/chat", "'http://host:99999/chat' is not a URL")]
#[case("http://me:s3cr3t@ho st/?q=1", "'http://ho st/' is not a URL")]
#[case("http://host:x/chat?api_key=s3cr3t&b=a@b", "'http://…' is not a URL")]
#[case("http://host:x/chat#s3cr3t", "'http://host:x/chat' is not a URL")]
#[case("http://me:s3cr3t?#@host:x/", "'http://…' is not a URL")]
#[case("http://me:s3@cr3t@host:x/", "'http://host:x/' is not a URL")]
#[case("ftp://me:s3cr3t@host/", "'ftp://host/' is not a URL")]
#[case("me:s3cr3t@host/chat", "'host/chat' is not a URL")]
#[case("/chat?key=s3cr3t", "'/chat' is not a URL")]
#[case("host:80/chat?key=s3cr3t&next=http://x", "'host:80/chat' is not a URL")]
#[case("me:s3cr3t@host?next=http://x", "'host' is not a URL")]
fn invalid_urls_are_redacted_in_errors(#[case] url: &str, #[case] start: &str) {
    let error = client_error(url, &[]);
    assert!(error.to_string().starts_with(start), "{error}");
    for text in [error.to_string(), format!("{error:?}")] {
        assert!(!text.contains("s3") && !text.contains("cr3t"), "{text}");
    }
}

#[rstest]
#[case::line_break("x-key", "s3cr3t\nx-other: 1")]
#[case::carriage_return("x-key", "s3cr3t\r")]
#[case::zero("x-key", "s3cr3t\0")]
#[case::rubout("x-key", "s3cr3t\u{7f}")]
fn rejects_invalid_header_values(#[case] name: &str, #[case] value: &str) {
    let error = client_error("http://127.0.0.1:9/", &[("x-fine", "s3cr3t"), (name, value)]);
    assert_eq!(error.to_string(), "cannot send the header 'x-key': its value contains forbidden characters");
    assert!(!format!("{error:?}").contains("s3cr3t"), "{error:?}");
}

/// Only one of the two could be sent.
#[rstest]
#[case("http://me:s3cr3t@host/")]
#[case("http://s3cr3t@host/")]
#[case("http://:s3cr3t@host/")]
fn rejects_credentials_in_both_url_and_header(#[case] url: &str) {
    let error = client_error(url, &[("AUTHORIZATION", "Bearer s3cr3t")]);
    assert_eq!(
        error.to_string(),
        "cannot send the header 'authorization': the user and password in the URL would replace it"
    );
    let headers = [("authorization".to_owned(), "x".to_owned())].into();
    assert!(HttpAgent::new("http://host/", HttpConfig { headers, ..HttpConfig::default() }, &|_| None).is_ok());
}

#[rstest]
#[case("")]
#[case("x key")]
#[case("x-kéy")]
#[case("x:")]
#[case("x\r\nhost")]
fn rejects_invalid_header_names(#[case] name: &str) {
    let error = client_error("http://127.0.0.1:9/", &[(name, "s3cr3t")]);
    assert_eq!(error.to_string(), format!("cannot send the header '{name}': invalid HTTP header name"));
}

#[rstest]
#[case("${MISSING}", "MISSING")]
#[case("Bearer ${TOKEN} ${_also_2}", "_also_2")]
#[case("${a${MISSING}", "MISSING")]
fn reports_variables_that_are_not_set(#[case] text: &str, #[case] name: &str) {
    let lookup = |name: &str| (name == "TOKEN").then(|| "s3cr3t".to_owned());
    let error = expand_variables(text, &lookup).expect_err(text);
    assert_eq!(error, MissingVariable { name: name.to_owned() });
    assert_eq!(error.to_string(), format!("the environment variable {name} is not set"));
}

#[rstest]
#[case("${A}${B}", "12", &["1", "2"])]
#[case("${A}${A}", "11", &["1", "1"])]
#[case("$A $${A} {A} ${} ${A-B} ${A", "$A $1 {A} ${} ${A-B} ${A", &["1"])]
#[case("${LIKE}", "${A}", &["${A}"])]
#[case("", "", &[])]
#[case("ü${A}ü", "ü1ü", &["1"])]
fn variables_are_not_expanded_recursively(#[case] text: &str, #[case] expected: &str, #[case] secrets: &[&str]) {
    let lookup = |name: &str| match name {
        "A" => Some("1".to_owned()),
        "B" => Some("2".to_owned()),
        "LIKE" => Some("${A}".to_owned()),
        _ => None,
    };
    let expanded = expand_variables(text, &lookup).unwrap();
    assert_eq!(
        (expanded.text.as_str(), &expanded.secrets[..]),
        (expected, &secrets.iter().map(|secret| (*secret).to_owned()).collect::<Vec<_>>()[..])
    );
}
