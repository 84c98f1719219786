//! An HTTPS agent with a self-signed certificate and HTTP/2.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// A server on loopback that answers every request with `{"response": "ok"}`. It stops when dropped.
#[derive(Debug)]
pub struct HttpsServer {
    address: SocketAddr,
    certificate: String,
    versions: Arc<Mutex<Vec<String>>>,
    /// Dropping it stops the server.
    _stop: oneshot::Sender<()>,
}

impl HttpsServer {
    /// Starts on a free port with a new certificate for `localhost`.
    pub fn start() -> Self {
        let issued = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("create a certificate");
        let acceptor = acceptor(&issued);
        let (runtime, listener, address) = super::listen();
        let (stop, stopped) = oneshot::channel();
        let versions = Arc::new(Mutex::new(Vec::new()));
        let request_versions = Arc::clone(&versions);
        std::thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = accept(listener, acceptor, request_versions) => {}
                    _ = stopped => {}
                }
            });
        });
        Self { address, certificate: issued.cert.pem(), versions, _stop: stop }
    }

    /// Returns the URL of the agent.
    pub fn endpoint(&self) -> String {
        format!("https://localhost:{}/chat", self.address.port())
    }

    /// Returns the certificate that a client must trust, as PEM.
    pub fn certificate(&self) -> String {
        self.certificate.clone()
    }

    /// Returns the HTTP version of each request.
    pub fn versions(&self) -> Vec<String> {
        self.versions.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn acceptor(issued: &rcgen::CertifiedKey<rcgen::KeyPair>) -> TlsAcceptor {
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(issued.signing_key.serialize_der()));
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(vec![issued.cert.der().clone()], key))
        .expect("the certificate matches its key");
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, versions: Arc<Mutex<Vec<String>>>) {
    while let Ok((socket, _)) = listener.accept().await {
        let (acceptor, versions) = (acceptor.clone(), Arc::clone(&versions));
        tokio::spawn(async move {
            // A client that does not trust the certificate closes the connection.
            let Ok(stream) = acceptor.accept(socket).await else { return };
            let service = service_fn(move |request: Request<Incoming>| {
                versions.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{:?}", request.version()));
                async move {
                    let _ = request.into_body().collect().await;
                    Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(br#"{"response": "ok"}"#))))
                }
            });
            let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
