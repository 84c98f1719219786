//! Where to listen.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::net::TcpListener;

use karat_workflows::Error;

/// Listens there, or says why it cannot.
pub(super) async fn listen(text: &str) -> Result<TcpListener, Error> {
    let address = written(text)?;
    TcpListener::bind(&address).await.map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => Error::unavailable(format!("cannot listen on {address}: the port is taken"))
            .hint("another receiver or an OpenTelemetry collector may be there")
            .hint("--listen 127.0.0.1:0 takes any port that is free, and says which"),
        ErrorKind::PermissionDenied => {
            Error::unavailable(format!("cannot listen on {address}: this port needs more rights"))
                .hint("ports from 1024 on need none")
        }
        _ => Error::invalid(format!("cannot listen on {address}: {error}"))
            .hint("the host is a name or an address of this machine: 127.0.0.1, [::1], 0.0.0.0 for all"),
    })
}

/// Returns what is meant as a host with a port; a port alone is this machine's.
fn written(text: &str) -> Result<String, Error> {
    let invalid = |hint: String| Error::invalid(format!("'{text}' is no place to listen")).hint(hint);
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
        _ => Err(invalid("HOST:PORT, for example 127.0.0.1:4318 or [::1]:4318".to_owned())),
    }
}

/// Returns what an SDK on this machine is to be told.
pub(super) fn base_url(address: SocketAddr) -> String {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    format!("http://{}", SocketAddr::new(ip, address.port()))
}

/// Tells whether other machines can write.
pub(super) fn reaches_others(ip: IpAddr) -> bool {
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
    #[case("localhost", Err("HOST:PORT, for example 127.0.0.1:4318 or [::1]:4318"))]
    #[case("::1:4318", Err("HOST:PORT, for example 127.0.0.1:4318 or [::1]:4318"))]
    #[case("127.0.0.1:70000", Err("HOST:PORT, for example 127.0.0.1:4318 or [::1]:4318"))]
    #[case("", Err("HOST:PORT, for example 127.0.0.1:4318 or [::1]:4318"))]
    fn an_address_is_read(#[case] text: &str, #[case] expected: Result<&str, &str>) {
        let found = written(text);
        let found = found.as_ref().map(String::as_str).map_err(|error| error.hints[0].clone());
        assert_eq!(found, expected.map_err(Hint::from));
    }

    #[rstest]
    #[case("127.0.0.1:1", "http://127.0.0.1:1", false)]
    #[case("0.0.0.0:1", "http://127.0.0.1:1", true)]
    #[case("[::]:1", "http://[::1]:1", true)]
    #[case("192.168.0.7:1", "http://192.168.0.7:1", true)]
    #[case("[::ffff:127.0.0.1]:1", "http://[::ffff:127.0.0.1]:1", false)]
    fn an_address_is_shown(#[case] address: SocketAddr, #[case] url: &str, #[case] others: bool) {
        assert_eq!((base_url(address).as_str(), reaches_others(address.ip())), (url, others));
    }
}
