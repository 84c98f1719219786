//! Listen addresses.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::net::TcpListener;

use karat_workflows::Error;

/// Binds to an address.
pub(crate) async fn listen(text: &str) -> Result<TcpListener, Error> {
    let address = parse_address(text)?;
    TcpListener::bind(&address).await.map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => Error::unavailable(format!("cannot listen on {address}: the port is in use"))
            .hint("another receiver or an OpenTelemetry collector may be running")
            .hint("pass --listen 127.0.0.1:0 to use any free port"),
        ErrorKind::PermissionDenied => Error::unavailable(format!("cannot listen on {address}: permission denied"))
            .hint("ports from 1024 need no privileges"),
        _ => Error::invalid(format!("cannot listen on {address}: {error}"))
            .hint("pass an address of this machine: 127.0.0.1, [::1], or 0.0.0.0 for all"),
    })
}

/// Returns the host and port; a port alone is on localhost.
fn parse_address(text: &str) -> Result<String, Error> {
    let invalid = |hint: String| Error::invalid(format!("'{text}' is not a valid listen address")).hint(hint);
    if text.parse::<u16>().is_ok() {
        return Ok(format!("127.0.0.1:{text}"));
    }
    if let Some((_, rest)) = text.split_once("://") {
        return Err(invalid(format!("did you mean '{}'?", rest.split('/').next().unwrap_or_default())));
    }
    match text.rsplit_once(':') {
        Some(("", port)) => Err(invalid(format!("did you mean '127.0.0.1:{port}'?"))),
        Some((host, port)) if port.parse::<u16>().is_ok() && (!host.contains(':') || host.starts_with('[')) => {
            Ok(text.to_owned())
        }
        _ => Err(invalid("expected HOST:PORT, for example 127.0.0.1:4318 or [::1]:4318".to_owned())),
    }
}

/// Returns the URL for an SDK on this machine.
pub(crate) fn base_url(address: SocketAddr) -> String {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    format!("http://{}", SocketAddr::new(ip, address.port()))
}

/// Whether other machines can connect.
pub(crate) fn is_remote_accessible(ip: IpAddr) -> bool {
    !ip.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use karat_workflows::Hint;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("4318", Ok("127.0.0.1:4318"))]
    #[case("0.0.0.0:0", Ok("0.0.0.0:0"))]
    #[case("[::1]:4318", Ok("[::1]:4318"))]
    #[case("localhost:4318", Ok("localhost:4318"))]
    #[case("http://localhost:4318/v1", Err("did you mean 'localhost:4318'?"))]
    #[case(":4318", Err("did you mean '127.0.0.1:4318'?"))]
    #[case("localhost", Err("expected HOST:PORT, for example 127.0.0.1:4318 or [::1]:4318"))]
    #[case("::1:4318", Err("expected HOST:PORT, for example 127.0.0.1:4318 or [::1]:4318"))]
    #[case("127.0.0.1:70000", Err("expected HOST:PORT, for example 127.0.0.1:4318 or [::1]:4318"))]
    #[case("", Err("expected HOST:PORT, for example 127.0.0.1:4318 or [::1]:4318"))]
    fn parses_addresses(#[case] text: &str, #[case] expected: Result<&str, &str>) {
        let result = parse_address(text);
        let result = result.as_ref().map(String::as_str).map_err(|error| error.hints[0].clone());
        assert_eq!(result, expected.map_err(Hint::from));
    }

    #[rstest]
    #[case("127.0.0.1:1", "http://127.0.0.1:1", false)]
    #[case("0.0.0.0:1", "http://127.0.0.1:1", true)]
    #[case("[::]:1", "http://[::1]:1", true)]
    #[case("192.168.0.7:1", "http://192.168.0.7:1", true)]
    #[case("[::ffff:127.0.0.1]:1", "http://[::ffff:127.0.0.1]:1", false)]
    fn shows_base_url(#[case] address: SocketAddr, #[case] url: &str, #[case] is_remote: bool) {
        assert_eq!((base_url(address).as_str(), is_remote_accessible(address.ip())), (url, is_remote));
    }
}
