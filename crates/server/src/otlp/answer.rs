//! What a sender is told, in the encoding that it speaks.

use axum::body::Body;
use axum::http::header::{ACCEPT_ENCODING, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, Response, StatusCode};
use opentelemetry_proto::tonic::collector::logs::v1::{ExportLogsPartialSuccess, ExportLogsServiceResponse};
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTracePartialSuccess, ExportTraceServiceResponse};
use prost::Message as _;
use serde_json::{Value, json};

use super::Signal;
use super::encoding::Encoding;

/// How long a sender shall wait before it tries again, in seconds.
const PAUSE: HeaderValue = HeaderValue::from_static("2");

/// What went wrong, as OTLP says it: google.rpc's message of this name, of which OTLP uses the text alone.
#[derive(Clone, PartialEq, prost::Message)]
struct Status {
    #[prost(string, tag = "2")]
    message: String,
}

/// Some of what was sent was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Partial {
    pub(super) rejected: u64,
    pub(super) message: String,
}

/// Tells that what was sent is stored, but for what was refused of it.
pub(super) fn stored(signal: Signal, encoding: Encoding, partial: Option<Partial>) -> Response<Body> {
    let body = match encoding {
        Encoding::Protobuf => protobuf(signal, partial),
        Encoding::Json => json(signal, partial).to_string().into_bytes(),
    };
    respond(StatusCode::OK, encoding.media_type(), body)
}

fn protobuf(signal: Signal, partial: Option<Partial>) -> Vec<u8> {
    let count = |rejected: u64| i64::try_from(rejected).unwrap_or(i64::MAX);
    match signal {
        Signal::Traces => {
            let partial_success = partial.map(|Partial { rejected, message }| ExportTracePartialSuccess {
                rejected_spans: count(rejected),
                error_message: message,
            });
            ExportTraceServiceResponse { partial_success }.encode_to_vec()
        }
        Signal::Logs => {
            let partial_success = partial.map(|Partial { rejected, message }| ExportLogsPartialSuccess {
                rejected_log_records: count(rejected),
                error_message: message,
            });
            ExportLogsServiceResponse { partial_success }.encode_to_vec()
        }
    }
}

fn json(signal: Signal, partial: Option<Partial>) -> Value {
    let Some(Partial { rejected, message }) = partial else { return json!({}) };
    let key = match signal {
        Signal::Traces => "rejectedSpans",
        Signal::Logs => "rejectedLogRecords",
    };
    // 64-bit integers are texts in protobuf's JSON.
    json!({"partialSuccess": {key: rejected.to_string(), "errorMessage": message}})
}

/// Tells that nothing was taken; without an encoding, in plain words.
pub(super) fn refused(status: StatusCode, encoding: Option<Encoding>, message: &str) -> Response<Body> {
    let mut response = match encoding {
        Some(Encoding::Protobuf) => {
            let body = Status { message: message.to_owned() }.encode_to_vec();
            respond(status, Encoding::Protobuf.media_type(), body)
        }
        Some(Encoding::Json) => {
            respond(status, Encoding::Json.media_type(), json!({"message": message}).to_string().into_bytes())
        }
        None => respond(status, "text/plain; charset=utf-8", format!("{message}\n").into_bytes()),
    };
    match status {
        StatusCode::SERVICE_UNAVAILABLE => {
            response.headers_mut().insert(RETRY_AFTER, PAUSE);
        }
        StatusCode::UNSUPPORTED_MEDIA_TYPE => {
            response.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip, deflate"));
        }
        _ => {}
    }
    response
}

fn respond(status: StatusCode, media_type: &'static str, body: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}
