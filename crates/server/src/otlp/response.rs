//! Responses in the encoding of the request.

use axum::body::Body;
use axum::http::header::{ACCEPT_ENCODING, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, Response, StatusCode};
use opentelemetry_proto::tonic::collector::logs::v1::{ExportLogsPartialSuccess, ExportLogsServiceResponse};
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTracePartialSuccess, ExportTraceServiceResponse};
use prost::Message as _;
use serde_json::{Value, json};

use super::Signal;
use super::encoding::Encoding;

/// Value of `Retry-After`, in seconds.
const RETRY_AFTER_SECONDS: HeaderValue = HeaderValue::from_static("2");

/// An error in OTLP: `google.rpc.Status`, of which OTLP uses only the message.
#[derive(Clone, PartialEq, prost::Message)]
struct Status {
    #[prost(string, tag = "2")]
    message: String,
}

/// Part of a request was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PartialSuccess {
    pub(super) rejected: u64,
    pub(super) message: String,
}

/// Acknowledges a request, with the part that was refused.
pub(super) fn success_response(signal: Signal, encoding: Encoding, partial: Option<PartialSuccess>) -> Response<Body> {
    let body = match encoding {
        Encoding::Protobuf => protobuf(signal, partial),
        Encoding::Json => json(signal, partial).to_string().into_bytes(),
    };
    respond(StatusCode::OK, encoding.media_type(), body)
}

fn protobuf(signal: Signal, partial: Option<PartialSuccess>) -> Vec<u8> {
    let count = |rejected: u64| i64::try_from(rejected).unwrap_or(i64::MAX);
    match signal {
        Signal::Traces => {
            let partial_success = partial.map(|PartialSuccess { rejected, message }| ExportTracePartialSuccess {
                rejected_spans: count(rejected),
                error_message: message,
            });
            ExportTraceServiceResponse { partial_success }.encode_to_vec()
        }
        Signal::Logs => {
            let partial_success = partial.map(|PartialSuccess { rejected, message }| ExportLogsPartialSuccess {
                rejected_log_records: count(rejected),
                error_message: message,
            });
            ExportLogsServiceResponse { partial_success }.encode_to_vec()
        }
    }
}

fn json(signal: Signal, partial: Option<PartialSuccess>) -> Value {
    let Some(PartialSuccess { rejected, message }) = partial else { return json!({}) };
    let key = match signal {
        Signal::Traces => "rejectedSpans",
        Signal::Logs => "rejectedLogRecords",
    };
    // 64-bit integers are strings in protobuf JSON.
    json!({"partialSuccess": {key: rejected.to_string(), "errorMessage": message}})
}

/// Refuses a request; without an encoding, the response is plain text.
pub(super) fn error_response(status: StatusCode, encoding: Option<Encoding>, message: &str) -> Response<Body> {
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
            response.headers_mut().insert(RETRY_AFTER, RETRY_AFTER_SECONDS);
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
